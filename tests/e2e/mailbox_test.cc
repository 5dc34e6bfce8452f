// Reading mail over the wire: pages, receipts, threads and topics, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api_test.h"

namespace interlock::e2e {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class MailboxTest : public ApiTest {
 protected:
  void Send(const std::string& id, const std::string& more = "") {
    const auto sent = Ask(
        "POST", "/api/messages",
        R"({"project":"p","from":"a","to":["b"],"body":"text","id":")" + id + "\"" + more + "}");
    ASSERT_EQ(sent.status, 200) << sent.body;
  }
  // The ids of a page, and its cursor.
  std::vector<std::string> Page(const std::string& target) {
    const json::Value page = Get(target);
    std::vector<std::string> ids;
    for (const json::Value& message : page.at("messages").get_array()) {
      ids.push_back(Text(message, "id"));
    }
    cursor_ = std::to_string(page.at("cursor").to_number<std::int64_t>());
    return ids;
  }

  std::string cursor_;
};

TEST_F(MailboxTest, PagesFollowEachOtherByCursor) {
  for (const char* id : {"1", "2", "3", "4", "5"}) Send(id, R"(,"topic":"T ","thread_id":"th/1")");
  for (const std::string list : {"/api/inbox/b?project=p&limit=2", "/api/topics/p/t?limit=2"}) {
    EXPECT_THAT(Page(list), ElementsAre("1", "2"));
    EXPECT_THAT(Page(list + "&since_cursor=" + cursor_), ElementsAre("3", "4"));
    EXPECT_THAT(Page(list + "&since_cursor=" + cursor_), ElementsAre("5"));
    EXPECT_THAT(Page(list + "&since_cursor=" + cursor_), ElementsAre());
    EXPECT_EQ(cursor_, "5");
    EXPECT_THAT(Page(list + "&max_bytes=1"), ElementsAre("1"));
    EXPECT_THAT(Ask("GET", list + "&max_bytes=1").body, HasSubstr(R"("more":true)"));
  }
  EXPECT_THAT(Page("/api/threads/th/1?project=p&cursor=3"), ElementsAre("4", "5"));
  EXPECT_THAT(Ask("GET", "/api/threads?project=p&agent=a").body,
              HasSubstr(R"("thread_id":"th/1","last_cursor":5,"message_count":5)"));
  EXPECT_THAT(Page("/api/inbox/b"), ElementsAre("1", "2", "3", "4", "5"));
  EXPECT_THAT(Page("/api/inbox/b?project=q"), ElementsAre());
}

TEST_F(MailboxTest, ReceiptsArePerRecipientAndCountOnce) {
  Send("1", R"(,"ack_required":true)");
  Send("2", R"(,"cc":["c"],"bcc":["d"])");
  EXPECT_EQ(Ask("GET", "/api/inbox/b/counts?project=p").body, "{\"total\":2,\"unread\":2}\n");
  // As the Go client does: no agent anywhere, and the message has one recipient.
  EXPECT_EQ(Ask("POST", "/api/messages/1/read?project=p", "{}").status, 200);
  EXPECT_EQ(Ask("POST", "/api/messages/1/read?project=p", "{}").status, 200);
  EXPECT_EQ(Ask("GET", "/api/inbox/b/counts?project=p").body, "{\"total\":2,\"unread\":1}\n");
  EXPECT_THAT(Ask("GET", "/api/inbox/b/stale-acks?project=p&ttl_seconds=0").body,
              HasSubstr(R"("count":1)"));
  EXPECT_EQ(Ask("POST", "/api/messages/1/ack?project=p", "no json", "X-Agent-ID: b\r\n").status,
            400);
  EXPECT_THAT(Ask("GET", "/api/inbox/b/stale-acks?project=p&ttl_seconds=0").body,
              HasSubstr(R"("count":1)"));
  EXPECT_EQ(Ask("POST", "/api/messages/1/ack?project=p", "", "X-Agent-ID: b\r\n").status, 200);
  EXPECT_THAT(Ask("GET", "/api/inbox/b/stale-acks?project=p&ttl_seconds=0").body,
              HasSubstr(R"("count":0)"));
  EXPECT_EQ(Ask("POST", "/api/messages/2/read?project=p&agent=d", "").status, 200);
  const std::string events = Ask("GET", "/api/events?project=p&types=message.read").body;
  EXPECT_THAT(events, Not(HasSubstr("\"d\""))) << "a bcc address is nobody else's business";
  EXPECT_THAT(Ask("GET", "/api/inbox/c?project=p").body, Not(HasSubstr("bcc")));
  EXPECT_THAT(Ask("GET", "/api/inbox/d?project=p").body, HasSubstr(R"("bcc":["d"])"));
}

