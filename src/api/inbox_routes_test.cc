// The routes of reading mail, from request to answer, on a real database.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "api/dispatch_fixture.h"
#include "json/parse.h"
#include "json/value.h"
#include "testing/mail_rows.h"

namespace interlock::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MailboxRoutesTest : public RealDispatchTest {
 protected:
  // "m1", "m2", … from s to a in project p, unless the test says otherwise.
  domain::Cursor Send(domain::Message message) {
    const domain::Message whole = testing::Filled(std::move(message), ++sent_, clock_.Now());
    domain::Cursor cursor = 0;
    Write([&](db::Transaction& tx) -> Result<void> {
      IL_TRY(cursor, testing::InsertMessage(tx, whole));
      return {};
    });
    return cursor;
  }
  domain::Cursor Send() { return Send({.project = "p"}); }

  Response Call(Method method, std::string target, std::string body = "",
                const std::string& agent = "") {
    http::Request request = To(method, std::move(target), std::move(body));
    if (!agent.empty()) request.headers.Add("X-Agent-ID", agent);
    return Ask(std::move(request));
  }
  json::Value Get(const std::string& target, const std::string& agent = "") {
    const Response response = Call(Method::kGet, target, "", agent);
    EXPECT_EQ(response.status, 200) << target << " " << response.body;
    auto value = json::Parse(response.body);
    EXPECT_TRUE(value.ok()) << response.body;
    return value.ok() ? *value : json::Value();
  }
  // The ids of the messages in an answer.
  static std::vector<std::string> Ids(const json::Value& answer) {
    std::vector<std::string> ids;
    for (const json::Value& message : answer.as_object().at("messages").as_array()) {
      ids.emplace_back(message.as_object().at("id").as_string());
    }
    return ids;
  }
  std::vector<std::string> IdsAt(const std::string& target) { return Ids(Get(target)); }
  static std::int64_t CursorOf(const json::Value& answer) {
    return answer.as_object().at("cursor").to_number<std::int64_t>();
  }
  std::int64_t Number(const db::Sql& sql) {
    const auto connection = file_.Open();
    return connection->One(sql, [](const db::Row& row) { return row.Int(0); }).value().value_or(-1);
  }
  std::int64_t Receipts() {
    return Number("SELECT COUNT(*) FROM events WHERE type IN ('message.read', 'message.ack')");
  }

  int sent_ = 0;
};

TEST_F(MailboxRoutesTest, AnInboxIsReadPageByPage) {
  for (int i = 0; i < 5; ++i) Send();
  std::string since = "0";
  std::vector<std::size_t> sizes;
  std::vector<std::string> all;
  for (int page = 0; page < 4; ++page) {
    const json::Value answer = Get("/api/inbox/a?project=p&limit=2&since_cursor=" + since);
    EXPECT_FALSE(answer.as_object().contains("next_cursor"));
    EXPECT_FALSE(answer.as_object().contains("more"));
    const auto ids = Ids(answer);
    sizes.push_back(ids.size());
    all.insert(all.end(), ids.begin(), ids.end());
    since = std::to_string(CursorOf(answer));
  }
  EXPECT_THAT(sizes, ElementsAre(2u, 2u, 1u, 0u));
  EXPECT_THAT(all, ElementsAre("m1", "m2", "m3", "m4", "m5"));
  EXPECT_EQ(since, "5") << "an empty page repeats the cursor";
}

TEST_F(MailboxRoutesTest, APageIsBoundedThoughNobodyAsksForIt) {
  constexpr std::size_t kBodyBytes = 1'000'000;
  constexpr std::size_t kFit = 16;  // of them in 16 MiB
  for (std::size_t i = 0; i < kFit + 1; ++i) {
    Send({.project = "p", .body = std::string(kBodyBytes, 'b')});
  }
  const Response first = Call(Method::kGet, "/api/inbox/a?project=p");
  EXPECT_GT(first.body.size(), kFit * kBodyBytes);
  EXPECT_LT(first.body.size(), (kFit + 1) * kBodyBytes);
  EXPECT_TRUE(first.body.ends_with("\"cursor\":16,\"more\":true}\n"));
  const json::Value rest = Get("/api/inbox/a?project=p&since_cursor=16");
  EXPECT_THAT(Ids(rest), ElementsAre("m17"));
  EXPECT_FALSE(rest.as_object().contains("more"));
}

