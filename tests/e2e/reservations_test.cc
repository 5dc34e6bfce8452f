// Reservations as clients meet them: every operation, wrong requests, waiting, hanging up, leaving,
// and what a restart keeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "api_test.h"
#include "db/sqlite/connection.h"
#include "json/write.h"
#include "testing/ws_client.h"

namespace interlock::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::WsClient;

const std::string kAll = "/api/reservations";

std::string Wish(const std::string& agent, const std::string& pattern,
                 const std::string& more = "") {
  return R"({"project":"p","exclusive":true,"agent_id":")" + agent + R"(","path_pattern":")" +
         pattern + "\"" + more + "}";
}
std::string PathOf(const std::string& id) { return kAll + "/" + id; }
std::string As(const std::string& agent) { return "X-Agent-ID: " + agent + "\r\n"; }

class ReservationsTest : public ApiTest {
 protected:
  explicit ReservationsTest(std::vector<std::string> flags = {}) : ApiTest(std::move(flags)) {}

  json::Object Made(const std::string& body) {
    const HttpAnswer answer = Ask("POST", kAll, body);
    EXPECT_EQ(answer.status, 201) << answer.body;
    return json::Parse(answer.body).value().get_object();
  }
  std::string Grant(const std::string& agent, const std::string& pattern,
                    const std::string& more = "") {
    return Text(json::Value(Made(Wish(agent, pattern, more))), "id");
  }
  std::int64_t Waiters() {
    const std::string text = Ask("GET", "/metrics").body;
    constexpr std::string_view kName = "\nintermute_reservation_waiters ";
    return std::stol(text.substr(text.find(kName) + kName.size()));
  }
  // Until so many wait; they come and go on other connections.
  void AwaitWaiters(std::int64_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (Waiters() != count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_EQ(Waiters(), count);
  }
};

TEST_F(ReservationsTest, EveryOperationInTheLifeOfAReservation) {
  const std::string ada = Register("p", "ada");
  const json::Object made =
      Made(Wish(ada, "src/**/*.cc", R"(,"reason":"refactor","ttl_minutes":60)"));
  const std::string id = Text(json::Value(made), "id");
  EXPECT_EQ(made.at("fence").as_int64(), 1);
  EXPECT_TRUE(made.at("is_active").as_bool());

  const HttpAnswer refused = Ask("POST", kAll, Wish("b", "src/main.*"));
  EXPECT_EQ(refused.status, 409);
  const json::Object conflict =
      json::Parse(refused.body).value().get_object().at("conflicts").as_array().at(0).as_object();
  EXPECT_EQ(Text(json::Value(conflict), "reservation_id"), id);
  EXPECT_EQ(Text(json::Value(conflict), "agent_id"), ada);
  EXPECT_EQ(Text(json::Value(conflict), "held_by"), "ada");
  EXPECT_EQ(Text(json::Value(conflict), "pattern"), "src/**/*.cc");
  EXPECT_EQ(Text(json::Value(conflict), "reason"), "refactor");
  EXPECT_EQ(Text(json::Value(conflict), "expires_at"), Text(json::Value(made), "expires_at"));
  EXPECT_EQ(Text(json::Value(conflict), "requested"), "src/main.*");
  EXPECT_EQ(Text(json::Value(conflict), "witness"), "src/main.cc");
  EXPECT_EQ(Text(json::Value(conflict), "holder_state"), "active");
  EXPECT_EQ(conflict.at("fence").as_int64(), 1);
  EXPECT_TRUE(conflict.at("exclusive").as_bool());
  EXPECT_NE(Text(json::Value(conflict), "last_seen"), "");

  const std::string one = kAll + "/" + id;
  Check({
      {"GET", kAll + "/check?project=p&pattern=src/a.cc", "", 200, R"("witness":"src/a.cc")"},
      {"GET", kAll + "/check?project=p&pattern=src/a.cc&agent=" + ada, "", 200,
       R"({"conflicts":[]})"},
      {"GET", kAll + "/check?project=p&pattern=docs/x", "", 200, R"({"conflicts":[]})"},
      {"GET", kAll + "/check?project=q&pattern=src/a.cc", "", 200, R"({"conflicts":[]})"},
      {"GET", kAll + "?project=p", "", 200, id},
      {"GET", kAll + "?agent=" + ada, "", 200, id},
      {"GET", one, "", 200, R"("fence":1)"},
      {"POST", one + "/renew", R"({"ttl_minutes":90})", 200, R"("fence":1)", As(ada)},
      {"POST", one + "/renew", "", 200, R"("fence":1)", As(ada)},
      {"POST", one + "/renew", "", 403, "forbidden", As("b")},
      {"POST", one + "/transfer", R"({"to_agent":"b"})", 403, "forbidden", As("b")},
      {"POST", one + "/transfer", R"({"to_agent":"b"})", 200, R"("fence":2)", As(ada)},
      {"DELETE", one, "", 403, "forbidden", As(ada)},
      {"DELETE", one, "", 403, "forbidden"},
      {"DELETE", one, "", 200, "", As("b")},
      {"DELETE", one, "", 404, "not_found", As("b")},
      {"POST", one + "/renew", "", 404, "not_found", As("b")},
      {"GET", one, "", 200, R"("is_active":false)"},
      {"GET", kAll + "?project=p", "", 200, R"({"reservations":[]})"},
      {"GET", kAll + "?agent=b", "", 200, R"("released_at")"},
  });
  EXPECT_THAT(Ask("GET", "/api/events?project=p").body,
              AllOf(HasSubstr("reservation.created"), HasSubstr("reservation.renewed"),
                    HasSubstr("reservation.transferred"), HasSubstr("reservation.released"),
                    Not(HasSubstr("reservation.conflict"))));
}

TEST_F(ReservationsTest, AbsentExclusiveMeansExclusive) {
  const std::string by = R"({"project":"p","agent_id":")";
  Check({
      {"POST", kAll, by + R"(a","path_pattern":"x"})", 201, R"("exclusive":true)"},
      {"POST", kAll, by + R"(b","path_pattern":"x"})", 409, R"("witness":"x")"},
      {"POST", kAll, by + R"(b","path_pattern":"x","exclusive":false})", 409, R"("witness":"x")"},
      {"POST", kAll, by + R"(a","path_patterns":["y","z"],"exclusive":null})", 201,
       R"("path_pattern":"z","exclusive":true)"},
      {"POST", kAll, by + R"(b","path_patterns":["v","z"],"exclusive":false})", 409,
       R"("witness":"z")"},
      {"POST", kAll, by + R"(a","path_patterns":["s"],"exclusive":false})", 201,
       R"("exclusive":false)"},
      {"POST", kAll, by + R"(b","path_pattern":"s","exclusive":false})", 201,
       R"("exclusive":false)"},
      {"GET", "/openapi.json", "", 200, R"("default":true)"},
  });
}

