#include "kernel/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "base/unique_fd.h"
#include "kernel/process.h"
#include "testing/fake_clock.h"
#include "testing/on_threads.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Duration kLong = seconds(60);
constexpr uid_t kNobody = 65'534;

std::int64_t SecondsNow(Clock& clock) { return clock.Now().micros / 1'000'000; }

// The number of a process that has ended and was reaped, so nobody has it.
std::int64_t DeadPid() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

// Runs `fn` in a child that is nobody, as the superuser may do everything; its value is the exit
// code.
int AsNobody(const std::function<int()>& fn) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(100);
    ::_exit(fn());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string Remedy(const Error& error) {
  for (const auto& [key, value] : error.details()) {
    if (key == "do") return std::get<std::string>(value);
  }
  return "";
}

class FileLockTest : public ::testing::Test {
 protected:
  FileLockTest() : locks_(Locks(clock_)) {}

  // As another process would see them.
  FileLocks Locks(Clock& clock, LockWatch::Method by = LockWatch::Method::kEvents) {
    return {clock,
            random_,
            {.pid = ::getpid(), .host = "here.example.org"},
            {.base = base(), .wait_method = by}};
  }

  std::string base() const { return (dir_.path() / "intercore" / "locks").string(); }
  fs::path lock() const { return fs::path(base()) / "build" / "all"; }

  // A lock as a script leaves it.
  void Write(const std::string& owner_json) const {
    fs::create_directories(lock());
    std::ofstream(lock() / "owner.json") << owner_json;
  }
  void Write(const LockOwner& owner) const { Write(LockOwnerText(owner)); }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(lock() / "owner.json").rdbuf();
    return text.str();
  }
  // A lock whose holder is gone, long ago.
  LockOwner Stale() {
    return {.pid = dead_pid_, .host = "here", .owner = "old", .created = SecondsNow(clock_) - 60};
  }
  void Age(Duration age) {
    const auto then = clock_.Now() - age;
    const timespec time{.tv_sec = then.micros / 1'000'000, .tv_nsec = 0};
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, lock().c_str(), times, 0), 0);
  }

  bool Acquire(FileLocks& locks, std::string_view owner = "", Duration timeout = Duration(0)) {
    auto held = locks.Acquire(lock_name_, owner, timeout);
    EXPECT_TRUE(held.ok()) << held.error();
    return held.ok() && !held->has_value();
  }

  const LockName lock_name_ = {.name = "build", .scope = "all"};
  const std::int64_t dead_pid_ = DeadPid();
  testing::TempDir dir_;
  testing::FakeClock clock_;  // stands still: only time-outs of zero end
  SystemClock real_clock_;
  testing::SeededRandom random_;
  FileLocks locks_;
};

mode_t ModeOf(const fs::path& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0;
}

TEST_F(FileLockTest, ALockIsAPrivateDirectoryThatNamesItsOwner) {
  ASSERT_TRUE(Acquire(locks_, fmt::format("{}:here", ::getpid())));
  EXPECT_EQ(
      Text(),
      fmt::format(R"({{"pid":{0},"host":"here","owner":"{0}:here","created":{1},"start":{2}}})",
                  ::getpid(), SecondsNow(clock_), ProcessStart(::getpid()).value()));
  EXPECT_EQ(ModeOf(lock() / "owner.json"), 0600U);
  for (fs::path path = lock(); path != dir_.path(); path = path.parent_path()) {
    EXPECT_EQ(ModeOf(path), 0700U) << path;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(lock().parent_path()), {}), 1)
      << "nothing else is left";
}

TEST_F(FileLockTest, TheStartOfAProcessElsewhereIsNotGuessed) {
  ASSERT_TRUE(Acquire(locks_, fmt::format("{}:there", ::getpid())));
  EXPECT_THAT(Text(), HasSubstr(R"("host":"there")"));
  EXPECT_THAT(Text(), ::testing::Not(HasSubstr("start")));
}

TEST_F(FileLockTest, AHeldLockIsRefusedAndItsHolderNamed) {
  ASSERT_TRUE(Acquire(locks_, "alice"));
  clock_.Advance(kLong);
  const auto held = locks_.Acquire(lock_name_, "bob", Duration(0));
  ASSERT_TRUE(held.ok() && held->has_value());
  EXPECT_EQ((*held)->owner->owner, "alice");
  EXPECT_EQ((*held)->holder, HolderStatus::kAlive);
  EXPECT_EQ(SecondsNow(clock_) - (*held)->since, 60);
}