TEST_F(MailboxRoutesTest, ALimitOfZeroIsTheDefaultAndALargeOneTheMaximum) {
  for (int i = 0; i < 101; ++i) Send();
  for (const char* limit : {"", "0", "%20"}) {
    EXPECT_EQ(IdsAt(std::string("/api/inbox/a?project=p&limit=") + limit).size(), 100u) << limit;
  }
  EXPECT_EQ(IdsAt("/api/inbox/a?project=p&limit=9223372036854775807").size(), 101u);
  EXPECT_EQ(IdsAt("/api/inbox/a?project=p&since_cursor=").size(), 100u);
  const Response ahead =
      Call(Method::kGet, "/api/inbox/a?project=p&since_cursor=9223372036854775807");
  EXPECT_EQ(ahead.status, 409);
  EXPECT_THAT(ahead.body, HasSubstr(R"("error":"cursor_ahead")"));
  EXPECT_THAT(ahead.body, HasSubstr(R"("newest":101)"));
}

TEST_F(MailboxRoutesTest, WithoutAProjectTheInboxIsThatOfAllProjects) {
  Send({.project = "p"});
  Send({.project = ""});
  Send({.project = "q"});
  EXPECT_THAT(IdsAt("/api/inbox/a"), ElementsAre("m1", "m2", "m3"));
  EXPECT_THAT(IdsAt("/api/inbox/a?project=q"), ElementsAre("m3"));
  const Response counts = Call(Method::kGet, "/api/inbox/a/counts");
  EXPECT_EQ(counts.body, "{\"total\":1,\"unread\":1}\n") << "here no project is the project \"\"";
}

TEST_F(MailboxRoutesTest, AnAgentsNameMayHoldSlashesAndMustNotBeBlank) {
  Send({.project = "p", .addresses = {.to = {"team/a"}}});
  EXPECT_THAT(IdsAt("/api/inbox/team/a?project=p"), ElementsAre("m1"));
  EXPECT_THAT(IdsAt("/api/inbox/team%2Fa?project=p"), ElementsAre("m1"));
  EXPECT_EQ(Call(Method::kGet, "/api/inbox/team/a/counts?project=p").body,
            "{\"total\":1,\"unread\":1}\n");
  EXPECT_EQ(Call(Method::kGet, "/api/inbox/").status, 400);
  EXPECT_EQ(Call(Method::kGet, "/api/inbox/%20").status, 400);
  EXPECT_EQ(Call(Method::kPost, "/api/inbox/a").status, 405);
}

