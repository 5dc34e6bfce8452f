// What a batch does when storage itself fails. Faults at every single step are in the tests of the
// fault-injecting VFS; here are the ones that a plain file system can be made to show.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "db/sqlite/group_writer.h"
#include "db/sqlite/writer_fixture.h"

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;

using GroupWriterFailureTest = WriterTest;

// Lets no file of this process grow beyond `bytes`: writes to the log then fail with a real error.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit now{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &now), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, signal_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*signal_)(int);
  rlimit before_{};
};

// Fails with SQLITE_FULL, on which SQLite rolls back the whole transaction.
Result<void> FillUp(db::Transaction& tx) {
  IL_TRY_VOID(tx->Run("PRAGMA max_page_count=8"));
  IL_TRY_VOID(tx->Run("INSERT INTO t(a) VALUES (zeroblob(1000000))"));
  return {};
}

TEST_F(GroupWriterFailureTest, ABatchThatSqliteRolledBackRunsAgainWithoutTheOneAtFault) {
  MakeWriter();
  int runs_of_a = 0;
  Submit("a", [&](db::Transaction& tx) -> Result<void> {
    ++runs_of_a;
    return Insert(1)(tx);
  });
  Submit("b", [](db::Transaction&) -> Result<void> { return Error(Errc::kGone, "own"); });
  Submit("c", FillUp);
  Submit("d", Insert(4));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok b:gone c:disk_full d:ok");
  EXPECT_EQ(Rows(), "1 4");
  EXPECT_EQ(runs_of_a, 2);
  EXPECT_EQ(writer_->stats().commits, 2u);
  EXPECT_EQ(writer_->stats().committed, 2u);
}

TEST_F(GroupWriterFailureTest, AWriteThatHidesTheRollbackIsNotBelieved) {
  MakeWriter();
  Submit("a", Insert(1));
  Submit("b", [](db::Transaction& tx) -> Result<void> {
    EXPECT_EQ(FillUp(tx).error().code(), Errc::kDiskFull);
    EXPECT_FALSE(Insert(2)(tx).ok());  // outside the transaction it would commit at once
    return {};
  });
  Submit("c", Insert(3));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok b:internal c:ok");
  EXPECT_EQ(Rows(), "1 3");
}

TEST_F(GroupWriterFailureTest, ADeferredConstraintFailsItsOwnWriteOnly) {
  temp_.Make("CREATE TABLE u(a REFERENCES t(a) DEFERRABLE INITIALLY DEFERRED)");
  MakeWriter();
  Submit("a", Insert(1));
  Submit("b", [](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run("INSERT INTO u VALUES (77)"));
    return {};
  });
  Submit("c", Insert(3));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok b:constraint_violated c:ok");
  EXPECT_EQ(Rows(), "1 3");
}

TEST_F(GroupWriterFailureTest, ABusyFileFailsTheWholeBatchUnrunAndTheNextOneSucceeds) {
  MakeWriter();
  auto other = temp_.Open();
  ASSERT_TRUE(other->BeginExclusive().ok());
  int runs = 0;
  const auto count = [&](db::Transaction& tx) {
    ++runs;
    return Insert(runs)(tx);
  };
  Submit("a", count);
  Submit("b", count);
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:storage_busy b:storage_busy");
  EXPECT_EQ(runs, 0);
  other->Rollback();
  Submit("c", count);
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "c:ok");
  EXPECT_EQ(writer_->stats().reopened, 0u);
}

TEST_F(GroupWriterFailureTest,
       AnIoErrorFromCommitLeavesTheOutcomeOpenAndReopensBeforeTheNextBatch) {
  int reopened = 0;
  int told_to_look = 0;
  std::string lent;  // whether a connection was, each time
  std::string seen;
  MakeWriter({.on_reopened =
                  [&](Connection& connection) {
                    ++reopened;
                    EXPECT_TRUE(answers_.empty()) << "the hook comes before the next batch";
                    EXPECT_EQ(connection.SchemaVersion().value(), 0);
                    seen = Rows();
                  },
              .on_committed =
                  [&](db::Connection* own) {
                    ++told_to_look;
                    lent += own == nullptr ? "no " : "yes ";
                  }});
  Submit("a", Insert(1));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok");
  EXPECT_EQ(told_to_look, 1);
  const auto log_size = fs::file_size(temp_.path().string() + "-wal");
  {
    const FileSizeLimit limit(log_size + 100);  // the next frame does not fit
    Submit("b", [](db::Transaction&) -> Result<void> { return Error(Errc::kGone, "own"); });
    Submit("c", Insert(2));
    Submit("d", Insert(3));
    writer_->StepOnce();
  }
  EXPECT_EQ(Answers(), "b:gone c:outcome_unknown d:outcome_unknown");
  EXPECT_EQ(reopened, 0);
  EXPECT_EQ(told_to_look, 2);  // something may be there
  Submit("e", Insert(4));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "e:ok");
  EXPECT_EQ(reopened, 1);
  EXPECT_EQ(told_to_look, 4);  // after the reopening, and after the commit
  EXPECT_EQ(lent, "yes no yes yes ");
  EXPECT_EQ(seen, "1");
  EXPECT_EQ(Rows(), "1 4");
  const GroupWriter::Stats stats = writer_->stats();
  EXPECT_EQ(stats.unknown, 2u);
  EXPECT_EQ(stats.failed, 1u);
  EXPECT_EQ(stats.committed, 2u);
  EXPECT_EQ(stats.reopened, 1u);
}

