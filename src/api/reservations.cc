#include "service/reservations.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/app.h"
#include "api/body.h"
#include "api/routes.h"
#include "base/limited_log.h"
#include "domain/reservation.h"
#include "domain/text.h"
#include "json/codec.h"
#include "json/object_text.h"
#include "json/schema.h"

namespace interlock::api {
namespace {

using boost::asio::awaitable;
using service::Reservations;
using Texts = std::vector<std::string>;

struct ReserveRequest {
  std::string agent_id;
  std::optional<std::string> path_pattern;
  std::optional<Texts> path_patterns;
  std::optional<std::string> project;
  std::optional<bool> exclusive;
  std::optional<bool> literal;
  std::optional<std::string> reason;
  std::optional<std::int64_t> ttl_minutes;
  std::optional<std::int64_t> wait_seconds;
};
IL_JSON_FIELDS(ReserveRequest, agent_id, path_pattern, path_patterns, project, exclusive, literal,
               reason, ttl_minutes, wait_seconds)

json::Value ReserveSchema() {
  json::Value schema = json::SchemaOf<ReserveRequest>();
  schema.at("properties").at("exclusive").as_object()["default"] = true;
  return schema;
}

struct RenewRequest {
  std::optional<std::int64_t> ttl_minutes;
};
IL_JSON_FIELDS(RenewRequest, ttl_minutes)

struct TransferRequest {
  std::string to_agent;
};
IL_JSON_FIELDS(TransferRequest, to_agent)

// What the answers look like; they are written by service::ReservationJson() and its like.
struct ReservationAnswer {
  std::string id;
  std::string agent_id;
  std::string project;
  std::string path_pattern;
  std::optional<bool> literal;
  bool exclusive = false;
  std::optional<std::string> reason;
  std::int64_t fence = 0;
  std::string created_at;
  std::string expires_at;
  std::optional<std::string> released_at;
  bool is_active = false;
};
IL_JSON_FIELDS(ReservationAnswer, id, agent_id, project, path_pattern, literal, exclusive, reason,
               fence, created_at, expires_at, released_at, is_active)

struct ReservationList {
  std::vector<ReservationAnswer> reservations;
};
IL_JSON_FIELDS(ReservationList, reservations)

// One, or with `path_patterns` a list.
json::Value ReservedSchema() {
  return json::Object{{"anyOf", json::Array{json::SchemaOf<ReservationAnswer>(),
                                            json::SchemaOf<ReservationList>()}}};
}

struct ConflictAnswer {
  std::optional<std::string> reservation_id;
  std::optional<bool> waiting;
  std::string agent_id;
  std::string held_by;
  std::string pattern;
  bool exclusive = false;
  std::optional<std::string> reason;
  std::string expires_at;
  std::optional<std::int64_t> fence;
  std::optional<std::string> last_seen;
  std::string holder_state;
  std::string requested;
  std::string witness;
};
IL_JSON_FIELDS(ConflictAnswer, reservation_id, waiting, agent_id, held_by, pattern, exclusive,
               reason, expires_at, fence, last_seen, holder_state, requested, witness)

struct ConflictList {
  std::vector<ConflictAnswer> conflicts;
};
IL_JSON_FIELDS(ConflictList, conflicts)

json::ArrayText ConflictTexts(const std::vector<domain::Conflict>& conflicts) {
  json::ArrayText texts;
  for (const domain::Conflict& conflict : conflicts) {
    texts.AddRaw(service::ConflictJson(conflict));
  }
  return texts;
}

// Why the first conflict is one: the path that is in both patterns.
std::string Explained(const domain::Conflict& conflict) {
  const auto below = [&](const std::string& path) {
    return conflict.witness.starts_with(path + "/");
  };
  std::string text = fmt::format("{} is in {} and in {}, which {} {}", conflict.witness,
                                 conflict.requested, conflict.pattern, conflict.held_by,
                                 conflict.reservation_id ? "holds" : "waits for");
  if (below(conflict.requested) || below(conflict.pattern)) {
    text += "; a path without wildcards covers everything below it";
  }
  return text;
}

Response Conflicted(const Reservations::Refused& refused) {
  std::string message = "Other agents hold paths of this pattern";
  if (!refused.conflicts.empty()) message += ": " + Explained(refused.conflicts.front());
  message += ". Ask them, wait with wait_seconds, or reserve what does not overlap.";
  json::ObjectText body;
  body.Add("error", "reservation_conflict")
      .Add("message", message)
      .Add("conflicts", ConflictTexts(refused.conflicts));
  if (refused.queue_position) body.Add("queue_position", *refused.queue_position);
  return Response::Json(409, body.Text());
}

Response Deadlock(const Reservations::Deadlocked& deadlocked) {
  return Response::Json(
      409, json::ObjectText()
               .Add("error", "deadlock")
               .Add("message",
                    "Each of these agents waits for what the next one holds, so none would ever go "
                    "on: release something, then ask again.")
               .Add("cycle", deadlocked.agents)
               .Text());
}

Error MissingField(std::string_view field, std::string_view example) {
  return Error(Errc::kInvalidArgument,
               "`" + std::string(field) + "` is missing; send for example " + std::string(example))
      .WithDetail("field", std::string(field));
}

// In the project "" a claim would protect nothing that another agent works on.
Error ProjectRequired(std::string_view example) {
  return Error(Errc::kInvalidArgument,
               "Name the project that the paths belong to: send for example " +
                   std::string(example) + ", the same in every request about these files.")
      .WithSlug("project_required")
      .WithDetail("field", "project");
}

// One pattern or a list of them; never both, never none.
Result<Texts> PatternsOf(ReserveRequest& body) {
  const bool one = body.path_pattern && !body.path_pattern->empty();
  if (one && body.path_patterns) {
    return Error(Errc::kInvalidArgument, "send path_pattern or path_patterns, not both")
        .WithDetail("field", "path_patterns");
  }
  if (one) return Texts{std::move(*body.path_pattern)};
  if (!body.path_patterns || body.path_patterns->empty()) {
    return MissingField("path_pattern", R"({"path_pattern":"src/*.cc"})");
  }
  return std::move(*body.path_patterns);
}

// A key is for one project, so what its bearer says of an agent counts there only; a token proves
// who the agent is.
service::WaitQueue::Reach ReachOf(const auth::Caller& caller) {
  const bool anywhere = caller.mode == auth::Caller::Mode::kLocal ||
                        caller.identity == auth::Caller::Identity::kProved;
  return anywhere ? service::WaitQueue::Reach::kEverywhere : service::WaitQueue::Reach::kProject;
}

void LogGranted(App& app, const Reservations::Granted& granted) {
  for (const domain::Reservation& one : granted.reservations) {
    app.events.Info("reservation granted", {{"reservation", one.id},
                                            {"agent", one.agent},
                                            {"name", granted.asker.name},
                                            {"project", one.project},
                                            {"pattern", one.pattern}});
  }
}

void LogRefused(App& app, const Reservations::Refused& refused) {
  if (refused.conflicts.empty()) return;
  const domain::Conflict& first = refused.conflicts.front();
  app.events.Info("reservation refused", {{"agent", refused.asker.agent},
                                          {"name", refused.asker.name},
                                          {"project", refused.asker.project},
                                          {"requested", first.requested},
                                          {"holder", first.agent},
                                          {"held_by", first.held_by},
                                          {"pattern", first.pattern},
                                          {"conflicts", refused.conflicts.size()}});
}

awaitable<Result<Response>> PostReservation(App& app, Request& request) {
  IL_CO_TRY(ReserveRequest body, DecodeBody<ReserveRequest>(request));
  if (request.project->empty()) co_return ProjectRequired(R"({"project":"web"})");
  if (domain::Trim(body.agent_id).empty()) {
    co_return MissingField("agent_id", R"({"agent_id":"…"})");
  }
  const bool many = body.path_patterns.has_value();
  Reservations::Wish wish;
  IL_CO_TRY(wish.patterns, PatternsOf(body));
  wish.project = std::move(request.project).value_or("");
  wish.agent = domain::Trim(request.actor);
  wish.literal = body.literal.value_or(false);
  wish.access =
      body.exclusive.value_or(true) ? domain::Access::kExclusive : domain::Access::kShared;
  wish.reason = std::move(body.reason).value_or("");
  wish.ttl_minutes = body.ttl_minutes.value_or(0);
  wish.patience = std::chrono::seconds(body.wait_seconds.value_or(0));
  wish.reach = ReachOf(request.caller);
  if (wish.patience.count() > 0 && request.sent.watch_peer) request.sent.watch_peer();
  const std::string agent = wish.agent;
  const std::string project = wish.project;
  IL_CO_TRY(const Reservations::Verdict verdict,
            co_await app.reservations.Reserve(std::move(wish)));
  if (const auto* refused = std::get_if<Reservations::Refused>(&verdict)) {
    LogRefused(app, *refused);
    co_return Conflicted(*refused);
  }
  if (const auto* deadlocked = std::get_if<Reservations::Deadlocked>(&verdict)) {
    app.events.Info("reservation refused",
                    {{"agent", agent}, {"project", project}, {"reason", "deadlock"}});
    co_return Deadlock(*deadlocked);
  }
  const auto& granted = std::get<Reservations::Granted>(verdict);
  LogGranted(app, granted);
  if (!many) co_return Response::Json(201, app.reservations.Json(granted.reservations.front()));
  co_return Response::Json(201, app.reservations.ListJson(granted.reservations));
}

awaitable<Result<Response>> GetReservations(App& app, Request& request) {
  std::string agent = request.Query("agent");
  if (agent.empty() && !request.project) {
    co_return Error(Errc::kInvalidArgument, "name an agent or a project: ?agent= or ?project=");
  }
  std::vector<domain::Reservation> found;
  if (agent.empty()) {
    IL_CO_TRY(found, co_await app.reservations.ListOfProject(*std::move(request.project)));
  } else {
    // Without a key an agent's are listed wherever they are; a name is that of the project.
    Reservations::Owner owner = {.agent = std::move(agent), .named_in = request.project};
    if (request.caller.mode == auth::Caller::Mode::kKey) owner.project = request.project;
    IL_CO_TRY(found, co_await app.reservations.ListOfAgent(std::move(owner)));
  }
  co_return Response::Json(200, app.reservations.ListJson(found));
}

awaitable<Result<Response>> GetCheck(App& app, Request& request) {
  Reservations::Question question;
  question.pattern = request.Query("pattern");
  if (!request.project) co_return ProjectRequired("?project=web");
  if (question.pattern.empty()) co_return MissingField("pattern", "?pattern=src/*.cc");
  question.project = *std::move(request.project);
  question.literal = request.QueryBool("literal").value_or(false);
  question.access = request.QueryBool("exclusive").value_or(true) ? domain::Access::kExclusive
                                                                  : domain::Access::kShared;
  question.except_agent = request.Query("agent");
  if (question.except_agent.empty()) question.except_agent = request.caller.agent;
  IL_CO_TRY(const auto conflicts, co_await app.reservations.Check(std::move(question)));
  co_return Response::Json(200,
                           json::ObjectText().Add("conflicts", ConflictTexts(conflicts)).Text());
}

Reservations::Ref RefOf(Request& request) {
  return {.id = request.Param("id"),
          .project = std::move(request.project),
          .agent = request.caller.agent};
}

awaitable<Result<Response>> GetReservation(App& app, Request& request) {
  Reservations::Ref ref = RefOf(request);
  IL_CO_TRY(const auto found, co_await app.reservations.Get(std::move(ref)));
  co_return Response::Json(200, app.reservations.Json(found));
}

// What a renewal or a transfer came to.
Response OneGranted(App& app, const Reservations::Verdict& verdict) {
  if (const auto* refused = std::get_if<Reservations::Refused>(&verdict)) {
    LogRefused(app, *refused);
    return Conflicted(*refused);
  }
  const auto& granted = std::get<Reservations::Granted>(verdict).reservations;
  return Response::Json(200, app.reservations.Json(granted.front()));
}

awaitable<Result<Response>> PostRenew(App& app, Request& request) {
  IL_CO_TRY(const RenewRequest body, DecodeBody<RenewRequest>(request));
  Reservations::Ref ref = RefOf(request);
  IL_CO_TRY(const Reservations::Verdict verdict,
            co_await app.reservations.Renew(std::move(ref), body.ttl_minutes.value_or(0)));
  co_return OneGranted(app, verdict);
}

awaitable<Result<Response>> PostTransfer(App& app, Request& request) {
  IL_CO_TRY(TransferRequest body, DecodeBody<TransferRequest>(request));
  if (domain::Trim(body.to_agent).empty()) {
    co_return MissingField("to_agent", R"({"to_agent":"…"})");
  }
  Reservations::Ref ref = RefOf(request);
  IL_CO_TRY(
      const Reservations::Verdict verdict,
      co_await app.reservations.Transfer(std::move(ref), std::string(domain::Trim(body.to_agent))));
  if (const auto* granted = std::get_if<Reservations::Granted>(&verdict)) {
    LogGranted(app, *granted);
  }
  co_return OneGranted(app, verdict);
}

awaitable<Result<Response>> DeleteReservation(App& app, Request& request) {
  const bool force = request.QueryBool("force").value_or(false);
  std::string reason = request.Query("reason");
  Reservations::Ref ref = RefOf(request);
  if (force && ref.agent.empty()) {
    co_return Error(Errc::kInvalidArgument,
                    "force=true needs to know who asks: send your agent's id as X-Agent-ID");
  }
  if (force) {
    IL_CO_TRY(const auto forced,
              co_await app.reservations.ForceRelease(std::move(ref), std::move(reason)));
    app.events.Info("reservation forced", {{"reservation", forced.reservation.id},
                                           {"holder", forced.reservation.agent},
                                           {"held_by", forced.holder_name},
                                           {"project", forced.reservation.project},
                                           {"pattern", forced.reservation.pattern},
                                           {"by", request.caller.agent}});
  } else {
    IL_CO_TRY_VOID(co_await app.reservations.Release(std::move(ref)));
  }
  co_return Response{};
}

using Type = QueryParameter::Type;
constexpr std::array kReserveQuery = {
    QueryParameter{"if_not_conflict", Type::kBoolean, "Accepted and ignored."},
};
constexpr std::array kListQuery = {
    QueryParameter{"agent", Type::kText, "All of this agent, also those that hold no more."},
    QueryParameter{"project", Type::kText, "Without `agent`: what is held in it right now."},
};
constexpr std::array kCheckQuery = {
    QueryParameter{"project", Type::kText, "Required without a key."},
    QueryParameter{"pattern", Type::kText, "What somebody would like to reserve. Required."},
    QueryParameter{"exclusive", Type::kBoolean,
                   "`false` asks for a shared claim; `true` when absent."},
    QueryParameter{"literal", Type::kBoolean, "`true`: the pattern is a path."},
    QueryParameter{"agent", Type::kText,
                   "Whose own reservations do not count; else those of X-Agent-ID."},
};
constexpr std::array kReleaseQuery = {
    QueryParameter{"force", Type::kBoolean,
                   "`true`: release that of another agent, which has not been heard of."},
    QueryParameter{"reason", Type::kText, "Why; told to the holder with force=true."},
};
constexpr std::array kReserveFailures = {
    Failure{409,
            "`reservation_conflict` with all `conflicts`; `deadlock` with the `cycle`; "
            "`ambiguous_recipient` with `agent_ids`"},
    Failure{429, "`reservation_limit`: the agent holds as many as it may"},
};
constexpr std::array kOwnFailures = {
    Failure{403, "the reservation belongs to another agent than X-Agent-ID"},
    Failure{409,
            "`reservation_conflict`, `ambiguous_recipient`, or `holder_active` with force=true"},
};

constexpr std::array kReadFailures = {
    Failure{409, "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kPost,
          .path = "/api/reservations",
          .handler = PostReservation,
          .summary = "Reserve files by pattern, one or several at once.",
          .project = ProjectFrom::kBody,
          .actor = ActorFrom::kBodyAgentId,
          .body = BodyKind::kJson,
          .success = 201,
          .body_schema = ReserveSchema,
          .answer_schema = ReservedSchema,
          .query = kReserveQuery,
          .failures = kReserveFailures},
    Route{.method = Method::kGet,
          .path = "/api/reservations",
          .handler = GetReservations,
          .summary = "What an agent reserved, or what is reserved in a project.",
          .project = ProjectFrom::kQuery,
          .answer_schema = json::SchemaOf<ReservationList>,
          .query = kListQuery,
          .failures = kReadFailures},
    Route{.method = Method::kGet,
          .path = "/api/reservations/check",
          .handler = GetCheck,
          .summary = "What stands in the way of a reservation.",
          .project = ProjectFrom::kQuery,
          .asker = ActorFrom::kQueryAgent,
          .answer_schema = json::SchemaOf<ConflictList>,
          .query = kCheckQuery,
          .failures = kReadFailures},
    Route{.method = Method::kGet,
          .path = "/api/reservations/{id...}",
          .handler = GetReservation,
          .summary = "One reservation.",
          .project = ProjectFrom::kKey,
          .answer_schema = json::SchemaOf<ReservationAnswer>},
    Route{.method = Method::kPost,
          .path = "/api/reservations/{id...}/renew",
          .handler = PostRenew,
          .summary = "The owner keeps a reservation longer.",
          .project = ProjectFrom::kKey,
          .actor = ActorFrom::kCaller,
          .body = BodyKind::kOptionalJson,
          .body_schema = json::SchemaOf<RenewRequest>,
          .answer_schema = json::SchemaOf<ReservationAnswer>,
          .failures = kOwnFailures},
    Route{.method = Method::kPost,
          .path = "/api/reservations/{id...}/transfer",
          .handler = PostTransfer,
          .summary = "The owner hands a reservation to another agent.",
          .project = ProjectFrom::kKey,
          .actor = ActorFrom::kCaller,
          .body = BodyKind::kJson,
          .body_schema = json::SchemaOf<TransferRequest>,
          .answer_schema = json::SchemaOf<ReservationAnswer>,
          .failures = kOwnFailures},
    Route{.method = Method::kDelete,
          .path = "/api/reservations/{id...}",
          .handler = DeleteReservation,
          .summary = "The owner releases a reservation.",
          .project = ProjectFrom::kKey,
          .actor = ActorFrom::kCaller,
          .query = kReleaseQuery,
          .failures = kOwnFailures},
};

}  // namespace

std::span<const Route> ReservationRoutes() { return kRoutes; }

}  // namespace interlock::api
