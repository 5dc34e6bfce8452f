// The writer on its own thread, with many threads at its door.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "db/sqlite/group_writer.h"
#include "db/sqlite/writer_fixture.h"
#include "testing/on_threads.h"
#include "testing/seeded_random.h"

namespace interlock::sqlite {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kWritesPerThread = 20;
constexpr int kModelSteps = 2'000;
#else
constexpr int kWritesPerThread = 60;
constexpr int kModelSteps = 10'000;
#endif
constexpr int kThreads = 64;

class GroupWriterThreadsTest : public WriterTest {
 protected:
  // What is tested here is who hears what, thousands of times; an fsync each adds only minutes.
  GroupWriterThreadsTest() { durability_ = Durability::kFast; }

  void MakeThreadedWriter(GroupWriter::Options options = {}) {
    options.drive = Drive::kThreads;
    writer_ =
        std::make_unique<GroupWriter>(OpenWriter(), reopen_, std::move(options), system_clock_);
  }

  std::set<std::int64_t> Values() const {
    std::set<std::int64_t> values;
    const auto read =
        temp_.Open(Access::kReadOnly)->ForEach("SELECT a FROM t", [&](const db::Row& row) {
          EXPECT_TRUE(values.insert(row.Int(0)).second);
        });
    EXPECT_TRUE(read.ok());
    return values;
  }

  std::map<std::int64_t, std::int64_t> Pairs() const {
    std::map<std::int64_t, std::int64_t> pairs;
    const auto read =
        temp_.Open(Access::kReadOnly)->ForEach("SELECT k, v FROM kv", [&](const db::Row& row) {
          pairs[row.Int(0)] = row.Int(1);
        });
    EXPECT_TRUE(read.ok());
    return pairs;
  }