TEST_F(FileLockTest, OtherNamesAndScopesAreOtherLocks) {
  ASSERT_TRUE(Acquire(locks_));
  EXPECT_FALSE(locks_.Acquire({"build", "other"}, "", Duration(0))->has_value());
  EXPECT_FALSE(locks_.Acquire({"test", "all"}, "", Duration(0))->has_value());
}

TEST_F(FileLockTest, OnlyItsOwnerReleasesALock) {
  EXPECT_EQ(*locks_.Release(lock_name_, "alice"), ReleaseResult::kNotHeld);
  EXPECT_FALSE(fs::exists(base())) << "asking makes nothing";
  ASSERT_TRUE(Acquire(locks_, "alice"));
  EXPECT_EQ(*locks_.Release(lock_name_, "bob"), ReleaseResult::kNotOwner);
  EXPECT_EQ(*locks_.Release(lock_name_, ""), ReleaseResult::kNotOwner);
  EXPECT_TRUE(fs::exists(lock() / "owner.json"));
  EXPECT_EQ(*locks_.Release(lock_name_, "alice"), ReleaseResult::kYes);
  EXPECT_TRUE(fs::is_empty(lock().parent_path()));
  EXPECT_EQ(*locks_.Release(lock_name_, "alice"), ReleaseResult::kNotHeld);
}

TEST_F(FileLockTest, ALockOfADeadProcessIsTakenFiveSecondsAfterItWasMade) {
  LockOwner owner = Stale();
  owner.created = SecondsNow(clock_);
  Write(owner);
  clock_.Advance(milliseconds(4999));
  EXPECT_FALSE(Acquire(locks_, "new"));
  clock_.Advance(milliseconds(1));
  EXPECT_TRUE(Acquire(locks_, "new"));
  EXPECT_THAT(Text(), HasSubstr(R"("owner":"new")"));
}

TEST_F(FileLockTest, ANumberThatAnotherProcessGotIsNotItsFirstHolder) {
  LockOwner owner = Stale();
  owner.pid = ::getpid();
  owner.start = ProcessStart(::getpid());
  Write(owner);
  EXPECT_FALSE(Acquire(locks_, "new"));
  owner.start = *owner.start - 1;
  Write(owner);
  EXPECT_TRUE(Acquire(locks_, "new"));
}

TEST_F(FileLockTest, AnOldFileWithoutAStartIsJudgedByItsNumberAlone) {
  LockOwner owner = Stale();
  owner.pid = ::getpid();
  Write(owner);
  EXPECT_FALSE(Acquire(locks_, "new"));
}

TEST_F(FileLockTest, AProcessOfAnotherMachineIsNeverJudged) {
  LockOwner owner = Stale();
  owner.host = "there.example.org";
  Write(owner);
  EXPECT_FALSE(Acquire(locks_, "new"));
  EXPECT_EQ(*locks_.Clean(Duration(0)), 0U);
  EXPECT_EQ(Text(), LockOwnerText(owner));
}

TEST_F(FileLockTest, ALockWithoutAnOwnerIsLeftToClean) {
  for (const char* const text : {"", "{\"pid\":", "{}"}) {
    Write(text);
    Age(seconds(60));
    EXPECT_FALSE(Acquire(locks_, "new")) << text;
    EXPECT_EQ(*locks_.Release(lock_name_, ""), ReleaseResult::kNotOwner) << text;
    Age(seconds(4));
    EXPECT_EQ(*locks_.Clean(seconds(5)), 0U) << text;
    Age(seconds(5));
    EXPECT_EQ(*locks_.Clean(seconds(5)), 1U) << text;
    EXPECT_FALSE(fs::exists(lock())) << text;
  }
  fs::create_directories(lock());
  Age(seconds(60));
  const auto held = locks_.Acquire(lock_name_, "new", Duration(0));
  ASSERT_TRUE(held.ok() && held->has_value());
  EXPECT_EQ((*held)->holder, HolderStatus::kUnknown);
  EXPECT_EQ(*locks_.Clean(seconds(5)), 1U);
  EXPECT_TRUE(Acquire(locks_, "new"));
}

// A pipe would keep a reader waiting, and a link would let it read what it should not.
TEST_F(FileLockTest, AnOwnerFileThatIsNoFileIsNotRead) {
  fs::create_directories(lock());
  ASSERT_EQ(::mkfifo((lock() / "owner.json").c_str(), 0600), 0);
  EXPECT_FALSE(Acquire(locks_, "new"));
  fs::remove(lock() / "owner.json");
  std::ofstream(dir_.path() / "theirs") << LockOwnerText(Stale());
  fs::create_symlink(dir_.path() / "theirs", lock() / "owner.json");
  EXPECT_FALSE(Acquire(locks_, "new"));
}

