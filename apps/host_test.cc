#include "host.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "testing/temp_db.h"

namespace interlock::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HostTest, TheSoftLimitOfOpenFilesBecomesTheHardOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RaiseOpenFileLimit(), before.rlim_max);
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(HostTest, TheUseOfTheProcessIsRead) {
  const auto before = ReadProcessUse();
  ASSERT_TRUE(before.resident_bytes && before.open_files && before.cpu_seconds);
  EXPECT_GT(*before.resident_bytes, 100'000U);
  EXPECT_GE(*before.cpu_seconds, 0.0);
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(*ReadProcessUse().open_files, *before.open_files + 1);
  ::close(file);
}

TEST(HostTest, ConnectionsAndRefusalsFitIntoTheOpenFiles) {
  const Limits plenty = FitToOpenFiles(Limits(), 1'000'000);
  EXPECT_EQ(plenty.connections_max, Limits().connections_max);
  EXPECT_EQ(plenty.refusals_max, Limits().refusals_max);
  for (std::uint64_t files = 0; files < 3000; ++files) {
    const Limits fitted = FitToOpenFiles(Limits(), files);
    ASSERT_GE(fitted.connections_max, 1U);
    ASSERT_GE(fitted.refusals_max, 1U);
    ASSERT_LE(fitted.connections_max, Limits().connections_max);
    if (files > 50) {
      ASSERT_LE(fitted.connections_max + 2 * fitted.refusals_max + 40, files);
    }
  }
}

TEST(HostTest, TooFewOpenFilesAreRefusedWithTheNumberNeeded) {
  EXPECT_TRUE(RefuseTooFewFiles(1024, 3, 2).ok());
  EXPECT_TRUE(RefuseTooFewFiles(41, 3, 2).ok());
  const Result<void> refused = RefuseTooFewFiles(40, 3, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("the limit of open files is 40"));
  EXPECT_THAT(refused.error().message(), HasSubstr("needs 38 more"));
  EXPECT_FALSE(RefuseTooFewFiles(41, 4, 2).ok());
  EXPECT_FALSE(RefuseTooFewFiles(64, 3, 64).ok());
}

TEST(HostTest, NetworkFileSystemsAreKnownByTheirMagic) {
  EXPECT_EQ(NetworkFileSystemName(NFS_SUPER_MAGIC), "nfs");
  EXPECT_EQ(NetworkFileSystemName(CIFS_SUPER_MAGIC), "cifs");
  EXPECT_EQ(NetworkFileSystemName(static_cast<std::int32_t>(CIFS_SUPER_MAGIC)), "cifs");
  EXPECT_EQ(NetworkFileSystemName(SMB2_SUPER_MAGIC), "smb2");
  EXPECT_EQ(NetworkFileSystemName(V9FS_MAGIC), "9p");
  EXPECT_EQ(NetworkFileSystemName(CEPH_SUPER_MAGIC), "ceph");
  EXPECT_EQ(NetworkFileSystemName(AFS_SUPER_MAGIC), "afs");
  for (const std::int64_t local :
       {std::int64_t{EXT4_SUPER_MAGIC}, std::int64_t{TMPFS_MAGIC}, std::int64_t{BTRFS_SUPER_MAGIC},
        std::int64_t{XFS_SUPER_MAGIC}, std::int64_t{OVERLAYFS_SUPER_MAGIC}}) {
    EXPECT_EQ(NetworkFileSystemName(local), "");
  }
}

TEST(HostTest, LocalPlacesAreFineAlsoWhenTheyDoNotExistYet) {
  const testing::TempDir directory;
  EXPECT_TRUE(RefuseNetworkFileSystem(directory.path() / "a.db").ok());
  EXPECT_TRUE(RefuseNetworkFileSystem(directory.path() / "x" / "y" / "a.db").ok());
  EXPECT_TRUE(RefuseNetworkFileSystem("a.db").ok());
}

TEST(HostTest, OneLockPerDatabaseAndTheHolderIsNamed) {
  const testing::TempDir directory;
  const auto path = directory.path() / "new" / "a.db";
  {
    const auto first = DatabaseLock::Acquire(path);
    ASSERT_TRUE(first.ok());
    struct stat info{};
    ASSERT_EQ(::stat(path.parent_path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700U);
    ASSERT_EQ(::stat((path.string() + ".lock").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600U);
    const auto second = DatabaseLock::Acquire(path);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(second.error().message(),
                AllOf(HasSubstr(path.string()), HasSubstr("--db"),
                      HasSubstr("(pid " + std::to_string(::getpid()) + ")")));
    EXPECT_TRUE(DatabaseLock::Acquire(directory.path() / "new" / "b.db").ok());
  }
  EXPECT_TRUE(DatabaseLock::Acquire(path).ok());
}

TEST(HostTest, WhatTheLockMakesIsPrivateWhateverTheUmask) {
  const testing::TempDir directory;
  const auto path = directory.path() / "new" / "a.db";
  const mode_t before = ::umask(0777);
  const auto lock = DatabaseLock::Acquire(path);
  ::umask(before);
  ASSERT_TRUE(lock.ok()) << lock.error();
  struct stat info{};
  ASSERT_EQ(::stat(path.parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  ASSERT_EQ(::stat((path.string() + ".lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
}

TEST(HostTest, OnlyOneMissingDirectoryIsCreated) {
  const testing::TempDir directory;
  const auto missing = directory.path() / "new";
  for (const auto& path : {missing / "deep" / "a.db", missing / "deep" / "er" / "a.db",
                           missing / "." / "deep" / "a.db"}) {
    const auto lock = DatabaseLock::Acquire(path);
    ASSERT_FALSE(lock.ok()) << path;
    EXPECT_EQ(lock.error().code(), Errc::kCantOpen);
    EXPECT_THAT(lock.error().message(), AllOf(HasSubstr(path.string()), HasSubstr("mkdir -p"),
                                              HasSubstr((missing / "deep").string())));
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  }
  EXPECT_TRUE(DatabaseLock::Acquire(missing / "." / "a.db").ok());
  EXPECT_TRUE(DatabaseLock::Acquire(missing / "deep" / "a.db").ok()) << "now one level is missing";
}

TEST(HostTest, NothingIsMadeInASymlinkedDirectory) {
  const testing::TempDir directory;
  std::filesystem::create_directory(directory.path() / "real");
  std::filesystem::create_directory_symlink("real", directory.path() / "link");
  const auto lock = DatabaseLock::Acquire(directory.path() / "link" / "a.db");
  ASSERT_FALSE(lock.ok());
  EXPECT_THAT(lock.error().message(), HasSubstr("symbolic link"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path() / "real"));
}

TEST(HostTest, AHolderThatIsGoneIsNotNamed) {
  const testing::TempDir directory;
  const auto path = directory.path() / "a.db";
  const auto held = DatabaseLock::Acquire(path);
  ASSERT_TRUE(held.ok());
  for (const char* text : {"999999999\n", ""}) {
    std::ofstream(path.string() + ".lock") << text;
    const auto second = DatabaseLock::Acquire(path);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(second.error().message(), HasSubstr("in use by another process"));
  }
}

TEST(HostTest, ALockFileThatIsASymlinkIsRefused) {
  const testing::TempDir directory;
  std::ofstream(directory.path() / "victim") << "precious";
  std::filesystem::create_symlink("victim", directory.path() / "a.db.lock");
  EXPECT_FALSE(DatabaseLock::Acquire(directory.path() / "a.db").ok());
  EXPECT_EQ(std::filesystem::file_size(directory.path() / "victim"), 8U);
}

}  // namespace
}  // namespace interlock::app