TEST_F(ReservationsTest, APathCoversWhatIsBelowIt) {
  Grant("a", "src");
  Grant("a", "doc/[x]", R"(,"literal":true)");
  Grant("a", "lib/{http,json}");
  Grant("a", "etc/*");
  const std::string check = kAll + "/check?project=p&pattern=";
  Check({
      {"POST", kAll, Wish("b", "src/a.cc"), 409, R"("witness":"src/a.cc")"},
      {"GET", check + "src/a.cc", "", 200, R"("witness":"src/a.cc")"},
      {"GET", check + "src/a/*.cc", "", 200, R"("witness":"src/a/.cc")"},
      {"GET", check + "srcs", "", 200, R"({"conflicts":[]})"},
      {"GET", check + "doc/%5Bx%5D/page.tsx&literal=true", "", 200,
       R"("witness":"doc/[x]/page.tsx")"},
      {"GET", check + "lib/json/a/b.cc", "", 200, R"("witness":"lib/json/a/b.cc")"},
      {"GET", check + "lib", "", 200, R"("witness":"lib/http")"},
      {"GET", check + "lib/glob/a.cc", "", 200, R"({"conflicts":[]})"},
      {"GET", check + "etc/a/b.cc", "", 200, R"({"conflicts":[]})"},
      {"GET", check + "etc/", "", 200, R"("witness":"etc/a")"},
  });
}