TEST_F(FileLockTest, CleanRemovesWhatDeadProcessesHoldAndNothingElse) {
  Write(Stale());
  ASSERT_FALSE(locks_.Acquire({"build", "mine"}, "", Duration(0))->has_value());
  clock_.Advance(kLong);
  EXPECT_EQ(*locks_.Clean(seconds(121)), 0U);
  EXPECT_EQ(*locks_.Clean(seconds(120)), 1U);
  const auto left = locks_.List();
  ASSERT_EQ(left->size(), 1U);
  EXPECT_EQ(left->front().scope, "mine");
}

TEST_F(FileLockTest, WhatKilledProcessesLeaveIsNoLockAndIsCleared) {
  for (const char* const name : {"..new-1-abcdefgh", "..gone-1-abcdefgh"}) {
    const fs::path remains = lock().parent_path() / name;
    fs::create_directories(remains);
    std::ofstream(remains / "owner.json") << "{";
  }
  EXPECT_TRUE(locks_.List()->empty());
  EXPECT_EQ(*locks_.Clean(Duration(0)), 0U);
  EXPECT_TRUE(fs::is_empty(lock().parent_path()));
}

TEST_F(FileLockTest, LocksAreListedInOrderFromTheGivenAge) {
  EXPECT_TRUE(locks_.List()->empty());
  EXPECT_FALSE(fs::exists(base()));
  for (const LockName& lock : {LockName{"b", "2"}, {"b", "1"}, {"a", "x"}}) {
    ASSERT_FALSE(locks_.Acquire(lock, "", Duration(0))->has_value());
    clock_.Advance(seconds(10));
  }
  std::ofstream(fs::path(base()) / "a-file") << "not a lock";
  const auto names = [&](Duration age) {
    std::vector<std::string> found;
    const auto locks = locks_.List(age);
    for (const HeldLock& held : *locks) found.push_back(held.name + "/" + held.scope);
    return found;
  };
  EXPECT_THAT(names(Duration(0)), ElementsAre("a/x", "b/1", "b/2"));
  EXPECT_THAT(names(seconds(20)), ElementsAre("b/1", "b/2"));
  EXPECT_THAT(names(seconds(31)), ElementsAre());
}

TEST_F(FileLockTest, AClockThatWasSetBackKeepsNoDeadLockAlive) {
  LockOwner owner = Stale();
  owner.created = SecondsNow(clock_) + 3600;
  Write(owner);
  EXPECT_TRUE(Acquire(locks_, "new"));
}

TEST_F(FileLockTest, NamesThatAreNoDirectoryNamesAreRefused) {
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("/a"),
        std::string("a\\b"), std::string("a..b"), std::string("..new"), std::string("a\nb"),
        std::string("a\tb"), std::string("\x7F"), std::string("\xFF")}) {
    for (const LockName& lock : {LockName{bad, "s"}, {"n", bad}}) {
      const auto acquired = locks_.Acquire(lock, "", Duration(0));
      ASSERT_FALSE(acquired.ok()) << bad;
      EXPECT_EQ(acquired.error().code(), Errc::kInvalidArgument);
      EXPECT_EQ(locks_.Release(lock, "").error().code(), Errc::kInvalidArgument);
    }
  }
  EXPECT_EQ(locks_.Acquire(lock_name_, "a\nb", Duration(0)).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(locks_.Acquire(lock_name_, std::string(1025, 'a'), Duration(0)).error().code(),
            Errc::kInvalidArgument);
  EXPECT_FALSE(locks_.Acquire({std::string(256, 'a'), "s"}, "", Duration(0)).ok());
  EXPECT_FALSE(fs::exists(lock()));
  for (const char* const good : {".hidden", "a.b.", "ü", "with blank", "-x", "a:b"}) {
    EXPECT_TRUE(locks_.Acquire({good, good}, "", Duration(0)).ok()) << good;
  }
}

// ---- Many at once ----

