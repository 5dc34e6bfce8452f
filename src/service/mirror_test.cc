#include "service/mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/id.h"
#include "base/log.h"
#include "db/sqlite/fault_vfs.h"
#include "db/sqlite/foreign_file.h"
#include "intercore/locks.h"
#include "service/reservations.h"
#include "service/service_fixture.h"
#include "store/events.h"
#include "store/mirror.h"
#include "store/reservations.h"
#include "testing/captured_log.h"
#include "testing/lock_holder.h"
#include "testing/locks_table.h"
#include "testing/raw_db.h"

namespace interlock::service {
namespace {

namespace fs = std::filesystem;
using domain::Access;
using domain::Reservation;
using intercore::Lock;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;
using Granted = Reservations::Granted;
using Texts = std::vector<std::string>;

constexpr db::Sql kRowIds = "SELECT id FROM coordination_locks ORDER BY id";
constexpr db::Sql kReservationIds = "SELECT id FROM reservations ORDER BY id";
constexpr db::Sql kBackwards = "SELECT COUNT(*) FROM state";
constexpr db::Sql kForgetMark = "DELETE FROM meta WHERE key = 'intercore_mirror'";

// A file of `ic`, a mirror into it, and the server's own reservations. The clock stands unless a
// test moves it, so no pause ends by itself; there is none between passes.
class MirrorTest : public ServiceTest {
 public:
  ~MirrorTest() override { mirror_.reset(); }

 protected:
  MirrorTest() { MakeFile(); }

  fs::path Path() const { return directory_.path() / "intercore.db"; }
  void MakeFile() const {
    const testing::RawDb file(Path());
    file.Run(testing::kLocksTable);
    file.Run("PRAGMA journal_mode=WAL; CREATE TABLE note (text TEXT)");
  }
  void RemoveFile() const {
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(Path().string() + suffix);
  }
  std::unique_ptr<db::ForeignFile> File(const std::string& vfs = "") const {
    return std::make_unique<sqlite::ForeignFile>(
        [path = Path()]() -> Result<fs::path> { return path; },
        sqlite::ForeignFile::Options{
            .durability = sqlite::Durability::kFast, .busy_timeout = milliseconds(1), .vfs = vfs});
  }
  static Mirror::Options Quick() { return {.pace = Duration{0}, .recheck = hours(1000)}; }
  void Begin(Mirror::Options options = Quick(), const std::string& vfs = "") {
    mirror_ = std::make_unique<Mirror>(*storage_, clock_, log_, File(vfs), options);
    mirror_->Start();
  }
  // Until the mirror's numbers say so; a mirror that never gets there fails the test.
  void Await(const std::function<bool(const Mirror::Stats&)>& reached) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (!reached(mirror_->stats())) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << lines_.text();
      std::this_thread::yield();
    }
  }
  void AwaitPasses(std::uint64_t count) {
    Await([=](const Mirror::Stats& stats) { return stats.passes >= count; });
  }
  void AwaitFailures(std::uint64_t count) {
    Await([=](const Mirror::Stats& stats) { return stats.failures >= count; });
  }
  // What was committed so far is mirrored.
  void Follow() {
    const std::uint64_t passes = mirror_->stats().passes;
    mirror_->Notify();
    AwaitPasses(passes + 1);  // which may have begun before the notice
    mirror_->Notify();
    AwaitPasses(passes + 2);
  }
  // Its pause is over until it succeeds.
  void AwaitRecovery() {
    while (mirror_->stats().in_outage && !HasFatalFailure()) {
      const std::uint64_t failures = mirror_->stats().failures;
      clock_.Advance(seconds(10));
      Await([=](const Mirror::Stats& stats) {
        return !stats.in_outage || stats.failures > failures;
      });
    }
  }

