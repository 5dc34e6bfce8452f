#include "events/frame.h"

#include <gtest/gtest.h>

#include <string>

namespace interlock::events {
namespace {

domain::Event MessageCreated() {
  return {.cursor = 7,
          .type = domain::event_type::kMessageCreated,
          .project = "p",
          .entity_id = "m\"1",
          .agent = "sender",
          .created_at = {1'767'323'045'250'000},
          .data = R"({"k":[1]})"};
}

TEST(FrameTest, AFrameIsTheEventWithWhatItsTypeAdds) {
  const domain::Event event = MessageCreated();
  FrameMaker maker(event);
  EXPECT_EQ(*maker.Logged(),
            R"({"cursor":7,"type":"message.created","project":"p","entity_id":"m\"1",)"
            R"("agent":"sender","created_at":"2026-01-02T03:04:05.25Z","message_id":"m\"1",)"
            R"("data":{"k":[1]}})");
}

TEST(FrameTest, AnExpiredReservationIsNamedAtTheTop) {
  const domain::Event event{.cursor = 7,
                            .type = domain::event_type::kReservationExpired,
                            .project = "p",
                            .entity_id = "r",
                            .agent = "a",
                            .created_at = {},
                            .data = R"({"id":"r","path_pattern":"src/\"*"})"};
  FrameMaker maker(event);
  EXPECT_TRUE(maker.Logged()->ends_with(
      R"("reservation_id":"r","agent_id":"a","path_pattern":"src/\"*","data":)" + event.data + "}"))
      << *maker.Logged();
}

TEST(FrameTest, WithoutCursorAgentAndDataTheFieldsAreMissingOrNull) {
  const domain::Event event{.type = "reservation.conflict", .project = "", .entity_id = "r"};
  FrameMaker maker(event);
  EXPECT_EQ(*maker.Logged(), R"({"type":"reservation.conflict","project":"","entity_id":"r",)"
                             R"("created_at":"1970-01-01T00:00:00Z","data":null})");
}

TEST(FrameTest, AnAddressedFrameNamesItsAgentAndIsSharedByItsConsumers) {
  const domain::Event event = MessageCreated();
  FrameMaker maker(event);
  const Frame first = maker.For("a\n");
  EXPECT_NE(first->find(R"("agent":"a\n")"), std::string::npos);
  EXPECT_EQ(first, maker.For("a\n"));
  EXPECT_NE(*first, *maker.For("b"));
  EXPECT_EQ(maker.Logged(), maker.Logged());
}

TEST(FrameTest, TextsThatAreNoUtf8BecomeValidJson) {
  domain::Event event = MessageCreated();
  event.entity_id = "\xff";
  FrameMaker maker(event);
  EXPECT_NE(maker.Logged()->find("\"entity_id\":\"\xef\xbf\xbd\""), std::string::npos);
}

TEST(FrameTest, AFrameOverTheLimitGoesWithoutItsDataAndSaysSo) {
  domain::Event event = MessageCreated();
  event.data = "\"\"";
  const std::size_t rest = FrameMaker(event).Logged()->size();
  event.data = '"' + std::string(kFrameBytesMax - rest, 'x') + '"';
  EXPECT_EQ(FrameMaker(event).Logged()->size(), kFrameBytesMax);
  event.data = '"' + std::string(kFrameBytesMax - rest + 1, 'x') + '"';
  FrameMaker maker(event);
  EXPECT_LT(maker.Logged()->size(), 300U);
  EXPECT_EQ(maker.Logged()->find("\"data\""), std::string::npos);
  EXPECT_TRUE(maker.Logged()->ends_with(R"(,"message_id":"m\"1","truncated":true})"));
  EXPECT_NE(maker.For("s")->find("\"data\""), std::string::npos) << "with a shorter name it fits";
}

}  // namespace
}  // namespace interlock::events