TEST_F(FileLockTest, OneOfManyTakesAStaleLock) {
  for (int round = 0; round < (testing::kSlowBuild ? 5 : 30); ++round) {
    fs::remove_all(lock());
    Write(Stale());
    std::atomic<int> winners = 0;
    testing::OnThreads(16, [&](int i) {
      FileLocks locks = Locks(clock_);
      if (Acquire(locks, fmt::format("new{}", i))) ++winners;
    });
    ASSERT_EQ(winners, 1);
    ASSERT_EQ(std::distance(fs::directory_iterator(lock().parent_path()), {}), 1);
  }
}

// A file of somebody else in a lock is not ours to remove, and so the lock is not either.
TEST_F(FileLockTest, ALockWithForeignFilesStaysAndIsToldOf) {
  FileLocks patient(real_clock_, random_, {.pid = 1, .host = "here"}, {.base = base()});
  Write(Stale());
  std::ofstream(lock() / ".nfs0001") << "x";
  const auto held = patient.Acquire(lock_name_, "me", std::chrono::milliseconds(50));
  ASSERT_TRUE(held.ok() && held->has_value());
  EXPECT_EQ((*held)->owner->pid, dead_pid_);
  EXPECT_EQ(*locks_.Clean(Duration(0)), 0U);
  fs::remove(lock() / ".nfs0001");
  ASSERT_TRUE(Acquire(locks_, "me"));
  std::ofstream(lock() / "other") << "x";
  EXPECT_EQ(locks_.Release(lock_name_, "me").error().code(), Errc::kIo);
  fs::remove(lock() / "other");
  EXPECT_EQ(*locks_.Release(lock_name_, "me"), ReleaseResult::kYes);
}

// One of the processes that come across the same lock.
class FileLockPartyTest : public FileLockTest {
 protected:
  LockDirectory Party() {
    const auto base_fd = OpenLockBase(base(), IfMissing::kCreate);
    return LockDirectory::Open(context_, *base_fd, "build", IfMissing::kCreate).value();
  }
  static bool IsGone(const HeldLock& held) { return held.holder == HolderStatus::kDead; }

  const LockContext context_{
      .clock = clock_, .random = random_, .self = {.pid = 1, .host = "here"}};
};

// Between the look at a lock and its removal it may change hands.
TEST_F(FileLockPartyTest, ALockThatWasTakenAnewIsNotRemovedForWhatItWas) {
  Write(Stale());
  LockDirectory slow = Party();
  const auto seen = slow.Find("all");
  ASSERT_TRUE(IsGone(**seen));
  ASSERT_TRUE(Acquire(locks_, "quick"));
  EXPECT_EQ(*slow.RemoveIf("all", Duration(0), IsGone), LockDirectory::RemoveResult::kNo);
  EXPECT_EQ(*locks_.Release(lock_name_, "quick"), ReleaseResult::kYes);
}

TEST_F(FileLockPartyTest, WhileOneJudgesALockNobodyElseRemovesIt) {
  Write(Stale());
  LockDirectory one = Party();
  LockDirectory other = Party();
  const auto removed = one.RemoveIf("all", Duration(0), [&](const HeldLock& held) {
    const auto meanwhile = other.RemoveIf("all", Duration(0), IsGone);
    EXPECT_EQ(meanwhile.ok() ? Errc::kInternal : meanwhile.error().code(), Errc::kBusy);
    EXPECT_EQ(*other.Claim("all", "other"), LockDirectory::ClaimResult::kTaken);
    return IsGone(held);
  });
  EXPECT_EQ(*removed, LockDirectory::RemoveResult::kYes);
  EXPECT_EQ(*other.RemoveIf("all", Duration(0), IsGone), LockDirectory::RemoveResult::kNo)
      << "the guard was given back";
}

TEST_F(FileLockPartyTest, ADirectoryThatIsRemovedUnderAClaimIsMadeAnew) {
  LockDirectory directory = Party();
  fs::remove_all(base());
  EXPECT_EQ(*directory.Claim("all", "a"), LockDirectory::ClaimResult::kLost);
  EXPECT_TRUE(Acquire(locks_, "a"));
}

// Scripts claim by mkdir alone; a rename replaces an empty directory unless told otherwise.
TEST_F(FileLockTest, TheEmptyDirectoryThatAScriptJustMadeIsRespected) {
  fs::create_directories(lock().parent_path());
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::thread script([&] {
    const std::string path = lock().string();
    for (int i = 0; i < (testing::kSlowBuild ? 2000 : 8000); ++i) {
      if (::mkdir(path.c_str(), 0700) != 0) continue;
      if (::access((path + "/owner.json").c_str(), F_OK) == 0) ++wrong;
      if (::rmdir(path.c_str()) != 0) ++wrong;
    }
    done = true;
  });
  while (!done) {
    if (Acquire(locks_, "ours")) {
      if (*locks_.Release(lock_name_, "ours") != ReleaseResult::kYes) ++wrong;
    }
  }
  script.join();
  EXPECT_EQ(wrong, 0);
}