  Reservation Grant(const std::string& agent, const std::string& pattern) {
    return GrantAll(agent, {pattern}).at(0);
  }
  std::vector<Reservation> GrantAll(const std::string& agent, Texts patterns) {
    auto verdict = Run(reservations_.Reserve({.project = "/srv/web/",
                                              .agent = agent,
                                              .patterns = std::move(patterns),
                                              .access = Access::kExclusive,
                                              .reason = "a test"}));
    return std::get<Granted>(std::move(verdict).value()).reservations;
  }
  void Release(const Reservation& reservation) {
    ASSERT_TRUE(
        Run(reservations_.Release({.id = reservation.id, .agent = reservation.agent})).ok());
  }
  // Removes what ran out, as the sweeper does.
  void Sweep() {
    auto swept = std::make_shared<std::promise<Result<void>>>();
    storage_->Write(
        [now = clock_.Now()](db::Transaction& tx) -> Result<void> {
          IL_TRY(const auto gone,
                 store::SweepReservations(tx, {.expired_before = now, .limit = 1000}));
          for (const Reservation& one : gone) {
            IL_TRY_VOID(store::AppendReservationEvent(tx, domain::event_type::kReservationExpired,
                                                      one, one.agent, now));
          }
          return {};
        },
        [swept](Result<void> result) { swept->set_value(std::move(result)); });
    ASSERT_TRUE(swept->get_future().get().ok());
  }

  std::unique_ptr<sqlite::Connection> OpenFile() const {
    return sqlite::Connection::Open({.path = Path(), .access = sqlite::Access::kReadOnly}).value();
  }
  std::optional<Lock> Row(const std::string& id) const {
    return intercore::FindLock(*OpenFile(), id).value();
  }
  static Texts Ids(db::Connection& connection, const db::Sql& sql) {
    Texts ids;
    EXPECT_TRUE(
        connection.ForEach(sql, [&](const db::Row& row) { ids.push_back(row.String(0)); }).ok());
    return ids;
  }
  // Every reservation that the server has is there, as it is.
  void ExpectMirrored() {
    const auto ours = file_.Open(sqlite::Access::kReadOnly);
    const auto theirs = OpenFile();
    for (const std::string& id : Ids(*ours, kReservationIds)) {
      const Reservation reservation = store::FindReservation(*ours, id).value().value();
      EXPECT_EQ(intercore::FindLock(*theirs, id).value(), intercore::LockOf(reservation)) << id;
    }
  }
  std::size_t CountLogged(const std::string& text) {
    std::size_t count = 0;
    const std::string all = lines_.text();
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) {
      ++count;
    }
    return count;
  }

  testing::TempDir directory_;
  testing::CapturedLog lines_;
  Logger log_{clock_, lines_};
  UuidMaker uuids_{clock_, random_};
  Reservations reservations_{*storage_, clock_, uuids_, {}, {}};
  std::unique_ptr<Mirror> mirror_;
};

TEST_F(MirrorTest, GrantsRenewalsTransfersAndReleasesArriveAsRows) {
  Begin();
  const Reservation granted = Grant("a", "src/**");
  Follow();
  EXPECT_EQ(Row(granted.id), (Lock{.id = granted.id,
                                   .owner = "a",
                                   .scope = "/srv/web",
                                   .pattern = "src/**",
                                   .exclusive = true,
                                   .reason = "a test",
                                   .ttl_seconds = 1800,
                                   .created_at = granted.created_at.micros / 1'000'000,
                                   .expires_at = granted.expires_at.micros / 1'000'000}));
  ASSERT_TRUE(Run(reservations_.Renew({.id = granted.id, .agent = "a"}, 60)).ok());
  Follow();
  EXPECT_EQ(Row(granted.id)->ttl_seconds, 3600);
  ASSERT_TRUE(Run(reservations_.Transfer({.id = granted.id, .agent = "a"}, "b")).ok());
  Follow();
  EXPECT_EQ(Row(granted.id)->owner, "b");
  EXPECT_EQ(Row(granted.id)->released_at, std::nullopt);
  clock_.Advance(minutes(2));
  ASSERT_TRUE(Run(reservations_.Release({.id = granted.id, .agent = "b"})).ok());
  Follow();
  EXPECT_EQ(Row(granted.id)->released_at, granted.created_at.micros / 1'000'000 + 120);
  ExpectMirrored();
  EXPECT_EQ(lines_.text(), "");
}

TEST_F(MirrorTest, WhatRanOutAndWasSweptIsClosedThere) {
  Begin();
  const Reservation seen = Grant("a", "seen");
  Follow();
  clock_.Advance(minutes(31));
  Sweep();
  Follow();
  EXPECT_EQ(Row(seen.id)->released_at, clock_.Now().micros / 1'000'000);
}

