#include "http/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <vector>

#include "testing/http_client.h"
#include "testing/temp_db.h"

namespace interlock::http {
namespace {

using ::testing::HasSubstr;

class SocketTest : public ::testing::Test {
 protected:
  std::filesystem::path Path() const { return directory_.path() / "i.sock"; }

  // Leaves a socket file behind that nobody serves, as a killed process does.
  void LeaveStaleSocket() const { BindForeign(SOCK_STREAM); }

  // A socket of another program, bound at the path.
  UniqueFd BindForeign(int type) const {
    UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, Path().c_str());
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  static std::string Me() { return "(pid " + std::to_string(::getpid()) + ")"; }

  interlock::testing::TempDir directory_;
};

TEST_F(SocketTest, PortZeroTakesAFreePortAndSaysWhich) {
  const auto socket = ListenTcp("127.0.0.1", 0);
  ASSERT_TRUE(socket.ok());
  EXPECT_NE(socket->port, 0);
  EXPECT_EQ(socket->url, "http://127.0.0.1:" + std::to_string(socket->port));
  EXPECT_TRUE(interlock::testing::HttpClient::Tcp(socket->port).connected());
}

TEST_F(SocketTest, ATakenPortIsRefusedWithItsHolder) {
  const auto first = ListenTcp("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const auto second = ListenTcp("127.0.0.1", first->port);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message(), HasSubstr("port " + std::to_string(first->port)));
  EXPECT_THAT(second.error().message(), HasSubstr(Me()));
  EXPECT_THAT(second.error().message(), HasSubstr("--port"));
}

TEST_F(SocketTest, NamesAndIpv6AddressesWorkAndNonsenseIsExplained) {
  const auto named = ListenTcp("localhost", 0);
  ASSERT_TRUE(named.ok());
  EXPECT_THAT(named->url, HasSubstr("http://127.0.0.1:"));
  if (const auto six = ListenTcp("::1", 0); six.ok()) {
    EXPECT_THAT(six->url, HasSubstr("http://[::1]:"));
  }
  const auto nonsense = ListenTcp("no such host", 0);
  ASSERT_FALSE(nonsense.ok());
  EXPECT_THAT(nonsense.error().message(), HasSubstr("no such host"));
}

TEST_F(SocketTest, UnixSocketHasMode0660WhateverTheUmask) {
  for (const mode_t mask : {0, 022, 077, 0177}) {
    const mode_t before = ::umask(mask);
    const auto socket = ListenUnix(Path());
    ::umask(before);
    ASSERT_TRUE(socket.ok());
    struct stat info{};
    ASSERT_EQ(::lstat(Path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0660U) << "umask " << mask;
  }
}

TEST_F(SocketTest, AStaleSocketFileIsReplaced) {
  LeaveStaleSocket();
  const auto socket = ListenUnix(Path());
  ASSERT_TRUE(socket.ok()) << socket.error();
  EXPECT_TRUE(interlock::testing::HttpClient::Unix(Path()).connected());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(SocketTest, OfManyThatStartOnAStaleSocketOneWinsAndItsFileAnswers) {
  constexpr int kRounds = 25;
  constexpr int kStarters = 8;
  for (int round = 0; round < kRounds; ++round) {
    LeaveStaleSocket();
    std::vector<std::future<Result<ListeningSocket>>> starters;
    starters.reserve(kStarters);
    std::latch begin(kStarters);
    for (int i = 0; i < kStarters; ++i) {
      starters.push_back(std::async(std::launch::async, [&] {
        begin.arrive_and_wait();
        return ListenUnix(Path());
      }));
    }
    std::vector<Result<ListeningSocket>> sockets;
    sockets.reserve(kStarters);
    for (auto& starter : starters) sockets.push_back(starter.get());
    const auto winners = std::ranges::count_if(sockets, [](const auto& one) { return one.ok(); });
    ASSERT_EQ(winners, 1) << "round " << round;
    ASSERT_TRUE(interlock::testing::HttpClient::Unix(Path()).connected()) << "round " << round;
    ASSERT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
  }
}

TEST_F(SocketTest, ALiveSocketIsRefusedWithItsServerAndKept) {
  const auto first = ListenUnix(Path());
  ASSERT_TRUE(first.ok());
  const auto second = ListenUnix(Path());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message(), HasSubstr(Me()));
  EXPECT_THAT(second.error().message(), HasSubstr("--socket"));
  EXPECT_TRUE(interlock::testing::HttpClient::Unix(Path()).connected());
}

TEST_F(SocketTest, ALiveSocketOfAnotherTypeIsRefusedAndKept) {
  for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
    const UniqueFd theirs = BindForeign(type);
    if (type == SOCK_SEQPACKET) {
      ASSERT_EQ(::listen(theirs.get(), 1), 0);
    }
    struct stat before{};
    ASSERT_EQ(::lstat(Path().c_str(), &before), 0);
    const auto ours = ListenUnix(Path());
    ASSERT_FALSE(ours.ok());
    EXPECT_THAT(ours.error().message(), HasSubstr("--socket"));
    struct stat after{};
    ASSERT_EQ(::lstat(Path().c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
    std::filesystem::remove(Path());
  }
}

TEST_F(SocketTest, AFileThatIsNoSocketIsNeverTouched) {
  std::ofstream(Path()) << "precious";
  const auto socket = ListenUnix(Path());
  ASSERT_FALSE(socket.ok());
  EXPECT_THAT(socket.error().message(), HasSubstr("not a socket"));
  std::string text;
  std::ifstream(Path()) >> text;
  EXPECT_EQ(text, "precious");
}

TEST_F(SocketTest, ASymlinkIsNeverFollowedOrRemoved) {
  std::ofstream(directory_.path() / "target") << "precious";
  std::filesystem::create_symlink("target", Path());
  EXPECT_FALSE(ListenUnix(Path()).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path()));
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "target"));
}

TEST_F(SocketTest, OnlyOurOwnFileIsRemoved) {
  {
    const auto theirs = [&] {
      const auto ours = ListenUnix(Path());
      EXPECT_TRUE(ours.ok());
      std::filesystem::remove(Path());
      return ListenUnix(Path());
    }();
    ASSERT_TRUE(theirs.ok());
    EXPECT_TRUE(std::filesystem::exists(Path()));
  }
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(SocketTest, ImpossiblePathsAreExplained) {
  const auto too_long = ListenUnix(directory_.path() / std::string(200, 'x'));
  ASSERT_FALSE(too_long.ok());
  EXPECT_THAT(too_long.error().message(), HasSubstr("bytes"));
  const auto nowhere = ListenUnix(directory_.path() / "no" / "dir.sock");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message(), HasSubstr("directory"));
}

}  // namespace
}  // namespace interlock::http
