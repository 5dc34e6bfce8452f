#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/clock.h"
#include "cli/ic_process.h"
#include "kernel/process.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

// `ic lock`, as many real processes.
namespace interlock {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcCall;
using testing::IcPlace;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using testing::UnixNow;

std::string Host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string Text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::int64_t DeadPid() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

class LockTest : public ::testing::Test {
 protected:
  fs::path base() const { return place_.path() / "locks"; }
  fs::path lock() const { return base() / "build" / "all"; }

  IcCall Call(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "lock");
    return {.arguments = std::move(arguments),
            .environment = {"INTERCORE_LOCK_DIR=" + base().string()}};
  }
  Finished Lock(std::vector<std::string> arguments) const {
    return place_.Run(Call(std::move(arguments)));
  }

  // A lock as a script leaves it.
  void Write(std::int64_t pid, const std::string& host, std::int64_t created,
             const std::string& more = "") const {
    fs::create_directories(lock());
    std::ofstream(lock() / "owner.json")
        << fmt::format(R"({{"pid":{0},"host":"{1}","owner":"{0}:{1}","created":{2}{3}}})", pid,
                       host, created, more);
  }

  IcPlace place_;
  SystemClock clock_;
};

TEST_F(LockTest, AnOwnerWithoutAHostIsOfThisMachine) {
  Write(DeadPid(), "", UnixNow() - 10);
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=new", "--timeout=0"}).exit_code, 0);
  fs::remove_all(lock());
  Write(DeadPid(), "", UnixNow() - 10);
  EXPECT_EQ(Lock({"clean"}).out, "1 cleaned\n");
  Write(::getpid(), "", UnixNow() - 10);
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=new", "--timeout=0"}).exit_code, 1);
}

// Only --verbose is about results.
TEST_F(LockTest, TheLogLevelOfTheEnvironmentPrintsNothingOnStandardOutput) {
  IcCall call = Call({"acquire", "build", "all", "--owner=1:h"});
  call.environment.emplace_back("IC_LOG_LEVEL=debug");
  EXPECT_EQ(place_.Run(call).out, "");
  call = Call({"release", "build", "all", "--owner=1:h"});
  call.environment.emplace_back("IC_LOG_LEVEL=debug");
  EXPECT_EQ(place_.Run(call).out, "");
  call = Call({"acquire", "build", "all", "--owner=1:h", "--verbose"});
  call.environment.emplace_back("IC_LOG_LEVEL=error");
  EXPECT_EQ(place_.Run(call).out, "acquired build/all\n");
}

// /tmp is for everybody; what root made there is only root's to change.
TEST_F(LockTest, ABaseInADirectoryOfRootBelowTmpIsUsed) {
  if (::geteuid() != 0) return;  // only the superuser can make one
  fs::create_directories(base());
  place_.GiveAway();
  IcCall call = Call({"acquire", "build", "all", "--owner=1:h"});
  call.unprivileged = true;
  struct stat above = {};
  ASSERT_EQ(::stat(place_.path().parent_path().c_str(), &above), 0);
  ASSERT_EQ(above.st_uid, 0U);
  const Finished ran = place_.Run(call);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

TEST_F(LockTest, ALockIsTakenAndGivenBackInSilence) {
  const std::string owner = fmt::format("{}:{}", ::getpid(), Host());
  Finished ran = Lock({"acquire", "build", "all", "--owner", owner});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out + ran.err, "");
  EXPECT_THAT(Text(lock() / "owner.json"),
              StartsWith(fmt::format(R"({{"pid":{},"host":"{}",)", ::getpid(), Host())));
  ran = Lock({"release", "build", "all", "--owner=somebody"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("another owner"));
  ran = Lock({"release", "build", "all", "--owner=" + owner});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out + ran.err, "");
  ran = Lock({"release", "build", "all", "--owner=" + owner});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("nobody holds build/all"));
  EXPECT_FALSE(fs::exists(place_.path() / ".clavain")) << "no database is opened, nor made";
}