TEST_F(MirrorTest, AMissingFileIsLoggedOnceAndNeverMadeAndAllIsMadeUpForWhenItIsThere) {
  RemoveFile();
  const Reservation before = Grant("a", "before");
  Begin();
  AwaitFailures(1);
  const Reservation active = Grant("a", "active");
  const Reservation over = Grant("a", "over");
  Release(over);
  const Reservation swept = Grant("b", "swept");
  for (std::uint64_t i = 2; i < 6; ++i) {
    clock_.Advance(seconds(1000));
    AwaitFailures(i);
  }
  Sweep();
  EXPECT_FALSE(fs::exists(Path()));
  EXPECT_EQ(CountLogged("cannot mirror"), 1U);
  MakeFile();
  AwaitRecovery();
  ExpectMirrored();
  EXPECT_TRUE(Row(over.id)->released_at);
  EXPECT_TRUE(Row(swept.id)->released_at) << "its whole life was in the outage";
  EXPECT_TRUE(Row(before.id));
  EXPECT_EQ(CountLogged("cannot mirror"), 1U);
  EXPECT_EQ(CountLogged("again"), 2U) << "that it is tried again, and that it works again";
}

TEST_F(MirrorTest, AFileThatAnotherProcessLocksHoldsUpNobodyAndIsCaughtUpWith) {
  Begin();
  Follow();
  testing::LockHolder other(Path());
  other.Lock();
  const Reservation granted = Grant("a", "x");
  mirror_->Notify();
  AwaitFailures(1);
  Release(Grant("a", "y"));
  other.Commit();
  AwaitRecovery();
  ExpectMirrored();
  EXPECT_TRUE(Row(granted.id));
}

TEST_F(MirrorTest, AFileMadeAnewGetsEverythingThatIsActive) {
  Begin();
  Grant("a", "x");
  Follow();
  RemoveFile();
  MakeFile();
  Grant("a", "y");
  Follow();
  ExpectMirrored();
  EXPECT_EQ(Ids(*OpenFile(), kRowIds).size(), 2U);
}

TEST_F(MirrorTest, AFileMadeAnewIsFoundAlsoWhenNothingHappens) {
  Mirror::Options options = Quick();
  options.recheck = seconds(10);
  Begin(options);
  Grant("a", "x");
  Follow();
  RemoveFile();
  MakeFile();
  const std::uint64_t passes = mirror_->stats().passes;
  while (mirror_->stats().passes == passes) clock_.Advance(seconds(10));
  ExpectMirrored();
}

// Puts back the file as it was before the last change, and the mirror brings it up to date.
class MirrorCopyTest : public MirrorTest {
 protected:
  void Try(const std::function<void()>& change) {
    Begin();
    Follow();
    mirror_->Stop();
    const fs::path copy = directory_.path() / "copy.db";
    fs::copy_file(Path(), copy);
    Begin();
    change();
    Follow();
    mirror_->Stop();
    RemoveFile();
    fs::rename(copy, Path());
    Begin();
    Follow();
    ExpectMirrored();
  }
};

TEST_F(MirrorCopyTest, AnOldCopyThatLacksARowIsBroughtUpToDate) {
  Try([this] { Grant("a", "y"); });
}

TEST_F(MirrorCopyTest, AnOldCopyInWhichALockIsStillHeldIsBroughtUpToDate) {
  const Reservation granted = Grant("a", "x");
  Try([&] { Release(granted); });
}

TEST_F(MirrorCopyTest, AnOldCopyInWhichALockEndsEarlierIsBroughtUpToDate) {
  const Reservation granted = Grant("a", "x");
  Try([&] { ASSERT_TRUE(Run(reservations_.Renew({.id = granted.id, .agent = "a"}, 90)).ok()); });
}

TEST_F(MirrorCopyTest, AnOldCopyInWhichALockIsAnothersIsBroughtUpToDate) {
  const Reservation granted = Grant("a", "x");
  Try([&] {
    ASSERT_TRUE(Run(reservations_.Transfer({.id = granted.id, .agent = "a"}, "b")).ok());
  });
}

