#include "service/windows.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/app.h"
#include "api/body.h"
#include "api/message_schemas.h"
#include "api/routes.h"
#include "base/time_text.h"
#include "domain/text.h"
#include "json/codec.h"
#include "json/object_text.h"
#include "json/schema.h"

namespace interlock::api {
namespace {

using boost::asio::awaitable;

struct PutRequest {
  std::optional<std::string> project;
  std::optional<std::string> window_uuid;
  std::optional<std::string> agent_id;
  std::optional<std::string> registration_token;
  std::optional<std::string> display_name;
  std::optional<std::string> tmux_target;
};
IL_JSON_FIELDS(PutRequest, project, window_uuid, agent_id, registration_token, display_name,
               tmux_target)

// What service::WindowJson() writes.
struct WindowAnswer {
  std::string id;
  std::string project;
  std::string window_uuid;
  std::string agent_id;
  std::string display_name;
  std::optional<std::string> tmux_target;
  Timestamp created_at;
  Timestamp last_active_at;
  std::optional<Timestamp> expires_at;
};
IL_JSON_FIELDS(WindowAnswer, id, project, window_uuid, agent_id, display_name, tmux_target,
               created_at, last_active_at, expires_at)

struct WindowList {
  std::vector<WindowAnswer> windows;
};
IL_JSON_FIELDS(WindowList, windows)

struct StatusAnswer {
  std::string status;
};
IL_JSON_FIELDS(StatusAnswer, status)

struct PokeAnswer {
  std::string message_id;
  std::string sender;
  std::string body;        // in its envelope
  std::string created_at;  // RFC 1123
  std::optional<std::string> sender_name;
  std::optional<std::string> thread_id;
};
IL_JSON_FIELDS(PokeAnswer, message_id, sender, body, created_at, sender_name, thread_id)

struct PokeList {
  std::vector<PokeAnswer> pokes;
  std::optional<bool> more;
};
IL_JSON_FIELDS(PokeList, pokes, more)

bool IsBlank(const std::optional<std::string>& text) {
  return !text || domain::Trim(*text).empty();
}

std::optional<std::string> NothingIfEmpty(std::string text) {
  if (text.empty()) return std::nullopt;
  return text;
}

awaitable<Result<Response>> PostWindow(App& app, Request& request) {
  IL_CO_TRY(PutRequest body, DecodeBody<PutRequest>(request));
  if (request.project->empty() || IsBlank(body.window_uuid) || IsBlank(body.agent_id)) {
    co_return Error(Errc::kInvalidArgument,
                    "Say in which project which agent sits in which window: the body needs "
                    "project, window_uuid and agent_id.")
        .WithSlug("project, window_uuid, and agent_id are required");
  }
  service::Windows::Registration registration;
  registration.project = std::move(request.project).value_or("");
  registration.uuid = std::string(domain::Trim(*body.window_uuid));
  registration.agent_id = std::string(domain::Trim(*body.agent_id));
  registration.token = Secret(std::move(body.registration_token).value_or(""));
  registration.display_name = std::move(body.display_name).value_or("");
  registration.tmux_target = std::move(body.tmux_target).value_or("");
  if (!registration.tmux_target.empty() && !request.caller.from_here) {
    co_return Error(Errc::kForbidden,
                    "Only who works on the server's own machine has a pane of its tmux; leave out "
                    "tmux_target.")
        .WithDetail("field", "tmux_target");
  }
  registration.agent_of_project = request.caller.mode == auth::Caller::Mode::kKey;
  IL_CO_TRY(const domain::Window window, co_await app.windows.Put(std::move(registration)));
  co_return Response::Json(200, service::WindowJson(window));
}

Error ProjectRequired() {
  return Error(Errc::kInvalidArgument, "Name the project: add ?project=NAME to the path.")
      .WithSlug("project query param required")
      .WithDetail("field", "project");
}

awaitable<Result<Response>> GetWindows(App& app, Request& request) {
  if (!request.project) co_return ProjectRequired();
  IL_CO_TRY(const auto windows, co_await app.windows.List(*std::move(request.project)));
  json::ArrayText list;
  for (const domain::Window& window : windows) list.AddRaw(service::WindowJson(window));
  json::ObjectText answer;
  answer.Add("windows", list);
  co_return Response::Json(200, answer.Text());
}

awaitable<Result<Response>> DeleteWindow(App& app, Request& request) {
  if (!request.project) co_return ProjectRequired();
  std::optional<std::string> owner;
  if (app.access.require_agent_token) owner = request.actor;
  IL_CO_TRY_VOID(co_await app.windows.Expire(*std::move(request.project), request.Param("uuid"),
                                             std::move(owner)));
  co_return Response::Json(200, R"({"status":"expired"})");
}

Result<void> RequirePokeOwner(const Request& request, std::string_view agent) {
  if (!request.project) return ProjectRequired();
  if (!agent.empty()) return {};
  return Error(Errc::kInvalidArgument, "Name the agent: add ?agent=ID to the path.")
      .WithSlug("agent_required")
      .WithDetail("field", "agent");
}

awaitable<Result<Response>> GetPokes(App& app, Request& request) {
  std::string agent(domain::Trim(request.Query("agent")));
  IL_CO_TRY_VOID(RequirePokeOwner(request, agent));
  IL_CO_TRY(auto page,
            co_await app.windows.PendingPokes(*std::move(request.project), std::move(agent)));
  PokeList answer;
  if (page.more) answer.more = true;
  answer.pokes.reserve(page.pokes.size());
  for (service::Windows::Poke& poke : page.pokes) {
    answer.pokes.push_back({.message_id = std::move(poke.message_id),
                            .sender = std::move(poke.sender),
                            .body = std::move(poke.text),
                            .created_at = FormatRfc1123(poke.created_at),
                            .sender_name = NothingIfEmpty(std::move(poke.sender_name)),
                            .thread_id = NothingIfEmpty(std::move(poke.thread_id))});
  }
  co_return Response::Json(200, json::EncodeText(answer));
}

awaitable<Result<Response>> PostPokeAck(App& app, Request& request) {
  IL_CO_TRY_VOID(RequirePokeOwner(request, request.actor));
  IL_CO_TRY_VOID(co_await app.windows.Surface(*std::move(request.project), request.actor,
                                              request.Param("id")));
  co_return Response::Json(200, R"({"status":"ok"})");
}

awaitable<Result<Response>> PostPoke(App&, Request&) {
  co_return Error(Errc::kInvalidArgument,
                  "The path does not say what to do with the message: send POST "
                  "/api/inbox/pokes/ID/ack, with the message's id.");
}

using Type = QueryParameter::Type;
constexpr std::array kProjectQuery = {
    QueryParameter{"project", Type::kText, "The project, where no key says it."},
};
constexpr std::array kPokeQuery = {
    QueryParameter{"project", Type::kText, "The project, where no key says it."},
    QueryParameter{"agent", Type::kText, "The agent that the messages were meant for."},
};
constexpr std::array kPutFailures = {
    Failure{403, "`agent_token_mismatch`: the registration token is not that agent's"},
};

constexpr std::array kPokeFailures = {
    Failure{409, "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kPost,
          .path = "/api/windows",
          .handler = PostWindow,
          .summary = "Say which agent sits in which terminal. Takes over a window with that UUID.",
          .project = ProjectFrom::kBody,
          .asker = ActorFrom::kBodyAgentId,
          .body = BodyKind::kJson,
          .bad_json = "invalid JSON",
          .body_schema = json::SchemaOf<PutRequest>,
          .answer_schema = json::SchemaOf<WindowAnswer>,
          .failures = kPutFailures},
    Route{.method = Method::kGet,
          .path = "/api/windows",
          .handler = GetWindows,
          .summary = "The windows of a project, the most recently active first.",
          .project = ProjectFrom::kQuery,
          .answer_schema = json::SchemaOf<WindowList>,
          .query = kProjectQuery},
    Route{.method = Method::kDelete,
          .path = "/api/windows/{uuid...}",
          .handler = DeleteWindow,
          .summary = "Nobody sits in this window any more.",
          .project = ProjectFrom::kQuery,
          .actor = ActorFrom::kCaller,
          .answer_schema = json::SchemaOf<StatusAnswer>,
          .query = kProjectQuery},
    Route{.method = Method::kGet,
          .path = "/api/inbox/pokes",
          .handler = GetPokes,
          .summary = "Messages that were to be put before an agent and wait to be surfaced.",
          .project = ProjectFrom::kQuery,
          .asker = ActorFrom::kQueryAgent,
          .answer_schema = json::SchemaOf<PokeList>,
          .query = kPokeQuery,
          .failures = kPokeFailures},
    Route{.method = Method::kPost,
          .path = "/api/inbox/pokes/{id...}/ack",
          .handler = PostPokeAck,
          .summary = "The agent has seen this message; it waits no more.",
          .project = ProjectFrom::kQuery,
          .actor = ActorFrom::kRecipient,
          .body = BodyKind::kOptionalJson,
          .body_schema = ReceiptBodySchema,
          .answer_schema = json::SchemaOf<StatusAnswer>,
          .query = kPokeQuery,
          .failures = kPokeFailures},
    Route{.method = Method::kPost,
          .path = "/api/inbox/pokes/{id...}",
          .handler = PostPoke,
          .summary = "Always 400: the path must end in /ack."},
};

}  // namespace

std::span<const Route> WindowRoutes() { return kRoutes; }

}  // namespace interlock::api