TEST_F(LockTest, VerboseSaysWhatWasDone) {
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=a", "--verbose"}).out,
            "acquired build/all\n");
  EXPECT_EQ(Lock({"release", "build", "all", "--owner=a", "--verbose"}).out,
            "released build/all\n");
}

TEST_F(LockTest, ABrokenDatabaseIsNoneOfItsBusiness) {
  fs::create_directories(place_.database().parent_path());
  std::ofstream(place_.database()) << "this is no database";
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=a"}).exit_code, 0);
  EXPECT_EQ(Lock({"list"}).exit_code, 0);
  EXPECT_EQ(Lock({"clean"}).exit_code, 0);
  EXPECT_EQ(Lock({"release", "build", "all", "--owner=a"}).exit_code, 0);
  EXPECT_EQ(Text(place_.database()), "this is no database");
}

TEST_F(LockTest, AWaitEndsWithOneWhenItsTimeIsUp) {
  ASSERT_EQ(
      Lock({"acquire", "build", "all", fmt::format("--owner={}:{}", ::getpid(), Host())}).exit_code,
      0);
  for (const auto& [flag, least, most] :
       {std::tuple{"--timeout=0", milliseconds(0), milliseconds(900)},
        {"--timeout=300ms", milliseconds(300), milliseconds(20'000)}}) {
    const Duration start = clock_.Monotonic();
    const Finished ran = Lock({"acquire", "build", "all", "--owner=b", flag});
    const Duration took = clock_.Monotonic() - start;
    EXPECT_EQ(ran.exit_code, 1) << flag;
    EXPECT_THAT(ran.err, HasSubstr(fmt::format("is held by '{}:{}'", ::getpid(), Host())));
    EXPECT_THAT(ran.err, HasSubstr("--timeout"));
    EXPECT_EQ(ran.out, "");
    EXPECT_GE(took, least) << flag;
    EXPECT_LT(took, most) << flag;
  }
  // Before the command's words it is the time for the database, which locks do not have.
  IcCall before = Call({"acquire", "build", "all", "--owner=b", "--timeout=0"});
  before.arguments.insert(before.arguments.begin(), "--timeout=1h");
  EXPECT_EQ(place_.Run(before).exit_code, 1);
}

TEST_F(LockTest, AWaitOpensNoDatabaseAndNoMoreFilesWithTime) {
  place_.Init();
  ASSERT_EQ(
      Lock({"acquire", "build", "all", fmt::format("--owner={}:{}", ::getpid(), Host())}).exit_code,
      0);
  const auto waiter =
      place_.Start(Call({"acquire", "build", "all", "--owner=b", "--timeout=120s"}));
  EXPECT_FALSE(waiter->EndsWithin(milliseconds(200)));
  const std::vector<std::string> before = testing::OpenFilesOf(waiter->pid());
  EXPECT_EQ(std::ranges::count_if(
                before, [](const std::string& file) { return file.contains("intercore.db"); }),
            0);
  for (int i = 0; i < 20; ++i) {  // others come and go beside it, which it is woken for
    EXPECT_EQ(Lock({"acquire", "build", "other", "--owner=c"}).exit_code, 0);
    EXPECT_EQ(Lock({"release", "build", "other", "--owner=c"}).exit_code, 0);
  }
  EXPECT_FALSE(waiter->EndsWithin(milliseconds(100)));
  EXPECT_EQ(testing::OpenFilesOf(waiter->pid()), before);
}

TEST_F(LockTest, ManyProcessesAreNeverInsideTogether) {
  // Each adds one to a number, in steps that any overlap would tear, with another directory as
  // witness: mkdir of it fails if somebody is inside.
  constexpr int kCount = testing::kSlowBuild ? 16 : 64;
  const fs::path script = place_.path() / "critical.sh";
  std::ofstream(script) << R"(
owner=$$:$(hostname -s)
"$1" lock acquire build all --owner="$owner" --timeout=120s || exit 3
mkdir inside || exit 4
read -r n <count
echo $((n + 1)) >count
rmdir inside || exit 5
"$1" lock release build all --owner="$owner" || exit 6
)";
  std::ofstream(place_.path() / "count") << "0\n";
  const std::string env = "INTERCORE_LOCK_DIR=" + base().string();
  const std::string ic = IcPlace::program().string();
  std::vector<std::unique_ptr<testing::ChildProcess>> children;
  children.reserve(kCount);
  for (int i = 0; i < kCount; ++i) {
    children.push_back(std::make_unique<testing::ChildProcess>(testing::ChildProcess::Options{
        .arguments = {"/usr/bin/env", env, "bash", script.string(), ic},
        .directory = place_.path().string()}));
  }
  for (const auto& child : children) {
    EXPECT_EQ(child->Wait(seconds(120)), 0) << child->Stderr();
  }
  EXPECT_EQ(Text(place_.path() / "count"), fmt::format("{}\n", kCount));
  EXPECT_TRUE(fs::is_empty(base() / "build"));
}

TEST_F(LockTest, OneOfManyContendersTakesAStaleLock) {
  const int rounds = testing::kSlowBuild ? 1 : 4;
  for (int round = 0; round < rounds; ++round) {
    fs::remove_all(base());
    Write(DeadPid(), Host(), UnixNow() - 60);
    const auto ran = place_.RunAtOnce(32, [&](std::size_t i) {
      return Call(
          {"acquire", "build", "all", fmt::format("--owner={}:n{}", ::getpid(), i), "--timeout=0"});
    });
    EXPECT_EQ(std::ranges::count(ran, 0, &Finished::exit_code), 1);
    EXPECT_EQ(std::ranges::count(ran, 1, &Finished::exit_code), 31);
    EXPECT_EQ(std::distance(fs::directory_iterator(base() / "build"), {}), 1);
  }
}

// A script that holds a lock until it is killed.
TEST_F(LockTest, TheLockOfAKilledHolderIsTakenOver) {
  testing::ChildProcess holder(
      {.arguments = {"/usr/bin/env", "INTERCORE_LOCK_DIR=" + base().string(), "bash", "-c",
                     R"SH("$0" lock acquire build all --owner="$$:$(hostname -s)" &&
                        echo held && read -r _ <"$1")SH",
                     IcPlace::program().string(), (place_.path() / "never").string()},
       .directory = place_.path().string()});
  ASSERT_EQ(::mkfifo((place_.path() / "never").c_str(), 0600), 0);
  ASSERT_TRUE(holder.WaitForLine("held", seconds(30))) << holder.Stderr();
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=b", "--timeout=0"}).exit_code, 1);
  EXPECT_EQ(Lock({"clean", "--older-than=0"}).out, "0 cleaned\n") << "it lives";
  // As if it had been taken a minute ago: nobody loses a lock before it is 5 seconds old.
  std::string text = Text(lock() / "owner.json");
  const std::size_t created = text.find("\"created\":") + 10;
  text.replace(created, text.find(',', created) - created, std::to_string(UnixNow() - 60));
  std::ofstream(lock() / "owner.json") << text;
  const auto waiter =
      place_.Start(Call({"acquire", "build", "all", "--owner=b", "--timeout=120s"}));
  EXPECT_FALSE(waiter->EndsWithin(milliseconds(50)));
  holder.Signal(SIGKILL);
  EXPECT_EQ(waiter->Finish().exit_code, 0);
  EXPECT_THAT(Text(lock() / "owner.json"), HasSubstr(R"("owner":"b")"));
}

TEST_F(LockTest, AReusedProcessNumberDoesNotKeepALock) {
  const std::int64_t start = kernel::ProcessStart(::getpid()).value();
  Write(::getpid(), Host(), UnixNow() - 60, fmt::format(R"(,"start":{})", start));
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=b", "--timeout=0"}).exit_code, 1);
  Write(::getpid(), Host(), UnixNow() - 60, fmt::format(R"(,"start":{})", start + 1));
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=b", "--timeout=0"}).exit_code, 0);
}

TEST_F(LockTest, AnotherHostsLockIsItsOwn) {
  Write(DeadPid(), "elsewhere.example.org", UnixNow() - 60);
  const Finished ran = Lock({"acquire", "build", "all", "--owner=b", "--timeout=0"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("release it on elsewhere.example.org"));
  EXPECT_EQ(Lock({"clean", "--older-than=0"}).out, "0 cleaned\n");
  Write(DeadPid(), Host() + ".example.org", UnixNow() - 60);
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=b", "--timeout=0"}).exit_code, 0)
      << "this host under a longer name";
}

TEST_F(LockTest, ADirectoryWithoutAnOwnerWaitsForClean) {
  for (const char* const text : {"", "{\"pid\":1,", "none"}) {
    fs::create_directories(lock());
    if (text != std::string_view("none")) std::ofstream(lock() / "owner.json") << text;
    const Finished ran = Lock({"acquire", "build", "all", "--owner=b", "--timeout=0"});
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr("ic lock clean"));
    EXPECT_EQ(Lock({"list"}).out, "build\tall\t\t\n");
    EXPECT_EQ(Lock({"clean"}).out, "0 cleaned\n") << "it may be about to be written";
    EXPECT_EQ(Lock({"clean", "--older-than=0"}).out, "1 cleaned\n");
    EXPECT_EQ(Lock({"list"}).out, "");
  }
}

TEST_F(LockTest, ListAndStaleShowWhoHoldsWhatForHowLong) {
  EXPECT_EQ(Lock({"list"}).out, "");
  EXPECT_EQ(Lock({"list", "--json"}).out, "[]\n");
  Write(DeadPid(), Host(), UnixNow() - 90);
  ASSERT_EQ(Lock({"acquire", "a b", "x", "--owner=alice"}).exit_code, 0);
  EXPECT_THAT(Lock({"list"}).out,
              MatchesRegex("a b\tx\talice\t[0-3]s\nbuild\tall\t[0-9]+:[^\t]+\t1m3[0-9]s\n"));
  EXPECT_THAT(Lock({"stale"}).out, MatchesRegex("build\tall\t[0-9]+:[^\t]+\t1m3[0-9]s\n"));
  EXPECT_EQ(Lock({"stale", "--older-than=10m"}).out, "");
  EXPECT_THAT(Lock({"stale", "--json"}).out,
              MatchesRegex("\\[\\{\"age\":9[0-9],\"alive\":false,\"created\":[0-9]+,\"host\":"
                           "\"[^\"]+\",\"name\":\"build\",\"owner\":\"[^\"]+\",\"pid\":[0-9]+,"
                           "\"scope\":\"all\"\\}\\]\n"));
  EXPECT_EQ(Lock({"clean"}).out, "1 cleaned\n");
}

// A line of it must stay a line, whatever somebody wrote.
TEST_F(LockTest, WhatOthersWroteCannotBreakTheList) {
  fs::create_directories(lock());
  std::ofstream(lock() / "owner.json")
      << R"({"pid":1,"host":"h","owner":"a\tb\nc\u001b[31m","created":1})";
  EXPECT_THAT(Lock({"list"}).out, StartsWith("build\tall\t\"a\\tb\\nc\\u001b[31m\"\t"));
  EXPECT_EQ(std::ranges::count(Lock({"list"}).out, '\n'), 1);
}

TEST_F(LockTest, BadInputIsRefusedByTheTable) {
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string_view says;
  };
  for (const Case& one : {
           Case{{"acquire", "build"}, 3, "scope"},
           {{"acquire", "build", "all", "more"}, 3, "more"},
           {{"acquire", "build", "all", "--timeout=soon"}, 3, "timeout"},
           {{"acquire", "build", "all", "--timeout=-1s"}, 3, "timeout"},
           {{"acquire", "build", "all", "--older-than=1s"}, 3, "older-than"},
           {{"acquire", "", "all"}, 2, "name"},
           {{"acquire", "../up", "all"}, 2, "name"},
           {{"acquire", "build", "a/b"}, 2, "scope"},
           {{"acquire", "build", ".."}, 2, "scope"},
           {{"acquire", "build", "all", "--owner=a\nb"}, 2, "owner"},
           {{"release", "build", "a\\b"}, 2, "scope"},
           {{"stale", "--older-than=5"}, 3, "older-than"},
           {{"clean", "--older-than=-5s"}, 3, "older-than"},
           {{"list", "build"}, 3, "build"},
           {{"frobnicate"}, 3, "frobnicate"},
       }) {
    const Finished ran = Lock(one.arguments);
    EXPECT_EQ(ran.exit_code, one.exit_code) << one.says;
    EXPECT_EQ(ran.out, "") << one.says;
    EXPECT_THAT(ran.err, HasSubstr(std::string(one.says)));
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 2) << "what is wrong, and what to do: " << ran.err;
  }
  EXPECT_FALSE(fs::exists(base()));
}

