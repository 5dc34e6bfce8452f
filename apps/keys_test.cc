#include "keys.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): posix_openpt is POSIX
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "testing/captured_log.h"
#include "testing/fake_clock.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Terminal kNoTerminal{std::nullopt};

class KeysTest : public ::testing::Test {
 protected:
  std::filesystem::path File() const { return directory_.path() / "keys.yaml"; }
  void Write(const std::string& text) const {
    std::ofstream(File()) << text;
    ASSERT_EQ(::chmod(File().c_str(), 0600), 0);
  }
  Result<auth::Keyring> Open(const Terminal& terminal = kNoTerminal) {
    return OpenKeys(File(), random_, terminal, clock_, log_);
  }
  // The key in the file that a bootstrap made.
  std::string KeyInFile() const {
    std::ifstream file(File());
    std::string line;
    std::string last;
    while (std::getline(file, line)) last = line.empty() ? last : line;
    return last.substr(last.find("- ") + 2);
  }

  testing::TempDir directory_;
  testing::SeededRandom random_;
  testing::FakeClock clock_;
  testing::CapturedLog sink_;
  Logger log_{clock_, sink_};
};

TEST_F(KeysTest, ANewKeyIsShownOnTheTerminalAndNeverLogged) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const auth::Keyring keyring = Open(Terminal(pipe[1])).value();
  ::close(pipe[1]);
  std::array<char, 4096> text{};
  const ssize_t size = ::read(pipe[0], text.data(), text.size());
  ::close(pipe[0]);
  const std::string shown(text.data(), static_cast<std::size_t>(size));
  EXPECT_EQ(keyring.Find(KeyInFile()), "dev");
  EXPECT_THAT(shown,
              AllOf(HasSubstr("INTERMUTE_API_KEY=" + KeyInFile()), HasSubstr(File().string())));
  EXPECT_THAT(sink_.text(), AllOf(HasSubstr("shown_on_terminal=true"), HasSubstr("keys=1"),
                                  Not(HasSubstr(KeyInFile()))));
}

TEST_F(KeysTest, WithoutATerminalTheLogSaysWhichFileHoldsTheKey) {
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(sink_.text(),
              AllOf(HasSubstr("created keys file"), HasSubstr(File().string()),
                    HasSubstr("shown_on_terminal=false"), Not(HasSubstr(KeyInFile()))));
}

TEST_F(KeysTest, AFileThatIsThereIsReadAndNothingIsShown) {
  Write("projects: {web: {keys: [alpha]}}\n");
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
  EXPECT_EQ(Open(Terminal(pipe[1]))->Find("alpha"), "web");
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), -1);
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_THAT(sink_.text(), Not(HasSubstr("created keys file")));
}

TEST_F(KeysTest, AFileThatCannotBeMadeIsAWarningAndOneThatCannotBeReadAnError) {
  const auto nowhere =
      OpenKeys(directory_.path() / "a" / "keys.yaml", random_, kNoTerminal, clock_, log_);
  ASSERT_TRUE(nowhere.ok());
  EXPECT_EQ(nowhere->key_count(), 0U);
  EXPECT_EQ(nowhere->local_policy(), auth::LocalPolicy::kNoKeyNeeded);
  EXPECT_THAT(sink_.text(), HasSubstr("WARN cannot make a keys file"));
  Write("projects: [");
  EXPECT_THAT(Open().error().message(), AllOf(HasSubstr(File().string()), HasSubstr("line")));
}

TEST_F(KeysTest, AFileThatOthersMayReadIsAWarning) {
  Write("");
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(sink_.text(), Not(HasSubstr("WARN")));
  ASSERT_EQ(::chmod(File().c_str(), 0644), 0);
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(sink_.text(), AllOf(HasSubstr("WARN other users"), HasSubstr("chmod 600")));
}

TEST_F(KeysTest, AReloadPutsTheNewKeysInForceAndAFailedOneLeavesTheOld) {
  Write("projects: {web: {keys: [alpha]}}\n");
  auth::KeyringHolder holder(Open().value());
  Write("projects: {web: {keys: [beta, gamma]}, dev: {keys: [delta]}}\n");
  ReloadKeys(File(), holder, log_);
  EXPECT_EQ(holder.Get()->Find("alpha"), std::nullopt);
  EXPECT_EQ(holder.Get()->Find("delta"), "dev");
  EXPECT_THAT(sink_.text(), AllOf(HasSubstr("INFO reloaded the keys"), HasSubstr("projects=2"),
                                  HasSubstr("keys=3")));
  Write("projects: {web: {keys: [sesame]}, dev: {keys: [sesame]}}\n");
  ReloadKeys(File(), holder, log_);
  EXPECT_EQ(holder.Get()->Find("delta"), "dev");
  EXPECT_THAT(sink_.text(), AllOf(HasSubstr("ERROR cannot reload the keys"), HasSubstr("line 1"),
                                  Not(HasSubstr("sesame"))));
  for (const char* half :
       {"", "\n", "default_policy:\n", "default_policy:\n  allow_localhost_without_auth:"}) {
    Write(half);
    ReloadKeys(File(), holder, log_);
    EXPECT_EQ(holder.Get()->Find("delta"), "dev") << "half-written: " << half;
  }
  std::filesystem::remove(File());
  ReloadKeys(File(), holder, log_);
  EXPECT_EQ(holder.Get()->Find("delta"), "dev") << "a file that is gone opens no door";
  EXPECT_FALSE(std::filesystem::exists(File())) << "nor is another one made";
}

TEST_F(KeysTest, OnlyASocketThatOthersCanReachNeedsAKey) {
  const auth::Keyring none;
  const auto one = auth::Keyring::Parse("projects: {dev: {keys: [a]}}").value();
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"}) {
    const auto socket = http::ListenTcp(host, 0);
    if (!socket.ok()) continue;  // no IPv6 here
    EXPECT_TRUE(RefuseWithoutKeys(*socket, none).ok()) << host;
  }
  const auto everywhere = http::ListenTcp("0.0.0.0", 0).value();
  EXPECT_TRUE(RefuseWithoutKeys(everywhere, one).ok());
  EXPECT_THAT(RefuseWithoutKeys(everywhere, none).error().message(),
              AllOf(HasSubstr("intermute init --project"), HasSubstr("--insecure"),
                    HasSubstr("127.0.0.1")));
  const auto socket = http::ListenUnix(directory_.path() / "s.sock").value();
  EXPECT_TRUE(RefuseWithoutKeys(socket, none).ok());
}

TEST_F(KeysTest, ATerminalWhoseWindowWasClosedHasHungUp) {
  EXPECT_FALSE(kNoTerminal.HungUp());
  const int window = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(window, 0);
  ASSERT_EQ(::grantpt(window), 0);
  ASSERT_EQ(::unlockpt(window), 0);
  std::array<char, 128> name{};
  ASSERT_EQ(::ptsname_r(window, name.data(), name.size()), 0);
  const int inside = ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(inside, 0);
  const Terminal terminal(inside);
  EXPECT_TRUE(terminal.Show("hello\n"));
  EXPECT_FALSE(terminal.HungUp());
  ::close(window);
  EXPECT_TRUE(terminal.HungUp());
  EXPECT_FALSE(terminal.Show("hello\n"));
  ::close(inside);
}

}  // namespace
}  // namespace interlock::app
