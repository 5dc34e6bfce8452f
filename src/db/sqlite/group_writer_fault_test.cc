// The promise of the write path, on a disk that fails at each call and loses power at each step:
// what was confirmed is there, what was denied is not, what is unknown is either; a write is there
// wholly or not at all, and so are the unknown ones of one COMMIT together; everybody is told, and
// the database is never damaged.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "db/sqlite/connection.h"
#include "db/sqlite/fault_vfs.h"
#include "db/sqlite/gathering_vfs.h"
#include "db/sqlite/group_writer.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

// The first kDense calls of an operation fail in turn, then every kStride-th. Writes are by far the
// most.
#if defined(__SANITIZE_THREAD__)
constexpr int kDense = 3;
constexpr int kSeeds = 1;
constexpr int kStride = 7;
constexpr int kWriteStride = 23;
constexpr int kThreadedRounds = 10;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kDense = 10;
constexpr int kSeeds = 1;
constexpr int kStride = 5;
constexpr int kWriteStride = 5;
constexpr int kThreadedRounds = 10;
#else
constexpr int kDense = 10;
constexpr int kSeeds = 6;
constexpr int kStride = 1;
constexpr int kWriteStride = 1;
constexpr int kThreadedRounds = 60;
#endif

constexpr int kBatches = 2;
constexpr int kWritesPerBatch = 4;
constexpr int kLogPagesMax = 16;  // each batch makes the log longer, and has it moved

// A write is two rows, so that half of one can be seen.
constexpr db::Sql kInsert = "INSERT INTO t(k, pair, filler) VALUES (?1, ?2, zeroblob(3000))";
constexpr db::Sql kRows = "SELECT count(*) FROM t WHERE pair = ?1";
constexpr db::Sql kIntegrity = "PRAGMA integrity_check";

enum class Told : std::uint8_t { kNothing, kRefused, kSuccess, kFailure, kUnknown };

const char* Name(Told told) {
  constexpr std::array kNames = {"nothing", "refused", "success", "failure", "unknown"};
  return kNames.at(static_cast<std::size_t>(told));
}

// Who else has the file open. With nobody, closing the last connection ends the log's shared
// memory, and the next open reads the log from the disk.
enum class Company : std::uint8_t { kAlone, kWithReader, kWithReadOnly };

// One server's life on a faulty disk: a database, a writer, and what each of its writes was told.
class Life {
 public:
  Life(std::uint64_t seed, Company company, int log_pages_max = kLogPagesMax)
      : vfs_(seed), company_(company), log_pages_max_(log_pages_max) {
    const auto connection = Open();
    IL_CHECK(connection.ok());
    IL_CHECK((*connection)
                 ->RunScript("CREATE TABLE t(k INTEGER PRIMARY KEY, pair INTEGER, filler BLOB);"
                             "CREATE INDEX t_by_pair ON t(pair)")
                 .ok());
    if (company_ == Company::kAlone) return;
    reader_ = company_ == Company::kWithReader ? Open().value() : OpenReadOnly().value();
    IL_CHECK(reader_->Run(kRows, 0).ok());
  }

  ~Life() {
    writer_.reset();
    reader_.reset();
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  FaultDisk& disk() { return vfs_.disk(); }
  GroupWriter& writer() { return *writer_; }

  Result<std::unique_ptr<Connection>> Open() const {
    OpenOptions options = Place().options();
    options.busy_timeout = std::chrono::milliseconds(0);
    options.upkeep = LogUpkeep::kByCallerAndClose;
    options.vfs = gathering_.name();
    IL_TRY(auto connection, Connection::Open(options));
    // A batch does not fit the cache: part of it is in the log before the COMMIT.
    IL_TRY_VOID(connection->RunScript("PRAGMA cache_size=6"));
    return connection;
  }

  // A real disk lets it move no log; this one has to be told.
  Result<std::unique_ptr<Connection>> OpenReadOnly() const {
    OpenOptions options = Place().options(Access::kReadOnly);
    options.upkeep = LogUpkeep::kByCaller;
    options.vfs = vfs_.name();
    return Connection::Open(options);
  }

  // False when the server does not even start.
  bool Start(Drive drive) {
    auto connection = Open();
    if (!connection) return false;
    writer_ = std::make_unique<GroupWriter>(
        std::move(*connection), [this] { return Open(); },
        GroupWriter::Options{.log_pages_max = log_pages_max_, .drive = drive}, clock_);
    return true;
  }

  // Submits a write; its number, for told().
  std::size_t Write() IL_EXCLUDES(mutex_) {
    std::size_t number = 0;
    {
      MutexLock lock(mutex_);
      number = told_.size();
      told_.push_back(Told::kNothing);
      commit_of_.push_back(0);
    }
    const auto id = static_cast<std::int64_t>(number);
    const auto accepted = writer_->Submit(
        [this, id](db::Transaction& tx) -> Result<void> {
          Begin(static_cast<std::size_t>(id));
          IL_TRY_VOID(tx->Run(kInsert, 2 * id, id));
          IL_TRY_VOID(tx->Run(kInsert, 2 * id + 1, id));
          if (id % kWritesPerBatch == 2) return Error(Errc::kConflict, "this one fails by itself");
          return {};
        },
        [this, number](const Result<void>& result) { Tell(number, result); });
    if (!accepted) {
      MutexLock lock(mutex_);
      told_[number] = Told::kRefused;
    }
    return number;
  }

  Told told(std::size_t number) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return told_[number];
  }

