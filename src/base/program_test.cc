#include "base/program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "testing/fake_clock.h"

namespace interlock {
namespace {

using ::testing::HasSubstr;

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() { ::signal(SIGPIPE, SIG_IGN); }

  Result<ProgramOutcome> Shell(const std::string& script, std::string input = "") {
    return runner_.Run({.argv = {"sh", "-c", script}, .input = std::move(input)});
  }
  // Runs something that does not end by itself, and `then` once it has begun.
  Result<ProgramOutcome> RunWhile(const std::string& script, const std::function<void()>& then) {
    std::thread other([&] {
      while (clock_.timers_waiting() == 0) std::this_thread::yield();
      then();
    });
    auto outcome = Shell(script);
    other.join();
    return outcome;
  }

  testing::FakeClock clock_;
  ProgramRunner runner_{clock_};
};

TEST_F(ProgramTest, BringsBackWhatItSaysAndHowItEnded) {
  const auto outcome = Shell("cat; echo no >&2; exit 3", "yes");
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  EXPECT_EQ(outcome->out, "yes");
  EXPECT_EQ(outcome->err, "no\n");
  EXPECT_EQ(outcome->exit_code, 3);
  EXPECT_EQ(Shell("kill -9 $$")->exit_code, 137);
  EXPECT_EQ(clock_.timers_waiting(), 0U);
}

TEST_F(ProgramTest, NoShellSeesItsArguments) {
  const auto outcome = runner_.Run({.argv = {"printf", "%s|", "a b", "$(id)", ";x", "", "'"}});
  EXPECT_EQ(outcome->out, "a b|$(id)|;x||'|");
}

TEST_F(ProgramTest, ReadsAndWritesMoreThanAPipeHolds) {
  const std::string text(200'000, 'x');
  EXPECT_EQ(Shell("cat", text)->out, text);
  EXPECT_EQ(Shell("exec <&-; echo done", text)->out, "done\n") << "it need not read everything";
}

TEST_F(ProgramTest, SaysThatThereIsNoSuchProgram) {
  const auto outcome = runner_.Run({.argv = {"no-such-program-here"}});
  EXPECT_EQ(outcome.error().code(), Errc::kNotFound);
  EXPECT_THAT(outcome.error().message(), HasSubstr("no-such-program-here"));
}

TEST_F(ProgramTest, OneThatHangsIsKilledWithItsChildren) {
  const auto outcome =
      RunWhile("sleep 1000 & sleep 1000", [&] { clock_.Advance(std::chrono::seconds(2)); });
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::kUnavailable);
  EXPECT_THAT(outcome.error().message(), HasSubstr("did not end within 2s"));
}

TEST_F(ProgramTest, OneThatClosesItsOutputAndStaysIsKilledToo) {
  const auto outcome =
      RunWhile("exec >&- 2>&-; sleep 1000", [&] { clock_.Advance(std::chrono::seconds(2)); });
  EXPECT_FALSE(outcome.ok());
}

TEST_F(ProgramTest, StopEndsWhatRunsAndRefusesTheNext) {
  EXPECT_FALSE(RunWhile("sleep 1000", [&] { runner_.Stop(); }).ok());
  EXPECT_EQ(Shell("true").error().code(), Errc::kUnavailable);
}

TEST_F(ProgramTest, OneThatNeverStopsTalkingIsKilled) {
  EXPECT_THAT(Shell("yes").error().message(), HasSubstr("says more"));
}

// As the server's threads are: signals blocked, SIGPIPE ignored, files open.
TEST_F(ProgramTest, InheritsNoFileAndNoSignalSetting) {
  const int file = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  const int high = ::fcntl(file, F_DUPFD, 200);
  ASSERT_GE(high, 200);
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto outcome = Shell("ls /proc/self/fd; grep SigBlk /proc/self/status");
  const auto ended = Shell("kill -TERM $$; echo survived");
  const auto piped = Shell("kill -PIPE $$; echo survived");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(file);
  ::close(high);
  EXPECT_EQ(outcome->out, "0\n1\n2\n3\nSigBlk:\t0000000000000000\n");
  EXPECT_EQ(ended->exit_code, 128 + SIGTERM);
  EXPECT_EQ(ended->out, "");
  EXPECT_EQ(piped->exit_code, 128 + SIGPIPE);
}

}  // namespace
}  // namespace interlock