TEST_F(MirrorTest, ADamagedFileIsAnOutageUntilItIsReplaced) {
  Begin();
  Grant("a", "x");
  Follow();
  mirror_->Stop();
  {
    std::ofstream file(Path());
    file << std::string(20'000, '\x5a');
  }
  Begin();
  AwaitFailures(1);
  Grant("a", "y");
  RemoveFile();
  fs::create_directory(Path());  // nor is this a database
  clock_.Advance(seconds(10));
  AwaitFailures(2);
  fs::remove(Path());
  MakeFile();
  AwaitRecovery();
  ExpectMirrored();
}

TEST_F(MirrorTest, AFileWithoutTheTableIsAnOutageFromTheStart) {
  RemoveFile();
  testing::RawDb(Path()).Run("CREATE TABLE other (x)");
  Begin();
  AwaitFailures(1);
  EXPECT_TRUE(lines_.Contains("coordination_locks")) << lines_.text();
  testing::RawDb(Path()).Run(testing::kLocksTable);
  Grant("a", "x");
  AwaitRecovery();
  ExpectMirrored();
}

TEST_F(MirrorTest, AFullDiskAndAFailingOneAreOutages) {
  RemoveFile();
  sqlite::FaultVfs vfs;
  {
    const auto file =
        sqlite::Connection::Open(
            {.path = Path(), .access = sqlite::Access::kReadWriteOrCreate, .vfs = vfs.name()})
            .value();
    ASSERT_TRUE(file->RunScript(testing::kLocksTable).ok());
  }
  Begin(Quick(), vfs.name());
  const Reservation granted = Grant("a", "x");
  Follow();
  vfs.disk().LimitSpace(0);
  std::vector<Reservation> late = GrantAll("b", Texts{"1", "2", "3"});
  mirror_->Notify();
  AwaitFailures(1);
  vfs.disk().Heal();
  AwaitRecovery();
  vfs.disk().Inject({.op = sqlite::DiskOp::kWrite, .calls = 2});
  late.push_back(Grant("c", "y"));
  mirror_->Notify();
  AwaitFailures(2);
  vfs.disk().Heal();
  AwaitRecovery();
  mirror_.reset();
  const auto file = sqlite::Connection::Open({.path = Path(), .vfs = vfs.name()}).value();
  late.push_back(granted);
  for (const Reservation& one : late) {
    EXPECT_EQ(intercore::FindLock(*file, one.id).value(), intercore::LockOf(one));
  }
}

TEST_F(MirrorTest, ARestartNeitherSkipsNorRepeats) {
  Begin();
  Release(Grant("a", "x"));
  Follow();
  mirror_->Stop();
  Grant("a", "while it was down");
  Begin();
  Follow();
  EXPECT_EQ(mirror_->stats().written, 1U);
  ExpectMirrored();
  mirror_->Stop();
  Begin();
  Follow();
  EXPECT_EQ(mirror_->stats().written, 0U);
}

TEST_F(MirrorTest, NoRowEverGoesBackInTimeHoweverMuchIsRepeated) {
  testing::RawDb(Path()).Run(
      "CREATE TRIGGER back AFTER UPDATE ON coordination_locks "
      "WHEN OLD.expires_at > NEW.expires_at OR (OLD.released_at NOT NULL AND NEW.released_at IS "
      "NULL) BEGIN INSERT INTO state VALUES (OLD.id, OLD.pattern, 'back'); END");
  Mirror::Options options = Quick();
  options.rows_max = 1;
  Begin(options);
  for (int i = 0; i < 20; ++i) {
    const Reservation one = Grant("a", "file" + std::to_string(i));
    ASSERT_TRUE(Run(reservations_.Renew({.id = one.id, .agent = "a"}, 90)).ok());
    if (i % 2 == 0) Release(one);
  }
  Follow();
  mirror_->Stop();
  ASSERT_TRUE(file_.Open()->Run(kForgetMark).ok());  // as if the server had died
  Begin(options);
  Follow();
  EXPECT_GE(mirror_->stats().written, 20U) << "it did repeat";
  ExpectMirrored();
  EXPECT_EQ(OpenFile()->One(kBackwards, [](const db::Row& row) { return row.Int(0); }).value(), 0);
}

TEST_F(MirrorTest, ThePlaceIsSavedNowAndThenAlsoWithoutAStop) {
  Mirror::Options options = Quick();
  options.rows_max = 16;
  options.save_every = 50;
  Begin(options);
  for (int i = 0; i < 3; ++i) {
    Texts patterns;
    for (int j = 0; j < 60; ++j) patterns.push_back("f" + std::to_string(j));
    GrantAll("a", patterns);
    for (int j = 0; j < 4; ++j) Grant("a", "f" + std::to_string(j));
  }
  Follow();
  const auto mark = store::LoadMirrorMark(*file_.Open()).value();
  EXPECT_GT(mark.cursor, 130);
  EXPECT_LT(mark.cursor, 193);
}

TEST_F(MirrorTest, APlaceThatThePrunedLogNoLongerHasIsNoReasonToStop) {
  Begin();
  Release(Grant("a", "old"));
  Follow();
  mirror_->Stop();
  Grant("a", "x");
  Release(Grant("a", "y"));
  auto pruned = std::make_shared<std::promise<Result<std::int64_t>>>();
  storage_->Write<std::int64_t>(
      [](db::Transaction& tx) { return store::PruneEvents(tx, 3, 100); },
      [pruned](Result<std::int64_t> result) { pruned->set_value(std::move(result)); });
  ASSERT_TRUE(pruned->get_future().get().ok());
  ASSERT_TRUE(file_.Open()
                  ->RunScript("UPDATE meta SET value = replace(value, '\"cursor\":2', "
                              "'\"cursor\":1') WHERE key = 'intercore_mirror'")
                  .ok());
  const Reservation later = Grant("a", "z");
  Begin();
  Follow();
  EXPECT_TRUE(Row(later.id));
  EXPECT_THAT(lines_.text(), IsEmpty());
}

TEST_F(MirrorTest, RowsThatTheTableRefusesAreLeftOutAndLoggedOnce) {
  testing::RawDb(Path()).Run("CREATE UNIQUE INDEX picky ON coordination_locks (pattern)");
  Begin();
  for (int i = 0; i < 3; ++i) Release(Grant("a", "same"));
  const Reservation other = Grant("a", "other");
  Follow();
  EXPECT_TRUE(Row(other.id));
  EXPECT_GE(mirror_->stats().refused, 2U);
  EXPECT_EQ(CountLogged("refuses rows"), 1U);
  EXPECT_FALSE(mirror_->stats().in_outage);
}

TEST_F(MirrorTest, StoppingWritesWhatIsStillToBeWritten) {
  Mirror::Options options;
  options.pace = hours(1);  // nothing is due before the end
  Begin(options);
  AwaitPasses(1);
  Grant("a", "x");
  mirror_->Notify();
  mirror_->Stop();
  mirror_->Stop();
  ExpectMirrored();
  EXPECT_EQ(Ids(*OpenFile(), kRowIds).size(), 1U);
}

TEST_F(MirrorTest, BetweenTwoPassesIsAPauseHoweverOftenItIsNotified) {
  Mirror::Options options;
  Begin(options);
  while (clock_.timers_waiting() == 0) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) mirror_->Notify();
  EXPECT_EQ(mirror_->stats().passes, 1U);
  clock_.Advance(milliseconds(20));
  AwaitPasses(2);
}

