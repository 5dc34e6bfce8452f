#include "db/sqlite/read_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

constexpr db::Sql kCount = "SELECT count(*) FROM t";
constexpr db::Sql kInsert = "INSERT INTO t(a) VALUES (?1)";

Result<std::int64_t> Count(db::Connection& connection) {
  IL_TRY(const auto count, connection.One(kCount, [](const db::Row& row) { return row.Int(0); }));
  return count.value();
}

class ReadPoolTest : public ::testing::Test {
 protected:
  ReadPoolTest() { temp_.Make("CREATE TABLE t(a)"); }

  void MakePool(std::size_t readers, ReadPool::Options options) {
    std::vector<std::unique_ptr<Connection>> connections(readers);
    for (auto& connection : connections) connection = temp_.Open(Access::kReadOnly);
    pool_ =
        std::make_unique<ReadPool>(std::move(connections), [this] { return reopen_(); }, options);
  }

  // Submits a read that succeeds or fails as `read` says; its result comes by the future.
  std::future<Result<void>> Submit(ReadPool::Read read) {
    auto told = std::make_shared<std::promise<Result<void>>>();
    const auto ticket = pool_->Submit(
        std::move(read), [told](Result<void> result) { told->set_value(std::move(result)); });
    EXPECT_TRUE(ticket.ok());
    return told->get_future();
  }

  testing::TempDb temp_;
  ReadPool::Open reopen_ = [this] { return Connection::Open(temp_.options(Access::kReadOnly)); };
  std::unique_ptr<ReadPool> pool_;
};

TEST_F(ReadPoolTest, AReadBegunBeforeAWriteEndsSeesTheOldSnapshotAndIsNotDelayed) {
  MakePool(2, {});
  auto writer = temp_.Open();
  ASSERT_TRUE(writer->Run(kInsert, 1).ok());
  ASSERT_TRUE(writer->BeginExclusive().ok());  // a long write, not ended yet
  ASSERT_TRUE(writer->Run(kInsert, 2).ok());

  std::promise<void> looked;
  std::promise<void> committed;
  std::future<Result<void>> slow = Submit([&](db::Connection& connection) -> Result<void> {
    EXPECT_EQ(Count(connection).value(), 1);
    looked.set_value();
    committed.get_future().wait();
    EXPECT_EQ(Count(connection).value(), 1);  // one snapshot to the end, whatever was committed
    return {};
  });
  // Begun and ended while the write is open: it would hang here if it waited for the writer.
  EXPECT_TRUE(Submit([](db::Connection& connection) -> Result<void> {
                EXPECT_EQ(Count(connection).value(), 1);
                return {};
              })
                  .get()
                  .ok());
  looked.get_future().wait();
  ASSERT_TRUE(writer->Commit().ok());  // nor does the slow reader hold up the writer
  EXPECT_TRUE(Submit([](db::Connection& connection) -> Result<void> {
                EXPECT_EQ(Count(connection).value(), 2);
                return {};
              })
                  .get()
                  .ok());
  committed.set_value();
  EXPECT_TRUE(slow.get().ok());
}

// A read that was submitted after a write had been answered must see it, although the reader is in
// the midst of a snapshot that others share.
TEST_F(ReadPoolTest, OnlyReadsThatWaitedAlreadyShareASnapshot) {
  MakePool(1, {});
  auto writer = temp_.Open();
  const auto count_into = [](std::int64_t& counted) {
    return [&counted](db::Connection& connection) -> Result<void> {
      IL_TRY(counted, Count(connection));
      return {};
    };
  };
  std::promise<void> begun;
  std::promise<void> queued;
  std::future<Result<void>> busy = Submit([&](db::Connection&) -> Result<void> {
    begun.set_value();
    queued.get_future().wait();
    return {};
  });
  begun.get_future().wait();  // the next snapshot is for the two reads that are queued from here on
  std::int64_t first_saw = -1;
  std::int64_t waiting_saw = -1;
  std::int64_t later_saw = -1;
  std::future<Result<void>> later;
  std::future<Result<void>> first = Submit([&](db::Connection& connection) -> Result<void> {
    IL_TRY(first_saw, Count(connection));
    IL_TRY_VOID(writer->Run(kInsert, 1));
    later = Submit(count_into(later_saw));
    return {};
  });
  std::future<Result<void>> waiting = Submit(count_into(waiting_saw));
  queued.set_value();
  for (auto* read : {&busy, &first, &waiting, &later}) ASSERT_TRUE(read->get().ok());
  EXPECT_EQ(first_saw, 0);
  EXPECT_EQ(waiting_saw, 0) << "it shares the snapshot of the first one";
  EXPECT_EQ(later_saw, 1) << "committed before it was submitted";
}

// However pushing, sleeping and the watch of a sleeping thread fall together: a lost wake hangs
// here.
TEST_F(ReadPoolTest, AReadNeverWaitsForTheEndOfALongOne) {
  MakePool(2, {});
  for (int i = 0; i < 1000; ++i) {
    std::promise<void> end;
    std::future<Result<void>> slow = Submit([&end](db::Connection&) -> Result<void> {
      end.get_future().wait();
      return {};
    });
    ASSERT_TRUE(Submit([](db::Connection&) { return Result<void>(); }).get().ok());
    end.set_value();
    ASSERT_TRUE(slow.get().ok());
  }
}

