#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "e2e_test.h"
#include "json/parse.h"
#include "json/value.h"
#include "testing/random.h"
#include "testing/ws_client.h"

namespace interlock::e2e {
namespace {

using testing::WsClient;

// What a test looks at in an event.
struct Seen {
  std::int64_t cursor = 0;
  std::string type;
  std::string project;
  std::string entity_id;
  std::string message_id;
  std::string agent;
};

std::string Text(const json::Object& object, std::string_view name) {
  const json::Value* const value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_string() ? std::string(json::View(value->get_string())) : "";
}

std::int64_t Number(const json::Object& object, std::string_view name) {
  const json::Value* const value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_int64() ? value->get_int64() : -1;
}

std::optional<Seen> Next(WsClient& client) {
  const auto text = client.ReadText();
  if (!text) return std::nullopt;
  const auto value = json::Parse(*text);
  if (!value.ok() || !value->is_object()) {
    ADD_FAILURE() << "not a JSON object: " << *text;
    return std::nullopt;
  }
  const json::Object& object = value->get_object();
  return Seen{.cursor = Number(object, "cursor"),
              .type = Text(object, "type"),
              .project = Text(object, "project"),
              .entity_id = Text(object, "entity_id"),
              .message_id = Text(object, "message_id"),
              .agent = Text(object, "agent")};
}

// The ids of the next messages that `client` hears of; it must hear of nothing else.
std::vector<std::string> NextMessages(WsClient& client, std::size_t count) {
  std::vector<std::string> ids;
  while (ids.size() < count) {
    const auto seen = Next(client);
    if (!seen) {
      ids.push_back("closed with " + std::to_string(client.close_code()));
      break;
    }
    ids.push_back(seen->type == "message.created" ? seen->message_id : seen->type);
  }
  return ids;
}

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

class FollowOverWebSocketTest : public E2eTest {
 protected:
  void Begin(std::vector<std::string> flags = {}) {
    server_ = Start(std::move(flags));
    sender_.emplace(server_->Connect());
  }

  WsClient Open(const std::string& target, const std::string& headers = "") {
    return {server_->Connect(), target, headers};
  }
  WsClient OpenAgent(const std::string& agent, const std::string& project,
                     const std::string& more = "") {
    return Open("/ws/agents/" + agent + "?project=" + project + more);
  }

  static std::string MessageBody(const std::string& id, const std::vector<std::string>& to,
                                 const std::string& project, std::size_t subject_bytes = 0) {
    std::string list;
    for (const std::string& agent : to) list += (list.empty() ? "" : ",") + Quoted(agent);
    return "{\"id\":" + Quoted(id) + ",\"project\":" + Quoted(project) +
           ",\"from\":\"sender\",\"to\":[" + list +
           "],\"body\":\"hello\",\"subject\":" + Quoted(std::string(subject_bytes, 's')) + "}";
  }
  // A message that is committed when this returns; its cursor.
  std::int64_t Send(const std::string& id, const std::vector<std::string>& to,
                    const std::string& project = "p") {
    sender_->Request("POST", "/api/messages", MessageBody(id, to, project));
    return CursorOfAnswer();
  }
  HttpAnswer Post(const std::string& target, const std::string& body) {
    sender_->Request("POST", target, body);
    return sender_->Read().value_or(HttpAnswer{});
  }
  std::int64_t CursorOfAnswer() {
    const auto answer = sender_->Read();
    if (!answer || answer->status != 200) {
      ADD_FAILURE() << (answer ? answer->body : "no answer");
      return -1;
    }
    const auto value = json::Parse(answer->body);
    return value.ok() ? Number(value->get_object(), "cursor") : -1;
  }