TEST_F(GroupWriterFailureTest, AConflictWithAnUnknownWriteIsJudgedAgainOnWhatIsThere) {
  MakeWriter();
  Submit("a", Insert(1));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok");
  auto limit =
      std::make_optional<FileSizeLimit>(fs::file_size(temp_.path().string() + "-wal") + 100);
  const GroupWriter::Reopen works = reopen_;
  reopen_ = [&] {
    limit.reset();  // the disk works again
    return works();
  };
  Submit("b", Insert(2));
  Submit("c", Insert(2));  // conflicts with b, which the COMMIT then loses
  Submit("d", Insert(1));  // conflicts with a, which is there
  Submit("e", Insert(3));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "b:outcome_unknown e:outcome_unknown c:ok d:constraint_violated");
  EXPECT_EQ(Rows(), "1 2");
  const GroupWriter::Stats stats = writer_->stats();
  EXPECT_EQ(stats.unknown, 2u);
  EXPECT_EQ(stats.failed, 1u);
  EXPECT_EQ(stats.committed, 2u);
}

TEST_F(GroupWriterFailureTest, AConflictWithAWriteThatFailsWhenRunAloneIsNoConflict) {
  MakeWriter();
  int runs_of_a = 0;
  Submit("a", [&](db::Transaction& tx) -> Result<void> {
    if (++runs_of_a == 2) return Error(Errc::kGone, "too late");
    return Insert(1)(tx);
  });
  Submit("b", Insert(1));
  Submit("c", FillUp);
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:gone b:ok c:disk_full");
  EXPECT_EQ(Rows(), "1");
}

TEST_F(GroupWriterFailureTest, AConflictThatRollsBackTheBatchIsJudgedAgain) {
  MakeWriter();
  int runs_of_a = 0;
  Submit("a", [&](db::Transaction& tx) -> Result<void> {
    if (++runs_of_a == 2) return Error(Errc::kGone, "too late");
    return Insert(1)(tx);
  });
  Submit("b", [](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run("INSERT OR ROLLBACK INTO t(a) VALUES (1)"));
    return {};
  });
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:gone b:ok");
  EXPECT_EQ(Rows(), "1");
}

TEST_F(GroupWriterFailureTest, WhileReopeningFailsBatchesFailWithItsErrorAndItIsTriedAgain) {
  MakeWriter();
  Submit("a", Insert(1));
  writer_->StepOnce();
  {
    const FileSizeLimit limit(fs::file_size(temp_.path().string() + "-wal") + 100);
    Submit("b", Insert(2));
    writer_->StepOnce();
  }
  const GroupWriter::Reopen works = reopen_;
  int tries = 0;
  reopen_ = [&]() -> Result<std::unique_ptr<Connection>> {
    ++tries;
    return Error(Errc::kCantOpen, "gone fishing");
  };
  int runs = 0;
  const auto count = [&](db::Transaction& tx) {
    ++runs;
    return Insert(3)(tx);
  };
  Submit("c", count);
  Submit("d", count);
  writer_->StepOnce();
  Submit("e", count);
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok b:outcome_unknown c:cannot_open d:cannot_open e:cannot_open");
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(runs, 0);
  reopen_ = works;
  Submit("f", count);
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "f:ok");
}

TEST_F(GroupWriterFailureTest, AnIoErrorInsideAWriteIsItsOwnAndTheConnectionIsReplaced) {
  MakeWriter();
  // Too large for the page cache, so that SQLite writes to the log before COMMIT.
  const auto spill = [](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run("PRAGMA cache_size=5"));
    IL_TRY_VOID(tx->Run("INSERT INTO t(a) VALUES (zeroblob(1000000))"));
    return {};
  };
  Submit("a", Insert(1));
  Submit("b", spill);
  Submit("c", Insert(3));
  {
    const FileSizeLimit limit(300'000);
    writer_->StepOnce();
  }
  EXPECT_EQ(Answers(), "a:ok b:disk_full c:ok");
  EXPECT_EQ(Rows(), "1 3");
  EXPECT_EQ(writer_->stats().reopened, 1u);
}