TEST_F(MailboxRoutesTest, MaxBytesCutsEveryListOfMessagesAndPagesStillReachTheEnd) {
  for (int i = 0; i < 7; ++i) {
    Send({.project = "p",
          .thread_id = "t",
          .topic = "x",
          .body = std::string(static_cast<std::size_t>(i) * 40, 'b'),
          .ack_required = true});
  }
  const struct {
    std::string list;
    std::string cursor;
  } kLists[] = {{"/api/inbox/a?project=p", "since_cursor"},
                {"/api/threads/t?project=p", "cursor"},
                {"/api/topics/p/x?a=b", "since_cursor"}};
  for (const auto& list : kLists) {
    for (const int max_bytes : {1, 250, 700, 100'000}) {
      std::vector<std::string> all;
      std::string since = "0";
      bool more = true;
      while (more) {
        const std::string bound = "&max_bytes=" + std::to_string(max_bytes);
        std::string target = list.list + bound;
        target.append("&").append(list.cursor).append("=").append(since);
        const Response response = Call(Method::kGet, target);
        const json::Value answer = json::Parse(response.body).value();
        const auto ids = Ids(answer);
        ASSERT_FALSE(ids.empty());
        const std::size_t begin = response.body.find("\"messages\":[") + 12;
        const std::size_t bytes = response.body.find("],\"cursor\"") - begin;
        EXPECT_TRUE(bytes <= static_cast<std::size_t>(max_bytes) || ids.size() == 1) << bytes;
        all.insert(all.end(), ids.begin(), ids.end());
        since = std::to_string(CursorOf(answer));
        more = answer.as_object().contains("more");
        EXPECT_TRUE(!more || answer.as_object().at("more").as_bool());
      }
      EXPECT_EQ(all.size(), 7u) << list.list << " " << max_bytes;
    }
  }
  const json::Value stale = Get("/api/inbox/a/stale-acks?project=p&ttl_seconds=0&max_bytes=1");
  EXPECT_THAT(Ids(stale), ElementsAre("m1"));
  EXPECT_TRUE(stale.as_object().at("more").as_bool());
}

TEST_F(MailboxRoutesTest, AllFieldsOfAMessageComeBackAndBlindCopiesStayBlind) {
  Send({.project = "p",
        .thread_id = "t",
        .topic = "build",
        .subject = "release-ack",
        .body = "b",
        .importance = "high",
        .ack_required = true,
        .addresses = {.to = {"a"}, .cc = {"c"}, .bcc = {"x", "y"}}});
  const std::string head = R"({"messages":[{"id":"m1","thread_id":"t","project":"p","from":"s",)"
                           R"("to":["a"],"cc":["c"],)";
  const std::string tail =
      R"("subject":"release-ack","topic":"build","body":"b","importance":"high",)"
      R"("ack_required":true,"created_at":"2026-01-02T03:04:05Z","cursor":1}],"cursor":1})"
      "\n";
  EXPECT_EQ(Call(Method::kGet, "/api/inbox/a?project=p").body, head + tail);
  EXPECT_EQ(Call(Method::kGet, "/api/inbox/x?project=p").body, head + R"("bcc":["x"],)" + tail);
  for (const std::string target : {"/api/threads/t?project=p", "/api/topics/p/build"}) {
    EXPECT_THAT(Call(Method::kGet, target).body, Not(HasSubstr("bcc"))) << target;
    EXPECT_THAT(Call(Method::kGet, target, "", "a").body, Not(HasSubstr("bcc"))) << target;
    EXPECT_THAT(Call(Method::kGet, target, "", "y").body, HasSubstr(R"("bcc":["y"])")) << target;
    EXPECT_THAT(Call(Method::kGet, target, "", "s").body, HasSubstr(R"("bcc":["x","y"])"));
    EXPECT_THAT(Call(Method::kGet, target).body, HasSubstr(tail)) << target;
  }
}

TEST_F(MailboxRoutesTest, CountsFollowWhatIsRead) {
  for (int i = 0; i < 3; ++i) Send();
  const std::string counts = "/api/inbox/a/counts?project=p";
  EXPECT_EQ(Call(Method::kGet, counts).body, "{\"total\":3,\"unread\":3}\n");
  const Response read = Call(Method::kPost, "/api/messages/m2/read?project=p", R"({"agent":"a"})");
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.body, "");
  EXPECT_EQ(Call(Method::kGet, counts).body, "{\"total\":3,\"unread\":2}\n");
}

TEST_F(MailboxRoutesTest, StaleAcksAreWhatIsOldEnoughAndNotAcknowledged) {
  Send({.project = "p", .ack_required = true});
  clock_.Advance(std::chrono::minutes(30));
  Send({.project = "p", .ack_required = true, .addresses = {.to = {"b"}, .cc = {"a"}}});
  Send({.project = "q", .ack_required = true});
  const std::string path = "/api/inbox/a/stale-acks?project=p";
  EXPECT_EQ(Call(Method::kGet, path).body,
            R"({"project":"p","agent":"a","ttl_seconds":1800,"count":1,"messages":[{"id":"m1",)"
            R"("thread_id":"","project":"p","from":"s","to":["a"],"body":"",)"
            R"("created_at":"2026-01-02T03:04:05Z","kind":"to","read_at":null,)"
            R"("age_seconds":1800}]})"
            "\n");
  EXPECT_THAT(IdsAt(path + "&ttl_seconds="), ElementsAre("m1"));
  EXPECT_THAT(IdsAt(path + "&ttl_seconds=0"), ElementsAre("m1", "m2"));
  EXPECT_THAT(IdsAt(path + "&ttl_seconds=0&limit=1"), ElementsAre("m1"));
  EXPECT_THAT(IdsAt(path + "&ttl_seconds=1801"), IsEmpty());
  EXPECT_THAT(IdsAt(path + "&ttl_seconds=9223372036854775807"), IsEmpty());
  EXPECT_EQ(Call(Method::kPost, "/api/messages/m2/read?project=p&agent=a").status, 200);
  EXPECT_THAT(Call(Method::kGet, path + "&ttl_seconds=0").body,
              HasSubstr(R"("kind":"cc","read_at":"2026-01-02T03:34:05Z","age_seconds":0)"));
  EXPECT_EQ(Call(Method::kPost, "/api/messages/m1/ack?project=p&agent=a").status, 200);
  EXPECT_THAT(IdsAt(path + "&ttl_seconds=0"), ElementsAre("m2"));
  clock_.JumpWallClock(std::chrono::hours(-5));
  EXPECT_THAT(Call(Method::kGet, path + "&ttl_seconds=0").body, HasSubstr("\"age_seconds\":0"));
}

