// What `ic` answers is true on a disk that fails or loses power at any change of it: what was
// acknowledged is there, what was refused is not, the rest is there whole or not at all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "kernel/database.h"
#include "kernel/run_agents.h"
#include "kernel/run_artifacts.h"
#include "kernel/run_change.h"
#include "kernel/run_progress.h"
#include "kernel/schema.h"
#include "kernel/sentinel.h"
#include "kernel/state.h"
#include "testing/fake_clock.h"
#include "testing/fault_story.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

using sqlite::DiskOp;
using sqlite::Survival;

constexpr std::int64_t kNow = 1000;
constexpr Origin kOrigin = {.now = kNow};
constexpr StateId kConfig = {"config", "s"};
constexpr StateId kCount = {"count", "s"};

using Answer = Result<std::string>;
using Step = Answer (*)(Transaction& tx);

Answer Set(Transaction& tx, const StateId& id, const StateWrite& write) {
  IL_TRY(const auto version, SetState(tx, id, write, kNow));
  if (!version) return Error(Errc::kConflict, "another version");
  return "version " + std::to_string(*version);
}
Answer Increment(Transaction& tx, std::int64_t by) {
  IL_TRY(const Counter counter, IncrementState(tx, kCount, {.by = by}, kNow));
  return std::to_string(counter.value);
}
Answer Check(Transaction& tx, std::string_view name, std::int64_t interval_s) {
  const SentinelClaim claim = {{name, "s"}, interval_s};
  IL_TRY(const ClaimedSentinels claimed, ClaimSentinels(tx, {&claim, 1}, kNow));
  if (claimed.prune_error) return *claimed.prune_error;  // the disk's doing
  return claimed.verdicts.front() == SentinelVerdict::kAllowed ? "allowed" : "throttled";
}
Answer Create(Transaction& tx, std::string id) {
  NewRun wanted = {.run = {.id = std::move(id), .project_dir = "/p", .goal = "g"}};
  wanted.run.phases = R"(["a","b","c","d"])";
  wanted.run.bead_id = "bead";
  IL_TRY(const CreatedRun created, CreateRun(tx, wanted, kOrigin));
  return created.run.id + " " + created.run.phase;
}
Answer Advance(Transaction& tx) {
  IL_TRY(const AdvanceResult advanced, AdvanceRun(tx, "r", std::nullopt, kOrigin));
  return advanced.event.from_phase + "-" + advanced.event.to_phase;
}

