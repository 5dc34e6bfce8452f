#include "http/prepare.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "domain/text.h"
#include "http/body.h"
#include "http/query.h"

namespace interlock::http {
namespace {

using Project = std::optional<std::string>;

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
  if (!value.ok()) return std::move(value).error().In("The request body is not valid JSON");
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
  if (kind != BodyKind::kJson && (trimmed.empty() || trimmed == "null")) text = "{}";
  auto value = ParseObject(text);
  if (!value.ok() && kind == BodyKind::kLooseJson) value = json::Value(json::Object());
  if (!value.ok()) return std::move(value).error();
  return std::make_shared<const json::Value>(*std::move(value));
}

struct WithProject {
  std::optional<std::string> project;
};
IL_JSON_FIELDS(WithProject, project)

Error OtherProject(const auth::Caller& caller, std::string_view asked) {
  return Error(Errc::kForbidden, "This key is for the project " + caller.project + " and not for " +
                                     std::string(asked) +
                                     "; name that project, or use a key of the other one.")
      .WithSlug("project_mismatch");
}

Result<Project> FromQuery(const Request& request, ProjectFrom from) {
  const std::string asked(domain::Trim(request.Query("project")));
  if (request.caller.mode == auth::Caller::Mode::kLocal) {
    return asked.empty() ? Project() : Project(asked);
  }
  const bool other = !asked.empty() && asked != request.caller.project;
  if (from == ProjectFrom::kQueryChecked && other) return OtherProject(request.caller, asked);
  return Project(request.caller.project);
}

Result<Project> FromBody(const Request& request) {
  IL_TRY(const WithProject body, DecodeBody<WithProject>(request));
  const std::string asked = body.project.value_or("");
  const std::string_view trimmed = domain::Trim(asked);
  if (asked.find('\0') != std::string::npos) {
    return Error(Errc::kInvalidArgument, "The project holds a NUL byte; remove \\u0000 from it.")
        .WithDetail("field", "project");
  }
  if (request.caller.mode == auth::Caller::Mode::kKey) {
    if (trimmed.empty()) {
      return Error(Errc::kInvalidArgument, "The body names no project; send \"project\":\"" +
                                               request.caller.project +
                                               "\", which this key is for.")
          .WithSlug("project_required")
          .WithDetail("field", "project");
    }
    if (asked != request.caller.project) return OtherProject(request.caller, asked);
  }
  return Project(trimmed);
}

Result<Project> FromPath(const Request& request) {
  const std::string_view asked = domain::Trim(request.Param("project"));
  if (request.caller.mode == auth::Caller::Mode::kKey && asked != request.caller.project) {
    return OtherProject(request.caller, asked);
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

}  // namespace

Result<Request> Prepare(const Route& route, Request request) {
  IL_TRY(request.query_fields, ParseQuery(request.query));
  IL_TRY_VOID(RefuseBlankParams(request));
  IL_TRY(request.json, ParseBody(route.body, request.body));
  IL_TRY(request.project, FindProject(route.project, request));
  return request;
}

}  // namespace interlock::http