// The writer's connection is gone, and a read-only one that closes last cannot empty the log.
TEST_F(GroupWriterFailureTest, AfterAFailedLastBatchClosingStillLeavesOneFile) {
  MakeWriter();
  auto reader = temp_.Open(Access::kReadOnly);
  Submit("a", Insert(1));
  writer_->StepOnce();
  ASSERT_TRUE(reader->Run("SELECT * FROM t").ok());
  {
    const FileSizeLimit limit(fs::file_size(temp_.path().string() + "-wal") + 100);
    Submit("b", Insert(2));
    writer_->StepOnce();
  }
  EXPECT_EQ(Answers(), "a:ok b:outcome_unknown");
  reader.reset();
  const Result<void> closed = writer_->Close();
  EXPECT_TRUE(closed.ok());
  EXPECT_FALSE(fs::exists(temp_.path().string() + "-wal"));
  EXPECT_FALSE(fs::exists(temp_.path().string() + "-shm"));
  EXPECT_EQ(Rows(), "1");
}

TEST_F(GroupWriterFailureTest, ClosingTellsWhenTheLogCouldNotBeReachedAgain) {
  MakeWriter();
  Submit("a", Insert(1));
  writer_->StepOnce();
  {
    const FileSizeLimit limit(fs::file_size(temp_.path().string() + "-wal") + 100);
    Submit("b", Insert(2));
    writer_->StepOnce();
  }
  reopen_ = [] { return Error(Errc::kCantOpen, "gone fishing"); };
  EXPECT_EQ(writer_->Close().error().code(), Errc::kCantOpen);
}

TEST_F(GroupWriterFailureTest, AWriteThatHidesAnIoErrorCostsTheConnectionAllTheSame) {
  MakeWriter();
  Submit("a", [](db::Transaction& tx) -> Result<void> {
    EXPECT_TRUE(tx->Run("PRAGMA cache_size=5").ok());
    EXPECT_EQ(tx->Run("INSERT INTO t(a) VALUES (zeroblob(1000000))").error().code(),
              Errc::kDiskFull);
    return {};
  });
  {
    const FileSizeLimit limit(300'000);
    writer_->StepOnce();
  }
  Submit("b", Insert(2));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:internal b:ok");
  EXPECT_EQ(writer_->stats().reopened, 1u);
}

TEST_F(GroupWriterFailureTest, WhatThrowsOutsideAWriteFailsTheBatchAndTheWriterLivesOn) {
  MakeWriter();
  Submit("a", Insert(1));
  writer_->StepOnce();
  {
    const FileSizeLimit limit(fs::file_size(temp_.path().string() + "-wal") + 100);
    Submit("b", Insert(2));
    writer_->StepOnce();
  }
  const GroupWriter::Reopen works = reopen_;
  reopen_ = []() -> Result<std::unique_ptr<Connection>> { throw std::bad_alloc(); };
  Submit("c", Insert(3));
  Submit("d", Insert(4));
  writer_->StepOnce();
  reopen_ = works;
  Submit("e", Insert(5));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok b:outcome_unknown c:out_of_memory d:out_of_memory e:ok");
  EXPECT_EQ(Rows(), "1 5");
}

// Has no memory left the second time it is asked, which is right after a COMMIT.
class ClockWithoutMemory final : public Clock {
 public:
  Timestamp Now() override { return {}; }
  Duration Monotonic() override {
    if (++asked_ == 2) throw std::bad_alloc();
    return Duration(0);
  }
  TimerId Schedule(Duration /*delay*/, std::function<void()> /*fn*/) override { return 1; }
  bool Cancel(TimerId /*id*/) override { return false; }

 private:
  int asked_ = 0;
};

TEST_F(GroupWriterFailureTest, WhatThrowsOnceTheCommitHasBegunLeavesTheOutcomeOpen) {
  ClockWithoutMemory clock;
  writer_ = std::make_unique<GroupWriter>(
      OpenWriter(), [this] { return reopen_(); }, GroupWriter::Options{.drive = Drive::kByHand},
      clock);
  Submit("a", Insert(1));
  Submit("b", [](db::Transaction&) -> Result<void> { return Error(Errc::kGone, "own"); });
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:outcome_unknown b:gone");
  EXPECT_EQ(Rows(), "1");  // it was kept: "failed" would have been a lie
  Submit("c", Insert(2));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "c:ok");
}

TEST_F(GroupWriterFailureTest, AVanishedFileIsNotReplacedByAnEmptyOne) {
  MakeWriter();
  Submit("a", Insert(1));
  writer_->StepOnce();
  {
    const FileSizeLimit limit(fs::file_size(temp_.path().string() + "-wal") + 100);
    Submit("b", Insert(2));
    writer_->StepOnce();
  }
  fs::rename(temp_.path(), temp_.directory() / "elsewhere.db");
  Submit("c", Insert(3));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok b:outcome_unknown c:cannot_open");
  EXPECT_FALSE(fs::exists(temp_.path()));
}

}  // namespace
}  // namespace interlock::sqlite
