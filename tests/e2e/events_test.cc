// The event log over the wire. The events are put into the file by hand, so that their cursors,
// times and projects are known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "e2e_test.h"
#include "testing/raw_db.h"

namespace interlock::e2e {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAdd =
    "INSERT INTO events (type, project, entity_id, agent, created_at, data) VALUES ";

class EventsTest : public E2eTest {
 protected:
  // A server on a log with these rows.
  std::unique_ptr<ServerProcess> StartWith(const std::string& rows,
                                           std::vector<std::string> flags = {"--retain-days=0"}) {
    EXPECT_EQ(Start()->Stop(), 0);  // makes the file
    testing::RawDb(File("test.db")).Run(kAdd + rows);
    return Start(std::move(flags));
  }
};

struct Case {
  std::string query;
  std::string body;  // "" = of no interest
};

TEST_F(EventsTest, APageIsWhatTheQueryAsksFor) {
  const auto server = StartWith(
      R"(('t', 'p', 'e"1', 'a', 1767323045250000, '{"k":[1]}'), ('u', 'q', 'e2', NULL, 0, NULL),)"
      R"(('u', 'p', 'e3', NULL, 0, NULL), ('t', '', 'e4', NULL, 0, NULL))");
  const std::string first =
      R"({"cursor":1,"type":"t","project":"p","entity_id":"e\"1","agent":"a",)"
      R"("created_at":"2026-01-02T03:04:05.25Z","data":{"k":[1]}})";
  const auto bare = [](int cursor, const std::string& type, const std::string& project) {
    return R"({"cursor":)" + std::to_string(cursor) + R"(,"type":")" + type + R"(","project":")" +
           project + R"(","entity_id":"e)" + std::to_string(cursor) +
           R"(","created_at":"1970-01-01T00:00:00Z","data":null})";
  };
  const std::string second = bare(2, "u", "q");
  const std::string third = bare(3, "u", "p");
  const std::string fourth = bare(4, "t", "");
  const auto page = [](const std::string& events, int cursor) {
    return R"({"events":[)" + events + R"(],"cursor":)" + std::to_string(cursor) + "}\n";
  };
  const std::string all = page(first + "," + second + "," + third + "," + fourth, 4);
  const std::vector<Case> cases = {
      {"", all},
      {"?project=", all},
      {"?project=p", page(first + "," + third, 4)},
      {"?project=p&limit=1", page(first, 1)},
      {"?project=p&since_cursor=1", page(third, 4)},
      {"?project=nobody", page("", 4)},
      {"?types=u", page(second + "," + third, 4)},
      {"?types=%20t%20,,nothing", page(first + "," + fourth, 4)},
      {"?types=t&limit=1&since_cursor=1", page(fourth, 4)},
      {"?types=,", all},
      {"?limit=2", page(first + "," + second, 2)},
      {"?limit=0", all},
      {"?limit=9223372036854775807", all},
      {"?since_cursor=4", page("", 4)},
  };
  HttpClient client = server->Connect();
  for (const Case& c : cases) {
    const auto answer = client.Get("/api/events" + c.query);
    ASSERT_TRUE(answer) << c.query;
    EXPECT_EQ(answer->status, 200) << c.query;
    EXPECT_EQ(answer->body, c.body) << c.query;
  }
  for (const std::string bad :
       {"?limit=-7", "?limit=x", "?limit=99999999999999999999", "?since_cursor=-9",
        "?since_cursor=x", "?since_cursor=99999999999999999999999", "?project=%ff"}) {
    EXPECT_EQ(client.Get("/api/events" + bad)->status, 400) << bad;
  }
  for (const std::string ahead : {"5", "99", "9223372036854775807"}) {
    const auto answer = client.Get("/api/events?since_cursor=" + ahead);
    ASSERT_TRUE(answer) << ahead;
    EXPECT_EQ(answer->status, 409) << ahead;
    EXPECT_THAT(answer->body, HasSubstr(R"("error":"cursor_ahead")")) << ahead;
    EXPECT_THAT(answer->body, HasSubstr(R"("newest":4)")) << ahead;
  }
  ASSERT_TRUE(client.Request("POST", "/api/events", "{}"));
  EXPECT_EQ(client.Read()->status, 405);
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(EventsTest, WhatIsOlderThanTheRetentionIsPrunedAndItsCursorsExpire) {
  const auto server = StartWith(
      "('t', 'p', 'e', NULL, 0, NULL), ('t', 'p', 'e', NULL, 0, NULL), "
      "('t', 'p', 'e', NULL, 4000000000000000, NULL)",
      {"--retain-days=1", "--sweep-interval=100ms"});
  HttpClient client = server->Connect();
  auto answer = client.Get("/api/events?project=p&since_cursor=1");
  for (int tries = 0; answer && answer->status == 200 && tries < 10'000; ++tries) {
    answer = client.Get("/api/events?project=p&since_cursor=1");
  }
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 410);
  EXPECT_THAT(answer->body, HasSubstr(R"("error":"cursor_expired")"));
  EXPECT_THAT(answer->body, HasSubstr(R"("oldest_cursor":3)"));
  EXPECT_EQ(client.Get("/api/events?since_cursor=2")->status, 200);
  answer = client.Get("/api/events?since_cursor=0");
  EXPECT_THAT(answer->body, HasSubstr(R"({"events":[{"cursor":3,)"));
  EXPECT_EQ(server->Stop(), 0);
}

}  // namespace
}  // namespace interlock::e2e