  std::unique_ptr<ServerProcess> server_;
  std::optional<HttpClient> sender_;
};

using Ids = std::vector<std::string>;

TEST_F(FollowOverWebSocketTest, RefusesWhatIsNoProperHandshakeAsPlainHttp) {
  Begin();
  const auto status = [&](const std::string& target, const std::string& headers) {
    HttpClient client = server_->Connect();
    client.Request("GET", target, "", headers);
    const auto answer = client.Read();
    return answer ? *answer : HttpAnswer();
  };
  const std::string upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  const std::string version = "Sec-WebSocket-Version: 13\r\n";
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const std::string foreign = "Origin: http://evil.example\r\n" + upgrade + version + key;
  for (const std::string target : {"/ws/agents/a?project=p", "/ws/events?project=p"}) {
    const HttpAnswer plain = status(target, "");
    EXPECT_EQ(plain.status, 426);
    EXPECT_EQ(plain.Header("Upgrade"), "websocket");
    EXPECT_EQ(status(target, upgrade + key).status, 400);
    EXPECT_EQ(status(target, upgrade + version).status, 400);
    EXPECT_EQ(status(target, foreign).status, 403);
  }
  EXPECT_EQ(status("/ws/agents/%20?project=p", upgrade + version + key).status, 400);
  EXPECT_EQ(status("/ws/agents/?project=p", upgrade + version + key).status, 400);
  EXPECT_EQ(status("/ws/agents/a?project=p", upgrade + version + key + "X-Agent-ID: b\r\n").status,
            403);
  WsClient own = Open("/ws/agents/a?project=p", "X-Agent-ID: a\r\nOrigin: http://localhost\r\n");
  EXPECT_TRUE(own.open()) << own.answer().body;
}

TEST_F(FollowOverWebSocketTest, ARemotePeerNeedsAKeyAndHearsItsProjectOnly) {
  std::ofstream(File("keys.yaml")) << "projects:\n  p:\n    keys: [key-of-p]\n";
  Begin({"--keys-file", File("keys.yaml").string()});
  const std::string remote = "X-Forwarded-For: 203.0.113.9\r\n";
  const std::string key = remote + "Authorization: Bearer key-of-p\r\n";
  EXPECT_EQ(Open("/ws/agents/a?project=p", remote).answer().status, 401);
  EXPECT_EQ(Open("/ws/events?project=p", remote).answer().status, 401);
  EXPECT_EQ(Open("/ws/agents/a?project=other", key).answer().status, 403);
  EXPECT_EQ(Open("/ws/events?project=other", key).answer().status, 403);
  WsClient local = OpenAgent("a", "p");
  WsClient keyed = Open("/ws/agents/a", key);
  ASSERT_TRUE(local.open()) << local.answer().body;
  ASSERT_TRUE(keyed.open()) << keyed.answer().body;
  Send("elsewhere", {"a"}, "other");
  Send("m1", {"a"});
  EXPECT_EQ(NextMessages(local, 1), Ids{"m1"});
  EXPECT_EQ(NextMessages(keyed, 1), Ids{"m1"});
}

TEST_F(FollowOverWebSocketTest, MessageCreatedGoesToEachRecipientOnly) {
  Begin();
  WsClient a = OpenAgent("a", "p");
  WsClient b = OpenAgent("team/b", "p");
  WsClient c = OpenAgent("c", "p");
  WsClient all = Open("/ws/events?project=p");
  ASSERT_TRUE(a.open() && b.open() && c.open() && all.open());
  const std::int64_t cursor = Send("m1", {"a", "team/b"});
  Send("m2", {"c"});
  Send("m3", {"a", "team/b", "c"});
  const auto first = Next(a);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->type, "message.created");
  EXPECT_EQ(first->cursor, cursor);
  EXPECT_EQ(first->project, "p");
  EXPECT_EQ(first->entity_id, "m1");
  EXPECT_EQ(first->message_id, "m1");
  EXPECT_EQ(first->agent, "a");
  EXPECT_EQ(NextMessages(a, 1), Ids{"m3"});
  EXPECT_EQ(NextMessages(b, 2), (Ids{"m1", "m3"}));
  EXPECT_EQ(NextMessages(c, 2), (Ids{"m2", "m3"}));
  EXPECT_EQ(NextMessages(all, 3), (Ids{"m1", "m2", "m3"}));
}

TEST_F(FollowOverWebSocketTest, ProjectsHearNothingOfEachOther) {
  Begin();
  WsClient p = OpenAgent("a", "p");
  WsClient q = OpenAgent("a", "q");
  WsClient none = Open("/ws/events");
  ASSERT_TRUE(p.open() && q.open() && none.open());
  Send("p1", {"a"}, "p");
  Send("q1", {"a"}, "q");
  Send("none1", {"a"}, "");
  Send("p2", {"a"}, "p");
  EXPECT_EQ(NextMessages(p, 2), (Ids{"p1", "p2"}));
  EXPECT_EQ(NextMessages(q, 1), Ids{"q1"});
  EXPECT_EQ(NextMessages(none, 1), Ids{"none1"});
}

TEST_F(FollowOverWebSocketTest, TenSubscribersHearFiveMessagesEach) {
  Begin();
  std::vector<WsClient> subscribers;
  subscribers.reserve(10);
  Ids names;
  for (int i = 0; i < 10; ++i) {
    names.push_back("agent-" + std::to_string(i));
    subscribers.push_back(OpenAgent(names.back(), "p"));
    ASSERT_TRUE(subscribers.back().open());
  }
  Ids ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back("m" + std::to_string(i));
    Send(ids.back(), names);
  }
  for (WsClient& subscriber : subscribers) EXPECT_EQ(NextMessages(subscriber, 5), ids);
}