  int Count(Told told) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return static_cast<int>(std::ranges::count(told_, told));
  }

  // A few batches, stepped by hand, then the end of the server.
  void Run(int batches = kBatches) {
    if (!Start(Drive::kByHand)) return;
    for (int batch = 0; batch < batches; ++batch) {
      for (int i = 0; i < kWritesPerBatch; ++i) Write();
      while (writer_->StepOnce()) continue;
    }
  }

  void Stop() {
    reader_.reset();
    if (writer_) (void)writer_->Close();
    writer_.reset();
  }

  // After everything: the disk works again, and the file is looked at. Returns what is wrong.
  std::string Verify() IL_EXCLUDES(mutex_) {
    Stop();
    if (!disk().powered()) disk().PowerOn();
    disk().Heal();
    const auto connection = Open();
    if (!connection) return "cannot be opened: " + connection.error().message();
    const auto integrity =
        (*connection)->One(kIntegrity, [](const db::Row& row) { return row.String(0); });
    if (!integrity) return integrity.error().message();
    if (*integrity != "ok") return "integrity: " + integrity->value_or("?");
    MutexLock lock(mutex_);
    std::map<int, std::int64_t> unknown_rows;  // by COMMIT, of the first unknown write in it
    for (std::size_t number = 0; number < told_.size(); ++number) {
      const auto rows = (*connection)
                            ->One(
                                kRows, [](const db::Row& row) { return row.Int(0); },
                                static_cast<std::int64_t>(number));
      if (!rows) return rows.error().message();
      const std::int64_t found = rows->value();
      const Told told = told_[number];
      const bool good = told == Told::kSuccess   ? found == 2
                        : told == Told::kUnknown ? found == 2 || found == 0
                        : told == Told::kNothing ? false
                                                 : found == 0;
      if (!good) {
        return "write " + std::to_string(number) + " was told " + Name(told) + " and has " +
               std::to_string(found) + " rows";
      }
      if (told != Told::kUnknown) continue;
      const auto [first, inserted] = unknown_rows.try_emplace(commit_of_[number], found);
      if (first->second != found) return "half a batch, seen at write " + std::to_string(number);
    }
    return "";
  }

 private:
  // Only the file's name and mode; its content is on the disk above.
  static const testing::TempDb& Place() {
    static const testing::TempDb kPlace;
    return kPlace;
  }

  // Numbers the COMMITs. The writes of one run without an answer in between; after its COMMIT the
  // answers come.
  void Begin(std::size_t number) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (std::exchange(answered_, false)) ++commit_;
    commit_of_[number] = commit_;
  }

  void Tell(std::size_t number, const Result<void>& result) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    IL_CHECK(told_[number] == Told::kNothing, "told twice");
    answered_ = true;
    told_[number] = result.ok()                                      ? Told::kSuccess
                    : result.error().code() == Errc::kOutcomeUnknown ? Told::kUnknown
                                                                     : Told::kFailure;
  }

  FaultVfs vfs_;
  const GatheringVfs gathering_{vfs_.name()};  // as the server has it
  const Company company_;
  const int log_pages_max_;
  SystemClock clock_;
  Mutex mutex_;
  std::vector<Told> told_ IL_GUARDED_BY(mutex_);
  std::vector<int> commit_of_ IL_GUARDED_BY(mutex_);  // of each write: its last one
  int commit_ IL_GUARDED_BY(mutex_) = 0;
  bool answered_ IL_GUARDED_BY(mutex_) = false;  // since the last write ran
  std::unique_ptr<Connection> reader_;
  std::unique_ptr<GroupWriter> writer_;
};