// Each is one call of `ic`.
constexpr std::array<Step, 20> kSteps = {
    [](Transaction& tx) { return Set(tx, kConfig, {.payload = R"({"a":1})"}); },
    [](Transaction& tx) { return Increment(tx, 5); },
    [](Transaction& tx) { return Set(tx, kConfig, {.payload = "2", .if_version = 1}); },
    [](Transaction& tx) { return Set(tx, kConfig, {.payload = "3", .if_version = 1}); },  // refused
    [](Transaction& tx) {  // some pages
      return Set(tx, {"large", "s"}, {.payload = '"' + std::string(15'000, 'x') + '"'});
    },
    [](Transaction& tx) { return Check(tx, "once", 0); },
    [](Transaction& tx) { return Check(tx, "once", 0); },  // throttled
    [](Transaction& tx) { return Check(tx, "often", 60); },
    [](Transaction& tx) { return Create(tx, "r"); },
    [](Transaction& tx) { return Create(tx, "r2"); },  // refused: the bead is taken
    [](Transaction& tx) { return Advance(tx); },
    [](Transaction& tx) -> Answer {
      IL_TRY_VOID(SkipPhase(tx, "r", "c", "why", kOrigin));
      return "skipped";
    },
    [](Transaction& tx) -> Answer {
      IL_TRY_VOID(AddAgent(tx, {.id = "agent", .run_id = "r", .created_at = kNow}));
      IL_TRY_VOID(AddArtifact(tx, {.id = "file", .run_id = "r", .phase = "b", .path = "x"}));
      return "added";
    },
    [](Transaction& tx) { return Advance(tx); },  // to its end
    [](Transaction& tx) -> Answer {
      IL_TRY(const RollbackResult back, RollBackRun(tx, "r", "a", "why", kOrigin));
      return std::to_string(back.marked_artifacts);
    },
    [](Transaction& tx) -> Answer {
      IL_TRY(const bool deleted, DeleteState(tx, kConfig, kNow));
      return deleted ? "deleted" : "not found";
    },
    [](Transaction& tx) {
      return Set(tx, {"brief", "s"}, {.payload = "1", .ttl_s = 10, .if_version = 0});
    },
    [](Transaction& tx) { return Increment(tx, -2); },
    [](Transaction& tx) -> Answer {
      IL_TRY(const std::int64_t pruned, PruneState(tx, kNow + 60));
      return std::to_string(pruned);
    },
    [](Transaction& tx) -> Answer {
      IL_TRY_VOID(EndRun(tx, "r", kRunCancelled, "why", kOrigin));
      return "cancelled";
    },
};

// Who else has the file open. With nobody, the next process finds the log without its index.
enum class Company : std::uint8_t { kAlone, kWithReader };

class KernelLife final : public testing::FaultLife {
 public:
  KernelLife(std::uint64_t seed, Company company, std::string_view synchronous)
      : FaultLife(seed), company_(company), synchronous_(synchronous) {}
  ~KernelLife() override { reader_.reset(); }

  void Make() override { IL_CHECK(Database::Init(options(), KernelSchema(), clock_).ok()); }
  Answer Do(std::size_t step) override {
    if (company_ == Company::kWithReader && !reader_) {
      IL_TRY(reader_, Open(Database::OpenMode::kRead));
    }
    IL_TRY(Database database, Open(Database::OpenMode::kWrite));
    if (!synchronous_.empty()) {
      IL_TRY_VOID(database.sqlite().RunScript("PRAGMA synchronous=" + std::string(synchronous_)));
    }
    Answer answer = database.Write([step](Transaction& tx) { return kSteps.at(step)(tx); });
    // The same checkpoint as CheckpointIfLarge(), only earlier. It syncs, so it must not run where
    // the test switched syncs off.
    if (synchronous_.empty()) static_cast<void>(database.sqlite().TidyLog(/*pages=*/6).ok());
    if (!answer && answer.error().code() == Errc::kConflict) return "refused";
    return answer;
  }
  void End() override { reader_.reset(); }
  std::filesystem::path database() const override { return place().path(); }

 private:
  // Only the file's name and mode; its content is on the disk that fails.
  static const testing::TempDb& place() {
    static const testing::TempDb kPlace;
    return kPlace;
  }
  Database::Options options() {
    return {.path = database(), .busy_timeout = std::chrono::milliseconds(0), .vfs = vfs().name()};
  }
  Result<Database> Open(Database::OpenMode access) {
    return Database::Open(options(), access, KernelSchema(), clock_);
  }

  const Company company_;
  const std::string_view synchronous_;  // "" = as `ic` has it
  testing::FakeClock clock_;
  std::optional<Database> reader_;
};

testing::FaultStory Story(Company company, std::string_view synchronous = "") {
  return {kSteps.size(), testing::FaultStory::Lives::kShort, [=](std::uint64_t seed) {
            return std::make_unique<KernelLife>(seed, company, synchronous);
          }};
}

std::string First(const std::vector<std::string>& lies) { return lies.empty() ? "" : lies.front(); }

TEST(DatabaseFaultTest, APowerCutAtAnyChangeOfTheDiskLeavesTheTruth) {
  testing::FaultStory story = Story(Company::kAlone);
  for (const Survival survival : {Survival::kNothing, Survival::kSome}) {
    EXPECT_EQ(First(story.CutPower(survival)), "") << static_cast<int>(survival);
  }
  EXPECT_EQ(First(story.CutPower(Survival::kAll, 3)), "");
  EXPECT_GT(story.counts().happened, 0);
  EXPECT_GT(story.counts().unknown, story.counts().happened);
}

TEST(DatabaseFaultTest, WithOthersWhoHaveTheFileOpenItIsTheSame) {
  testing::FaultStory story = Story(Company::kWithReader);
  EXPECT_EQ(First(story.CutPower(Survival::kSome, 3)), "");
  EXPECT_EQ(First(story.Fail(DiskOp::kSync)), "");
  EXPECT_GT(story.counts().unknown, 0);
}

TEST(DatabaseFaultTest, AWriteOrASyncThatFailsLeavesTheTruth) {
  testing::FaultStory story = Story(Company::kAlone);
  for (const DiskOp op : {DiskOp::kWrite, DiskOp::kSync, DiskOp::kTruncate}) {
    EXPECT_EQ(First(story.Fail(op)), "") << sqlite::DiskOpName(op);
  }
  EXPECT_GT(story.counts().unknown, 0);
}

// Pages whose sync failed can be read, but no later sync brings them to the disk. What the next
// process builds upon them would go with them.
TEST(DatabaseFaultTest, WhatIsAnsweredAfterASyncThatFailedSurvivesAPowerCut) {
  constexpr std::size_t kSetConfig = 0;
  constexpr std::size_t kIncrement = 1;
  constexpr std::size_t kClaimOnce = 5;
  int failed = 0;
  for (const Company company : {Company::kAlone, Company::kWithReader}) {
    for (const auto effect :
         {sqlite::Effect::kNothing, sqlite::Effect::kPart, sqlite::Effect::kWhole}) {
      // The setting of `ic`, but without CheckpointIfLarge().
      KernelLife life(testing::TestSeed(), company, "FULL");
      life.Make();
      ASSERT_TRUE(life.Do(kSetConfig).ok());
      life.disk().Inject({.op = DiskOp::kSync, .effect = effect});
      if (!life.Do(kIncrement)) ++failed;
      life.End();
      ASSERT_TRUE(life.Do(kClaimOnce).ok());
      life.disk().CutPower(Survival::kNothing);
      life.End();
      life.disk().PowerOn();
      EXPECT_THAT(testing::ContentOf(life.database(), life.vfs()), ::testing::HasSubstr("once|s|"));
    }
  }
  EXPECT_EQ(failed, 6);
}

// A disk that went on failing: the call whose sync failed could not move the log either. When a
// later one moves it, a power cut must not leave half of it.
TEST(DatabaseFaultTest, APowerCutWhileALogWithFailedSyncsIsMovedDamagesNothing) {
  constexpr std::size_t kSetConfig = 0;
  constexpr std::size_t kIncrement = 1;
  constexpr std::size_t kSetLarge = 4;
  int cuts = 0;
  bool cut = true;
  for (std::int64_t step = 1; cut; ++step) {
    KernelLife life(testing::TestSeed() + static_cast<std::uint64_t>(step), Company::kAlone, "");
    life.Make();
    ASSERT_TRUE(life.Do(kSetConfig).ok());
    life.disk().Inject({.op = DiskOp::kSync, .calls = 5, .effect = sqlite::Effect::kNothing});
    ASSERT_FALSE(life.Do(kIncrement).ok());
    life.disk().Heal();
    life.disk().CutPowerAtStep(step, Survival::kSome);
    static_cast<void>(life.Do(kSetLarge));
    cut = !life.disk().powered();
    cuts += cut ? 1 : 0;
    if (cut) life.disk().PowerOn();
    EXPECT_THAT(testing::ContentOf(life.database(), life.vfs()), ::testing::HasSubstr("config|s|"))
        << step << ", IL_SEED=" << testing::TestSeed();
  }
  EXPECT_GT(cuts, 10);
}

// The tests above would see a program that acknowledges what it has not synced.
TEST(DatabaseFaultTest, AProgramThatDoesNotSyncIsFoundOut) {
  for (const std::string_view synchronous : {"OFF", "NORMAL"}) {
    EXPECT_GT(Story(Company::kAlone, synchronous).CutPower(Survival::kNothing, 20).size(),
              kSteps.size() / 2)
        << synchronous;
  }
}

}  // namespace
}  // namespace interlock::kernel