// ---- Waiting ----

class FileLockWaitTest : public FileLockTest,
                         public ::testing::WithParamInterface<LockWatch::Method> {
 protected:
  // Holds the lock, lets another wait for it, does `then`, and returns whether it was acquired.
  bool WaitUntil(const std::function<void()>& then) {
    std::atomic<bool> acquired = false;
    std::thread waiter([&] {
      FileLocks locks = Locks(real_clock_, GetParam());
      acquired = Acquire(locks, "waiter", kLong);
    });
    then();
    waiter.join();
    return acquired;
  }
};

TEST_P(FileLockWaitTest, AReleaseWakesWhoWaits) {
  FileLocks holder = Locks(real_clock_);
  ASSERT_TRUE(Acquire(holder, "holder"));
  const Duration start = real_clock_.Monotonic();
  EXPECT_TRUE(
      WaitUntil([&] { EXPECT_EQ(*holder.Release(lock_name_, "holder"), ReleaseResult::kYes); }));
  EXPECT_LT(real_clock_.Monotonic() - start, seconds(30));
}

TEST_P(FileLockWaitTest, AScriptThatRemovesItsDirectoryWakesWhoWaits) {
  fs::create_directories(lock());
  EXPECT_TRUE(WaitUntil([&] { fs::remove(lock()); }));
}

TEST_P(FileLockWaitTest, ADirectoryThatIsRemovedWithEverythingInItIsMadeAnew) {
  FileLocks holder = Locks(real_clock_);
  ASSERT_TRUE(Acquire(holder, "holder"));
  EXPECT_TRUE(WaitUntil([&] {
    std::error_code in_the_way;  // what the waiter makes, while this goes on
    fs::remove_all(base(), in_the_way);
  }));
}

TEST_P(FileLockWaitTest, TheDeathOfTheHolderWakesWhoWaits) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  Write({.pid = child,
         .host = "here",
         .owner = "child",
         .created = SecondsNow(real_clock_) - 10,
         .start = ProcessStart(child)});
  EXPECT_TRUE(WaitUntil([&] { ::kill(child, SIGKILL); })) << "and nobody has reaped it yet";
  ::waitpid(child, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(By, FileLockWaitTest,
                         ::testing::Values(LockWatch::Method::kEvents, LockWatch::Method::kBackOff),
                         [](const auto& by) {
                           return by.param == LockWatch::Method::kEvents ? "Events" : "BackOff";
                         });

TEST_F(FileLockTest, AWaitEndsAtItsDeadline) {
  FileLocks locks = Locks(real_clock_);
  ASSERT_TRUE(Acquire(locks, "holder"));
  const Duration start = real_clock_.Monotonic();
  EXPECT_FALSE(Acquire(locks, "waiter", milliseconds(50)));
  const Duration took = real_clock_.Monotonic() - start;
  EXPECT_GE(took, milliseconds(50));
  EXPECT_LT(took, seconds(20));
}

// A process that was stopped while it removed a lock has the guard.
TEST_F(FileLockPartyTest, AGuardThatIsNotGivenBackKeepsNobodyForEver) {
  Write(Stale());
  const UniqueFd stopped(::open(lock().parent_path().c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(stopped.get(), LOCK_EX), 0);
  FileLocks locks = Locks(real_clock_);
  EXPECT_FALSE(Acquire(locks, "new", milliseconds(20)));
  EXPECT_EQ(Party().RemoveIf("all", Duration(0), IsGone).error().code(), Errc::kBusy);
  EXPECT_FALSE(locks.Acquire({"build", "other"}, "", Duration(0))->has_value())
      << "what is free needs no guard";
  ASSERT_EQ(::flock(stopped.get(), LOCK_UN), 0);
  EXPECT_TRUE(Acquire(locks, "new", kLong));
}

// ---- The base ----

TEST_F(FileLockTest, ABaseOfAnotherUserIsRefusedWithWhatToDo) {
  fs::create_directories(base());
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(base().c_str(), kNobody, kNobody), 0);
  }
  FileLocks locks(clock_, random_, {.pid = 1, .host = "here"},
                  {.base = ::geteuid() == 0 ? base() : "/usr"});
  for (const Error& error :
       {locks.Acquire(lock_name_, "", Duration(0)).error(), locks.Release(lock_name_, "").error(),
        locks.List().error(), locks.Clean(Duration(0)).error()}) {
    EXPECT_EQ(error.code(), Errc::kForbidden);
    EXPECT_THAT(error.message(), HasSubstr("belongs to user"));
    EXPECT_THAT(Remedy(error), HasSubstr("INTERCORE_LOCK_DIR"));
  }
}