TEST_F(ReservationsTest, TheMessageOfAConflictSaysWhichPathIsInBoth) {
  Grant("a", "**/*.go");
  Grant("a", "src/*.cc");
  Check({
      {"POST", kAll, Wish("b", "README.md"), 409,
       "README.md/.go is in README.md and in **/*.go, which a holds; a path without wildcards "
       "covers everything below it"},
      {"POST", kAll, Wish("b", "src/m*.cc"), 409,
       "src/m.cc is in src/m*.cc and in src/*.cc, which a holds. "},
      {"POST", kAll, Wish("b", "**/*.go", R"(,"wait_seconds":1)"), 409, "is in **/*.go and in "},
  });
}

TEST_F(ReservationsTest, BooleansOfAQueryFollowOneRule) {
  Grant("a", "x", R"(,"literal":true)");
  Grant("a", "s", R"(,"exclusive":false)");
  const std::string check = kAll + "/check?project=p&pattern=";
  const std::string wrong = "must be true, false, 1 or 0";
  const std::string none = R"({"conflicts":[]})";
  Check({
      {"GET", check + "s&exclusive=true", "", 200, R"("pattern":"s")"},
      {"GET", check + "s&exclusive=1", "", 200, R"("pattern":"s")"},
      {"GET", check + "s&exclusive=", "", 200, R"("pattern":"s")"},
      {"GET", check + "s&exclusive", "", 200, R"("pattern":"s")"},
      {"GET", check + "s&exclusive=false", "", 200, none},
      {"GET", check + "s&exclusive=0", "", 200, none},
      {"GET", check + "s&exclusive=maybe", "", 400, wrong},
      {"GET", check + "s&exclusive=False", "", 400, R"("field":"exclusive")"},
      {"GET", check + "[x&literal=1", "", 200, none},
      {"GET", check + "[x&literal=0", "", 400, "invalid_pattern"},
      {"GET", check + "x&literal=", "", 200, R"("witness":"x")"},
      {"GET", check + "x&literal=yes", "", 400, R"("field":"literal")"},
      {"POST", kAll + "?if_not_conflict=1", Wish("b", "x"), 409, "reservation_conflict"},
      {"POST", kAll + "?if_not_conflict=", Wish("b", "x"), 409, "reservation_conflict"},
      {"POST", kAll + "?if_not_conflict=maybe", Wish("b", "x"), 400,
       R"("field":"if_not_conflict")"},
      {"DELETE", kAll + "/nothing?force=", "", 404, "not_found", As("a")},
      {"DELETE", kAll + "/nothing?force=0", "", 404, "not_found", As("a")},
      {"DELETE", kAll + "/nothing?force=on", "", 400, R"("field":"force")", As("a")},
  });
}

TEST_F(ReservationsTest, FormsOfOtherToolsAreRefusedUnlessThePathIsLiteral) {
  const struct {
    const char* pattern;
    const char* instead;
  } kForms[] = {{"src\\\\a.cc", "use / between directories"},
                {"{1..3}", "{1,2,3}"},
                {"[[:alpha:]]", "[A-Za-z]"},
                {"@(a|b)", "{a,b}"},
                {"!(a)", "literal:true"},
                {"[\\\\d]", "[0-9]"},
                {" src/a.cc ", "remove them"},
                {"src/{a,b", "write {a,b}"},
                {"C:/x", "relative to the project's root"},
                {"C:\\\\y", "relative to the project's root"},
                {"~/x", "relative to the project's root"},
                {"$HOME/x", "relative to the project's root"},
                {"${X}", "relative to the project's root"},
                {"src\\\\*.cc", "use / as in src/*.cc"},
                {"src\\\\\\\\b.cc", "use / between directories"},
                {"!neg", "literal:true"}};
  for (const auto& form : kForms) {
    const HttpAnswer refused = Ask("POST", kAll, Wish("a", form.pattern));
    EXPECT_EQ(refused.status, 400) << form.pattern;
    EXPECT_THAT(refused.body, AllOf(HasSubstr("invalid_pattern"), HasSubstr(form.instead)));
    const std::string batch = R"({"project":"p","agent_id":"a","path_patterns":["y",")";
    const HttpAnswer together = Ask("POST", kAll, batch + form.pattern + R"("]})");
    EXPECT_EQ(together.status, 400) << form.pattern;
    EXPECT_THAT(together.body, AllOf(HasSubstr("invalid_pattern"), HasSubstr(R"("index":1)")));
    Grant("a", form.pattern, R"(,"literal":true)");
  }
  Grant("a", "app/(group)/foo@2x(1).png");
  Check({
      {"GET", kAll + "/check?project=p&pattern=@(a%7Cb)", "", 400, "invalid_pattern"},
      {"GET", kAll + "/check?project=p&pattern=@(a%7Cb)&literal=true", "", 200, "@(a|b)"},
      {"GET", kAll + "/check?project=p&pattern=%20src/a.cc", "", 400, "remove them"},
      {"GET", kAll + "/check?project=p&pattern=$HOME/x", "", 400, "invalid_pattern"},
      {"GET", kAll + "/check?project=p&pattern=$HOME/x&literal=true", "", 200, "$HOME/x"},
      {"GET", kAll + "/check?project=p&pattern=routes/$id.tsx", "", 200, R"({"conflicts":[]})"},
  });
}

