#include "cli/phase_hook.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>

#include "base/unique_fd.h"
#include "testing/temp_db.h"

namespace interlock::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Optional;

class PhaseHookTest : public ::testing::Test {
 protected:
  PhaseHookTest() { fs::create_directories(hook().parent_path()); }

  fs::path hook() const { return directory_.path() / ".clavain/hooks/on-phase-advance"; }
  void Write(const std::string& script, int mode) const {
    std::ofstream(hook()) << "#!/bin/sh\n" << script;
    fs::permissions(hook(), fs::perms(mode));
  }
  bool ran() const { return fs::exists(directory_.path() / "ran"); }
  std::optional<std::string> RunIt(std::chrono::milliseconds limit = kPhaseHookLimit) const {
    SystemClock clock;
    return RunPhaseHook(directory_.path(), {.id = 1, .run_id = "r", .type = "advance"}, clock,
                        limit);
  }

  const testing::TempDir directory_;
};

TEST_F(PhaseHookTest, NoHookIsFine) {
  EXPECT_EQ(RunIt(), std::nullopt);
  SystemClock clock;
  EXPECT_EQ(RunPhaseHook("", {}, clock), std::nullopt) << "a portfolio";
  EXPECT_EQ(RunPhaseHook("/dev/null", {}, clock), std::nullopt);
}

TEST_F(PhaseHookTest, RunsInTheProjectWithTheEventAsItsInput) {
  Write("read line; echo \"$line\" > ran\n", 0700);
  EXPECT_EQ(RunIt(), std::nullopt);
  std::string line;
  std::getline(std::ifstream(directory_.path() / "ran"), line);
  EXPECT_THAT(line, HasSubstr("\"run_id\":\"r\""));
}

TEST_F(PhaseHookTest, AHookThatIsNotOursToTrustIsNotRun) {
  Write("touch ran\n", 0702);
  EXPECT_THAT(RunIt(), Optional(HasSubstr("world-writable")));
  fs::permissions(hook(), fs::perms(0600));
  EXPECT_THAT(RunIt(), Optional(HasSubstr("not executable")));
  fs::rename(hook(), directory_.path() / "real");
  fs::permissions(directory_.path() / "real", fs::perms(0700));
  fs::create_symlink(directory_.path() / "real", hook());
  EXPECT_THAT(RunIt(), Optional(HasSubstr("not a regular file")));
  fs::remove(hook());
  fs::create_directory(hook());
  EXPECT_THAT(RunIt(), Optional(HasSubstr("not a regular file")));
  EXPECT_FALSE(ran());
}

TEST_F(PhaseHookTest, WhatBecameOfItIsSaid) {
  Write("exit 7\n", 0700);
  EXPECT_THAT(RunIt(), Optional(HasSubstr("exited with 7")));
  Write("kill -TERM $$\n", 0700);
  EXPECT_THAT(RunIt(), Optional(HasSubstr("signal 15")));
  Write("exec 0<&-; exit 0\n", 0700);
  EXPECT_EQ(RunIt(), std::nullopt) << "it need not read";
}

// Puts a pipe in the place of our stderr; what was written to it until it is put back.
class CaughtStderr {
 public:
  CaughtStderr() : kept_(::dup(STDERR_FILENO)) {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader_ = UniqueFd(ends[0]);
    const UniqueFd writer(ends[1]);
    EXPECT_EQ(::dup2(writer.get(), STDERR_FILENO), STDERR_FILENO);
  }
  ~CaughtStderr() { PutBack(); }
  CaughtStderr(const CaughtStderr&) = delete;
  CaughtStderr& operator=(const CaughtStderr&) = delete;

  // To its end, or "(held)" when somebody else has it after all.
  std::string Text() {
    PutBack();
    std::string text;
    std::array<char, 4096> bytes = {};
    while (true) {
      pollfd ready{.fd = reader_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 1000) != 1) return text + "(held)";
      const ssize_t size = ::read(reader_.get(), bytes.data(), bytes.size());
      if (size <= 0) return text;
      text.append(bytes.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  void PutBack() {
    if (kept_.get() < 0) return;
    ::dup2(kept_.get(), STDERR_FILENO);
    kept_ = UniqueFd();
  }
  UniqueFd kept_;
  UniqueFd reader_;
};

TEST_F(PhaseHookTest, ItsStderrIsOursButNotThatOfWhatItLeavesRunning) {
  const std::string large(50'000, 'x');  // less than a pipe holds
  std::ofstream(directory_.path() / "large") << large;
  Write("cat large >&2\nsleep 20 &\necho $! > ran\necho end >&2\n", 0700);
  CaughtStderr caught;
  EXPECT_EQ(RunIt(), std::nullopt);
  const std::string text = caught.Text();
  pid_t left = 0;
  std::ifstream(directory_.path() / "ran") >> left;
  ASSERT_GT(left, 0);
  ::kill(left, SIGKILL);
  EXPECT_EQ(text, large + "end\n");
}

TEST_F(PhaseHookTest, AHookThatDoesNotEndIsKilledWithWhatItStarted) {
  // Whoever is alive holds the writing end open.
  const fs::path pipe = directory_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Write("exec 9>pipe; echo started >&9; sleep 30 & wait\n", 0700);
  EXPECT_THAT(RunIt(std::chrono::milliseconds(1000)), Optional(HasSubstr("was killed")));
  std::array<char, 16> text = {};
  EXPECT_EQ(::read(reader.get(), text.data(), text.size()), 8) << "it had started";
  pollfd ended{.fd = reader.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1);
  EXPECT_NE(ended.revents & POLLHUP, 0);
}

}  // namespace
}  // namespace interlock::cli
