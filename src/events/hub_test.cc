#include "events/hub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace interlock::events {
namespace {

using State = Outbox::State;

class HubTest : public ::testing::Test {
 protected:
  std::shared_ptr<Outbox> Make(std::optional<std::string> agent = {}, Outbox::Limits limits = {}) {
    return std::make_shared<Outbox>(std::move(agent), TypeFilter(), limits);
  }
  std::shared_ptr<Outbox> Joined(const std::string& project, std::optional<std::string> agent = {},
                                 Outbox::Limits limits = {}) {
    auto outbox = Make(std::move(agent), limits);
    EXPECT_TRUE(hub_.Join(project, outbox, 0));
    return outbox;
  }
  void Publish(const std::string& project, const std::string& type = "t",
               std::vector<std::string> recipients = {}) {
    hub_.Publish({.event = {.cursor = ++last_, .type = type, .project = project, .entity_id = "e"},
                  .recipients = std::move(recipients)});
  }
  // The cursors of what waits: "3 4"; "lagged" and the like when it is not open.
  static std::string Took(const std::shared_ptr<Outbox>& outbox) {
    const Outbox::Taken taken = outbox->Take();
    if (taken.state == State::kLagged) return "lagged";
    if (taken.state != State::kOpen) return "closed";
    std::string cursors;
    for (const Frame& frame : taken.frames) {
      const std::string text =
          frame->starts_with(R"({"cursor":)") ? frame->substr(10, frame->find(',') - 10) : "live";
      cursors += (cursors.empty() ? "" : " ") + text;
    }
    return cursors;
  }

