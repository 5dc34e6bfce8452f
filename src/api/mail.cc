#include "service/mail.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/app.h"
#include "api/body.h"
#include "api/routes.h"
#include "base/log.h"
#include "json/codec.h"
#include "json/object_text.h"
#include "json/schema.h"
#include "service/await.h"
#include "service/live.h"

namespace interlock::api {
namespace {

using boost::asio::awaitable;
using Texts = std::vector<std::string>;

struct SendRequest {
  std::string from;
  Texts to;
  std::optional<Texts> cc;
  std::optional<Texts> bcc;
  std::optional<std::string> id;
  std::optional<std::string> project;
  std::optional<std::string> thread_id;
  std::optional<std::string> topic;
  std::optional<std::string> subject;
  std::optional<std::string> body;
  std::optional<std::string> importance;
  std::optional<bool> ack_required;
  std::optional<std::string> transport;
  std::optional<std::string> target_window_uuid;
};
IL_JSON_FIELDS(SendRequest, from, to, cc, bcc, id, project, thread_id, topic, subject, body,
               importance, ack_required, transport, target_window_uuid)

// A registered agent that received the message.
struct DeliveredTo {
  std::string to;  // as it was sent
  std::string agent_id;
  std::string name;
};
IL_JSON_FIELDS(DeliveredTo, to, agent_id, name)

// An address that is no registered agent of the project; the message is kept for it.
struct UnknownTo {
  std::string to;
  std::optional<std::string> project;  // another one, in which it is registered
  std::optional<bool> deregistered;    // true, or absent
};
IL_JSON_FIELDS(UnknownTo, to, project, deregistered)

// One that was sent live has neither id nor cursor: it is kept nowhere.
struct SendAnswer {
  std::optional<std::string> message_id;
  std::optional<std::int64_t> cursor;
  json::Field<Texts> denied;  // when nobody was: absent, or null of one that was sent live
  std::optional<json::Value> delivery;  // see DeliveryValue()
  std::vector<DeliveredTo> delivered;
  std::vector<UnknownTo> unknown;
};
IL_JSON_FIELDS(SendAnswer, message_id, cursor, denied, delivery, delivered, unknown)

struct BroadcastRequest {
  std::string from;
  std::string topic;
  std::string body;
  std::optional<std::string> project;
  std::optional<std::string> subject;
};
IL_JSON_FIELDS(BroadcastRequest, from, topic, body, project, subject)

struct BroadcastAnswer {
  std::string message_id;
  std::int64_t cursor = 0;
  std::int64_t delivered = 0;
  std::optional<Texts> denied;
};
IL_JSON_FIELDS(BroadcastAnswer, message_id, cursor, delivered, denied)

// The texts that the sender used for an agent: its id, its name, or both.
class AsSent {
 public:
  explicit AsSent(const service::Mail::Delivery& delivery) {
    for (const auto& known : delivery.known) texts_.emplace(known.agent_id, known.to);
  }

  Texts Of(const std::string& agent) const {
    Texts texts;
    const auto [begin, end] = texts_.equal_range(agent);
    for (auto text = begin; text != end; ++text) texts.emplace_back(text->second);
    if (texts.empty()) texts.push_back(agent);
    return texts;
  }
  Texts Of(const Texts& agents) const {
    Texts all;
    for (const std::string& agent : agents) {
      for (std::string& text : Of(agent)) all.push_back(std::move(text));
    }
    return all;
  }