TEST_F(MailboxRoutesTest, WhoSpeaksIsFoundInBodyQueryHeaderOrTheMessage) {
  const struct {
    std::string body, query, header;
    std::string who;  // has read it afterwards
  } kCases[] = {
      {R"({"agent":"a"})", "&agent=b", "c", "a"},
      {R"({"Agent":"a"})", "", "", "a"},
      {R"({"agent":""})", "&agent=b", "c", "b"},
      {R"({"agent":null})", "&agent=b", "", "b"},
      {"null", "&agent=%20", "c", "c"},
      {"{}", "", "c", "c"},
      {"", "", "c", "c"},
  };
  for (const auto& c : kCases) {
    Send({.project = "p", .addresses = {.to = {"a", "b", "c"}}});
    const std::string path = "/api/messages/m" + std::to_string(sent_);
    const Response answer =
        Call(Method::kPost, path + "/read?project=p" + c.query, c.body, c.header);
    EXPECT_EQ(answer.status, 200) << c.body << answer.body;
    for (const std::string agent : {"a", "b", "c"}) {
      const Response counts = Call(Method::kGet, "/api/inbox/" + agent + "/counts?project=p");
      const int unread = agent == c.who ? 0 : 1;
      EXPECT_THAT(counts.body, HasSubstr("\"unread\":" + std::to_string(unread)))
          << agent << " " << c.body << c.query;
    }
    Write([](db::Transaction& tx) -> Result<void> {
      IL_TRY_VOID(tx->Run("DELETE FROM inbox WHERE project = 'p'"));
      IL_TRY_VOID(tx->Run("DELETE FROM mailboxes WHERE project = 'p'"));  // a home: none is abroad
      return {};
    });
  }
  Send();
  EXPECT_EQ(Call(Method::kPost, "/api/messages/m8/ack?project=p", "{}").status, 200);
  EXPECT_EQ(Number("SELECT COUNT(*) FROM inbox WHERE ack_at IS NOT NULL"), 1);
}

TEST_F(MailboxRoutesTest, ReceiptsOfNobodyAndOfStrangersChangeNothing) {
  Send({.project = "p", .addresses = {.to = {"a", "b"}}});
  const struct {
    std::string target;
    std::string header;
    int status;
    std::string slug;
  } kCases[] = {
      {"/api/messages/m1/ack?project=p", "", 200, ""},
      {"/api/messages/m1/read?project=p", "", 200, ""},
      {"/api/messages/m1/ack?project=p&agent=s", "", 200, ""},
      {"/api/messages/m1/ack?project=p", "z", 200, ""},
      {"/api/messages/none/ack?project=p", "a", 404, "not_found"},
      {"/api/messages/m1/read?project=q", "a", 404, "not_found"},
      {"/api/messages/m1/read", "a", 404, "not_found"},
      {"/api/messages/m1/bad?project=p", "a", 404, "not_found"},
  };
  for (const auto& c : kCases) {
    const Response answer = Call(Method::kPost, c.target, "{}", c.header);
    EXPECT_EQ(answer.status, c.status) << c.target << answer.body;
    if (c.slug.empty()) {
      EXPECT_EQ(answer.body, "");
      EXPECT_THAT(std::string(answer.headers.Find("X-Intermute-Notice").value_or("")),
                  HasSubstr("nothing was marked"));
    } else {
      EXPECT_THAT(answer.body, HasSubstr("{\"error\":\"" + c.slug + "\""));
    }
  }
  EXPECT_EQ(Call(Method::kGet, "/api/messages/m1/ack?project=p").status, 405);
  EXPECT_EQ(Receipts(), 0);
  EXPECT_EQ(Number("SELECT COUNT(*) FROM inbox WHERE read_at IS NULL AND ack_at IS NULL"), 2);
}