  Hub hub_{0};
  domain::Cursor last_ = 0;
};

TEST_F(HubTest, AProjectsEventsReachItsOwnConsumersOnly) {
  const auto p = Joined("p");
  const auto q = Joined("q");
  const auto empty = Joined("");
  Publish("p");
  Publish("");
  Publish("q");
  Publish("p");
  EXPECT_EQ(Took(p), "1 4");
  EXPECT_EQ(Took(q), "3");
  EXPECT_EQ(Took(empty), "2");
}

TEST_F(HubTest, AMessageReachesItsRecipientsAndTheWholeProjectsConsumers) {
  const auto whole = Joined("p");
  const auto a = Joined("p", "a");
  const auto b = Joined("p", "b");
  const auto other_a = Joined("q", "a");
  Publish("p", domain::event_type::kMessageCreated, {"a", "c", "a"});
  Publish("p", domain::event_type::kMessageRead);
  EXPECT_EQ(Took(whole), "1 2");
  EXPECT_EQ(Took(a), "1 2");  // once, however often it is named
  EXPECT_EQ(Took(b), "2");
  EXPECT_EQ(Took(other_a), "");
}

TEST_F(HubTest, OfAMessageAnAgentHearsWithItsOwnNameAndAllItsConsumersShareTheText) {
  const auto one = Joined("p", "a");
  const auto two = Joined("p", "a");
  const auto whole = Joined("p");
  Publish("p", domain::event_type::kMessageCreated, {"a"});
  const Frame first = one->Take().frames.at(0);
  EXPECT_EQ(first, two->Take().frames.at(0));
  EXPECT_NE(first->find(R"("agent":"a")"), std::string::npos);
  EXPECT_EQ(whole->Take().frames.at(0)->find("\"agent\""), std::string::npos);
  Publish("p");
  EXPECT_EQ(one->Take().frames.at(0), whole->Take().frames.at(0));
}

TEST_F(HubTest, JoiningSaysWhereLiveBegins) {
  Publish("p");
  Publish("q");
  auto outbox = Make();
  EXPECT_EQ(hub_.Join("p", outbox, 0), 2);
  Publish("p");
  EXPECT_EQ(Took(outbox), "3");
}

TEST_F(HubTest, WhoIsAheadOfThePublisherHearsNothingTwice) {
  Publish("p");
  auto outbox = Make();
  EXPECT_EQ(hub_.Join("p", outbox, 3), 1);  // it has read 2 and 3 in the log already
  Publish("p");
  Publish("p");
  Publish("p");
  EXPECT_EQ(Took(outbox), "4");
}

TEST_F(HubTest, OverflowByCountLagsExactlyThereAndFreesWhatWaited) {
  const auto slow = Joined("p", {}, {.events_max = 3});
  const auto other = Joined("p");
  for (int i = 0; i < 3; ++i) Publish("p");
  EXPECT_EQ(slow->state(), State::kOpen);
  Publish("p");
  EXPECT_EQ(slow->state(), State::kLagged);
  EXPECT_TRUE(slow->Take().frames.empty());
  Publish("p");
  EXPECT_EQ(Took(slow), "lagged");
  EXPECT_EQ(Took(other), "1 2 3 4 5");
  hub_.Join("p", slow, 0);
  Publish("p");
  EXPECT_EQ(Took(slow), "6");
}

TEST_F(HubTest, OverflowByBytesLagsExactlyThere) {
  const auto probe = Joined("p");
  Publish("p");
  const std::size_t bytes = probe->Take().frames.at(0)->size();
  const auto fits = Joined("p", {}, {.bytes_max = 2 * bytes});
  const auto lags = Joined("p", {}, {.bytes_max = 2 * bytes - 1});
  Publish("p");
  Publish("p");
  EXPECT_EQ(Took(fits), "2 3");
  EXPECT_EQ(Took(lags), "lagged");
  Publish("p");
  EXPECT_EQ(Took(fits), "4") << "what was taken no longer counts";
}

TEST_F(HubTest, AWakeRunsOnceAndOnlyWhenThereIsSomethingToTake) {
  const auto outbox = Joined("p");
  int woken = 0;
  ASSERT_TRUE(outbox->Arm([&] { ++woken; }));
  Publish("q");
  EXPECT_EQ(woken, 0);
  Publish("p");
  Publish("p");
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(outbox->Arm([&] { ++woken; })) << "there is something already";
  EXPECT_EQ(Took(outbox), "2 3");
  ASSERT_TRUE(outbox->Arm([&] { ++woken; }));
  outbox->Close(State::kClosed);
  EXPECT_EQ(woken, 2);
  EXPECT_FALSE(outbox->Arm([&] { ++woken; }));
}

TEST_F(HubTest, AnEventTooLargeForAnEmptyOutboxWakesWhoWaitsForIt) {
  const auto outbox = Joined("p", {}, {.bytes_max = 1});
  int woken = 0;
  ASSERT_TRUE(outbox->Arm([&] { ++woken; }));
  Publish("p");
  EXPECT_EQ(woken, 1) << "else it would wait for ever";
  EXPECT_EQ(Took(outbox), "lagged");
}

TEST_F(HubTest, AFilterLeavesOutWhatItDoesNotHearAndThatTakesNoRoom) {
  const auto outbox = Joined("p", {}, {.events_max = 1});
  outbox->SetFilter(TypeFilter({"wanted"}));
  for (int i = 0; i < 5; ++i) Publish("p");
  Publish("p", "wanted");
  EXPECT_EQ(Took(outbox), "6");
}

TEST_F(HubTest, ALiveOnlyEventReachesWhoListensAndMovesNoCursor) {
  const auto outbox = Joined("p", "a");
  hub_.PublishLive({.type = "reservation.conflict", .project = "p", .entity_id = "r"});
  EXPECT_EQ(Took(outbox), "live");
  EXPECT_EQ(hub_.published(), 0);
}

TEST_F(HubTest, TheCursorMovesOnAloneOnlyWhileNobodyListens) {
  EXPECT_TRUE(hub_.SkipTo(5));
  EXPECT_TRUE(hub_.SkipTo(4));  // never back
  EXPECT_EQ(hub_.published(), 5);
  const auto outbox = Joined("p");
  EXPECT_FALSE(hub_.SkipTo(9));
  EXPECT_EQ(hub_.published(), 5);
  hub_.Leave("p", outbox);
  EXPECT_TRUE(hub_.SkipTo(9));
}

TEST_F(HubTest, WhoLeavesHearsNothingMoreAndLeavingTwiceIsHarmless) {
  const auto stays = Joined("p", "a");
  const auto leaves = Joined("p", "a");
  EXPECT_EQ(hub_.listeners(), 2U);
  hub_.Leave("p", leaves);
  hub_.Leave("p", leaves);
  hub_.Leave("q", leaves);
  EXPECT_EQ(hub_.listeners(), 1U);
  Publish("p");
  EXPECT_EQ(Took(leaves), "");
  EXPECT_EQ(Took(stays), "1");
}

TEST_F(HubTest, ClosingTellsEverybodyAndLetsNobodyIn) {
  const auto whole = Joined("p");
  const auto agent = Joined("q", "a");
  int woken = 0;
  ASSERT_TRUE(agent->Arm([&] { ++woken; }));
  hub_.Close();
  hub_.Close();
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(whole->state(), State::kStopping);
  EXPECT_FALSE(hub_.Join("p", Make(), 0));
  whole->Open(0);
  EXPECT_EQ(whole->state(), State::kStopping) << "for good";
}

// Consumers that join while events are published each hear exactly those after their H.
TEST_F(HubTest, JoiningAmidPublishingLeavesNoGapAndNoDuplicate) {
  constexpr int kEvents = 2000;
  std::atomic<bool> done = false;
  std::vector<std::thread> consumers;
  consumers.reserve(4);
  for (int c = 0; c < 4; ++c) {
    consumers.emplace_back([&] {
      while (!done) {
        auto outbox = Make({}, {.events_max = kEvents, .bytes_max = std::size_t{1} << 24});
        domain::Cursor expected = *hub_.Join("p", outbox, 0) + 1;
        for (int takes = 0; takes < 3; ++takes) {
          for (const Frame& frame : outbox->Take().frames) {
            ASSERT_TRUE(frame->starts_with("{\"cursor\":" + std::to_string(expected) + ","));
            ++expected;
          }
        }
        hub_.Leave("p", outbox);
      }
    });
  }
  for (int i = 0; i < kEvents; ++i) Publish("p");
  done = true;
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_EQ(hub_.listeners(), 0U);
}

}  // namespace
}  // namespace interlock::events