TEST_F(FollowOverWebSocketTest, ResumesBehindACursorAndFromTheOldest) {
  Begin();
  Send("m1", {"a"});
  const std::int64_t cursor = Send("m2", {"a"});
  Send("m3", {"b"});
  Send("m4", {"a"});
  WsClient resumed = OpenAgent("a", "p", "&since_cursor=" + std::to_string(cursor));
  WsClient oldest = OpenAgent("a", "p", "&since_cursor=0");
  WsClient live = OpenAgent("a", "%20p/");  // the same project
  ASSERT_TRUE(resumed.open() && oldest.open() && live.open());
  Send("m5", {"a"});
  EXPECT_EQ(NextMessages(resumed, 2), (Ids{"m4", "m5"}));
  EXPECT_EQ(NextMessages(oldest, 4), (Ids{"m1", "m2", "m4", "m5"}));
  EXPECT_EQ(NextMessages(live, 1), Ids{"m5"});
}

TEST_F(FollowOverWebSocketTest, CursorOfAnotherDatabaseClosesWith4409) {
  Begin();
  const std::int64_t newest = Send("m1", {"a"});
  WsClient ahead = OpenAgent("a", "p", "&since_cursor=" + std::to_string(newest + 1));
  EXPECT_FALSE(ahead.ReadText());
  EXPECT_EQ(ahead.close_code(), 4409);
  EXPECT_EQ(ahead.close_reason().find("cursor_ahead: the log ends at cursor "), 0U)
      << ahead.close_reason();
}

TEST_F(FollowOverWebSocketTest, FiltersByTypeFromTheQueryAndByMessage) {
  Begin();
  WsClient queried = Open("/ws/events?project=p&types=message.read,%20message.ack");
  WsClient asked = Open("/ws/events?project=p");
  ASSERT_TRUE(queried.open() && asked.open());
  // A pong says that all before it has been heard.
  const auto tell = [](WsClient& client, std::string_view text) {
    client.SendText(text);
    client.SendBytes(WsClient::FrameBytes(WsClient::kPing, ""));
    const auto pong = client.ReadFrame();
    return pong && pong->opcode == WsClient::kPong;
  };
  Send("m1", {"a"});
  EXPECT_EQ(NextMessages(asked, 1), Ids{"m1"});
  EXPECT_TRUE(tell(asked, R"({"type":"unsubscribe","event_types":["message.created"]})"));
  Send("m2", {"a"});
  EXPECT_EQ(Post("/api/agents", R"({"name":"a","project":"p"})").status, 200);
  EXPECT_EQ(NextMessages(asked, 1), Ids{"agent.registered"});
  const std::string subscribe =
      R"({"type":"subscribe","event_types":["message.created"],"project":"p"})";
  EXPECT_TRUE(tell(asked, subscribe));
  EXPECT_TRUE(tell(queried, subscribe));
  Send("m3", {"a"});
  EXPECT_EQ(NextMessages(asked, 1), Ids{"m3"});
  EXPECT_EQ(NextMessages(queried, 1), Ids{"m3"});
}