// Below /tmp everybody can make a directory first, and change its content later.
TEST_F(FileLockTest, ADirectoryOfAnotherUserOnTheWayIsRefusedWhereEverybodyMayMakeOne) {
  const fs::path parent = fs::path(base()).parent_path();
  fs::create_directories(base());
  EXPECT_TRUE(OpenLockBase(base(), IfMissing::kFail).ok());
  if (::geteuid() == 0) {  // only the superuser can give a directory away
    ASSERT_EQ(::chown(parent.c_str(), kNobody, kNobody), 0);
    EXPECT_EQ(OpenLockBase(base(), IfMissing::kFail).error().code(), Errc::kForbidden);
  }
}

TEST_F(FileLockTest, LinksOnTheWayToALockAreRefused) {
  const fs::path theirs = dir_.path() / "theirs";
  fs::create_directories(theirs / "locks");
  const auto refused = [&] {
    const auto acquired = locks_.Acquire(lock_name_, "", Duration(0));
    ASSERT_FALSE(acquired.ok());
    EXPECT_EQ(acquired.error().code(), Errc::kForbidden);
    EXPECT_THAT(acquired.error().message(), HasSubstr("is a symlink"));
  };
  const fs::path parent = fs::path(base()).parent_path();
  fs::create_symlink(theirs, parent);
  refused();
  fs::remove(parent);
  fs::create_directories(parent);
  for (const fs::path& link : {fs::path(base()), lock().parent_path(), lock()}) {
    fs::create_symlink(theirs, link);
    if (link == lock()) {
      EXPECT_TRUE(locks_.List()->empty());
    }
    refused();
    EXPECT_TRUE(fs::is_empty(theirs / "locks"));
    fs::remove(link);
    fs::create_directories(link);
  }
}

TEST_F(FileLockTest, ABaseThatCannotBeIsRefused) {
  const auto code_of = [&](const std::string& base) {
    FileLocks locks(clock_, random_, {.pid = 1, .host = "here"}, {.base = base});
    return locks.Acquire(lock_name_, "", Duration(0)).error().code();
  };
  EXPECT_EQ(code_of("relative/locks"), Errc::kInvalidArgument);
  EXPECT_EQ(code_of(""), Errc::kInvalidArgument);
  std::ofstream(dir_.path() / "file") << "x";
  EXPECT_EQ(code_of(dir_.path() / "file" / "locks"), Errc::kCantOpen);
  fs::create_directories(lock().parent_path());
  std::ofstream(lock()) << "x";
  EXPECT_EQ(locks_.Acquire(lock_name_, "", Duration(0)).error().code(), Errc::kCorrupt);
}

TEST_F(FileLockTest, AWriteProtectedBaseIsAnErrorAndNotAHeldLock) {
  fs::create_directories(base());
  fs::permissions(base(), fs::perms{0555});
  if (::geteuid() == 0) {
    for (const fs::path& path : {dir_.path(), fs::path(base()).parent_path(), fs::path(base())}) {
      ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
    }
  }
  EXPECT_EQ(AsNobody([&] {
              const auto acquired = locks_.Acquire(lock_name_, "", Duration(0));
              if (acquired.ok()) return 1;
              if (acquired.error().code() != Errc::kForbidden) return 2;
              return Remedy(acquired.error()).find("INTERCORE_LOCK_DIR") == std::string::npos ? 3
                                                                                              : 0;
            }),
            0);
}

TEST_F(FileLockTest, CleaningNeverTouchesWhatIsNoLock) {
  fs::create_directories(lock());
  std::ofstream(lock() / "thesis.txt") << "years of work";
  const fs::path remains = lock().parent_path() / "..old";
  fs::create_directories(remains / "sub");
  Age(std::chrono::hours(24));
  EXPECT_EQ(locks_.Clean(std::chrono::seconds(5)).value(), 0U);
  EXPECT_TRUE(fs::exists(lock() / "thesis.txt"));
  EXPECT_TRUE(fs::exists(remains / "sub"));
}

}  // namespace
}  // namespace interlock::kernel
