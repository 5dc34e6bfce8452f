#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cli/ic_process.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

// kill -9 at random points of hundreds of calls: the file is sound, what was acknowledged is there,
// and nothing that was not asked for.
namespace interlock {
namespace {

using std::chrono::microseconds;
using testing::Below;
using testing::Finished;
using testing::IcPlace;
using testing::IcProcess;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOperations = 80;  // each takes ten times as long
#else
constexpr int kOperations = 500;
#endif
constexpr std::size_t kAtOnce = 4;  // so that they also die while they wait for each other

class CrashTest : public ::testing::Test {
 protected:
  CrashTest() : rng_(testing::TestSeed()) { place_.Init(); }

  // How long a call takes here, by the slowest of some.
  microseconds TypicalTime() {
    auto slowest = microseconds(0);
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(place_.Ic({"state", "set", "warm", "up", "1"}).exit_code, 0);
      slowest = std::max(slowest, std::chrono::duration_cast<microseconds>(
                                      std::chrono::steady_clock::now() - begin));
    }
    return slowest;
  }

  // Each kind keeps what it knows by itself: what was acknowledged, what was attempted.
  struct Writer {  // one key, written by one at a time, with rising numbers
    std::int64_t acknowledged = 0;
    std::int64_t attempted = 0;
  };
  struct Count {
    std::set<std::int64_t> sums;  // acknowledged
    std::int64_t attempted = 0;
  };
  struct Claim {
    bool acknowledged = false;
  };

  struct Operation {
    std::unique_ptr<IcProcess> process;
    std::function<void(const Finished&)> acknowledge;
  };

  Operation Start(int number) {
    const std::string scope = std::to_string(number % static_cast<int>(kAtOnce));
    switch (Below(rng_, 4)) {
      case 0: {
        Writer& writer = writers_[scope];
        const std::int64_t value = ++writer.attempted;
        return {place_.Start({{"state", "set", "written", scope, std::to_string(value)}}),
                [&writer, value](const Finished&) { writer.acknowledged = value; }};
      }
      case 1: {
        ++count_.attempted;
        return {place_.Start({{"state", "incr", "counted", "all"}}), [this](const Finished& run) {
                  EXPECT_TRUE(count_.sums.insert(std::stoll(run.out)).second) << run.out;
                }};
      }
      case 2: {
        const std::string name = std::to_string(number);
        Claim& claim = claims_[name];
        return {place_.Start({{"sentinel", "check", "claimed", name, "--interval=0"}}),
                [&claim](const Finished& run) {
                  EXPECT_EQ(run.out, "allowed\n");
                  claim.acknowledged = true;
                }};
      }
      default:
        return {place_.Start({{"state", "set", "brief", scope, "1", "--ttl=1h"}}),
                [](const Finished&) {}};
    }
  }

  // How many were killed before they were done.
  int RunAll() {
    const microseconds typical = TypicalTime();
    int killed = 0;
    for (int number = 0; number < kOperations;) {
      std::vector<Operation> batch;
      batch.reserve(kAtOnce);
      for (std::size_t i = 0; i < kAtOnce; ++i) batch.push_back(Start(number++));
      for (Operation& operation : batch) {
        const auto mercy =
            static_cast<std::int64_t>(Below(rng_, static_cast<std::size_t>(typical.count()) * 2));
        if (!operation.process->EndsWithin(microseconds(mercy))) operation.process->Signal(SIGKILL);
      }
      for (Operation& operation : batch) {
        const Finished run = operation.process->Finish();
        if (run.exit_code == 0) {
          operation.acknowledge(run);
        } else {
          EXPECT_EQ(run.exit_code, 128 + SIGKILL) << run.err;
          ++killed;
        }
      }
    }
    return killed;
  }

  std::int64_t Value(const std::string& key, const std::string& scope) {
    const Finished run = place_.Ic({"state", "get", key, scope});
    EXPECT_LE(run.exit_code, 1) << run.err;
    return run.exit_code == 1 ? 0 : std::stoll(run.out);
  }

  IcPlace place_;
  std::mt19937_64 rng_;
  std::map<std::string, Writer> writers_;
  Count count_;
  std::map<std::string, Claim> claims_;
};

TEST_F(CrashTest, KilledAtRandomPointsNothingAcknowledgedIsLostAndTheFileIsSound) {
  const int killed = RunAll();
  EXPECT_GT(killed, kOperations / 20) << "too few to prove anything";
  EXPECT_LT(killed, kOperations * 19 / 20) << "too many to prove anything";

  EXPECT_EQ(place_.Ic({"health", "--full"}).out, "ok\n");
  EXPECT_EQ(place_.Text("PRAGMA integrity_check"), "ok");
  for (const auto& [scope, writer] : writers_) {
    const std::int64_t value = Value("written", scope);
    EXPECT_GE(value, writer.acknowledged) << scope;
    EXPECT_LE(value, writer.attempted) << scope;
  }
  const std::int64_t counted = Value("counted", "all");
  EXPECT_GE(counted, *count_.sums.rbegin());
  EXPECT_GE(counted, std::ssize(count_.sums));
  EXPECT_LE(counted, count_.attempted);
  EXPECT_EQ(place_.Int("SELECT count(*) FROM sentinels WHERE last_fired = 0"), 0)
      << "inserted and never claimed: half a transaction";
  for (const auto& [name, claim] : claims_) {
    if (!claim.acknowledged) continue;
    EXPECT_EQ(place_.Ic({"sentinel", "check", "claimed", name, "--interval=0"}).out, "throttled\n")
        << name;
  }
  EXPECT_EQ(place_.Ic({"--timeout=0", "state", "set", "after", "all", "1"}).exit_code, 0)
      << "no lock has stayed";
}

}  // namespace
}  // namespace interlock