TEST_F(MirrorTest, OneThatWasNeverStartedCanBeStopped) {
  mirror_ = std::make_unique<Mirror>(*storage_, clock_, log_, File(), Quick());
  mirror_->Notify();
  mirror_->Stop();
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 20;
#else
constexpr int kRounds = 60;
#endif

TEST_F(MirrorTest, ThousandsOfEventsArriveThroughOutages) {
  Mirror::Options options = Quick();
  options.rows_max = 64;
  options.save_every = 200;
  Begin(options);
  std::atomic<bool> done = false;
  std::thread troubles([&] {
    std::mt19937_64 random(testing::TestSeed());
    while (!done) {
      std::optional<testing::RawDb> lock;
      if (random() % 2 == 0) {
        lock.emplace(Path());
        lock->Run("PRAGMA busy_timeout=10000; BEGIN IMMEDIATE");
      }
      mirror_->Notify();
      clock_.Advance(seconds(10));
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    const std::string agent = "agent" + std::to_string(round);
    Texts patterns;
    for (int i = 0; i < 32; ++i) patterns.push_back(agent + "/" + std::to_string(i));
    const std::vector<Reservation> granted = GrantAll(agent, patterns);
    for (std::size_t i = 0; i < 16; ++i) Release(granted[i]);
    mirror_->Notify();
  }
  done = true;
  troubles.join();
  AwaitRecovery();
  Follow();
  ExpectMirrored();
  EXPECT_EQ(Ids(*OpenFile(), kRowIds), Ids(*file_.Open(), kReservationIds));
}

}  // namespace
}  // namespace interlock::service