  SystemClock system_clock_;
};

TEST_F(GroupWriterThreadsTest, ManyWritersAllArriveInFewerCommits) {
  MakeThreadedWriter();
  std::atomic<int> succeeded = 0;
  testing::OnThreads(kThreads, [&](int thread) {
    for (int i = 0; i < kWritesPerThread; ++i) {
      // Shared: the writer may still be inside set_value() when we have the answer.
      const auto told = std::make_shared<std::promise<bool>>();
      ASSERT_TRUE(writer_
                      ->Submit(Insert(thread * kWritesPerThread + i),
                               [told](const Result<void>& result) { told->set_value(result.ok()); })
                      .ok());
      if (told->get_future().get()) ++succeeded;
    }
  });
  ASSERT_TRUE(writer_->Close().ok());
  EXPECT_EQ(succeeded, kThreads * kWritesPerThread);
  EXPECT_EQ(Values().size(), static_cast<std::size_t>(kThreads * kWritesPerThread));
  const GroupWriter::Stats stats = writer_->stats();
  EXPECT_EQ(stats.committed, static_cast<std::uint64_t>(kThreads * kWritesPerThread));
  EXPECT_LT(stats.commits, stats.committed);
  EXPECT_LE(stats.batch_size_max, 256u);
}

TEST_F(GroupWriterThreadsTest, CompletionComesInTheOrderOfCommit) {
  MakeThreadedWriter({.batch_max = 7});
  std::vector<std::int64_t> told;  // touched on the writer thread only, until Close()
  testing::OnThreads(8, [&](int thread) {
    for (int i = 0; i < kWritesPerThread; ++i) {
      const std::int64_t value = thread * kWritesPerThread + i;
      ASSERT_TRUE(writer_
                      ->Submit(Insert(value),
                               [&told, value](const Result<void>& result) {
                                 if (result.ok()) told.push_back(value);
                               })
                      .ok());
    }
  });
  ASSERT_TRUE(writer_->Close().ok());
  std::vector<std::int64_t> committed;
  ASSERT_TRUE(temp_.Open()
                  ->ForEach("SELECT a FROM t ORDER BY rowid",
                            [&](const db::Row& row) { committed.push_back(row.Int(0)); })
                  .ok());
  EXPECT_EQ(committed.size(), static_cast<std::size_t>(8 * kWritesPerThread));
  EXPECT_EQ(told, committed);
}

TEST_F(GroupWriterThreadsTest, ACancelRaceEndsInExactlyOneAnswerThatIsTrue) {
  MakeThreadedWriter({.batch_max = 3});
  constexpr std::size_t kAll = static_cast<std::size_t>(kThreads) * kWritesPerThread;
  std::vector<std::atomic<int>> answers(kAll);
  std::vector<std::atomic<int>> committed(kAll);
  testing::OnThreads(kThreads, [&](int thread) {
    for (int i = 0; i < kWritesPerThread; ++i) {
      const auto value =
          static_cast<std::size_t>(thread) * kWritesPerThread + static_cast<std::size_t>(i);
      const auto told = std::make_shared<std::promise<Errc>>();
      const auto ticket = writer_->Submit(
          Insert(static_cast<std::int64_t>(value)), [&, told, value](const Result<void>& result) {
            ++answers[value];
            if (result.ok()) ++committed[value];
            told->set_value(result.ok() ? Errc::kInternal : result.error().code());
          });
      ASSERT_TRUE(ticket.ok());
      const bool cancelled = writer_->Cancel(*ticket);
      EXPECT_EQ(told->get_future().get() == Errc::kCancelled, cancelled);
    }
  });
  ASSERT_TRUE(writer_->Close().ok());
  std::set<std::int64_t> expected;
  for (std::size_t i = 0; i < kAll; ++i) {
    EXPECT_EQ(answers[i], 1) << i;
    if (committed[i] == 1) expected.insert(static_cast<std::int64_t>(i));
  }
  EXPECT_EQ(Values(), expected);
}

TEST_F(GroupWriterThreadsTest, CloseRacingSubmitAnswersEveryAcceptedWrite) {
  for (int round = 0; round < 10; ++round) {
    MakeThreadedWriter();
    std::atomic<int> accepted = 0;
    std::atomic<int> succeeded = 0;
    testing::OnThreads(8, [&](int thread) {
      for (int i = 0; i < kWritesPerThread; ++i) {
        if (thread < 2 && i == kWritesPerThread / 2) {
          EXPECT_TRUE(writer_->Close().ok());  // two at once, and both wait for the end
        }
        const std::int64_t value = (round * 8 + thread) * kWritesPerThread + i;
        // Counted before: the answer may come before Submit returns.
        ++accepted;
        const auto ticket = writer_->Submit(Insert(value), [&](const Result<void>& result) {
          EXPECT_TRUE(result.ok());
          ++succeeded;
        });
        if (!ticket.ok()) {
          --accepted;
          EXPECT_EQ(ticket.error().code(), Errc::kUnavailable);
        }
      }
    });
    EXPECT_EQ(succeeded, accepted);
    writer_.reset();
  }
}

// Random writes against a std::map, some of which fail or throw after having changed something.
TEST_F(GroupWriterThreadsTest, AgreesWithAModelUnderRandomFailures) {
  temp_.Make("CREATE TABLE kv(k INTEGER PRIMARY KEY, v INTEGER NOT NULL)");
  MakeWriter({.batch_max = 16});
  std::mt19937_64 random(testing::TestSeed());
  std::map<std::int64_t, std::int64_t> model;
  enum class Ending { kOk, kFail, kThrow };
  for (int step = 0; step < kModelSteps; ++step) {
    const auto key = static_cast<std::int64_t>(random() % 50);
    const auto value = static_cast<std::int64_t>(random() % 1000);
    const bool erase = random() % 4 == 0;
    const auto dice = random() % 10;
    const Ending ending = dice == 0 ? Ending::kFail : dice == 1 ? Ending::kThrow : Ending::kOk;
    const auto write = [=](db::Transaction& tx) -> Result<void> {
      if (erase) {
        IL_TRY_VOID(tx->Run("DELETE FROM kv WHERE k = ?1", key));
      } else {
        IL_TRY_VOID(tx->Run("INSERT INTO kv VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = ?2",
                            key, value));
      }
      if (ending == Ending::kThrow) throw std::runtime_error("model");
      if (ending == Ending::kFail) return Error(Errc::kConflict, "model");
      return {};
    };
    const auto done = [&model, ending, erase, key, value](const Result<void>& result) {
      EXPECT_EQ(result.ok(), ending == Ending::kOk);
      if (!result.ok()) return;
      if (erase) {
        model.erase(key);
      } else {
        model[key] = value;
      }
    };
    const auto ticket = writer_->Submit(write, done);
    ASSERT_TRUE(ticket.ok());
    if (random() % 20 == 0) {
      // Its `done` must not touch the model nor expect anything: submitted for this alone.
      const auto doomed = writer_->Submit(write, [](const Result<void>& result) {
        EXPECT_EQ(result.error().code(), Errc::kCancelled);
      });
      EXPECT_TRUE(writer_->Cancel(*doomed));
    }
    if (random() % 8 != 0) continue;
    while (writer_->StepOnce()) {
    }
    if (random() % 4 == 0) {
      ASSERT_EQ(Pairs(), model) << "after step " << step;
    }
  }
  ASSERT_TRUE(writer_->Close().ok());  // what still waits refers to `model`
  EXPECT_EQ(Pairs(), model);
}

}  // namespace
}  // namespace interlock::sqlite
