// Many processes of `ic run` at once, and some that are killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <set>

#include "cli/run_place.h"
#include "testing/seeded_random.h"

namespace interlock {
namespace {

using testing::Finished;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sanitizers make a process some ten times slower.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kKills = 30;
#else
constexpr int kKills = 120;
#endif

class RunCrowdTest : public testing::RunPlaceTest {
 protected:
  // Creates runs for one bead at once; returns the id of the one that won.
  std::string OneWins(std::size_t count, const std::string& bead) {
    const std::vector<Finished> all = place_.RunAtOnce(count, [&](std::size_t i) {
      return testing::IcCall{
          {"run", "create", "--project=.", "--bead=" + bead, "--session=" + std::to_string(i)}};
    });
    std::string winner;
    for (const Finished& one : all) {
      if (one.exit_code != 0) continue;
      EXPECT_EQ(winner, "") << "two won";
      winner = one.out.substr(0, 8);
    }
    EXPECT_NE(winner, "");
    for (const Finished& one : all) {
      if (one.exit_code == 0) continue;
      EXPECT_EQ(one.exit_code, 1) << one.err;
      EXPECT_EQ(one.out, "");
      EXPECT_THAT(one.err, HasSubstr("UNIQUE"));
      EXPECT_THAT(one.err, HasSubstr(winner));
      EXPECT_THAT(one.err, HasSubstr("ic run abandon " + winner));
    }
    return winner;
  }
  // The steps of the only run, each of which must begin where the one before it ended.
  int Steps() {
    std::string at = "p0";
    int count = 0;
    const auto file = place_.OpenFile();
    constexpr db::Sql kSteps =
        "SELECT from_phase, to_phase FROM phase_events WHERE event_type = 'advance' ORDER BY id";
    const auto read = file->ForEach(kSteps, [&](const db::Row& row) {
      EXPECT_EQ(row.Text(0), at);
      at = row.String(1);
      EXPECT_EQ(at, "p" + std::to_string(++count));
    });
    EXPECT_TRUE(read.ok());
    EXPECT_EQ(Text("SELECT phase FROM runs"), at) << "an event for every change, none without";
    return count;
  }
};

TEST_F(RunCrowdTest, S07OfTwoWhoCreateARunForOneBeadOneWins) {
  for (int round = 0; round < 5; ++round) OneWins(2, "b" + std::to_string(round));
}

TEST_F(RunCrowdTest, S07OfThirtyTwoWhoCreateARunForOneBeadOneWins) {
  const std::string winner = OneWins(32, "b");
  EXPECT_EQ(Out({"run", "list", "--bead=b", "--active"}).substr(0, 8), winner);
  EXPECT_EQ(Int("SELECT count(*) FROM runs"), 1);
}

TEST_F(RunCrowdTest, ACrowdThatTakesOverLeavesOneActiveRunAndAnEventForEachOther) {
  const std::vector<Finished> all = place_.RunAtOnce(16, [](std::size_t) {
    return testing::IcCall{{"run", "create", "--bead=b", "--takeover-after=0s"}};
  });
  for (const Finished& one : all) EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(Int("SELECT count(*) FROM runs WHERE status = 'active'"), 1);
  EXPECT_EQ(Int("SELECT count(*) FROM runs WHERE status = 'abandoned'"), 15);
  EXPECT_EQ(Int("SELECT count(DISTINCT run_id) FROM phase_events WHERE event_type = 'abandon'"),
            15);
}

TEST_F(RunCrowdTest, EachPhaseIsPassedOnceHoweverManyAdvance) {
  const std::string run = Create({"--goal=g", testing::PhasesFlag(9)});
  const std::vector<Finished> all =
      place_.RunAtOnce(16, [&](std::size_t) { return testing::IcCall{{"run", "advance", run}}; });
  std::multiset<std::string> steps;
  for (const Finished& one : all) {
    if (one.exit_code == 0) {
      steps.insert(one.out);
    } else {
      EXPECT_EQ(one.exit_code, 1) << one.err;
      EXPECT_THAT(one.err, HasSubstr("is completed"));
    }
  }
  EXPECT_EQ(steps.size(), 8U);
  EXPECT_EQ(std::set(steps.begin(), steps.end()).size(), 8U) << "nobody was told the same step";
  EXPECT_EQ(Steps(), 8);
}

TEST_F(RunCrowdTest, OfManyWhoEndARunOneDoes) {
  const std::string run = Create();
  const std::vector<Finished> all = place_.RunAtOnce(8, [&](std::size_t i) {
    return testing::IcCall{{"run", i % 2 == 0 ? "cancel" : "abandon", run}};
  });
  EXPECT_EQ(std::ranges::count(all, 0, &Finished::exit_code), 1);
  EXPECT_EQ(std::ranges::count(all, 1, &Finished::exit_code), 7);
  EXPECT_EQ(Int("SELECT count(*) FROM phase_events"), 1);
}

TEST_F(RunCrowdTest, MetadataOfAllWhoMergeAtOnceIsKept) {
  const std::string run = Create();
  const std::vector<Finished> all = place_.RunAtOnce(16, [&](std::size_t i) {
    const std::string number = std::to_string(i);
    return testing::IcCall{
        {"run", "set", run, "--metadata-merge={\"in\":{\"k" + number + "\":" + number + "}}"}};
  });
  for (const Finished& one : all) EXPECT_EQ(one.exit_code, 0) << one.err;
  const std::string metadata = Text("SELECT metadata FROM runs");
  for (int i = 0; i < 16; ++i) {
    EXPECT_THAT(metadata, HasSubstr("\"k" + std::to_string(i) + "\":" + std::to_string(i)));
  }
  EXPECT_EQ(Int("SELECT count(*) FROM phase_events WHERE event_type = 'set'"), 16);
}

TEST_F(RunCrowdTest, TheBudgetIsToldOnceHoweverManyAsk) {
  const std::string run = Create({"--goal=g", "--token-budget=1"});
  place_.Sql(
      "INSERT INTO dispatches (id, project_dir, scope_id, created_at, input_tokens) "
      "VALUES ('d', '/', '" +
      run + "', 1, 5)");
  const std::vector<Finished> all =
      place_.RunAtOnce(16, [&](std::size_t) { return testing::IcCall{{"run", "budget", run}}; });
  for (const Finished& one : all) EXPECT_EQ(one.exit_code, 1) << one.err;
  EXPECT_EQ(Int("SELECT count(*) FROM phase_events"), 2);
}

TEST_F(RunCrowdTest, AnAdvanceThatIsKilledHappenedWithItsEventOrNotAtAll) {
  const std::string run = Create({"--goal=g", testing::PhasesFlag(kKills + 2)});
  std::mt19937_64 random(testing::TestSeed());
  std::uniform_int_distribution<int> delay_ms(0, 8);
  int acknowledged = 0;
  int killed = 0;
  for (int i = 0; i < kKills; ++i) {
    const auto process = place_.Start({.arguments = {"run", "advance", run}});
    process->EndsWithin(std::chrono::milliseconds(delay_ms(random)));
    process->Signal(SIGKILL);
    const Finished end = process->Finish();
    acknowledged += end.out.empty() ? 0 : 1;
    killed += end.exit_code == 128 + SIGKILL ? 1 : 0;
  }
  EXPECT_GT(killed, 0);
  const int steps = Steps();
  EXPECT_GE(steps, acknowledged) << "what was said to be done is done";
  EXPECT_LE(steps, kKills);
  EXPECT_EQ(Text("PRAGMA integrity_check"), "ok");
  EXPECT_THAT(Out({"run", "advance", run}), StartsWith("p" + std::to_string(steps)));
}

}  // namespace
}  // namespace interlock