TEST_F(ReadPoolTest, ReadsRunBesideEachOther) {
  MakePool(3, {});
  std::promise<void> all;
  std::shared_future<void> met = all.get_future().share();
  std::atomic<int> arrived = 0;
  std::vector<std::future<Result<void>>> reads;
  reads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    reads.push_back(Submit([&, met](db::Connection&) -> Result<void> {
      if (++arrived == 3) all.set_value();
      met.wait();  // for ever, if they ran one after the other
      return {};
    }));
  }
  for (auto& read : reads) EXPECT_TRUE(read.get().ok());
}

TEST_F(ReadPoolTest, FailuresAndExceptionsAreTheReadsOwn) {
  MakePool(1, {.drive = Drive::kByHand});
  auto failed = Submit([](db::Connection&) -> Result<void> { return Error(Errc::kNotFound, "x"); });
  auto thrown = Submit([](db::Connection& connection) -> Result<void> {
    IL_TRY_VOID(
        connection.ForEach("SELECT 1", [](const db::Row&) { throw std::logic_error("y"); }));
    return {};
  });
  auto wrote = Submit([](db::Connection& connection) -> Result<void> {
    IL_TRY_VOID(connection.Run(kInsert, 1));
    return {};
  });
  auto fine = Submit([](db::Connection& connection) -> Result<void> {
    EXPECT_EQ(Count(connection).value(), 0);
    return {};
  });
  while (pool_->StepOnce()) {
  }
  EXPECT_EQ(failed.get().error().code(), Errc::kNotFound);
  EXPECT_EQ(thrown.get().error().code(), Errc::kInternal);
  EXPECT_EQ(wrote.get().error().code(), Errc::kReadOnly);
  EXPECT_TRUE(fine.get().ok());
}

TEST_F(ReadPoolTest, TheSnapshotHasEndedWhenTheOwnerHears) {
  MakePool(1, {.drive = Drive::kByHand});
  auto writer = temp_.Open();
  ASSERT_TRUE(writer->Run(kInsert, 1).ok());
  bool emptied = false;
  ASSERT_TRUE(pool_
                  ->Submit(
                      [](db::Connection& connection) -> Result<void> {
                        EXPECT_EQ(Count(connection).value(), 1);
                        return {};
                      },
                      [&](const Result<void>&) { emptied = writer->Checkpoint().ok(); })
                  .ok());
  pool_->StepOnce();
  EXPECT_TRUE(emptied);  // a snapshot that was still open would have kept the log
}

TEST_F(ReadPoolTest, TheQueueIsBoundedAndQueuedReadsCanBeCancelled) {
  MakePool(1, {.queue_max = 2, .drive = Drive::kByHand});
  const auto never = [](db::Connection&) -> Result<void> {
    ADD_FAILURE();
    return {};
  };
  Errc told = Errc::kInternal;
  const auto first =
      pool_->Submit(never, [&](const Result<void>& result) { told = result.error().code(); });
  auto second = Submit([](db::Connection&) -> Result<void> { return {}; });
  const auto refused = pool_->Submit(never, [](const Result<void>&) { FAIL(); });
  EXPECT_EQ(refused.error().code(), Errc::kUnavailable);
  EXPECT_TRUE(pool_->Cancel(*first));
  EXPECT_EQ(told, Errc::kCancelled);
  EXPECT_FALSE(pool_->Cancel(*first));
  EXPECT_TRUE(pool_->StepOnce());
  EXPECT_FALSE(pool_->StepOnce());
  EXPECT_TRUE(second.get().ok());
  EXPECT_EQ(pool_->stats().refused, 1u);
  EXPECT_EQ(pool_->stats().cancelled, 1u);
  EXPECT_EQ(pool_->stats().queue_depth_max, 2u);
}

TEST_F(ReadPoolTest, CloseFinishesAcceptedReadsAndRefusesNewOnes) {
  MakePool(2, {});
  std::atomic<int> finished = 0;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(pool_
                    ->Submit(
                        [](db::Connection& connection) -> Result<void> {
                          IL_TRY_VOID(Count(connection));
                          return {};
                        },
                        [&](const Result<void>& result) {
                          EXPECT_TRUE(result.ok());
                          ++finished;
                        })
                    .ok());
  }
  pool_->Close();
  EXPECT_EQ(finished, 50);
  pool_->Close();
  const auto late = pool_->Submit([](db::Connection&) -> Result<void> { return {}; },
                                  [](const Result<void>&) { FAIL(); });
  EXPECT_EQ(late.error().code(), Errc::kUnavailable);
}

TEST_F(ReadPoolTest, ASpoiltConnectionIsReplacedAndReplacingIsTriedAgain) {
  MakePool(1, {.drive = Drive::kByHand});
  int opened = 0;
  bool works = false;
  reopen_ = [&]() -> Result<std::unique_ptr<Connection>> {
    ++opened;
    if (!works) return Error(Errc::kCantOpen, "not yet");
    return Connection::Open(temp_.options(Access::kReadOnly));
  };
  const auto count = [](db::Connection& connection) -> Result<void> {
    IL_TRY_VOID(Count(connection));
    return {};
  };
  auto broken = Submit([](db::Connection&) -> Result<void> { return Error(Errc::kIo, "disk"); });
  auto refused = Submit(count);
  auto again = Submit(count);
  pool_->StepOnce();
  pool_->StepOnce();
  works = true;
  pool_->StepOnce();
  EXPECT_EQ(broken.get().error().code(), Errc::kIo);
  EXPECT_EQ(refused.get().error().code(), Errc::kCantOpen);
  EXPECT_TRUE(again.get().ok());
  EXPECT_EQ(opened, 2);
}

}  // namespace
}  // namespace interlock::sqlite