TEST_F(LockTest, ABaseThatCannotBeUsedIsAnErrorAndNotContention) {
  fs::create_directories(place_.path() / "theirs");
  fs::create_symlink(place_.path() / "theirs", base());
  Finished ran = Lock({"acquire", "build", "all"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("is a symlink"));
  EXPECT_TRUE(fs::is_empty(place_.path() / "theirs"));
  fs::remove(base());
  std::ofstream(base()) << "x";
  ran = Lock({"acquire", "build", "all"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("INTERCORE_LOCK_DIR"));
  // The kernel lets nobody make a directory there.
  ran = place_.Run({.arguments = {"lock", "acquire", "build", "all"},
                    .environment = {"INTERCORE_LOCK_DIR=/proc/locks-of-ic"}});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("INTERCORE_LOCK_DIR"));
}

// Whoever is killed in the middle leaves no lock that nobody holds: the next ones go on.
TEST_F(LockTest, KillsInTheMiddleLeaveNothingThatLastsForEver) {
  const int rounds = testing::kSlowBuild ? 40 : 120;
  std::mt19937_64 rng(testing::TestSeed());
  const IcCall acquire = Call({"acquire", "build", "all", "--owner=k", "--timeout=0"});
  const IcCall release = Call({"release", "build", "all", "--owner=k"});
  const Duration start = clock_.Monotonic();
  ASSERT_EQ(place_.Run(acquire).exit_code, 0);
  ASSERT_EQ(place_.Run(release).exit_code, 0);
  const Duration one = (clock_.Monotonic() - start) / 2;
  for (int i = 0; i < 2 * rounds; ++i) {
    const auto call = place_.Start(i % 2 == 0 ? acquire : release);
    const Duration end = clock_.Monotonic() +
                         Duration(testing::Below(rng, static_cast<std::size_t>(one.count()) + 1));
    while (clock_.Monotonic() < end && !call->EndsWithin(milliseconds(0))) {
    }
    call->Signal(SIGKILL);
    call->Finish();
  }
  for (const auto& entry : fs::directory_iterator(base() / "build")) {
    if (entry.path().filename() == "all") {
      EXPECT_TRUE(fs::exists(entry.path() / "owner.json")) << "a lock without an owner";
    }
  }
  Lock({"release", "build", "all", "--owner=k"});
  EXPECT_EQ(Lock({"list"}).out, "");
  EXPECT_EQ(Lock({"clean", "--older-than=0"}).out, "0 cleaned\n");
  EXPECT_TRUE(fs::is_empty(base() / "build")) << "what was half done is cleared";
  EXPECT_EQ(Lock({"acquire", "build", "all", "--owner=k", "--timeout=0"}).exit_code, 0);
}

}  // namespace
}  // namespace interlock
