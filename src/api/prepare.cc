#include "api/prepare.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/body.h"
#include "domain/text.h"
#include "http/query.h"

namespace interlock::api {
namespace {

using Project = std::optional<std::string>;

Error WrongParameter(std::string_view name, std::string_view rule) {
  return Error(Errc::kInvalidArgument, "The query parameter " + std::string(name) + " must be " +
                                           std::string(rule) + "; correct it or leave it out.")
      .WithDetail("field", std::string(name));
}

// The first of several values of one name counts.
Result<void> RefuseWrongParameters(const Route& route, const Request& request) {
  using Type = QueryParameter::Type;
  for (const QueryParameter& parameter : route.query) {
    const auto sent = std::ranges::find(request.query_fields, parameter.name,
                                        &std::pair<std::string, std::string>::first);
    if (sent == request.query_fields.end()) continue;
    const std::string& value = sent->second;
    const std::string_view trimmed = domain::Trim(value);
    if (trimmed.empty()) continue;
    if (parameter.type == Type::kInteger && !http::ParseDecimal(trimmed)) {
      return WrongParameter(parameter.name, "a whole number from 0 to 9223372036854775807");
    }
    if (parameter.type == Type::kBoolean && !http::ParseBoolean(trimmed)) {
      return WrongParameter(parameter.name, "true, false, 1 or 0");
    }
  }
  return {};
}

Result<void> RefuseBlankParams(const Request& request) {
  for (const auto& [name, value] : request.params) {
    if (!domain::Trim(value).empty()) continue;
    return Error(Errc::kInvalidArgument,
                 "The path ends before it names the " + std::string(name) + "; add it.")
        .WithDetail("field", std::string(name));
  }
  return {};
}

Result<json::Value> ParseObject(std::string_view text) {
  if (domain::Trim(text).empty()) {
    return Error(Errc::kBadJson, "The request body is empty; send a JSON object.");
  }
  auto value = json::Parse(text, json::kLenient.parse);
  if (!value.ok()) {
    return std::move(value).error().In("Correct the request body, which is not valid JSON");
  }
  if (!value->is_object()) {
    return Error(Errc::kInvalidArgument, "The request body is JSON, but of type " +
                                             std::string(json::KindName(*value)) +
                                             "; send a JSON object.");
  }
  return value;
}

// Null for kNone, else an object.
Result<std::shared_ptr<const json::Value>> ParseBody(BodyKind kind, std::string_view text) {
  if (kind == BodyKind::kNone) return std::shared_ptr<const json::Value>();
  const std::string_view trimmed = domain::Trim(text);
  if (kind == BodyKind::kOptionalJson && (trimmed.empty() || trimmed == "null")) text = "{}";
  IL_TRY(json::Value value, ParseObject(text));
  return std::make_shared<const json::Value>(std::move(value));
}

struct WithProject {
  std::optional<std::string> project;
};
IL_JSON_FIELDS(WithProject, project)

Error OtherProject(const auth::Caller& caller) {
  return Error(Errc::kForbidden, "This key is for the project " + caller.project +
                                     ", which the request does not name; name it, or ask for a key "
                                     "of the project that you mean.")
      .WithSlug("project_mismatch");
}

Result<Project> FromQuery(const Request& request, ProjectFrom from) {
  const std::string asked(domain::ProjectName(request.Query("project")));
  if (request.caller.mode == auth::Caller::Mode::kLocal) {
    return asked.empty() ? Project() : Project(asked);
  }
  const bool other = !asked.empty() && asked != request.caller.project;
  if (from == ProjectFrom::kQueryChecked && other) return OtherProject(request.caller);
  return Project(request.caller.project);
}

Result<Project> FromBody(const Request& request) {
  IL_TRY(const WithProject body, DecodeBody<WithProject>(request));
  const std::string asked = body.project.value_or("");
  const std::string_view name = domain::ProjectName(asked);
  if (asked.find('\0') != std::string::npos) {
    return Error(Errc::kInvalidArgument, "The project holds a NUL byte; remove \\u0000 from it.")
        .WithDetail("field", "project");
  }
  if (request.caller.mode == auth::Caller::Mode::kKey) {
    if (name.empty()) return Project(request.caller.project);
    if (name != request.caller.project) return OtherProject(request.caller);
  }
  return Project(name);
}

Result<Project> FromPath(const Request& request) {
  const std::string_view asked = domain::ProjectName(request.Param("project"));
  if (request.caller.mode == auth::Caller::Mode::kKey && asked != request.caller.project) {
    return OtherProject(request.caller);
  }
  return Project(asked);
}

Result<Project> FindProject(ProjectFrom from, const Request& request) {
  switch (from) {
    case ProjectFrom::kNone:
      return Project();
    case ProjectFrom::kKey:
      if (request.caller.mode == auth::Caller::Mode::kLocal) return Project();
      return Project(request.caller.project);
    case ProjectFrom::kQuery:
    case ProjectFrom::kQueryChecked:
      return FromQuery(request, from);
    case ProjectFrom::kBody:
      return FromBody(request);
    case ProjectFrom::kPath:
      return FromPath(request);
  }
  IL_CHECK(false);
}

struct WithFrom {
  std::optional<std::string> from;
};
IL_JSON_FIELDS(WithFrom, from)

struct WithAgentId {
  std::optional<std::string> agent_id;
};
IL_JSON_FIELDS(WithAgentId, agent_id)

struct WithAgent {
  std::optional<std::string> agent;
};
IL_JSON_FIELDS(WithAgent, agent)

Result<std::string> Recipient(const Request& request) {
  IL_TRY(const WithAgent body, DecodeBody<WithAgent>(request));
  const std::string in_body = body.agent.value_or("");
  const std::string in_query = request.Query("agent");
  for (const std::string_view agent : {std::string_view(in_body), std::string_view(in_query)}) {
    if (!domain::Trim(agent).empty()) return std::string(domain::Trim(agent));
  }
  return request.caller.agent;
}

Result<void> RefuseImpostor(const Request& request, const auth::AccessRules& rules) {
  // Whom the request does not name, the handler may still find: the only recipient of a message.
  if (rules.require_agent_token && domain::Trim(request.actor).empty()) {
    return Error(Errc::kForbidden,
                 "This server wants proof of who writes (--require-agent-token), and the request "
                 "names no agent: name your own, and send its token as X-Agent-Token.")
        .WithSlug("agent_token_required");
  }
  return auth::MayActAs(request.caller, request.actor, rules);
}

}  // namespace

Result<std::string> FindAgent(ActorFrom from, const Request& request) {
  switch (from) {
    case ActorFrom::kNobody:
    case ActorFrom::kNewAgent:
      return std::string();
    case ActorFrom::kBodyFrom: {
      IL_TRY(WithFrom sent, DecodeBody<WithFrom>(request));
      return std::move(sent.from).value_or("");
    }
    case ActorFrom::kBodyAgentId: {
      IL_TRY(WithAgentId sent, DecodeBody<WithAgentId>(request));
      return std::move(sent.agent_id).value_or("");
    }
    case ActorFrom::kCaller:
    case ActorFrom::kAuthor:
      return request.caller.agent;
    case ActorFrom::kPathId:
      return request.Param("id");
    case ActorFrom::kRecipient:
      return Recipient(request);
    case ActorFrom::kPathAgent:
      return std::string(domain::Trim(request.Param("agent")));
    case ActorFrom::kQueryAgent:
      return std::string(domain::Trim(request.Query("agent")));
  }
  IL_CHECK(false);
}

Result<void> Prepare(const Route& route, Request& request, const auth::AccessRules& rules) {
  IL_TRY(request.query_fields, http::ParseQuery(request.query));
  IL_TRY_VOID(RefuseWrongParameters(route, request));
  IL_TRY_VOID(RefuseBlankParams(request));
  auto json = ParseBody(route.body, request.sent.body);
  if (!json.ok() && !route.bad_json.empty()) {
    return std::move(json).error().WithSlug(std::string(route.bad_json));
  }
  IL_TRY(request.json, std::move(json));
  IL_TRY(request.project, FindProject(route.project, request));
  IL_TRY(request.actor, FindAgent(route.actor, request));
  // An agent that has shown its token may call itself by its name.
  if (auth::NamesItself(request.caller, request.actor)) request.actor = request.caller.agent;
  if (route.actor == ActorFrom::kNobody) return {};
  if (route.actor == ActorFrom::kAuthor && request.actor.empty()) return {};
  return RefuseImpostor(request, rules);
}

}  // namespace interlock::api