// Whoever is gone, whichever way, is a consumer no longer.
TEST_F(FollowOverWebSocketTest, NoConsumerIsLeftOnceItsConnectionIsClosed) {
  Begin();
  WsClient stays = OpenAgent("a", "p");
  ASSERT_TRUE(stays.open());
  for (int i = 0; i < 20; ++i) {
    WsClient client = OpenAgent("a", "p");
    ASSERT_TRUE(client.open());
    if (i % 2 == 0) client.SendClose(1000);
    if (i % 3 == 0) client.http().Reset();
  }
  const auto consumers = [&] {
    const auto answer = sender_->Get("/metrics");
    constexpr std::string_view kName = "\nintermute_websocket_consumers ";
    const std::size_t at = answer ? answer->body.find(kName) : std::string::npos;
    return at == std::string::npos ? -1 : std::atoi(answer->body.c_str() + at + kName.size());
  };
  const auto end = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  while (consumers() != 1 && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_EQ(consumers(), 1);
  Send("m1", {"a"});
  EXPECT_EQ(NextMessages(stays, 1), Ids{"m1"});
}

TEST_F(FollowOverWebSocketTest, HostileMessagesCloseOneConnectionAndNoOther) {
  Begin();
  const auto code_for = [&](const std::string& bytes) {
    WsClient client = OpenAgent("a", "p");
    client.SendBytes(bytes);
    return client.ReadClose();
  };
  WsClient witness = OpenAgent("a", "p");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) + "\"";
  EXPECT_EQ(code_for(WsClient::FrameBytes(WsClient::kText, "{\"type\":")), 1007);
  EXPECT_EQ(code_for(WsClient::FrameBytes(WsClient::kText, "hello")), 1007);
  EXPECT_EQ(code_for(WsClient::FrameBytes(WsClient::kText, "\xFF")), 1007);
  EXPECT_EQ(code_for(WsClient::FrameBytes(WsClient::kBinary, "{}")), 1003);
  EXPECT_EQ(code_for(WsClient::FrameBytes(WsClient::kText, std::string(32'769, ' '))), 1009);
  EXPECT_EQ(code_for(WsClient::FrameBytes(WsClient::kText,
                                          R"({"type":"subscribe","event_types":[)" + many + "]}")),
            1008);
  EXPECT_EQ(code_for(WsClient::FrameBytes(WsClient::kText, "{}", {.masked = false})), 1002);
  Send("m1", {"a"});
  EXPECT_EQ(NextMessages(witness, 1), Ids{"m1"});
}

// What is in the log is told exactly once, however a connection falls between two commits: one
// message is there before, one is on its way while we connect, one follows.
TEST_F(FollowOverWebSocketTest, PublishingDuringTheSwitchLosesAndDoublesNothing) {
  Begin({"--durability", "fast"});
  constexpr int kRounds = testing::kSlowBuild ? 100 : 1000;
  std::int64_t cursor = Send("first", {"a"});
  for (int round = 0; round < kRounds; ++round) {
    const std::string number = std::to_string(round);
    Send("before-" + number, {"a"});
    sender_->Request("POST", "/api/messages", MessageBody("during-" + number, {"a"}, "p"));
    const std::string target =
        round % 2 == 0 ? "/ws/agents/a?project=p" : "/ws/events?project=p&types=message.created";
    WsClient client = Open(target + "&since_cursor=" + std::to_string(cursor));
    ASSERT_TRUE(client.open()) << client.answer().body;
    CursorOfAnswer();
    cursor = Send("after-" + number, {"a"});
    ASSERT_EQ(NextMessages(client, 3),
              (Ids{"before-" + number, "during-" + number, "after-" + number}));
  }
}

// A consumer that reads nothing: the sender goes on, others hear everything, and when it comes back
// to life it reads a run of events without a hole, then 1013, and resumes behind it.
TEST_F(FollowOverWebSocketTest, AStalledConsumerDelaysNobodyIsClosedWith1013AndResumesWithoutAGap) {
  Begin({"--durability", "fast"});
  // Together far more than the kernel and the outbox hold for one consumer.
  constexpr int kMessages = 1600;
  constexpr std::size_t kSubjectBytes = 8000;
  constexpr int kBurst = 20;  // requests on their way at once
  WsClient stalled = OpenAgent("a", "p");
  WsClient other = OpenAgent("a", "p");
  ASSERT_TRUE(stalled.open() && other.open());

  Ids all;
  all.reserve(kMessages);
  for (int i = 0; i < kMessages; ++i) all.push_back("m" + std::to_string(i));
  Ids heard;
  std::thread reader([&] { heard = NextMessages(other, kMessages); });
  for (int begin = 0; begin < kMessages; begin += kBurst) {
    for (int i = begin; i < begin + kBurst; ++i) {
      sender_->Request("POST", "/api/messages", MessageBody(all[i], {"a"}, "p", kSubjectBytes));
    }
    for (int i = 0; i < kBurst; ++i) CursorOfAnswer();
  }
  reader.join();
  EXPECT_EQ(heard, all);

  Ids pieced;
  std::int64_t cursor = 0;
  while (const auto seen = Next(stalled)) {
    pieced.push_back(seen->message_id);
    cursor = seen->cursor;
  }
  EXPECT_EQ(stalled.close_code(), 1013);
  ASSERT_LT(pieced.size(), all.size());
  WsClient resumed = OpenAgent("a", "p", "&since_cursor=" + std::to_string(cursor));
  ASSERT_TRUE(resumed.open());
  for (std::string& id : NextMessages(resumed, all.size() - pieced.size())) {
    pieced.push_back(std::move(id));
  }
  EXPECT_EQ(pieced, all);
}

TEST_F(FollowOverWebSocketTest, AStoppingServerCloses1001AndWaitsForNoAnswer) {
  Begin();
  WsClient client = OpenAgent("a", "p");
  WsClient mute = OpenAgent("b", "p");
  ASSERT_TRUE(client.open() && mute.open());
  std::thread stop([&] { EXPECT_EQ(server_->Stop(), 0) << server_->process().Stderr(); });
  EXPECT_EQ(client.ReadClose(), 1001);
  stop.join();
  EXPECT_FALSE(mute.ReadText());
  EXPECT_EQ(mute.close_code(), 1001);
}

}  // namespace
}  // namespace interlock::e2e