TEST_F(MailboxRoutesTest, AReceiptWithABrokenBodyIs400AndChangesNothing) {
  Send({.project = "p", .addresses = {.to = {"a"}}});
  for (const std::string action : {"ack", "read"}) {
    for (const char* body : {"not json", "{", "[]", "7", "\"a\"", R"({"agent":7})",
                             R"({"agent":["a"]})", R"({"agent":"a")"}) {
      const Response answer =
          Call(Method::kPost, "/api/messages/m1/" + action + "?project=p&agent=a", body, "a");
      EXPECT_EQ(answer.status, 400) << action << " " << body;
    }
  }
  EXPECT_EQ(Receipts(), 0);
  EXPECT_EQ(Number("SELECT COUNT(*) FROM inbox WHERE read_at IS NULL AND ack_at IS NULL"), 1);
}

TEST_F(MailboxRoutesTest, RepeatedReceiptsAreFineAndMakeOneEvent) {
  Send({.id = "team/1", .project = "p", .addresses = {.to = {"a"}}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Call(Method::kPost, "/api/messages/team/1/ack?project=p", "{}").status, 200);
    clock_.Advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(Receipts(), 1);
  EXPECT_EQ(Number("SELECT ack_at FROM inbox"), 1'767'323'045'000'000);
  EXPECT_EQ(Number("SELECT created_at FROM events WHERE type = 'message.ack'"),
            1'767'323'045'000'000);
}

TEST_F(MailboxRoutesTest, ThreadsAreListedNewestFirst) {
  Send({.project = "p", .thread_id = "t1", .body = "one"});
  Send({.project = "p", .thread_id = "t2", .body = std::string(199, 'x') + "é"});
  clock_.Advance(std::chrono::milliseconds(1500));
  Send({.project = "p", .thread_id = "t1", .body = "two"});
  Send({.project = "q", .thread_id = "t3"});
  const std::string t1 = R"({"thread_id":"t1","last_cursor":3,"message_count":2,"last_from":"s",)"
                         R"("last_body":"two","last_at":"2026-01-02T03:04:06Z"})";
  const std::string t2 =
      R"({"thread_id":"t2","last_cursor":2,"message_count":1,"last_from":"s","last_body":")" +
      std::string(199, 'x') + R"(","last_at":"2026-01-02T03:04:05Z"})";
  const auto list = [&](const std::string& query) {
    return Call(Method::kGet, "/api/threads?project=p&agent=" + query).body;
  };
  EXPECT_EQ(list("a"), R"({"threads":[)" + t1 + "," + t2 + R"(],"cursor":2})" + "\n");
  EXPECT_EQ(list("s"), list("a")) << "the sender takes part";
  EXPECT_EQ(list("a&limit=1&cursor=0"), R"({"threads":[)" + t1 + R"(],"cursor":3})" + "\n");
  EXPECT_EQ(list("a&limit=1&cursor=3"), R"({"threads":[)" + t2 + R"(],"cursor":2})" + "\n");
  EXPECT_EQ(list("a&cursor=2"), "{\"threads\":[],\"cursor\":2}\n");
  EXPECT_EQ(list("nobody"), "{\"threads\":[],\"cursor\":0}\n");
  for (const char* bad : {"/api/threads", "/api/threads?agent=", "/api/threads?agent=%20"}) {
    const Response answer = Call(Method::kGet, bad);
    EXPECT_EQ(answer.status, 400) << bad;
    EXPECT_THAT(answer.body, HasSubstr("\"field\":\"agent\""));
  }
  EXPECT_EQ(Call(Method::kPost, "/api/threads?agent=a").status, 405);
}

