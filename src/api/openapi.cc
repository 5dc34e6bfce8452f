#include "api/openapi.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/app.h"
#include "api/routes.h"
#include "json/schema.h"
#include "json/write.h"

namespace interlock::api {
namespace {

using json::Array;
using json::Object;
using json::String;
using json::Value;

constexpr std::string_view kJson = "application/json";

Object Text(std::string_view key, std::string_view text) {
  Object object;
  object.emplace(key, String(text));
  return object;
}

Object Reference(std::string_view kind, std::string_view name) {
  return Text("$ref", "#/components/" + std::string(kind) + "/" + std::string(name));
}

Object Content(std::string_view type, Value schema) {
  Object media;
  media.emplace("schema", std::move(schema));
  Object content;
  content.emplace(type, std::move(media));
  return content;
}

// What any request can be answered with besides what its row says; `name` is that of the shared
// response, and those that look at who asks are only where that is looked at.
struct CommonFailure {
  int status;
  std::string_view name;
  std::string_view meaning;
  bool about_caller = false;
};

constexpr CommonFailure kCommonFailures[] = {
    {400, "BadRequest", "The request, its JSON or one of its fields is not as it must be."},
    {401, "Unauthorized", "A key is needed, or the one sent is not known.", true},
    {403, "Forbidden", "The key, the agent or the origin may not do this.", true},
    {404, "NotFound", "What the path or the body names is not there."},
    {408, "TooSlow", "The request did not arrive in time."},
    {413, "TooLarge", "The body is larger than 1 MiB."},
    {431, "HeaderTooLarge", "The header is larger than 16 KiB."},
    {500, "Internal", "The server made a mistake, and logged it."},
    {503, "Unavailable",
     "The server has no room or its storage does not answer; Retry-After says when to try again."},
};

// A segment of a template: "{id...}" is {id, takes slashes}.
struct PathParameter {
  std::string_view name;
  bool takes_slashes;
};

std::vector<PathParameter> PathParameters(std::string_view path) {
  constexpr std::string_view kRest = "...";
  std::vector<PathParameter> parameters;
  std::size_t open = 0;
  while ((open = path.find('{', open)) != std::string_view::npos) {
    const std::size_t close = path.find('}', open);
    std::string_view name = path.substr(open + 1, close - open - 1);
    const bool rest = name.ends_with(kRest);
    if (rest) name.remove_suffix(kRest.size());
    parameters.push_back({name, rest});
    open = close;
  }
  return parameters;
}

// "/api/inbox/{agent...}" as OpenAPI writes it.
std::string PathTemplate(std::string_view path) {
  std::string text(path);
  if (const std::size_t rest = text.find("...}"); rest != std::string::npos) text.erase(rest, 3);
  return text;
}

// "GET /api/agents/{id}/policy" → "get_api_agents_id_policy"
std::string OperationId(const Route& route) {
  std::string id(MethodName(route.method));
  for (const char c : PathTemplate(route.path)) {
    if (c == '/' || c == '-' || c == '.') {
      id += '_';
    } else if (c != '{' && c != '}') {
      id += c;
    }
  }
  std::ranges::transform(id, id.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return id;
}

// The noun: "agents" of "/api/agents/{id}", "health" of "/health".
std::string_view Tag(std::string_view path) {
  path.remove_prefix(1);
  if (path.starts_with("api/")) path.remove_prefix(4);
  path = path.substr(0, path.find('/'));
  return path.substr(0, path.find('.'));
}

Object Parameter(std::string_view in, std::string_view name, std::string_view meaning,
                 Value schema) {
  Object parameter;
  parameter.emplace("name", String(name));
  parameter.emplace("in", String(in));
  if (in == "path") parameter.emplace("required", true);
  if (!meaning.empty()) parameter.emplace("description", String(meaning));
  parameter.emplace("schema", std::move(schema));
  return parameter;
}

Value QuerySchema(QueryParameter::Type type) {
  switch (type) {
    case QueryParameter::Type::kText:
      return json::StringSchema();
    case QueryParameter::Type::kInteger:
      return json::IntegerSchema();
    case QueryParameter::Type::kBoolean:
      return json::BooleanSchema();
  }
  return json::AnySchema();
}

bool TakesProjectFromQuery(const Route& route) {
  return route.project == ProjectFrom::kQuery || route.project == ProjectFrom::kQueryChecked;
}

Array Parameters(const Route& route) {
  Array parameters;
  for (const PathParameter& parameter : PathParameters(route.path)) {
    Object object =
        Parameter("path", parameter.name, parameter.takes_slashes ? "May hold slashes." : "",
                  json::StringSchema());
    if (parameter.takes_slashes) object.emplace("x-takes-slashes", true);
    parameters.push_back(std::move(object));
  }
  for (const QueryParameter& parameter : route.query) {
    parameters.push_back(
        Parameter("query", parameter.name, parameter.meaning, QuerySchema(parameter.type)));
  }
  const bool named = std::ranges::any_of(
      route.query, [](const QueryParameter& parameter) { return parameter.name == "project"; });
  if (TakesProjectFromQuery(route) && !named) {
    parameters.push_back(Reference("parameters", "Project"));
  }
  if (route.access != Access::kAnyone) parameters.push_back(Reference("parameters", "AgentId"));
  return parameters;
}

Object RequestBody(const Route& route) {
  Object body;
  body.emplace("required", route.body == BodyKind::kJson);
  body.emplace("content", Content(kJson, route.body_schema()));
  return body;
}

Object Success(const Route& route) {
  Object response = Text("description", route.answer_schema != nullptr || !route.answer_type.empty()
                                            ? "It is done."
                                            : "It is done; there is no body.");
  if (route.answer_schema != nullptr) {
    response.emplace("content", Content(kJson, route.answer_schema()));
  } else if (!route.answer_type.empty()) {
    response.emplace("content", Content(route.answer_type, json::StringSchema()));
  }
  return response;
}

Object Failing(std::string_view meaning) {
  Object response = Text("description", meaning);
  response.emplace("content", Content(kJson, Reference("schemas", "Error")));
  return response;
}

Object Responses(const Route& route) {
  std::vector<std::pair<int, Object>> all;
  all.emplace_back(route.success, Success(route));
  for (const Failure& failure : route.failures) {
    all.emplace_back(failure.status, Failing(failure.meaning));
  }
  for (const CommonFailure& failure : kCommonFailures) {
    if (failure.about_caller && route.access == Access::kAnyone) continue;
    if (std::ranges::find(all, failure.status, &std::pair<int, Object>::first) != all.end()) {
      continue;  // the row says it more precisely
    }
    all.emplace_back(failure.status, Reference("responses", failure.name));
  }
  std::ranges::sort(all, {}, &std::pair<int, Object>::first);
  Object responses;
  for (auto& [status, response] : all) {
    responses.emplace(std::to_string(status), std::move(response));
  }
  return responses;
}

// Each entry is one way to be let in; the empty one is a request from this machine.
Array Security(const Route& route) {
  Array ways;
  if (route.access == Access::kAnyone) return ways;
  const auto way = [&](std::initializer_list<std::string_view> schemes) {
    Object object;
    for (const std::string_view scheme : schemes) object.emplace(scheme, Array());
    ways.push_back(std::move(object));
  };
  way({});
  way({"key"});
  way({"agent_token"});
  way({"key", "agent_token"});
  return ways;
}

Object Operation(const Route& route) {
  Object operation;
  operation.emplace("operationId", OperationId(route));
  operation.emplace("summary", String(route.summary));
  Array tags;
  tags.push_back(String(Tag(route.path)));
  operation.emplace("tags", std::move(tags));
  operation.emplace("security", Security(route));
  // With --require-agent-token it takes the token of that agent, and of an author if it names one.
  const bool may_name_nobody =
      route.actor == ActorFrom::kNobody || route.actor == ActorFrom::kAuthor;
  if (!may_name_nobody) operation.emplace("x-acts-as-agent", true);
  if (Array parameters = Parameters(route); !parameters.empty()) {
    operation.emplace("parameters", std::move(parameters));
  }
  if (route.body_schema != nullptr) operation.emplace("requestBody", RequestBody(route));
  operation.emplace("responses", Responses(route));
  return operation;
}

Object Paths(std::span<const Route> routes) {
  Object paths;
  for (const Route& route : routes) {
    Value& item = paths[PathTemplate(route.path)];
    if (!item.is_object()) item.emplace_object();
    std::string method(MethodName(route.method));
    std::ranges::transform(method, method.begin(), [](char c) { return char(c - 'A' + 'a'); });
    item.get_object().emplace(method, Operation(route));
  }
  return paths;
}

Object SecuritySchemes() {
  Object key = Text("type", "http");
  key.emplace("scheme", "bearer");
  key.emplace("description",
              "A key of the keys file; it opens its project and no other. Requests from this "
              "machine need none where the keys file allows that.");
  Object token = Text("type", "apiKey");
  token.emplace("in", "header");
  token.emplace("name", "X-Agent-Token");
  token.emplace("description",
                "The token that an agent got when it registered: proof that a request is its.");
  Object schemes;
  schemes.emplace("key", std::move(key));
  schemes.emplace("agent_token", std::move(token));
  return schemes;
}

Object Components() {
  Object schemas;
  schemas.emplace("Error", json::ObjectSchema({{"error", json::StringSchema()},
                                               {"message", json::StringSchema()}}));
  Object responses;
  for (const CommonFailure& failure : kCommonFailures) {
    responses.emplace(failure.name, Failing(failure.meaning));
  }
  Object parameters;
  parameters.emplace("Project", Parameter("query", "project",
                                          "The project; with a key, the key's is meant. Without "
                                          "either, every project where that makes sense.",
                                          json::StringSchema()));
  parameters.emplace("AgentId",
                     Parameter("header", "X-Agent-ID",
                               "The agent that asks; must be the token's where one is sent.",
                               json::StringSchema()));
  Object components;
  components.emplace("schemas", std::move(schemas));
  components.emplace("responses", std::move(responses));
  components.emplace("parameters", std::move(parameters));
  components.emplace("securitySchemes", SecuritySchemes());
  return components;
}

Value OpenApiSchema() {
  return json::ObjectSchema({{"openapi", json::StringSchema()},
                             {"jsonSchemaDialect", json::StringSchema()},
                             {"info", json::MapSchema(json::StringSchema())},
                             {"paths", json::MapSchema(json::MapSchema(json::AnySchema()))},
                             {"components", json::MapSchema(json::MapSchema(json::AnySchema()))}});
}

boost::asio::awaitable<Result<Response>> GetOpenApi(App& app, Request& /*request*/) {
  static const std::string kText = OpenApiText(Routes(), app.version);
  co_return Response::Json(200, kText);
}

}  // namespace

std::string OpenApiText(std::span<const Route> routes, std::string_view version) {
  Object info = Text("title", "intermute");
  info.emplace("version", String(version));
  info.emplace("description",
               "Lets agents that work on the same code find each other and write to each other.");
  Object document = Text("openapi", "3.1.0");
  document.emplace("jsonSchemaDialect", "https://json-schema.org/draft/2020-12/schema");
  document.emplace("info", std::move(info));
  document.emplace("paths", Paths(routes));
  document.emplace("components", Components());
  return json::Write(document);
}

std::span<const Route> OpenApiRoutes() {
  static const Route kRoutes[] = {{.method = Method::kGet,
                                   .path = "/openapi.json",
                                   .handler = GetOpenApi,
                                   .summary = "This interface as OpenAPI 3.1",
                                   .answer_schema = OpenApiSchema}};
  return kRoutes;
}

}  // namespace interlock::api
