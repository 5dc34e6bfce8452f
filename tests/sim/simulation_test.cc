#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <string>

#include "testing/child_process.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::sim {
namespace {

std::uint64_t NumberFrom(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

// What went on in several runs.
struct Sum {
  std::map<std::string, std::uint64_t> answered;
  std::uint64_t jumps = 0;
  std::uint64_t restarts = 0;
  std::int64_t faults = 0;
  std::uint64_t power_cuts = 0;
  std::uint64_t quiet_checks = 0;
  std::uint64_t turn_checks = 0;
  std::uint64_t renewal_checks = 0;
  std::uint64_t integrity_checks = 0;
  std::uint64_t log_moves = 0;

  void Add(const Simulation& simulation) {
    for (const auto& [what, count] : simulation.counts().answered) answered[what] += count;
    jumps += simulation.stats().jumps;
    restarts += simulation.stats().restarts;
    faults += simulation.stats().faults;
    power_cuts += simulation.stats().power_cuts;
    quiet_checks += simulation.stats().quiet_checks;
    turn_checks += simulation.stats().turn_checks;
    renewal_checks += simulation.stats().renewal_checks;
    integrity_checks += simulation.stats().integrity_checks;
    log_moves += simulation.stats().log_moves;
  }
  // By kind and by all that begins with it.
  std::uint64_t Count(std::string_view kind, std::string_view ending) const {
    std::uint64_t sum = 0;
    for (const auto& [what, count] : answered) {
      if (what.starts_with(kind) && what.ends_with(ending)) sum += count;
    }
    return sum;
  }
};

TEST(SimulationTest, PromisesHoldForEverySeed) {
  // Where steps are few, more seeds: an open circuit breaker is met by some of them only.
  const std::uint64_t seeds = NumberFrom("IL_SIM_SEEDS", testing::kSlowBuild ? 8 : 4);
  const std::uint64_t steps = NumberFrom("IL_SIM_STEPS", testing::kSlowBuild ? 4'000 : 12'000);
  const std::clock_t begin = std::clock();
  Sum sum;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    Simulation simulation(testing::TestSeed() + i);
    EXPECT_TRUE(simulation.Run(steps)) << simulation.Describe();
    std::printf("%s", simulation.Describe().c_str());
    sum.Add(simulation);
  }
  const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const double rate = 60.0 * static_cast<double>(seeds * steps) / took;
  std::printf("%.0f steps a minute of the processor's time\n", rate);
  for (const auto& [what, count] : sum.answered) {
    std::printf("%8llu %s\n", static_cast<unsigned long long>(count), what.c_str());
  }
  if (!testing::kSlowBuild) {
    EXPECT_GT(rate, 100'000);
  }
  if (seeds * steps < 10'000) return;
  // A world in which nothing goes wrong proves nothing.
  EXPECT_GT(sum.faults, 0);
  EXPECT_GT(sum.jumps, 0U);
  EXPECT_GT(sum.restarts, 0U);
  EXPECT_GT(sum.power_cuts, 0U);
  EXPECT_GT(sum.quiet_checks, 0U);
  EXPECT_GT(sum.turn_checks, 0U);
  EXPECT_GT(sum.renewal_checks, 0U);
  EXPECT_GT(sum.integrity_checks, seeds);  // not only at the end of each
  EXPECT_GT(sum.log_moves, 0U);
  EXPECT_GT(sum.Count("wait", "ok"), 0U);
  EXPECT_GT(sum.Count("wait", "cancelled"), 0U);
  EXPECT_GT(sum.Count("reserve", "refused"), 0U);
  EXPECT_GT(sum.Count("next", "follower_lagged"), 0U);
  EXPECT_GT(sum.Count("", "outcome_unknown"), 0U);
  EXPECT_GT(sum.Count("", "circuit_open"), 0U);
}

// What another process tells of the same seed: there everything lies at other addresses.
std::string ReplayElsewhere(std::uint64_t steps) {
  const testing::TempDir directory;
  return testing::RunProgram({"/usr/bin/env", "IL_SEED=" + std::to_string(testing::TestSeed()),
                              "IL_SIM_SEEDS=1", "IL_SIM_STEPS=" + std::to_string(steps),
                              std::filesystem::read_symlink("/proc/self/exe"),
                              "--gtest_filter=SimulationTest.PromisesHoldForEverySeed"},
                             directory.path())
      .out;
}

TEST(SimulationTest, ASeedReplaysExactly) {
  constexpr std::uint64_t kSteps = 2'000;
  Simulation first(testing::TestSeed());
  Simulation again(testing::TestSeed());
  first.Run(kSteps);
  again.Run(kSteps);
  EXPECT_EQ(first.Describe(), again.Describe());
  EXPECT_THAT(ReplayElsewhere(kSteps), ::testing::HasSubstr(first.Describe()));
  Simulation other(testing::TestSeed() + 1);
  Simulation shorter(testing::TestSeed());
  other.Run(kSteps);
  shorter.Run(kSteps - 1);
  EXPECT_NE(other.trace(), first.trace());
  EXPECT_NE(shorter.trace(), first.trace());
}

// Each of these is something that the server must never do. Which promise notices first depends on
// what happens next; promises_test.cc has them one by one.
TEST(SimulationTest, WhatIsChangedBehindTheServersBackIsNoticed) {
  const char* const kScripts[] = {
      "DELETE FROM events WHERE cursor = (SELECT max(cursor) FROM events);"
      "UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'events'",
      "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'events'",
      "DELETE FROM reservations WHERE released_at IS NULL",
      "UPDATE reservations SET released_at = NULL, version = version + 1",
      "UPDATE reservations SET agent = 'thief', version = version + 1",
      "UPDATE reservations SET expires_at = expires_at - 1",
      "UPDATE fences SET last = 0",
      "DELETE FROM inbox",
  };
  for (const char* script : kScripts) {
    Simulation simulation(testing::TestSeed());
    ASSERT_TRUE(simulation.Run(600)) << simulation.Describe();
    simulation.Tamper(script);
    EXPECT_FALSE(simulation.Run(3'000)) << script;
  }
}

}  // namespace
}  // namespace interlock::sim
