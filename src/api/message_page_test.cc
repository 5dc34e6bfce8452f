#include "api/message_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "api/message_schemas.h"
#include "api/request.h"
#include "http/message.h"
#include "json/parse.h"
#include "json/value.h"

namespace interlock::api {
namespace {

using domain::AddressKind;
using domain::Flow;
using domain::MessageView;
using ::testing::HasSubstr;
using ::testing::Not;

// Every field has something in it.
MessageView Whole() {
  return {.cursor = 7,
          .id = "m",
          .project = "p",
          .sender = "s",
          .thread_id = "t",
          .topic = "build",
          .subject = "Hi",
          .body = "a\"\n",
          .importance = "high",
          .ack_required = true,
          .to = R"(["a","b"])",
          .cc = R"(["c"])",
          .bcc = R"(["x","y\"z"])",
          .created_at = {1'767'323'045'250'000},
          .kind = AddressKind::kTo};
}

std::string TextFor(const std::string& viewer, const MessageView& message,
                    MessagePage::Shape shape = MessagePage::Shape::kFull) {
  MessagePage page(
      {.shape = shape, .viewer = viewer, .messages_max = 10, .now = {1'767'323'055'000'000}});
  EXPECT_EQ(page.Add(message), Flow::kGoOn);
  return std::string(page.text());
}

TEST(MessagePageTest, AMessageHasTheFieldsThatClientsKnow) {
  EXPECT_EQ(TextFor("", Whole()),
            R"({"id":"m","thread_id":"t","project":"p","from":"s","to":["a","b"],"cc":["c"],)"
            R"("subject":"Hi","topic":"build","body":"a\"\n","importance":"high",)"
            R"("ack_required":true,"created_at":"2026-01-02T03:04:05.25Z","cursor":7})");
  EXPECT_EQ(TextFor("", {.cursor = 1, .id = "m"}),
            R"({"id":"m","thread_id":"","project":"","from":"","to":[],"body":"",)"
            R"("created_at":"1970-01-01T00:00:00Z","cursor":1})");
}

TEST(MessagePageTest, AStaleAckHasItsKindItsReadTimeAndItsAge) {
  MessageView message = Whole();
  message.kind = AddressKind::kCc;
  const std::string start =
      R"({"id":"m","thread_id":"t","project":"p","from":"s","to":["a","b"],"subject":"Hi",)"
      R"("body":"a\"\n","created_at":"2026-01-02T03:04:05.25Z","kind":"cc","read_at":)";
  EXPECT_EQ(TextFor("a", message, MessagePage::Shape::kStaleAck),
            start + R"(null,"age_seconds":9})");
  message.read_at = {1'767'323'046'000'000};
  EXPECT_EQ(TextFor("a", message, MessagePage::Shape::kStaleAck),
            start + R"("2026-01-02T03:04:06Z","age_seconds":9})");
}

TEST(MessagePageTest, AgesAreNeverNegative) {
  MessageView message = Whole();
  message.created_at = {1'767'323'099'000'000};  // the clock was set back since
  EXPECT_THAT(TextFor("a", message, MessagePage::Shape::kStaleAck), HasSubstr("\"age_seconds\":0"));
}

TEST(MessagePageTest, ABlindCopyIsShownToItselfAndToTheSenderOnly) {
  const struct {
    std::string viewer;
    std::string bcc;  // what stands in the answer; empty = nothing
  } kCases[] = {
      {"s", R"("bcc":["x","y\"z"])"},
      {"x", R"("bcc":["x"])"},
      {"y\"z", R"("bcc":["y\"z"])"},
      {"", ""},
      {"a", ""},
      {"c", ""},
      {"z", ""},
      {"x\",\"y", ""},
      {"X", ""},
  };
  for (const auto& c : kCases) {
    const std::string text = TextFor(c.viewer, Whole());
    if (c.bcc.empty()) {
      EXPECT_THAT(text, Not(HasSubstr("bcc"))) << c.viewer;
    } else {
      EXPECT_THAT(text, HasSubstr(c.bcc + ",")) << c.viewer;
    }
    EXPECT_THAT(TextFor(c.viewer, Whole(), MessagePage::Shape::kStaleAck), Not(HasSubstr("bcc")));
  }
}

TEST(MessagePageTest, APageIsCutBeforeTheMessageThatIsTooMuch) {
  const std::string one = TextFor("", Whole());
  const auto size = static_cast<std::int64_t>(one.size());
  const struct {
    std::int64_t bytes_max;
    int fits;
  } kCases[] = {{0, 4},
                {1, 1},
                {size, 1},
                {2 * size, 1},
                {2 * size + 1, 2},
                {3 * size + 1, 2},
                {3 * size + 2, 3},
                {4 * size + 3, 4}};
  for (const auto& c : kCases) {
    MessagePage page({.messages_max = 100, .bytes_max = c.bytes_max});
    for (int run = 0; run < 2; ++run) {  // a read may begin again
      page.Restart();
      int taken = 0;
      while (taken < 4) {
        MessageView message = Whole();
        message.cursor = 1 + taken;
        if (page.Add(message) == Flow::kEnough) break;
        ++taken;
      }
      EXPECT_EQ(taken, c.fits) << c.bytes_max;
      EXPECT_EQ(page.count(), c.fits);
      EXPECT_EQ(page.more(), c.fits < 4);
      EXPECT_EQ(page.last_cursor(), c.fits);
      const std::string answer = page.TakeAnswer(3);
      EXPECT_TRUE(json::Parse(answer).ok()) << answer;
      EXPECT_EQ(answer.ends_with(",\"more\":true}"), c.fits < 4) << answer;
    }
  }
}

TEST(MessagePageTest, AnEmptyPageRepeatsTheCursorThatWasAskedFrom) {
  MessagePage page({.messages_max = 100});
  EXPECT_EQ(page.TakeAnswer(3), R"({"messages":[],"cursor":3})");
  MessagePage thread({.head = R"("thread_id":"t",)", .messages_max = 100});
  EXPECT_EQ(thread.TakeAnswer(9223372036854775807),
            R"({"thread_id":"t","messages":[],"cursor":9223372036854775807})");
}

std::set<std::string> Keys(const json::Value& object) {
  std::set<std::string> keys;
  for (const auto& member : object.as_object()) keys.emplace(member.key());
  return keys;
}

TEST(MessagePageTest, TheSchemasNameExactlyTheFieldsThatAreWritten) {
  const auto properties = [](json::Value schema) {
    return schema.as_object()
        .at("properties")
        .as_object()
        .at("messages")
        .as_object()
        .at("items")
        .as_object()
        .at("properties");
  };
  const json::Value full = json::Parse(TextFor("s", Whole())).value();
  EXPECT_EQ(Keys(full), Keys(properties(MessagePageSchema())));
  EXPECT_EQ(Keys(full), Keys(properties(ThreadSchema())));
  const json::Value stale =
      json::Parse(TextFor("s", Whole(), MessagePage::Shape::kStaleAck)).value();
  EXPECT_EQ(Keys(stale), Keys(properties(StaleAcksSchema())));
}

TEST(MessagePageTest, ALimitOfZeroIsTheDefaultAndALargeOneTheMaximum) {
  const struct {
    std::string limit;
    std::int64_t want;
  } kCases[] = {{"", 100},      {"0", 100},     {"7", 7},
                {"1000", 1000}, {"1001", 1000}, {"9223372036854775807", 1000}};
  for (const auto& c : kCases) {
    http::Request sent;
    Request request(sent);
    request.query_fields = {{"limit", c.limit}};
    EXPECT_EQ(LimitFrom(request, 100, 1000), c.want) << c.limit;
  }
}

TEST(MessagePageTest, APageHasAtMostSixteenMebibytesWhateverIsAskedFor) {
  constexpr std::int64_t kMax = 16'777'216;
  http::Request plain;
  EXPECT_EQ(BytesMaxFrom(Request(plain)), kMax);
  const struct {
    std::string max_bytes;
    std::int64_t want;
  } kCases[] = {{"", kMax},
                {"0", kMax},
                {"7", 7},
                {"16777215", kMax - 1},
                {"16777216", kMax},
                {"16777217", kMax},
                {"9223372036854775807", kMax}};
  for (const auto& c : kCases) {
    http::Request sent;
    Request request(sent);
    request.query_fields = {{"max_bytes", c.max_bytes}};
    EXPECT_EQ(BytesMaxFrom(request), c.want) << c.max_bytes;
  }
}

}  // namespace
}  // namespace interlock::api