TEST_F(MailboxTest, AWrongRequestIs400WithTheNameOfTheField) {
  Send("1", R"(,"thread_id":"th","topic":"t")");
  const std::string beyond = "9223372036854775808";
  Check({
      {"POST", "/api/messages/nothing/ack?project=p", "{}", 404, "not_found"},
      {"POST", "/api/messages/nothing/read?project=p", "{}", 404, "not_found"},
      {"POST", "/api/messages/1/read?project=q", "{}", 404, "not_found"},
      {"GET", "/api/messages/1/ack", "", 405},
      {"POST", "/api/messages/1/nothing", "", 404, "not_found"},
      {"GET", "/api/inbox/", "", 400, "agent"},
      {"GET", "/api/inbox/b?project=p&limit=0&max_bytes=0", "", 200, R"("id":"1")"},
      {"GET", "/api/inbox/b?project=p&limit=-1", "", 400, R"("field":"limit")"},
      {"GET", "/api/inbox/b?project=p&since_cursor=abc", "", 400, R"("field":"since_cursor")"},
      {"GET", "/api/inbox/b?project=p&since_cursor=-5", "", 400, R"("field":"since_cursor")"},
      {"GET", "/api/inbox/b?project=p&since_cursor=" + beyond, "", 400,
       R"("field":"since_cursor")"},
      {"GET", "/api/inbox/b?project=p&limit=" + beyond + "0", "", 400, R"("field":"limit")"},
      {"GET", "/api/inbox/b?project=p&max_bytes=-1", "", 400, R"("field":"max_bytes")"},
      {"GET", "/api/inbox/nobody?project=p", "", 200, R"("messages":[])"},
      {"GET", "/api/inbox/b/stale-acks?project=p&limit=0", "", 200},
      {"GET", "/api/inbox/b/stale-acks?project=p&ttl_seconds=-1", "", 400,
       R"("field":"ttl_seconds")"},
      {"GET", "/api/inbox/%00?project=p", "", 400, "NUL"},
      {"GET", "/api/inbox/b?project=%00", "", 400, "project"},
      {"POST", "/api/inbox/b", "{}", 405},
      {"GET", "/api/threads?project=p", "", 400, "agent"},
      {"GET", "/api/threads?project=p&agent=a&cursor=" + beyond, "", 400, R"("field":"cursor")"},
      {"POST", "/api/threads", "{}", 405},
      {"GET", "/api/threads/", "", 400},
      {"GET", "/api/threads/nothing?project=p", "", 200, R"("messages":[])"},
      {"GET", "/api/threads/th?project=p&cursor=" + beyond, "", 400, R"("field":"cursor")"},
      {"GET", "/api/topics/p", "", 400},
      {"GET", "/api/topics/p/nothing", "", 200, R"("messages":[])"},
      {"GET", "/api/topics/p/T?since_cursor=" + beyond, "", 400, R"("field":"since_cursor")"},
      {"GET", "/api/events?project=p&limit=0&types=,", "", 200},
  });
}

TEST_F(MailboxTest, LogIdIsInHealthAndRegistrationAndIsThatOfTheDatabase) {
  const std::string id = Text(Get("/health"), "log_id");
  EXPECT_EQ(id.size(), 32U) << id;
  EXPECT_EQ(Text(Post("/api/agents", R"({"project":"p"})"), "log_id"), id);
  const auto id_of_other = [this] {
    const auto other = Start({"--db=other.db"});
    const auto health = json::Parse(other->Connect().Get("/health")->body);
    EXPECT_EQ(other->Stop(), 0);
    return Text(health.value(), "log_id");
  };
  const std::string other = id_of_other();
  EXPECT_EQ(other.size(), 32U) << other;
  EXPECT_NE(other, id);
  EXPECT_EQ(id_of_other(), other) << "after a restart";
}

// A client that comes back to a database that was restored, or made anew, has a cursor of the old
// one. It must not wait for mail that will never have a cursor after it.
TEST_F(MailboxTest, CursorOfAnotherDatabaseIsRefusedByEveryRead) {
  Send("1", R"(,"thread_id":"th","topic":"t")");
  ASSERT_THAT(Page("/api/inbox/b?project=p"), ElementsAre("1"));
  const std::string newest = cursor_;
  const std::string ahead = std::to_string(std::stoll(newest) + 1);
  const std::vector<std::string> reads = {"/api/inbox/b?project=p&since_cursor=",
                                          "/api/inbox/b?since_cursor=",
                                          "/api/threads?project=p&agent=b&cursor=",
                                          "/api/threads/th?project=p&cursor=",
                                          "/api/topics/p/t?since_cursor=",
                                          "/api/events?project=p&since_cursor=",
                                          "/api/events?since_cursor="};
  for (int polls = 0; polls < 3; ++polls) {  // the second poll of an inbox needs no read
    for (const std::string& read : reads) {
      EXPECT_EQ(Ask("GET", read + newest).status, 200) << read;
      const HttpAnswer answer = Ask("GET", read + ahead);
      EXPECT_EQ(answer.status, 409) << read;
      EXPECT_THAT(answer.body, HasSubstr(R"({"error":"cursor_ahead","message":")")) << read;
      EXPECT_THAT(answer.body, HasSubstr(R"("newest":)" + newest + "}")) << read;
    }
  }
}

}  // namespace
}  // namespace interlock::e2e
