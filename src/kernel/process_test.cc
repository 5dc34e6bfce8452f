#include "kernel/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>

namespace interlock::kernel {
namespace {

constexpr std::string_view kRest =
    " S 1 10 10 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 88211 7000000 300 18446744073709551615";

// A child that lives until it is told to end.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) {
      while (true) ::pause();
    }
  }
  ~Child() {
    Kill();
    Reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Returns when it has ended, and is a zombie until Reap().
  void Kill() const {
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void Reap() {
    if (!reaped_) ::waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }

 private:
  pid_t pid_;
  bool reaped_ = false;
};

TEST(ProcessTest, TheStartIsTheTwentySecondFieldWhateverTheNameHolds) {
  for (const std::string_view name : {"(bash)", "(a b)", "(x) S 1 2 3)", "(()", "(\n)"}) {
    const auto stat = ParseProcessStat("17 " + std::string(name) + std::string(kRest));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->state, 'S') << name;
    EXPECT_EQ(stat->start, 88211) << name;
  }
}

TEST(ProcessTest, TextThatIsCutOffSaysNothing) {
  const std::string whole = "17 (bash)" + std::string(kRest.substr(0, kRest.find("88211")));
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    EXPECT_FALSE(ParseProcessStat(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(ParseProcessStat(whole + "x"));
  EXPECT_FALSE(ParseProcessStat(whole + "12x 3"));
}

TEST(ProcessTest, AProcessIsKnownByNumberAndStart) {
  const auto start = ProcessStart(::getpid());
  ASSERT_TRUE(start);
  EXPECT_GT(*start, 0);
  EXPECT_TRUE(IsAlive(::getpid(), start));
  EXPECT_TRUE(IsAlive(::getpid(), std::nullopt));
  EXPECT_FALSE(IsAlive(::getpid(), *start + 1)) << "another one had this number";
}

TEST(ProcessTest, AZombieHasEnded) {
  Child child;
  const auto start = ProcessStart(child.pid());
  EXPECT_TRUE(IsAlive(child.pid(), start));
  child.Kill();
  ASSERT_EQ(::kill(child.pid(), 0), 0) << "it still has its number";
  EXPECT_FALSE(IsAlive(child.pid(), start));
  EXPECT_FALSE(IsAlive(child.pid(), std::nullopt));
  EXPECT_FALSE(ProcessStart(child.pid()));
  child.Reap();
  EXPECT_FALSE(IsAlive(child.pid(), std::nullopt));
}

// Signals to 0 and below reach whole groups, so they must never be asked about.
TEST(ProcessTest, WhatIsNoProcessNumberIsNotAlive) {
  for (const std::int64_t pid :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31, (std::int64_t{1} << 32) + 1,
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_FALSE(IsAlive(pid, std::nullopt)) << pid;
    EXPECT_FALSE(ProcessStart(pid)) << pid;
  }
}

TEST(ProcessTest, AProcessOfAnotherUserIsAlive) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65'534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(10);
    ::_exit(IsAlive(1, std::nullopt) && IsAlive(1, ProcessStart(1)) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace interlock::kernel
