#include "service/sign_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "service/storage.h"
#include "store/agents.h"
#include "store/schema.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::service {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class SignWriterTest : public ::testing::Test {
 public:
  ~SignWriterTest() override { Close(); }

 protected:
  std::unique_ptr<sqlite::Database> Open() {
    EXPECT_TRUE(db::Migrator(store::ServerSchema(), {.database = file_.path()}, clock_)
                    .Run(*file_.Open())
                    .ok());
    sqlite::DatabaseOptions options;
    options.path = file_.path();
    options.busy_timeout = std::chrono::milliseconds(0);
    options.drive = sqlite::Drive::kByHand;
    return sqlite::Database::Open(options, clock_).value();
  }
  void Close() {
    if (!database_) return;
    writer_.Stop();
    storage_.Stop();
    EXPECT_TRUE(database_->Close().ok());
    closed_ = std::move(database_);  // which `storage_` still refers to
  }
  // An agent of project p that was seen just now.
  void Add(const std::string& id) {
    storage_.Write(
        [&](db::Transaction& tx) {
          const domain::Agent agent = {
              .id = id, .project = "p", .session_id = id, .name = id, .last_seen = clock_.Now()};
          return store::InsertAgent(tx, agent, std::as_bytes(std::span(id)));
        },
        [](const Result<void>& result) { EXPECT_TRUE(result.ok()); });
    Step();
  }
  void Step() {
    while (database_->StepWriter()) {
    }
  }
  // Time passes, and what is due then is written.
  void After(Duration time) {
    clock_.Advance(time);
    Step();
  }
  Timestamp Stored(const std::string& id) {
    return store::FindAgent(*file_.Open(sqlite::Access::kReadOnly), id).value().value().last_seen;
  }
  std::uint64_t Commits() { return database_->writer_stats().commits; }

  testing::FakeClock clock_;
  testing::TempDb file_;
  std::unique_ptr<sqlite::Database> database_ = Open();
  std::unique_ptr<sqlite::Database> closed_;
  Storage storage_{*database_, clock_};
  SignWriter writer_{storage_, clock_};
};

TEST_F(SignWriterTest, SignsAreStoredEveryFifteenSeconds) {
  Add("a");
  Add("b");
  writer_.Start();
  const Timestamp added = clock_.Now();
  After(seconds(10));
  storage_.signs().Seen("a");
  const Timestamp seen = clock_.Now();
  After(seconds(4));
  EXPECT_EQ(Stored("a"), added) << "not before it is due";
  After(seconds(1));
  EXPECT_EQ(Stored("a"), seen);
  EXPECT_EQ(Stored("b"), added);
}

TEST_F(SignWriterTest, WithoutNewSignsNothingIsWritten) {
  Add("a");
  writer_.Start();
  storage_.signs().Seen("a");
  After(seconds(15));
  const std::uint64_t before = Commits();
  for (int i = 0; i < 20; ++i) After(seconds(15));
  EXPECT_EQ(Commits(), before);
}

TEST_F(SignWriterTest, AgentWithManyRequestsIsWrittenAtMostEveryFifteenSeconds) {
  Add("a");
  writer_.Start();
  const std::uint64_t before = Commits();
  Timestamp stored = Stored("a");
  int changes = 0;
  for (int s = 0; s < 150; ++s) {
    storage_.signs().Seen("a");
    After(seconds(1));
    if (Stored("a") != stored) ++changes;
    stored = Stored("a");
  }
  EXPECT_EQ(changes, 10);
  EXPECT_EQ(Commits() - before, 10U);
}

TEST_F(SignWriterTest, OpenStreamIsStoredAtLeastEveryMinute) {
  Add("a");
  writer_.Start();
  const SignsOfLife::Stream stream = storage_.signs().Open("a");
  for (int s = 0; s < 600; s += 5) {
    After(seconds(5));
    EXPECT_LE(clock_.Now() - Stored("a"), minutes(1)) << s;
  }
}

TEST_F(SignWriterTest, FailedRoundIsTriedAgain) {
  Add("a");
  writer_.Start();
  storage_.signs().Seen("a");
  const Timestamp seen = clock_.Now();
  {
    const auto other = file_.Open();
    ASSERT_TRUE(other->BeginExclusive().ok());
    After(seconds(15));  // and the retries
    for (int i = 0; i < 20; ++i) After(seconds(1));
    EXPECT_EQ(storage_.signs().Newest("a", {}), seen);
    other->Rollback();
  }
  for (int i = 0; i < 30; ++i) After(seconds(1));
  EXPECT_EQ(Stored("a"), seen);
}

TEST_F(SignWriterTest, MoreSignsThanOneWriteTakesAreAllStored) {
  for (int i = 0; i < 600; ++i) Add("agent" + std::to_string(i));
  writer_.Start();
  clock_.Advance(seconds(1));
  for (int i = 0; i < 600; ++i) storage_.signs().Seen("agent" + std::to_string(i));
  const Timestamp seen = clock_.Now();
  After(seconds(15));
  for (int i = 0; i < 600; ++i) EXPECT_EQ(Stored("agent" + std::to_string(i)), seen) << i;
}

TEST_F(SignWriterTest, UnregisteredAndDeregisteredAgentsChangeNothingAndAreForgotten) {
  Add("a");
  storage_.Write([&](db::Transaction& tx) { return store::SetDeregistered(tx, "a", clock_.Now()); },
                 [](const Result<void>& result) { EXPECT_TRUE(result.ok()); });
  Step();
  const Timestamp added = Stored("a");
  writer_.Start();
  clock_.Advance(seconds(1));
  storage_.signs().Seen("a");
  storage_.signs().Seen("nobody");
  After(seconds(15));
  After(seconds(15));
  EXPECT_EQ(Stored("a"), added);
  EXPECT_TRUE(storage_.signs().Remembered().empty());
}

TEST_F(SignWriterTest, StoppingStoresWhatIsLeft) {
  Add("a");
  writer_.Start();
  clock_.Advance(seconds(1));
  storage_.signs().Seen("a");
  Close();
  EXPECT_EQ(Stored("a"), clock_.Now());
  EXPECT_EQ(clock_.timers_waiting(), 0U);
}

TEST_F(SignWriterTest, StoppingIsIdempotentAndHarmlessBeforeTheStart) {
  writer_.Stop();
  writer_.Stop();
}

}  // namespace
}  // namespace interlock::service
