// In whose name requests are made, and what is decided by it: who is alive.

#include "api/speaker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "api/dispatch_fixture.h"
#include "http/websocket.h"
#include "json/codec.h"
#include "service/signs_of_life.h"

namespace interlock::api {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kSession[] = "0198c5e2-7b1c-7d3e-8f00-0123456789ab";

struct Registered {
  std::string agent_id;
  std::string token;
};
IL_JSON_FIELDS(Registered, agent_id, token)

struct Made {
  std::string id;
};
IL_JSON_FIELDS(Made, id)

class SpeakerTest : public RealDispatchTest {
 protected:
  SpeakerTest() {
    services_.keys.Set(
        auth::Keyring::Parse("projects: {p: {keys: [k-p]}, q: {keys: [k-q]}}").value());
  }

  // "200 {…}"
  std::string Say(Method method, const std::string& target, const std::string& body = "",
                  Fields fields = {}) {
    const Response response = Ask(To(method, target, body, fields));
    return std::to_string(response.status) + " " + response.body;
  }
  std::string Get(const std::string& target, Fields fields = {}) {
    return Say(Method::kGet, target, "", fields);
  }
  std::string Post(const std::string& target, const std::string& body, Fields fields = {}) {
    return Say(Method::kPost, target, body, fields);
  }
  Registered Register(const std::string& more = "") {
    const Response response =
        Ask(To(Method::kPost, "/api/agents", R"({"project":"p")" + more + "}"));
    EXPECT_EQ(response.status, 200) << response.body;
    return json::DecodeText<Registered>(response.body, json::kLenient).value();
  }
  static std::string Wish(const std::string& agent, const std::string& pattern) {
    return R"({"project":"p","exclusive":true,"ttl_minutes":1440,"agent_id":")" + agent +
           R"(","path_pattern":")" + pattern + R"("})";
  }
  std::string Reserve(const std::string& agent, const std::string& pattern) {
    const Response response = Ask(To(Method::kPost, "/api/reservations", Wish(agent, pattern)));
    EXPECT_EQ(response.status, 201) << response.body;
    return json::DecodeText<Made>(response.body, json::kLenient).value().id;
  }
  std::string Force(const std::string& reservation) {
    return Say(Method::kDelete, "/api/reservations/" + reservation + "?force=true", "",
               {{"X-Agent-ID", "somebody"}});
  }
  // An agent of project p was seen just now, which only memory knows.
  bool IsSeen(const std::string& agent) {
    return services_.storage.signs().Newest(agent, {}) == clock_.Now();
  }
  // The request of `ask` keeps the agent alive.
  bool KeepsAlive(const std::string& agent, const std::function<void()>& ask) {
    clock_.Advance(minutes(10));
    ask();
    return IsSeen(agent);
  }
};

TEST_F(SpeakerTest, EveryKindOfRequestInTheNameOfAnAgentCounts) {
  const Registered agent = Register();
  const std::string& id = agent.agent_id;
  const std::string held = Reserve(id, "held");
  const std::string one = "/api/reservations/" + held;
  const std::string named = R"({"agent":")" + id + R"("})";
  const std::string from = R"({"project":"p","to":["b"],"body":"x","from":")" + id + R"("})";
  const std::string window = R"({"project":"p","window_uuid":"w","agent_id":")" + id + R"("})";
  using Ask = std::function<std::string()>;
  const std::vector<std::pair<std::string, Ask>> kinds = {
      {"reserve", [&] { return Post("/api/reservations", Wish(id, "a")); }},
      {"refused", [&] { return Post("/api/reservations", Wish(id, "[")); }},
      {"renew", [&] { return Post(one + "/renew", "{}", {{"X-Agent-ID", id}}); }},
      {"check", [&] { return Get("/api/reservations/check?project=p&pattern=x&agent=" + id); }},
      {"send", [&] { return Post("/api/messages", from); }},
      {"broadcast", [&] { return Post("/api/broadcast", from); }},
      {"read", [&] { return Post("/api/messages/m/read?project=p", named); }},
      {"ack", [&] { return Post("/api/messages/m/ack?project=p&agent=" + id, ""); }},
      {"inbox", [&] { return Get("/api/inbox/" + id + "?project=p"); }},
      {"counts", [&] { return Get("/api/inbox/" + id + "/counts?project=p"); }},
      {"stale acks", [&] { return Get("/api/inbox/" + id + "/stale-acks?project=p"); }},
      {"pokes", [&] { return Get("/api/inbox/pokes?project=p&agent=" + id); }},
      {"poke ack", [&] { return Post("/api/inbox/pokes/m/ack?project=p", named); }},
      {"window", [&] { return Post("/api/windows", window); }},
      {"id", [&] { return Get("/api/status", {{"X-Agent-ID", id}}); }},
      {"token", [&] { return Get("/api/status", {{"X-Agent-Token", agent.token}}); }},
      {"key", [&] { return Get("/api/inbox/" + id, {{"Authorization", "Bearer k-p"}}); }},
      {"release", [&] { return Say(Method::kDelete, one, "", {{"X-Agent-ID", id}}); }},
  };
  for (const auto& [kind, ask] : kinds) {
    std::string answer;
    EXPECT_TRUE(KeepsAlive(id, [&] { answer = ask(); })) << kind << ": " << answer;
  }
}