 private:
  std::multimap<std::string_view, std::string_view> texts_;  // by id
};

// "async" if one recipient in `to` received it, whoever else is in cc and bcc, as older clients
// expect; {agent: "async"} for several, as the sender called them; nothing if only cc or bcc
// received it.
std::optional<json::Value> DeliveryValue(const service::Live::Outcome& sent,
                                         const AsSent& as_sent) {
  if (sent.to_states() == 0) return std::nullopt;
  if (sent.to_states() == 1) return json::String(domain::Name(sent.states.front().second));
  json::Object by_agent;
  by_agent.reserve(sent.states.size());
  for (const auto& [agent, state] : sent.states) {
    for (const std::string& text : as_sent.Of(agent)) by_agent.emplace(text, domain::Name(state));
  }
  return by_agent;
}

// The registered agents of a delivery that it was not denied to.
std::vector<DeliveredTo> DeliveredOf(service::Mail::Delivery& delivery) {
  const std::set<std::string_view> denied(delivery.denied.begin(), delivery.denied.end());
  std::vector<DeliveredTo> delivered;
  delivered.reserve(delivery.known.size());
  for (auto& known : delivery.known) {
    if (denied.contains(known.agent_id)) continue;
    delivered.push_back({std::move(known.to), std::move(known.agent_id), std::move(known.name)});
  }
  return delivered;
}

std::vector<UnknownTo> UnknownOf(service::Mail::Delivery& delivery) {
  std::vector<UnknownTo> unknown;
  unknown.reserve(delivery.unknown.size());
  for (auto& one : delivery.unknown) {
    unknown.push_back({std::move(one.to), std::move(one.project), {}});
    if (one.left) unknown.back().deregistered = true;
  }
  return unknown;
}

std::optional<Texts> NothingIfEmpty(Texts texts) {
  if (texts.empty()) return std::nullopt;
  return texts;
}

Response PolicyDenied(const Texts& denied) {
  json::ObjectText body;
  body.Add("error", "policy_denied")
      .Add("message",
           "The contact policy of every recipient keeps this message away; ask them to add the "
           "sender to their contacts, or to open their policy.")
      .Add("denied", denied);
  return Response::Json(403, body.Text());
}

// The answer to a message that was to be put before agents and kept nowhere.
Response DeliveryFailed(const json::Value& delivery) {
  json::ObjectText body;
  body.Add("error", "delivery_failed")
      .Add("message",
           "The message was not put before every recipient, and is kept nowhere; send it with "
           "transport both, which keeps it, or try again.")
      .AddRaw("delivery", json::Write(delivery));
  Response response = Response::Json(503, body.Text());
  response.headers.Add("Retry-After", "1");
  return response;
}

// Mail without a project goes to the project "", as old clients expect.
void WarnWithoutProject(App& app, const std::string& project, const std::string& from) {
  if (!project.empty() || !app.mail_without_project.Take()) return;
  app.log.Warn(
      "a message was sent without a project; name one, or no agent of a project receives "
      "it (logged once)",
      {{"from", from}});
}

awaitable<Result<Response>> AnswerSent(awaitable<Result<service::Live::Outcome>> sending) {
  IL_CO_TRY(service::Live::Outcome sent, co_await std::move(sending));
  const AsSent as_sent(sent.delivery);
  Texts denied = as_sent.Of(sent.delivery.denied);
  if (sent.delivery.refused() && sent.states.empty()) co_return PolicyDenied(denied);
  std::optional<json::Value> delivery = DeliveryValue(sent, as_sent);
  if (sent.failed()) co_return DeliveryFailed(delivery.value_or(json::Value()));
  SendAnswer answer;
  answer.delivery = std::move(delivery);
  answer.delivered = DeliveredOf(sent.delivery);
  answer.unknown = UnknownOf(sent.delivery);
  const bool kept = !sent.delivery.message_id.empty();
  if (kept) {
    answer.message_id = std::move(sent.delivery.message_id);
    answer.cursor = sent.delivery.cursor;
  }
  if (!denied.empty()) {
    answer.denied = std::move(denied);
  } else if (!kept) {
    answer.denied = json::Field<Texts>::Null();
  }
  co_return Response::Json(200, json::EncodeText(answer));
}

// Not a coroutine: a draft and what it is made from would lie in its frame.
awaitable<Result<Response>> PostMessage(App& app, Request& request) {
  auto decoded = DecodeBody<SendRequest>(request);
  if (!decoded) return service::Refused<Response>(std::move(decoded).error());
  SendRequest& body = *decoded;
  service::Live::Draft live;
  live.transport = std::move(body.transport).value_or("");
  live.target_window = std::move(body.target_window_uuid).value_or("");
  service::Mail::Draft& draft = live.message;
  draft.project = std::move(request.project).value_or("");
  if (request.caller.mode == auth::Caller::Mode::kKey) {
    draft.sight = service::Mail::Sight::kOwnProject;
  }
  draft.from = request.actor;
  WarnWithoutProject(app, draft.project, draft.from);
  draft.id = std::move(body.id).value_or("");
  draft.thread_id = std::move(body.thread_id).value_or("");
  draft.topic = std::move(body.topic).value_or("");
  draft.subject = std::move(body.subject).value_or("");
  draft.body = std::move(body.body).value_or("");
  draft.importance = std::move(body.importance).value_or("");
  draft.ack_required = body.ack_required.value_or(false);
  draft.addresses = {.to = std::move(body.to),
                     .cc = std::move(body.cc).value_or(Texts()),
                     .bcc = std::move(body.bcc).value_or(Texts())};
  return AnswerSent(app.live.Send(std::move(live)));
}

awaitable<Result<Response>> PostBroadcast(App& app, Request& request) {
  IL_CO_TRY(BroadcastRequest body, DecodeBody<BroadcastRequest>(request));
  service::Mail::Announcement announcement;
  announcement.project = std::move(request.project).value_or("");
  announcement.from = request.actor;
  WarnWithoutProject(app, announcement.project, announcement.from);
  announcement.topic = std::move(body.topic);
  announcement.subject = std::move(body.subject).value_or("");
  announcement.body = std::move(body.body);
  IL_CO_TRY(service::Mail::Delivery sent, co_await app.mail.Broadcast(std::move(announcement)));
  if (sent.refused()) co_return PolicyDenied(sent.denied);
  const BroadcastAnswer answer = {.message_id = std::move(sent.message_id),
                                  .cursor = sent.cursor,
                                  .delivered = static_cast<std::int64_t>(sent.received.size()),
                                  .denied = NothingIfEmpty(std::move(sent.denied))};
  co_return Response::Json(200, json::EncodeText(answer));
}

constexpr std::array kSendFailures = {
    Failure{403, "`policy_denied`: the contact policy of every recipient keeps it away"},
    Failure{409,
            "`message_id_conflict`: another message of the project has this id; "
            "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
    Failure{429, "`rate_limit`: spoke to one recipient more than 10 times within a minute"},
    Failure{503, "`recipient_busy`, `delivery_failed`: of transport live, nothing was kept"},
};
constexpr std::array kBroadcastFailures = {
    Failure{403, "`policy_denied`: the contact policy of every agent keeps it away"},
    Failure{429, "more than 10 broadcasts of this agent within a minute"},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kPost,
          .path = "/api/messages",
          .handler = PostMessage,
          .summary = "Send a message to agents. With an id it can be repeated safely.",
          .project = ProjectFrom::kBody,
          .actor = ActorFrom::kBodyFrom,
          .body = BodyKind::kJson,
          .body_schema = json::SchemaOf<SendRequest>,
          .answer_schema = json::SchemaOf<SendAnswer>,
          .failures = kSendFailures},
    Route{.method = Method::kPost,
          .path = "/api/broadcast",
          .handler = PostBroadcast,
          .summary = "Send a message to every agent of a project.",
          .project = ProjectFrom::kBody,
          .actor = ActorFrom::kBodyFrom,
          .body = BodyKind::kJson,
          .body_schema = json::SchemaOf<BroadcastRequest>,
          .answer_schema = json::SchemaOf<BroadcastAnswer>,
          .failures = kBroadcastFailures},
};

}  // namespace

std::span<const Route> MailRoutes() { return kRoutes; }

}  // namespace interlock::api
