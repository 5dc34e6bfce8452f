#include "domain/window.h"

#include <gtest/gtest.h>

#include <string>

namespace interlock::domain {
namespace {

TEST(TmuxTargetTest, IsASessionPerhapsAWindowPerhapsAPane) {
  EXPECT_EQ(ParseTmuxTarget("main"), (TmuxTarget{.session = "main"}));
  EXPECT_EQ(ParseTmuxTarget("main.1"), (TmuxTarget{.session = "main", .pane = "1"}));
  EXPECT_EQ(ParseTmuxTarget("main:2"), (TmuxTarget{.session = "main", .window = "2"}));
  EXPECT_EQ(ParseTmuxTarget("a-b_c:build.12"),
            (TmuxTarget{.session = "a-b_c", .window = "build", .pane = "12"}));
}

TEST(TmuxTargetTest, NamesMayHoldBlanksAndDots) {
  EXPECT_EQ(ParseTmuxTarget("my work:the editor.0"),
            (TmuxTarget{.session = "my work", .window = "the editor", .pane = "0"}));
  EXPECT_EQ(ParseTmuxTarget("main:2.0.14.0"),
            (TmuxTarget{.session = "main", .window = "2.0.14", .pane = "0"}));
  EXPECT_EQ(ParseTmuxTarget("main:a."), (TmuxTarget{.session = "main", .window = "a."}));
}

TEST(TmuxTargetTest, NothingElseIsOne) {
  for (const char* text : {"", " ", ":", ":w", "s:", "s: ", "s:w:x", "s;kill-server", "s:$(x)",
                           "s\n", "=s", "s:w.0\n", "{last}", "s:@1", "%1", "sé", "s'", "s:.1"}) {
    EXPECT_FALSE(ParseTmuxTarget(text).has_value()) << text;
  }
  EXPECT_TRUE(ParseTmuxTarget(std::string(256, 'a')).has_value());
  EXPECT_FALSE(ParseTmuxTarget(std::string(257, 'a')).has_value());
}

TEST(TransportTest, NamesAreExact) {
  EXPECT_EQ(ParseTransport(""), Transport::kAsync);
  EXPECT_EQ(ParseTransport("async"), Transport::kAsync);
  EXPECT_EQ(ParseTransport("live"), Transport::kLive);
  EXPECT_EQ(ParseTransport("both"), Transport::kBoth);
  EXPECT_FALSE(ParseTransport("Live").has_value());
}

TEST(TransportTest, EveryStateHasItsName) {
  EXPECT_EQ(Name(DeliveryState::kAsync), "async");
  EXPECT_EQ(Name(DeliveryState::kInjected), "injected");
  EXPECT_EQ(Name(DeliveryState::kDeferred), "deferred");
  EXPECT_EQ(Name(DeliveryState::kFailed), "failed");
}

}  // namespace
}  // namespace interlock::domain