TEST_F(SpeakerTest, RequestsInOtherNamesOrNoneDoNotCount) {
  const std::string id = Register().agent_id;
  const std::string held = Reserve(id, "held");
  const std::string from = R"({"project":"p","to":["b"],"body":"x","from":")" + id + R"("})";
  using Ask = std::function<std::string()>;
  const std::vector<std::pair<std::string, Ask>> kinds = {
      {"a person looks", [&] { return Get("/api/inbox/" + id, {{"X-Agent-ID", "ann"}}); }},
      {"another sends", [&] { return Post("/api/messages", from, {{"X-Agent-ID", "ann"}}); }},
      {"its holds", [&] { return Get("/api/reservations?agent=" + id); }},
      {"one of them", [&] { return Get("/api/reservations/" + held); }},
      {"its policy", [&] { return Post("/api/agents/" + id + "/policy", R"({"policy":"open"})"); }},
      {"another project's key",
       [&] { return Get("/api/inbox/" + id, {{"Authorization", "Bearer k-q"}}); }},
      {"that and its id",
       [&] { return Get("/api/agents", {{"Authorization", "Bearer k-q"}, {"X-Agent-ID", id}}); }},
      {"a registration",
       [&] { return Post("/api/agents", R"({"project":"p"})", {{"X-Agent-ID", id}}); }},
      {"a refused key", [&] { return Get("/api/inbox/" + id, {{"Authorization", "Bearer x"}}); }},
  };
  for (const auto& [kind, ask] : kinds) {
    std::string answer;
    EXPECT_FALSE(KeepsAlive(id, [&] { answer = ask(); })) << kind << ": " << answer;
  }
  const std::string ann = Register(R"(,"name":"ann")").agent_id;
  EXPECT_TRUE(KeepsAlive(ann, [&] { Get("/api/inbox/" + id, {{"X-Agent-ID", "ann"}}); }));
}

TEST_F(SpeakerTest, NameCountsAsTheIdDoes) {
  const std::string id = Register(R"(,"name":"ann")").agent_id;
  const std::string held = "/api/reservations/" + Reserve("ann", "held");
  const std::string from = R"({"project":"p","to":["b"],"body":"x","from":"ann"})";
  const Fields ann = {{"X-Agent-ID", "ann"}};
  using Ask = std::function<std::string()>;
  const std::vector<std::pair<std::string, Ask>> kinds = {
      {"reserve", [&] { return Post("/api/reservations", Wish("ann", "a")); }},
      {"refused", [&] { return Post("/api/reservations", Wish("ann", "[")); }},
      {"renew", [&] { return Post(held + "/renew", "{}", ann); }},
      {"check", [&] { return Get("/api/reservations/check?project=p&pattern=x&agent=ann"); }},
      {"send", [&] { return Post("/api/messages", from); }},
      {"broadcast", [&] { return Post("/api/broadcast", from); }},
      {"ack", [&] { return Post("/api/messages/m/ack?project=p&agent=ann", ""); }},
      {"inbox", [&] { return Get("/api/inbox/ann?project=p"); }},
      {"header", [&] { return Get("/api/status", ann); }},
      {"header and id", [&] { return Get("/api/inbox/" + id + "?project=p", ann); }},
      {"key", [&] { return Get("/api/inbox/ann", {{"Authorization", "Bearer k-p"}}); }},
      {"release", [&] { return Say(Method::kDelete, held, "", ann); }},
  };
  for (const auto& [kind, ask] : kinds) {
    std::string answer;
    EXPECT_TRUE(KeepsAlive(id, [&] { answer = ask(); })) << kind << ": " << answer;
  }
  EXPECT_FALSE(KeepsAlive(id, [&] { Get("/api/inbox/ann", {{"Authorization", "Bearer k-q"}}); }));
  EXPECT_FALSE(KeepsAlive(id, [&] { Get("/api/inbox/ann?project=q"); }));
}

