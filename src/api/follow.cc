#include <fmt/format.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/app.h"
#include "api/route.h"
#include "api/routes.h"
#include "api/speaker.h"
#include "auth/access.h"
#include "auth/keyring_holder.h"
#include "domain/text.h"
#include "http/handshake.h"
#include "http/websocket.h"
#include "json/parse.h"
#include "json/value.h"
#include "service/agents.h"
#include "service/feed.h"

namespace interlock::api {
namespace {

namespace asio = boost::asio;

http::CloseReason ReasonOf(service::FollowEnd end) {
  switch (end) {
    case service::FollowEnd::kLagged:
      return {http::CloseCode::kTryAgainLater,
              "Too slow for the events; resume with since_cursor of the last one received."};
    case service::FollowEnd::kStopping:
    case service::FollowEnd::kClosed:
      return {http::CloseCode::kGoingAway, "The server stops; connect again in a moment."};
    case service::FollowEnd::kFailed:
      break;
  }
  return {http::CloseCode::kInternal,
          "The event log could not be read; resume with since_cursor of the last event received."};
}

// The texts of a list; nothing when it is none, or holds anything else.
std::optional<std::vector<std::string>> Texts(const json::Value* value) {
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<std::string> texts;
  texts.reserve(value->get_array().size());
  for (const json::Value& element : value->get_array()) {
    if (!element.is_string()) return std::nullopt;
    texts.emplace_back(json::View(element.get_string()));
  }
  return texts;
}

// One connection that follows.
class Following final : public http::Upgrade {
 public:
  Following(std::string key, std::unique_ptr<service::Follower> follower, auth::Caller caller,
            const auth::KeyringHolder& keys, service::SignsOfLife::Stream sign)
      : http::Upgrade(std::move(key)),
        caller_(std::move(caller)),
        keys_(keys),
        follower_(std::move(follower)),
        sign_(std::move(sign)) {}

  asio::awaitable<http::CloseReason> Run(http::WebSocket& socket) override {
    http::CloseReason reason;
    auto sent = http::WebSocket::Sent::kTaken;
    while (sent == http::WebSocket::Sent::kTaken) {
      auto frames = co_await follower_->Next();
      if (!frames.ok()) {
        reason = ReasonOf(service::WhyEnded(frames.error()));
        break;
      }
      for (const service::Frame& frame : *frames) {
        sent = co_await socket.Send(*frame);
        if (sent != http::WebSocket::Sent::kTaken) break;
      }
    }
    if (sent == http::WebSocket::Sent::kTooSlow) follower_->GiveUp();
    follower_.reset();  // a consumer no longer, however long the goodbye takes
    co_return reason;
  }

  std::optional<http::CloseReason> OnText(std::string_view text) override {
    const auto message = json::Parse(text, {.trailing = json::Trailing::kIgnore});
    if (!message.ok()) {
      return http::CloseReason{http::CloseCode::kBadText,
                               "Not JSON; send one JSON object per message."};
    }
    if (follower_ == nullptr || !message->is_object()) return std::nullopt;
    const json::Object& object = message->get_object();
    const json::Value* const type = object.if_contains("type");
    const auto types = Texts(object.if_contains("event_types"));
    if (type == nullptr || !type->is_string() || !types || types->empty()) return std::nullopt;
    const std::string_view name = json::View(type->get_string());
    Result<void> changed;
    if (name == "subscribe") changed = follower_->Subscribe(*types);
    if (name == "unsubscribe") changed = follower_->Unsubscribe(*types);
    if (changed.ok()) return std::nullopt;
    return http::CloseReason{http::CloseCode::kPolicy, changed.error().message()};
  }

  std::optional<http::CloseReason> Recheck() override {
    if (auth::StillAdmitted(caller_, *keys_.Get())) return std::nullopt;
    return http::CloseReason{
        http::CloseCode::kPolicy,
        "The keys were changed, and this connection would no longer be let in; "
        "connect with a valid key."};
  }

  void OnEnd() override {
    sign_ = {};  // the peer no longer answers
    if (follower_) follower_->Close();
  }

 private:
  const auth::Caller caller_;
  const auth::KeyringHolder& keys_;
  std::unique_ptr<service::Follower> follower_;
  service::SignsOfLife::Stream sign_;  // of the agent whose stream it is
};

// One whose cursor is beyond the end of the log. Browsers show a client the code of a close, but
// not the status of a refused handshake, so it is let in and told.
class Ahead final : public http::Upgrade {
 public:
  Ahead(std::string key, domain::Cursor newest) : http::Upgrade(std::move(key)), newest_(newest) {}