TEST_F(MailboxRoutesTest, AThreadIsReadFromACursorOn) {
  for (int i = 0; i < 3; ++i) Send({.project = "p", .thread_id = "a/b"});
  const std::string path = "/api/threads/a/b?project=p";
  const json::Value whole = Get(path);
  EXPECT_THAT(Ids(whole), ElementsAre("m1", "m2", "m3"));
  EXPECT_EQ(whole.as_object().at("thread_id").as_string(), "a/b");
  EXPECT_FALSE(whole.as_object().contains("more"));
  EXPECT_THAT(IdsAt(path + "&cursor=1"), ElementsAre("m2", "m3"));
  const json::Value cut = Get(path + "&limit=2");
  EXPECT_THAT(Ids(cut), ElementsAre("m1", "m2"));
  EXPECT_TRUE(cut.as_object().at("more").as_bool());
  EXPECT_FALSE(Get(path + "&limit=3").as_object().contains("more"));
  EXPECT_EQ(Call(Method::kGet, "/api/threads/none?project=p&cursor=3").body,
            "{\"thread_id\":\"none\",\"messages\":[],\"cursor\":3}\n");
  EXPECT_THAT(IdsAt("/api/threads/a/b"), IsEmpty()) << "no project is the project \"\"";
  EXPECT_EQ(Call(Method::kGet, "/api/threads/").status, 400);
}

TEST_F(MailboxRoutesTest, TopicsFoldCaseAndStayInTheirProject) {
  Send({.project = "p", .topic = "build/x"});
  Send({.project = "q", .topic = "build/x"});
  EXPECT_THAT(IdsAt("/api/topics/p/Build/X%20"), ElementsAre("m1"));
  EXPECT_THAT(IdsAt("/api/topics/p/build/x?since_cursor=1"), IsEmpty());
  EXPECT_THAT(IdsAt("/api/topics/p/none"), IsEmpty());
  for (const char* bad : {"/api/topics/", "/api/topics/p", "/api/topics/p/", "/api/topics/p/%20"}) {
    EXPECT_EQ(Call(Method::kGet, bad).status, 400) << bad;
  }
}

TEST_F(MailboxRoutesTest, AKeyReadsAndMarksInItsOwnProjectOnly) {
  Send({.project = "p", .thread_id = "t", .topic = "x"});
  Send({.project = "q", .thread_id = "t", .topic = "x"});
  services_.keys.Set(*auth::Keyring::Parse("projects: {q: {keys: [k]}}"));
  const auto with_key = [&](Method method, const std::string& target) {
    return Ask(To(method, target, "", {{"Authorization", "Bearer k"}}));
  };
  for (const char* target :
       {"/api/inbox/a?project=p", "/api/inbox/a", "/api/threads/t?project=p"}) {
    const Response answer = with_key(Method::kGet, target);
    EXPECT_THAT(Ids(json::Parse(answer.body).value()), ElementsAre("m2")) << target;
  }
  EXPECT_EQ(with_key(Method::kGet, "/api/topics/p/x").status, 403);
  EXPECT_EQ(with_key(Method::kGet, "/api/topics/q/x").status, 200);
  EXPECT_EQ(with_key(Method::kPost, "/api/messages/m1/read?project=p").status, 404);
  EXPECT_EQ(with_key(Method::kPost, "/api/messages/m2/read?project=p").status, 200);
  EXPECT_EQ(Number("SELECT COUNT(*) FROM inbox WHERE project = 'p' AND read_at IS NULL"), 1);
}

TEST_F(MailboxRoutesTest, WhereProofIsAskedForNobodySpeaksForTheOnlyRecipient) {
  Send();
  app_.access.require_agent_token = true;
  EXPECT_EQ(Call(Method::kPost, "/api/messages/m1/ack?project=p", "{}").status, 403);
  EXPECT_EQ(Call(Method::kPost, "/api/messages/m1/ack?project=p", "{}", "a").status, 403);
  EXPECT_EQ(Receipts(), 0);
}

}  // namespace
}  // namespace interlock::api