TEST_F(SpeakerTest, NameOfTwoActiveAgentsCountsForNeither) {
  const std::string one = Register(R"(,"name":"ann")").agent_id;
  const std::string two = Register(R"(,"name":"ann")").agent_id;
  EXPECT_THAT(Get("/api/inbox/ann?project=p"), StartsWith("409"));
  clock_.Advance(seconds(1));
  Get("/api/inbox/ann?project=p");
  EXPECT_FALSE(IsSeen(one));
  EXPECT_FALSE(IsSeen(two));
  clock_.Advance(minutes(4));
  Get("/api/inbox/" + two);
  clock_.Advance(minutes(2));
  Get("/api/inbox/ann?project=p");
  EXPECT_FALSE(IsSeen(one));
  EXPECT_TRUE(IsSeen(two)) << "the only one that is active";
}

TEST_F(SpeakerTest, SenderWhomAnotherAgentNamesIsNotSeen) {
  const std::string ann = Register(R"(,"name":"ann")").agent_id;
  const std::string bob = Register(R"(,"name":"bob")").agent_id;
  const std::string from = R"({"project":"p","to":["bob"],"body":"x","from":"ann"})";
  clock_.Advance(minutes(10));
  EXPECT_THAT(Post("/api/messages", from, {{"X-Agent-ID", bob}}), StartsWith("200"));
  EXPECT_FALSE(IsSeen(ann));
  Post("/api/reservations", Wish("ann", "x"), {{"X-Agent-ID", bob}});
  EXPECT_FALSE(IsSeen(ann));
  EXPECT_TRUE(IsSeen(bob));
}

TEST_F(SpeakerTest, InventedNamesAreNotRemembered) {
  for (int i = 0; i < 100; ++i) {
    Get("/api/status", {{"X-Agent-ID", "invented" + std::to_string(i)}});
  }
  EXPECT_TRUE(services_.storage.signs().Remembered().empty());
}

TEST_F(SpeakerTest, WhereTokensAreRequiredOnlyTheyCount) {
  const Registered agent = Register();
  const std::string inbox = "/api/inbox/" + agent.agent_id + "?project=p";
  app_.access.require_agent_token = true;
  EXPECT_FALSE(KeepsAlive(agent.agent_id, [&] {
    EXPECT_THAT(Get(inbox), StartsWith("200"));
    EXPECT_THAT(Get(inbox, {{"X-Agent-ID", agent.agent_id}}), StartsWith("200"));
    EXPECT_THAT(Post("/api/reservations", Wish(agent.agent_id, "x")), StartsWith("403"));
  }));
  EXPECT_TRUE(KeepsAlive(agent.agent_id, [&] { Get(inbox, {{"X-Agent-Token", agent.token}}); }));
}

