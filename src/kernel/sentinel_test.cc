#include "kernel/sentinel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel_fixture.h"

namespace interlock::kernel {
namespace {

using enum SentinelVerdict;
using ::testing::ElementsAre;

constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr SentinelId kId = {"guard", "scope"};

class SentinelTest : public KernelTest {
 protected:
  SentinelVerdict Check(std::int64_t interval_s, std::int64_t now = kNow,
                        const SentinelId& id = kId) {
    const auto verdict =
        Write([&](Transaction& tx) { return ClaimSentinel(tx, id, interval_s, now); });
    EXPECT_TRUE(verdict.ok()) << verdict.error();
    return verdict.value();
  }
  std::int64_t PruneStale(std::int64_t now) {
    return Write([&](Transaction& tx) { return PruneStaleSentinels(tx, now); }).value();
  }
  std::int64_t PruneBefore(std::int64_t before, OnceOnly once_only) {
    return Write([&](Transaction& tx) {
             return PruneSentinels(tx, before, once_only, before + kDay);
           })
        .value();
  }
  std::int64_t Reset() {
    return Write([](Transaction& tx) { return ResetSentinel(tx, kId); }).value();
  }
  // A row as a file of the older program has it.
  void Lifted(std::int64_t last_fired) {
    Sql("INSERT INTO sentinels (name, scope_id, last_fired) VALUES ('guard', 'scope', " +
        std::to_string(last_fired) + ")");
  }
  std::vector<Sentinel> All() { return Read(ListSentinels).value(); }
};

TEST_F(SentinelTest, AnIntervalFiresAtFirstAndThenWhenItHasPassed) {
  EXPECT_EQ(Check(60), kAllowed);
  EXPECT_EQ(Check(60), kThrottled);
  EXPECT_EQ(Check(60, kNow + 59), kThrottled);
  EXPECT_EQ(Check(60, kNow + 60), kAllowed);
  EXPECT_EQ(Check(60, kNow + 119), kThrottled) << "counted from the last firing, not the last ask";
  EXPECT_EQ(Check(60, kNow + 120), kAllowed);
}

TEST_F(SentinelTest, NameAndScopeTogetherNameAGuard) {
  EXPECT_EQ(Check(60, kNow, {"a", "s"}), kAllowed);
  EXPECT_EQ(Check(60, kNow, {"a", "t"}), kAllowed);
  EXPECT_EQ(Check(60, kNow, {"b", "s"}), kAllowed);
  EXPECT_EQ(Check(60, kNow, {"a", "s"}), kThrottled);
}

TEST_F(SentinelTest, TheFirstCheckFiresHoweverLongTheInterval) {
  EXPECT_EQ(Check(kMost), kAllowed);
  EXPECT_EQ(Check(kMost, kNow + 1'000 * kDay), kThrottled);
  EXPECT_EQ(PruneStale(kNow + 1'000 * kDay), 0) << "it has not passed";
}

TEST_F(SentinelTest, ZeroFiresOnceForGood) {
  EXPECT_EQ(Check(0), kAllowed);
  for (const std::int64_t later : {std::int64_t{0}, std::int64_t{1}, 8 * kDay, 40'000 * kDay}) {
    EXPECT_EQ(Check(0, kNow + later), kThrottled);
    EXPECT_EQ(PruneStale(kNow + later), 0);
  }
  EXPECT_EQ(Reset(), 1);
  EXPECT_EQ(Check(0), kAllowed);
}

TEST_F(SentinelTest, NoLaterIntervalArmsAOnceOnlyGuardAgain) {
  EXPECT_EQ(Check(0), kAllowed);
  EXPECT_EQ(Check(1, kNow + 2), kThrottled);
  EXPECT_EQ(Check(1, kNow + 400 * kDay), kThrottled);
  EXPECT_EQ(Check(60, kNow - 400 * kDay), kThrottled) << "nor a clock set back";
  EXPECT_EQ(Check(0, kNow + 400 * kDay), kThrottled);
  EXPECT_EQ(Check(kMost, kNow + 3), kThrottled);
}

TEST_F(SentinelTest, ZeroIsThrottledByWhatHasFiredOnAnInterval) {
  EXPECT_EQ(Check(60), kAllowed);
  EXPECT_EQ(Check(0, kNow + 400 * kDay), kThrottled);
  EXPECT_EQ(Check(60, kNow + 400 * kDay), kAllowed) << "and the interval goes on";
}

TEST_F(SentinelTest, TheIntervalOfTheCallCounts) {
  EXPECT_EQ(Check(3600), kAllowed);
  EXPECT_EQ(Check(10, kNow + 10), kAllowed);
  EXPECT_EQ(Check(3600, kNow + 3600), kThrottled);
  EXPECT_EQ(All().front().interval_s, 10) << "kept is that of the last firing";
}

TEST_F(SentinelTest, ARowThatNeverFiredFires) {
  Lifted(0);
  EXPECT_EQ(Check(0), kAllowed);
  EXPECT_EQ(Check(0), kThrottled);
}

TEST_F(SentinelTest, ARowOfAnOlderProgramIsJudgedByTheIntervalOfTheCall) {
  Lifted(kNow - 60);
  EXPECT_EQ(Check(61), kThrottled);
  EXPECT_EQ(Check(60), kAllowed);
  EXPECT_EQ(Check(60), kThrottled);
}

TEST_F(SentinelTest, ARowOfAnOlderProgramThatIsAskedForOnceStaysFired) {
  Lifted(kNow - 60);
  EXPECT_EQ(Check(0), kThrottled);
  EXPECT_EQ(PruneStale(kNow + 400 * kDay), 0);
  EXPECT_EQ(Check(0, kNow + 400 * kDay), kThrottled);
  EXPECT_EQ(Check(1, kNow + 400 * kDay), kThrottled);
}

TEST_F(SentinelTest, AClockThatWasSetBackThrottlesForLessThanTwoIntervals) {
  EXPECT_EQ(Check(60, kNow + 5'000 * kDay), kAllowed) << "by a clock that is far ahead";
  EXPECT_EQ(Check(60), kAllowed);
  EXPECT_EQ(Check(60), kThrottled);
  // A small step is no licence to fire twice.
  EXPECT_EQ(Check(60, kNow - 1), kThrottled);
  EXPECT_EQ(Check(60, kNow - 59), kThrottled);
  EXPECT_EQ(Check(60, kNow - 60), kAllowed);
}

TEST_F(SentinelTest, StaleRowsGoAfterSevenDaysAndTheirInterval) {
  Check(60, kNow, {"short", ""});
  Check(10 * kDay, kNow, {"long", ""});
  Check(0, kNow, {"once", ""});
  Lifted(kNow);
  EXPECT_EQ(PruneStale(kNow + 7 * kDay), 0);
  EXPECT_EQ(PruneStale(kNow + 7 * kDay + 1), 2);
  EXPECT_THAT(All(),
              ElementsAre(Sentinel{"long", "", kNow, 10 * kDay}, Sentinel{"once", "", kNow, 0}));
  EXPECT_EQ(PruneStale(kNow + 10 * kDay), 0);
  EXPECT_EQ(PruneStale(kNow + 10 * kDay + 1), 1);
  EXPECT_EQ(PruneStale(kNow + 4'000 * kDay), 0);
}

TEST_F(SentinelTest, PruningByAgeLeavesOnceOnlyGuardsUnlessTheyAreMeant) {
  Check(60, kNow, {"interval", ""});
  Check(0, kNow, {"once", ""});
  Lifted(kNow);
  EXPECT_EQ(PruneBefore(kNow, OnceOnly::kInclude), 0);
  EXPECT_EQ(PruneBefore(kNow + 1, OnceOnly::kKeep), 1);
  EXPECT_EQ(PruneBefore(kNow + 1, OnceOnly::kInclude), 2) << "one that may have fired for good";
  EXPECT_TRUE(All().empty());
}

TEST_F(SentinelTest, PruningByAgeKeepsARowOfAnOlderProgramForSevenDays) {
  Lifted(kNow);
  EXPECT_EQ(PruneBefore(kNow + 1, OnceOnly::kKeep), 0);
  EXPECT_EQ(PruneBefore(kNow + 6 * kDay, OnceOnly::kKeep), 0);
  EXPECT_EQ(Check(0, kNow + 6 * kDay), kThrottled);
  EXPECT_EQ(Reset(), 1);
  Lifted(kNow);
  EXPECT_EQ(PruneBefore(kNow + 6 * kDay + 1, OnceOnly::kKeep), 1) << "of the day after";
}

TEST_F(SentinelTest, ManyClaimsStandEachForItself) {
  Check(60, kNow, {"a", "s"});
  const std::vector<SentinelClaim> claims = {
      {{"a", "s"}, 60}, {{"b", "s"}, 0}, {{"b", "s"}, 0}, {{"c", "s"}, 5}};
  const auto claimed =
      Write([&](Transaction& tx) { return ClaimSentinels(tx, claims, kNow + 1); }).value();
  EXPECT_THAT(claimed.verdicts, ElementsAre(kThrottled, kAllowed, kThrottled, kAllowed));
  EXPECT_FALSE(claimed.prune_error.has_value());
  EXPECT_EQ(All().size(), 3);
}

TEST_F(SentinelTest, PruningThatFailsUndoesNothingButItself) {
  Check(60, kNow - 8 * kDay, {"old", "1"});
  Check(60, kNow - 8 * kDay, {"old", "2"});
  const std::vector<SentinelClaim> claims = {{{"new", ""}, 60}};
  // The first row goes, the second refuses; FAIL keeps what the statement has done so far.
  Sql("CREATE TRIGGER no BEFORE DELETE ON sentinels WHEN old.scope_id = '2' "
      "BEGIN SELECT RAISE(FAIL, 'not today'); END");
  const auto claimed =
      Write([&](Transaction& tx) { return ClaimSentinels(tx, claims, kNow); }).value();
  EXPECT_THAT(claimed.verdicts, ElementsAre(kAllowed));
  ASSERT_TRUE(claimed.prune_error.has_value());
  EXPECT_THAT(claimed.prune_error->message(), ::testing::HasSubstr("not today"));
  EXPECT_EQ(All().size(), 3) << "the savepoint took back the half that was done";
  EXPECT_EQ(Check(60, kNow, {"new", ""}), kThrottled);
}

TEST_F(SentinelTest, AClaimIsNotAllowedWhenItsTransactionIsLost) {
  Check(60, kNow - 8 * kDay, {"old", ""});
  Sql("CREATE TRIGGER no BEFORE DELETE ON sentinels "
      "BEGIN SELECT RAISE(ROLLBACK, 'everything'); END");
  const std::vector<SentinelClaim> claims = {{{"new", ""}, 60}};
  const auto claimed = Write([&](Transaction& tx) { return ClaimSentinels(tx, claims, kNow); });
  ASSERT_FALSE(claimed.ok());
  EXPECT_EQ(claimed.error().exit_code(), 2);
  EXPECT_EQ(All().size(), 1);
}

TEST_F(SentinelTest, ResettingANameResetsAllItsScopes) {
  for (const std::string_view scope : {"b", "a", ""}) Check(0, kNow, {"guard", scope});
  Check(60, kNow, {"guards", "a"});
  EXPECT_THAT(All(),
              ElementsAre(Sentinel{"guard", "", kNow, 0}, Sentinel{"guard", "a", kNow, 0},
                          Sentinel{"guard", "b", kNow, 0}, Sentinel{"guards", "a", kNow, 60}));
  const auto reset_all = [](Transaction& tx) { return ResetSentinels(tx, "guard"); };
  EXPECT_EQ(Write(reset_all).value(), 3);
  EXPECT_EQ(Write(reset_all).value(), 0);
  EXPECT_EQ(Reset(), 0);
  EXPECT_EQ(All().size(), 1);
}

TEST_F(SentinelTest, WhatStillThrottlesIsNotPruned) {
  ASSERT_EQ(Check(kDay, kNow - 7200), SentinelVerdict::kAllowed);
  const auto prune = [](Transaction& tx) {
    return PruneSentinels(tx, kNow - 3600, OnceOnly::kInclude, kNow);
  };
  EXPECT_EQ(Write(prune).value(), 0);
  EXPECT_EQ(Check(kDay), SentinelVerdict::kThrottled);
}

TEST_F(SentinelTest, ARowThatThrottlesForLongerIsNotStaleBeforeThat) {
  ASSERT_EQ(Check(60, kNow - 8 * kDay), SentinelVerdict::kAllowed);
  EXPECT_EQ(Check(30 * kDay), SentinelVerdict::kThrottled);
  EXPECT_EQ(PruneStale(kNow), 0);
  EXPECT_EQ(Check(30 * kDay), SentinelVerdict::kThrottled);
}

TEST_F(SentinelTest, AThrottledOnceIsForGoodWhateverFiredBefore) {
  ASSERT_EQ(Check(60, kNow - 8 * kDay), SentinelVerdict::kAllowed);
  EXPECT_EQ(Check(0), SentinelVerdict::kThrottled);
  EXPECT_EQ(PruneStale(kNow), 0);
  EXPECT_EQ(Check(0), SentinelVerdict::kThrottled);
}

}  // namespace
}  // namespace interlock::kernel