// What happens to the machine after the story, before somebody looks.
enum class End : std::uint8_t { kClosed, kCutSynced, kCutTorn };
constexpr std::array kEnds = {End::kClosed, End::kCutSynced, End::kCutTorn};

void Finish(Life& life, End end) {
  if (!life.disk().powered()) return;
  if (end == End::kClosed) life.Stop();
  if (end == End::kCutSynced) life.disk().CutPower(Survival::kNothing);
  if (end == End::kCutTorn) life.disk().CutPower(Survival::kSome);
}

struct FaultKind {
  DiskOp op;
  int code;  // 0 = the usual one
};

class GroupWriterFaultTest : public ::testing::TestWithParam<FaultKind> {};

TEST_P(GroupWriterFaultTest, AFaultAtAnyCallLeavesTheTruth) {
  const FaultKind kind = GetParam();
  int not_successful = 0;
  for (const Company company : {Company::kAlone, Company::kWithReader}) {
    bool fired = true;
    const int stride = kind.op == DiskOp::kWrite ? kWriteStride : kStride;
    for (int n = 1; fired; n += n < kDense ? 1 : stride) {
      ASSERT_LT(n, 2000);
      fired = false;
      for (const Effect effect : {Effect::kNothing, Effect::kPart, Effect::kWhole}) {
        for (const End end : kEnds) {
          Life life(testing::TestSeed() + static_cast<std::uint64_t>(n), company);
          life.disk().Inject({.op = kind.op, .nth = n, .code = kind.code, .effect = effect});
          life.Run();
          const bool now = life.disk().fired() > 0;
          fired = fired || now;
          const int domain_failures = kBatches;
          if (!now) {
            EXPECT_EQ(life.Count(Told::kSuccess), kBatches * (kWritesPerBatch - 1));
            EXPECT_GT(life.writer().stats().log_moves, 0U);
          }
          not_successful += life.Count(Told::kUnknown) +
                            std::max(0, life.Count(Told::kFailure) - domain_failures);
          Finish(life, end);
          const std::string wrong = life.Verify();
          ASSERT_EQ(wrong, "") << DiskOpName(kind.op) << " call " << n << ", effect "
                               << static_cast<int>(effect) << ", company "
                               << static_cast<int>(company) << ", end " << static_cast<int>(end)
                               << ", IL_SEED=" << testing::TestSeed();
        }
      }
    }
  }
  const bool in_every_commit = kind.op == DiskOp::kWrite || kind.op == DiskOp::kSync;
  if (in_every_commit) {
    EXPECT_GT(not_successful, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, GroupWriterFaultTest,
    ::testing::Values(FaultKind{DiskOp::kOpen, 0}, FaultKind{DiskOp::kRead, 0},
                      FaultKind{DiskOp::kWrite, 0}, FaultKind{DiskOp::kWrite, SQLITE_FULL},
                      FaultKind{DiskOp::kTruncate, 0}, FaultKind{DiskOp::kSync, 0},
                      FaultKind{DiskOp::kDelete, 0}, FaultKind{DiskOp::kLock, 0},
                      FaultKind{DiskOp::kLock, SQLITE_IOERR_LOCK}, FaultKind{DiskOp::kShmMap, 0},
                      FaultKind{DiskOp::kShmLock, 0},
                      FaultKind{DiskOp::kShmLock, SQLITE_IOERR_SHMLOCK}),
    [](const auto& instance) {
      std::string name = DiskOpName(instance.param.op);
      std::erase(name, '-');
      return name + std::to_string(instance.param.code);
    });

TEST(GroupWriterPowerTest, APowerCutAtAnyStepLeavesTheTruth) {
  int unknown = 0;
  for (const Company company : {Company::kAlone, Company::kWithReader}) {
    for (const Survival survival : {Survival::kNothing, Survival::kSome, Survival::kAll}) {
      const int seeds = survival == Survival::kSome ? kSeeds : 1;
      for (int seed = 0; seed < seeds; ++seed) {
        bool cut = true;
        for (std::int64_t n = 1; cut; n += kStride) {
          Life life(testing::TestSeed() + static_cast<std::uint64_t>(seed), company);
          life.disk().CutPowerAtStep(n, survival);
          life.Run();
          cut = !life.disk().powered();
          unknown += life.Count(Told::kUnknown);
          if (!cut) {
            EXPECT_GT(life.writer().stats().log_moves, 0U);
          }
          const std::string wrong = life.Verify();
          ASSERT_EQ(wrong, "") << "step " << n << ", survival " << static_cast<int>(survival)
                               << ", IL_SEED="
                               << testing::TestSeed() + static_cast<std::uint64_t>(seed);
        }
      }
    }
  }
  EXPECT_GT(unknown, 0);
}

struct FailedSyncs {
  bool fired = false;  // there was such a sync
  int cut_after = 0;   // how often the power went after it
};

// Syncs fail, so that pages can be read that are not on the disk, and the power goes at any step of
// what is done about it, while the log holds what was committed before. Checks that all is true
// afterwards.
FailedSyncs FailSyncThenCutPower(Company company, const Fault& fault) {
  FailedSyncs failed;
  bool cut = true;
  for (std::int64_t n = 1; cut; n += kStride) {
    Life life(testing::TestSeed() + static_cast<std::uint64_t>(n), company, /*log_pages_max=*/1000);
    life.disk().Inject(fault);
    life.disk().CutPowerAtStep(n, Survival::kSome);
    life.Run(kBatches + 1);
    cut = !life.disk().powered();
    failed.fired = life.disk().fired() > 0;
    failed.cut_after += cut && failed.fired ? 1 : 0;
    const std::string wrong = life.Verify();
    EXPECT_EQ(wrong, "") << fault.calls << " syncs from the " << fault.nth << "th, effect "
                         << static_cast<int>(fault.effect) << ", step " << n << ", company "
                         << static_cast<int>(company) << ", IL_SEED=" << testing::TestSeed();
    if (!wrong.empty()) break;
  }
  return failed;
}

TEST(GroupWriterPowerTest, APowerCutAfterFailedSyncsLeavesTheTruth) {
  int cut_after = 0;
  for (const Company company : {Company::kAlone, Company::kWithReader}) {
    for (const Effect effect : {Effect::kNothing, Effect::kPart}) {
      for (int calls = 1; calls <= 3; ++calls) {
        int nth = 0;
        FailedSyncs failed{.fired = true};
        while (failed.fired && !HasFailure()) {
          ++nth;
          failed = FailSyncThenCutPower(
              company, {.op = DiskOp::kSync, .nth = nth, .calls = calls, .effect = effect});
          cut_after += failed.cut_after;
        }
        EXPECT_GT(nth, 3);
      }
    }
  }
  EXPECT_GT(cut_after, 20);
}

// The sync of the last batch fails, and the power goes while the server stops. Its readers cannot
// write: they leave the log, and with the last of them its index ends.
TEST(GroupWriterPowerTest, APowerCutWhileClosingAfterAFailedSyncLeavesTheTruth) {
  int cuts = 0;
  for (int round = 0; round < 3 * kSeeds; ++round) {
    bool cut = true;
    for (std::int64_t step = 1; cut; ++step) {
      const std::uint64_t seed = testing::TestSeed() + static_cast<std::uint64_t>(1000 * round) +
                                 static_cast<std::uint64_t>(step);
      Life life(seed, Company::kWithReadOnly, 0);
      life.Run(5);
      // A log that begins anew is synced twice: its head, then the pages.
      life.disk().Inject({.op = DiskOp::kSync, .nth = 1 + round % 2, .effect = Effect::kNothing});
      life.Write();
      while (life.writer().StepOnce()) continue;
      ASSERT_EQ(life.Count(Told::kUnknown), 1);
      life.disk().CutPowerAtStep(step, Survival::kSome);
      life.Stop();
      cut = !life.disk().powered();
      cuts += cut ? 1 : 0;
      ASSERT_EQ(life.Verify(), "") << round << ' ' << step << ", IL_SEED=" << testing::TestSeed();
    }
  }
  EXPECT_GT(cuts, 5);
}

// The power goes again while the first cut is being repaired.
TEST(GroupWriterPowerTest, ASecondPowerCutDuringRecoveryLeavesTheTruth) {
  for (std::int64_t first = 5; first < 60; first += 7) {
    bool cut = true;
    for (std::int64_t second = 1; cut; ++second) {
      Life life(testing::TestSeed(), Company::kAlone);
      life.disk().CutPowerAtStep(first, Survival::kSome);
      life.Run();
      life.Stop();
      if (life.disk().powered()) break;  // the story was shorter
      life.disk().PowerOn();
      life.disk().CutPowerAtStep(second, Survival::kSome);
      if (const auto connection = life.Open(); connection.ok()) {
        (void)(*connection)->Checkpoint();
      }
      cut = !life.disk().powered();
      ASSERT_EQ(life.Verify(), "") << first << ' ' << second << ", IL_SEED=" << testing::TestSeed();
    }
  }
}

TEST(GroupWriterFullDiskTest, AFullDiskLeavesTheTruthAndIsLeftBehindOnceThereIsSpace) {
  int starved = 0;
  for (const Company company : {Company::kAlone, Company::kWithReader}) {
    bool short_of_space = true;
    for (std::int64_t space = 0; short_of_space; space += 1700) {
      SCOPED_TRACE(space);
      Life life(testing::TestSeed(), company);
      ASSERT_TRUE(life.Start(Drive::kByHand));
      life.disk().LimitSpace(space);
      for (int i = 0; i < kBatches * kWritesPerBatch; ++i) {
        life.Write();
        if (i % kWritesPerBatch == kWritesPerBatch - 1) life.writer().StepOnce();
      }
      short_of_space = life.disk().fired() > 0;
      if (short_of_space) ++starved;
      life.disk().LimitSpace(std::nullopt);
      for (int i = 0; i < kWritesPerBatch; ++i) {
        const std::size_t number = life.Write();
        life.writer().StepOnce();
        EXPECT_EQ(life.told(number), i == 2 ? Told::kFailure : Told::kSuccess)
            << "the same writer goes on";
      }
      ASSERT_EQ(life.Verify(), "") << "IL_SEED=" << testing::TestSeed();
    }
  }
  EXPECT_GE(starved, 10);
}

TEST(GroupWriterReopenTest, ReopeningMayFailAFewTimesAndThenWorks) {
  Life life(testing::TestSeed(), Company::kAlone);
  ASSERT_TRUE(life.Start(Drive::kByHand));
  const auto write = [&life] {
    const std::size_t number = life.Write();
    life.writer().StepOnce();
    return life.told(number);
  };
  ASSERT_EQ(write(), Told::kSuccess);
  life.disk().Inject({.op = DiskOp::kSync});
  ASSERT_EQ(write(), Told::kUnknown);
  life.disk().Inject({.op = DiskOp::kOpen, .calls = 3});
  EXPECT_EQ(write(), Told::kFailure);  // by itself
  EXPECT_EQ(write(), Told::kFailure);
  EXPECT_EQ(write(), Told::kFailure);
  EXPECT_EQ(write(), Told::kSuccess);
  EXPECT_EQ(life.disk().fired(), 4);
  EXPECT_GE(life.writer().stats().reopened, 1u);
  EXPECT_EQ(life.Verify(), "");
}

// Threads that submit while the disk fails at random; all of it must end, and end truly.
TEST(GroupWriterThreadedFaultTest, RandomFaultsUnderLoadLeaveTheTruth) {
  std::mt19937_64 random(testing::TestSeed());
  int fired = 0;
  for (int round = 0; round < kThreadedRounds; ++round) {
    Life life(random(), Company::kAlone);
    ASSERT_TRUE(life.Start(Drive::kThreads));
    for (int i = 0; i < 3; ++i) {
      life.disk().Inject({.op = kDiskOps.at(random() % kDiskOps.size()),
                          .nth = static_cast<std::int64_t>(1 + random() % 60),
                          .calls = static_cast<std::int64_t>(1 + random() % 3),
                          .effect = static_cast<Effect>(random() % 3)});
    }
    if (round % 3 == 0) {
      life.disk().CutPowerAtStep(static_cast<std::int64_t>(1 + random() % 60), Survival::kSome);
    }
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&life] {
        for (int i = 0; i < 8; ++i) life.Write();
      });
    }
    for (std::thread& thread : threads) thread.join();
    (void)life.writer().Close();
    fired += static_cast<int>(life.disk().fired());
    ASSERT_EQ(life.Verify(), "") << "round " << round << ", IL_SEED=" << testing::TestSeed();
  }
  EXPECT_GT(fired, kThreadedRounds / 4);
}

}  // namespace
}  // namespace interlock::sqlite