  asio::awaitable<http::CloseReason> Run(http::WebSocket& /*socket*/) override {
    co_return http::CloseReason{
        http::CloseCode::kAhead,
        fmt::format("cursor_ahead: the log ends at cursor {}. Read the state "
                    "anew, then follow from there.",
                    newest_)};
  }
  std::optional<http::CloseReason> OnText(std::string_view /*text*/) override {
    return std::nullopt;
  }
  void OnEnd() override {}

 private:
  const domain::Cursor newest_;
};

std::vector<std::string> SplitTypes(std::string_view list) {
  std::vector<std::string> types;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view type = domain::Trim(list.substr(0, comma));
    if (!type.empty()) types.emplace_back(type);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return types;
}

Error NotItsOwn(const std::string& stream_of, const std::string& caller) {
  return Error(Errc::kForbidden, "This is the stream of " + stream_of + ", and the request is of " +
                                     caller + "; connect to your own stream.")
      .WithSlug("agent_mismatch");
}

asio::awaitable<Result<Response>> Follow(App& app, Request& request,
                                         std::optional<std::string> agent) {
  auto key = http::HandshakeKey(request.sent);
  if (!key.ok()) co_return http::HandshakeRefusal(key.error());
  const auth::Caller& caller = request.caller;
  const std::string asked = agent.value_or("");
  if (agent) {
    IL_CO_TRY(agent, co_await app.agents.IdOf(request.project.value_or(""), asked));
  }
  if (agent && caller.identity != auth::Caller::Identity::kNone && caller.agent != *agent &&
      caller.agent != asked) {
    IL_CO_TRY(const std::string caller_id,
              co_await app.agents.IdOf(request.project.value_or(""), caller.agent));
    if (caller_id != *agent) co_return NotItsOwn(*agent, caller.agent);
  }
  auto speaker = SpeakerOf(request, agent.value_or(""), app.access);
  service::FollowRequest wanted{.project = request.project.value_or(""),
                                .agent = std::move(agent),
                                .since = request.QueryNumber("since_cursor"),
                                .types = SplitTypes(request.Query("types"))};
  auto follower = co_await app.feed.Follow(std::move(wanted));
  Response response;
  response.status = 101;
  if (!follower.ok()) {
    const std::optional<domain::Cursor> newest = service::NewestIfAhead(follower.error());
    if (!newest) co_return std::move(follower).error();
    response.upgrade = std::make_shared<Ahead>(*std::move(key), *newest);
    co_return response;
  }
  service::SignsOfLife::Stream sign;
  if (speaker) sign = co_await app.agents.OpenStream(*std::move(speaker));
  response.upgrade = std::make_shared<Following>(
      *std::move(key), *std::move(follower), std::move(request.caller), app.keys, std::move(sign));
  co_return response;
}

asio::awaitable<Result<Response>> FollowAgent(App& app, Request& request) {
  std::string agent(domain::Trim(request.Param("agent")));
  return Follow(app, request, std::move(agent));
}

asio::awaitable<Result<Response>> FollowProject(App& app, Request& request) {
  return Follow(app, request, std::nullopt);
}

constexpr std::array kQuery = {
    QueryParameter{"project", QueryParameter::Type::kText, "Whose events; with a key, the key's."},
    QueryParameter{"since_cursor", QueryParameter::Type::kInteger,
                   "Everything after it, then live; 0 = from the oldest kept; absent = from now."},
    QueryParameter{"types", QueryParameter::Type::kText,
                   "Only these types, separated by commas; absent = every type."},
};

constexpr std::array kFailures = {
    Failure{409, "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
    Failure{410, "Events after since_cursor are no longer kept; oldest_cursor says what is."},
    Failure{426, "It asks for no upgrade to WebSocket."},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kGet,
          .path = "/ws/agents/{agent...}",
          .handler = FollowAgent,
          .summary = "WebSocket: the events of the project, as this agent may see them.",
          .project = ProjectFrom::kQueryChecked,
          .asker = ActorFrom::kPathAgent,
          .success = 101,
          .query = kQuery,
          .failures = kFailures},
    Route{.method = Method::kGet,
          .path = "/ws/events",
          .handler = FollowProject,
          .summary = "WebSocket: all events of the project.",
          .project = ProjectFrom::kQueryChecked,
          .success = 101,
          .query = kQuery,
          .failures = kFailures},
};

}  // namespace

std::span<const Route> FollowRoutes() { return kRoutes; }

}  // namespace interlock::api