TEST_F(SpeakerTest, OpenStreamKeepsItsAgentAlive) {
  const std::string id = Register(R"(,"name":"ann")").agent_id;
  const Fields upgrade = {{"Connection", "Upgrade"},
                          {"Upgrade", "websocket"},
                          {"Sec-WebSocket-Version", "13"},
                          {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
  {
    const Response response = Ask(To(Method::kGet, "/ws/agents/" + id + "?project=p", "", upgrade));
    ASSERT_EQ(response.status, 101) << response.body;
    EXPECT_TRUE(KeepsAlive(id, [] {}));
    response.upgrade->OnEnd();
    EXPECT_FALSE(KeepsAlive(id, [] {})) << "the peer has gone";
  }
  for (const std::string path : {"/ws/agents/ann", "/ws/events"}) {
    http::Request by_name = To(Method::kGet, path + "?project=p", "", upgrade);
    by_name.headers.Add("X-Agent-ID", "ann");
    const Response response = Ask(std::move(by_name));
    ASSERT_EQ(response.status, 101) << response.body;
    EXPECT_TRUE(KeepsAlive(id, [] {})) << path;
    response.upgrade->OnEnd();
  }
  {
    const Response other = Ask(To(Method::kGet, "/ws/events?project=p", "", upgrade));
    ASSERT_EQ(other.status, 101) << other.body;
    EXPECT_FALSE(KeepsAlive(id, [] {})) << "nobody's";
  }
  app_.access.require_agent_token = true;
  const Response unproved = Ask(To(Method::kGet, "/ws/agents/" + id + "?project=p", "", upgrade));
  ASSERT_EQ(unproved.status, 101) << unproved.body;
  EXPECT_FALSE(KeepsAlive(id, [] {}));
}

TEST_F(SpeakerTest, AgentThatRenewsAllDayWithoutHeartbeatsIsNotForcedToRelease) {
  const std::string id = Register().agent_id;
  const std::string held = Reserve(id, "src/**");
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(minutes(4));
    ASSERT_THAT(
        Post("/api/reservations/" + held + "/renew", R"({"ttl_minutes":60})", {{"X-Agent-ID", id}}),
        StartsWith("200"));
  }
  clock_.Advance(minutes(4));
  EXPECT_THAT(Force(held), HasSubstr("holder_active"));
  EXPECT_THAT(Get("/api/reservations/check?project=p&pattern=src/a"),
              AllOf(HasSubstr(R"("holder_state":"active")"),
                    HasSubstr(R"("last_seen":"2026-01-02T09:44:05Z")")));
  EXPECT_THAT(Post("/api/reservations", Wish("b", "src/a")),
              HasSubstr(R"("holder_state":"active")"));
  clock_.Advance(minutes(1));
  EXPECT_THAT(Get("/api/reservations/check?project=p&pattern=src/a"),
              HasSubstr(R"("holder_state":"stale")"));
  EXPECT_THAT(Force(held), StartsWith("200"));
}

TEST_F(SpeakerTest, UnregisteredHolderStaysUnknown) {
  const std::string held = Reserve("nobody", "src/**");
  EXPECT_THAT(Get("/api/reservations/check?project=p&pattern=src/a"),
              HasSubstr(R"("holder_state":"unknown")"));
  EXPECT_THAT(Force(held), StartsWith("200"));
}

TEST_F(SpeakerTest, DeregisteredAgentIsNotRevivedByItsRequests) {
  const std::string id = Register().agent_id;
  EXPECT_THAT(Say(Method::kDelete, "/api/agents/" + id), StartsWith("204"));
  EXPECT_THAT(Post("/api/reservations", Wish(id, "src/**")), StartsWith("404"));
  EXPECT_EQ(Get("/api/agents?project=p"), "200 {\"agents\":[]}\n");
}

TEST_F(SpeakerTest, SessionOfAnAgentThatReadsItsInboxIsNotTakenOver) {
  const std::string session = std::string(R"(,"session_id":")") + kSession + R"(")";
  const std::string again = R"({"project":"p")" + session + "}";
  const std::string id = Register(session).agent_id;
  clock_.Advance(minutes(10));
  Get("/api/inbox/" + id);
  clock_.Advance(minutes(4));
  EXPECT_THAT(Post("/api/agents", again), HasSubstr("active_session_conflict"));
  clock_.Advance(minutes(1));
  // To name oneself does not keep the session of the agent that one was.
  EXPECT_THAT(Post("/api/agents", again, {{"X-Agent-ID", id}}), HasSubstr(id));
}

TEST_F(SpeakerTest, ListsPresenceAndStatusShowTheNewerTime) {
  const std::string first = Register().agent_id;
  clock_.Advance(seconds(1));
  const std::string second = Register().agent_id;
  clock_.Advance(hours(1));
  Get("/api/inbox/" + first);
  for (const char* path :
       {"/api/agents?project=p", "/api/agents", "/api/agents/presence?project=p"}) {
    const std::string list = Get(path);
    EXPECT_THAT(list, HasSubstr(R"("last_seen":"2026-01-02T04:04:06Z")")) << path;
    EXPECT_LT(list.find(first), list.find(second)) << path << "\n" << list;
  }
  EXPECT_THAT(Get("/api/status?project=p"), HasSubstr(R"("agents_alive":1,"agents_registered":2)"));
  EXPECT_THAT(Get("/api/status"), HasSubstr(R"("agents_alive":1)"));
}

TEST_F(SpeakerTest, ReadsCauseNoWrite) {
  const std::string id = Register().agent_id;
  const std::uint64_t before = database_->writer_stats().commits;
  for (int i = 0; i < 10; ++i) Get("/api/inbox/" + id);
  EXPECT_EQ(database_->writer_stats().commits, before);
}

}  // namespace
}  // namespace interlock::api