TEST_F(ReservationsTest, ManyPatternsAreGrantedTogetherOrNotAtAll) {
  Grant("a", "x/1");
  const std::string begin = R"({"project":"p","agent_id":"b","exclusive":true,"path_patterns":)";
  Check({
      {"POST", kAll, begin + R"(["y","x/*"]})", 409, R"("requested":"x/*")"},
      {"POST", kAll, begin + R"(["y","[bad"]})", 400, "invalid_pattern"},
      {"GET", kAll + "?agent=b", "", 200, R"({"reservations":[]})"},
      {"POST", kAll, begin + R"(["y","z/**"]})", 201, R"({"reservations":[{)"},
  });
}

TEST_F(ReservationsTest, WrongRequestsAreToldWhatIsWrong) {
  const std::string many = R"({"project":"p","agent_id":"a","path_patterns":[)";
  std::string too_many = many + "\"0\"";
  for (int i = 1; i < 65; ++i) too_many += ",\"" + std::to_string(i) + "\"";
  Check({
      {"POST", kAll, "", 400},
      {"POST", kAll, "{", 400},
      {"POST", kAll, "{}", 400, "agent_id"},
      {"POST", kAll, R"({"project":"p","agent_id":" ","path_pattern":"x"})", 400, "agent_id"},
      {"POST", kAll, R"({"project":"p","agent_id":"a\nb","path_pattern":"x"})", 400, "agent_id"},
      {"POST", kAll, R"({"project":"p","agent_id":"a","path_patterns":["ok","[bad"]})", 400,
       R"("index":1)"},
      {"POST", kAll, R"({"agent_id":"a","project":"p"})", 400, "path_pattern"},
      {"POST", kAll, R"({"agent_id":"a","path_pattern":"x"})", 400, "project_required"},
      {"POST", kAll, R"({"project":"p","agent_id":"a","path_pattern":"x","exlusive":false})", 400,
       R"("error":"unknown_field")"},
      {"POST", kAll, R"({"project":"p","agent_id":"a","pattern_path":"x"})", 400,
       R"("did_you_mean":"path_pattern")"},
      {"POST", kAll, R"({"project":"p","agent_id":"a","path_pattern":""})", 400, "path_pattern"},
      {"POST", kAll, R"({"project":"p","agent_id":"a","path_pattern":7})", 400, "path_pattern"},
      {"POST", kAll, many + "]}", 400, "path_pattern"},
      {"POST", kAll, too_many + "]}", 400, "at most 64"},
      {"POST", kAll, R"({"project":"p","agent_id":"a","path_pattern":"x","path_patterns":["y"]})",
       400, "both"},
      {"POST", kAll, Wish("a", "/etc/passwd"), 400, "absolute_pattern"},
      {"POST", kAll, Wish("a", "a/../b"), 400, "invalid_pattern"},
      {"POST", kAll, Wish("a", "x\\u0000"), 400, "invalid_pattern"},
      {"POST", kAll, Wish("a", "[z-a]"), 400, "invalid_pattern"},
      {"POST", kAll, Wish("a", std::string(40, '*') + "/?" + std::string(40, '?')), 400,
       "pattern_too_complex"},
      {"POST", kAll, Wish("a", "x", R"(,"ttl_minutes":1.5)"), 400, "ttl_minutes"},
      {"POST", kAll, Wish("a", "x", R"(,"wait_seconds":26)"), 400, "wait_seconds"},
      {"POST", kAll, Wish("a", "x", R"(,"wait_seconds":-1)"), 400, "wait_seconds"},
      {"GET", kAll, "", 400, "?agent="},
      {"GET", kAll + "/check?project=p", "", 400, "pattern"},
      {"GET", kAll + "/check?pattern=x", "", 400, "project_required"},
      {"GET", kAll + "/check?project=p&pattern=[", "", 400, "invalid_pattern"},
      {"GET", kAll + "/nothing", "", 404, "not_found"},
      {"POST", kAll + "/nothing/renew", "", 404, "not_found", As("a")},
      {"POST", kAll + "/nothing/transfer", "{}", 400, "to_agent", As("a")},
      {"DELETE", kAll + "/nothing", "", 404, "not_found", As("a")},
      {"DELETE", kAll + "/nothing?force=true", "", 400, "X-Agent-ID"},
      {"PUT", kAll, "{}", 405},
      {"POST", kAll + "/check", "{}", 405},
      {"GET", kAll + "?project=p", "", 200, R"({"reservations":[]})"},
  });
}

TEST_F(ReservationsTest, LeasesAreBoundedWhateverIsAskedFor) {
  for (const char* minutes : {"0", "-5", "1440", "1441", "9223372036854775807"}) {
    const json::Object made =
        Made(Wish("a", std::string("f") + minutes, R"(,"ttl_minutes":)" + std::string(minutes)));
    EXPECT_TRUE(made.at("is_active").as_bool()) << minutes;
    const std::string day = Text(json::Value(made), "expires_at").substr(0, 4);
    EXPECT_LT(std::stoi(day), 2200) << minutes;
  }
}

TEST_F(ReservationsTest, AHolderThatWorksIsNotForcedAndOneThatIsUnknownIs) {
  const std::string ada = Register("p", "ada");
  const std::string held = Grant(ada, "x");
  const std::string lost = Grant("ghost", "y");
  Check({
      {"DELETE", kAll + "/" + held + "?force=true&reason=mine", "", 409, "holder_active", As("b")},
      {"DELETE", kAll + "/" + lost + "?force=true&reason=mine", "", 200, "", As("b")},
      {"GET", "/api/inbox/ghost?project=p", "", 200, "mine"},
      {"GET", "/api/inbox/" + ada + "?project=p", "", 200, R"("messages":[])"},
  });
}

TEST_F(ReservationsTest, WhoWaitsIsServedInTheOrderOfComing) {
  std::string held = Grant("first", "x");
  std::vector<HttpClient> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(server_->Connect());
    ASSERT_TRUE(waiting.back().Request(
        "POST", kAll, Wish("w" + std::to_string(i), "x", R"(,"wait_seconds":25)")));
    AwaitWaiters(i + 1);
  }
  EXPECT_THAT(Ask("POST", kAll, Wish("late", "x")).body, HasSubstr(R"("waiting":true)"));
  EXPECT_THAT(Ask("GET", kAll + "/check?project=p&pattern=x").body, Not(HasSubstr("waiting")));
  std::string owner = "first";
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(Ask("DELETE", PathOf(held), "", As(owner)).status, 200);
    const auto answer = waiting[static_cast<std::size_t>(i)].Read();
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->status, 201) << answer->body;
    held = Text(json::Parse(answer->body).value(), "id");
    owner = "w" + std::to_string(i);
    AwaitWaiters(4 - i);
  }
}

TEST_F(ReservationsTest, WhoHangsUpLeavesNoTrace) {
  const std::string held = Grant("a", "x");
  const struct {
    const char* name;
    void (*leave)(HttpClient&);
  } kWays[] = {
      {"reset", [](HttpClient& client) { client.Reset(); }},
      {"closed", [](HttpClient& client) { HttpClient gone(std::move(client)); }},
      {"half closed", [](HttpClient& client) { client.FinishSending(); }},
      {"closed after more was sent",
       [](HttpClient& client) {
         client.Send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
         HttpClient gone(std::move(client));
       }},
  };
  for (const auto& way : kWays) {
    SCOPED_TRACE(way.name);
    HttpClient waiting = server_->Connect();
    ASSERT_TRUE(waiting.Request("POST", kAll, Wish("b", "x", R"(,"wait_seconds":25)")));
    AwaitWaiters(1);
    way.leave(waiting);
    AwaitWaiters(0);
  }
  ASSERT_EQ(Ask("DELETE", kAll + "/" + held, "", As("a")).status, 200);
  EXPECT_THAT(Ask("GET", kAll + "?agent=b").body, HasSubstr(R"({"reservations":[]})"));
}

TEST_F(ReservationsTest, ADeadlockEndsWithTheYoungest) {
  Grant("a", "x");
  Grant("b", "y");
  HttpClient older = server_->Connect();
  ASSERT_TRUE(older.Request("POST", kAll, Wish("a", "y", R"(,"wait_seconds":25)")));
  AwaitWaiters(1);
  const HttpAnswer answer = Ask("POST", kAll, Wish("b", "x", R"(,"wait_seconds":25)"));
  EXPECT_EQ(answer.status, 409);
  EXPECT_THAT(answer.body,
              AllOf(HasSubstr(R"("error":"deadlock")"), HasSubstr(R"("cycle":["b","a"])")));
}

TEST_F(ReservationsTest, ADeadlockThroughTwoProjectsIsFoundAmongRegisteredAgents) {
  const std::string ada = Register("p", "ada");
  const std::string ben = Register("p", "ben");
  const auto in_q = [](std::string wish) { return wish.replace(wish.find("\"p\""), 3, "\"q\""); };
  Grant(ada, "x");
  Made(in_q(Wish(ben, "y")));
  HttpClient older = server_->Connect();
  ASSERT_TRUE(older.Request("POST", kAll, in_q(Wish(ada, "y", R"(,"wait_seconds":25)"))));
  AwaitWaiters(1);
  const HttpAnswer answer = Ask("POST", kAll, Wish(ben, "x", R"(,"wait_seconds":25)"));
  EXPECT_EQ(answer.status, 409);
  EXPECT_THAT(answer.body, HasSubstr(R"("cycle":[")" + ben + R"(",")" + ada + R"("])"));
}

TEST_F(ReservationsTest, StoppingAnswersThoseWhoWaitAtOnce) {
  const auto server = Start({"--db=other.db"});
  HttpClient client = server->Connect();
  ASSERT_TRUE(client.Request("POST", kAll, Wish("a", "x")));
  ASSERT_EQ(client.Read()->status, 201);
  HttpClient waiting = server->Connect();
  ASSERT_TRUE(waiting.Request("POST", kAll, Wish("b", "x", R"(,"wait_seconds":25)")));
  while (client.Get("/metrics")->body.find("\nintermute_reservation_waiters 1") ==
         std::string::npos) {
  }
  const auto begin = std::chrono::steady_clock::now();
  server->process().Signal(SIGTERM);
  const auto answer = waiting.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(server->process().Wait(std::chrono::seconds(20)), 0);
}

TEST_F(ReservationsTest, ARestartLosesNoGrantAndInventsNone) {
  std::string kept;
  std::int64_t fence = 0;
  for (const int signal : {SIGKILL, SIGTERM}) {
    const auto server = Start({"--db=kept.db"});
    HttpClient client = server->Connect();
    if (!kept.empty()) {
      ASSERT_TRUE(client.Request("POST", kAll, Wish("b", "keep")));
      EXPECT_EQ(client.Read()->status, 409);
    }
    ASSERT_TRUE(client.Request("POST", kAll, Wish("a", "keep")));
    const auto answer = client.Read();
    ASSERT_EQ(answer->status, 201);
    const json::Value made = json::Parse(answer->body).value();
    if (!kept.empty()) {
      EXPECT_EQ(Text(made, "id"), kept) << "the same claim again";
    }
    kept = Text(made, "id");
    ASSERT_TRUE(client.Request("POST", kAll, Wish("b", "more" + std::to_string(signal))));
    const json::Value more = json::Parse(client.Read()->body).value();
    EXPECT_GT(more.get_object().at("fence").as_int64(), fence);
    fence = more.get_object().at("fence").as_int64();
    server->process().Signal(signal);
    ASSERT_TRUE(server->process().Wait(std::chrono::seconds(20)));
  }
  EXPECT_FALSE(std::filesystem::exists(File("kept.db-wal")));
}

TEST_F(ReservationsTest, WhatRanOutWhileTheServerWasDownIsClearedAwayAndTold) {
  constexpr db::Sql kAge = "UPDATE reservations SET expires_at = expires_at - ?1";
  const std::string db = "--db=old.db";
  std::string id;
  {
    const auto server = Start({db});
    HttpClient client = server->Connect();
    ASSERT_TRUE(client.Request("POST", kAll, Wish("ghost", "src/*.cc")));
    id = Text(json::Parse(client.Read()->body).value(), "id");
    ASSERT_EQ(server->Stop(), 0);
  }
  {
    const auto connection =
        sqlite::Connection::Open({.path = File("old.db"), .access = sqlite::Access::kReadWrite});
    const std::int64_t forty_minutes = std::int64_t{40} * 60 * 1'000'000;
    ASSERT_TRUE((*connection)->Run(kAge, forty_minutes).ok());
  }
  const auto server = Start({db});
  WsClient follower = WsClient::Tcp(server->port(), "/ws/agents/anybody?project=p&since_cursor=1");
  const auto frame = follower.ReadText();
  ASSERT_TRUE(frame);
  EXPECT_THAT(*frame, AllOf(HasSubstr(R"("type":"reservation.expired")"),
                            HasSubstr(R"("reservation_id":")" + id + "\""),
                            HasSubstr(R"("agent_id":"ghost")"),
                            HasSubstr(R"("path_pattern":"src/*.cc","data")")));
  HttpClient client = server->Connect();
  EXPECT_EQ(client.Get(kAll + "/" + id)->status, 404);
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_THAT(server->process().Stderr(),
              HasSubstr(" INFO reservation expired reservation=" + id +
                        " agent=ghost name=\"\" project=p pattern=src/*.cc\n"));
}

class ShortGraceTest : public ReservationsTest {
 protected:
  ShortGraceTest()
      : ReservationsTest(
            {"--sweep-interval=50ms", "--heartbeat-grace=50ms", "--max-reservations=2"}) {}
};

TEST_F(ShortGraceTest, AnAgentHoldsOnlySoManyAndASilentOneIsStale) {
  const std::string ada = Register("p", "ada");
  const std::string held = Grant(ada, "1");
  Grant(ada, "2");
  const HttpAnswer refused = Ask("POST", kAll, Wish(ada, "3"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, AllOf(HasSubstr("reservation_limit"), HasSubstr("2")));
  EXPECT_EQ(refused.Header("Retry-After"), "") << "waiting does not cure it";
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // the grace, by the server's clock
  Check({
      {"GET", kAll + "/check?project=p&pattern=1", "", 200, R"("holder_state":"stale")"},
      {"DELETE", kAll + "/" + held + "?force=true", "", 200, "", As("b")},
  });
}

TEST_F(ReservationsTest, FollowersHearOfEverythingAndOfRefusalsLive) {
  WsClient follower = WsClient::Tcp(server_->port(), "/ws/events?project=p");
  ASSERT_TRUE(follower.open());
  Grant("a", "x");
  EXPECT_EQ(Ask("POST", kAll, Wish("b", "x")).status, 409);
  // What is in no log may come before what is.
  const std::vector<std::string> heard = {follower.ReadText().value_or("nothing"),
                                          follower.ReadText().value_or("nothing")};
  EXPECT_THAT(heard, ::testing::UnorderedElementsAre(
                         AllOf(HasSubstr("reservation.created"), HasSubstr(R"("cursor":)")),
                         AllOf(HasSubstr("reservation.conflict"), Not(HasSubstr(R"("cursor":)")),
                               HasSubstr(R"("agent":"b")"))));
}

}  // namespace
}  // namespace interlock::e2e
