#include "db/sqlite/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "db/sqlite/connection.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;

unsigned ModeOf(const fs::path& path) {
  struct stat found{};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

// Sets the process's umask for one scope.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  ~Umask() { ::umask(before_); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;

 private:
  mode_t before_;
};

Result<std::unique_ptr<Connection>> OpenAt(const fs::path& path,
                                           Access access = Access::kReadWriteOrCreate) {
  OpenOptions options;
  options.path = path;
  options.access = access;
  return Connection::Open(options);
}

TEST(FilesTest, WhatIsCreatedIsPrivateWhateverTheUmask) {
  for (const mode_t mask : {0000, 0022, 0077, 0277, 0777}) {
    SCOPED_TRACE(mask);
    const testing::TempDir dir;
    const fs::path path = dir.path() / "a" / "b" / "x.db";
    const Umask umask(mask);
    auto connection = OpenAt(path).value();
    ASSERT_TRUE(connection->RunScript("CREATE TABLE t(a)").ok());
    EXPECT_EQ(ModeOf(dir.path() / "a"), 0700u);
    EXPECT_EQ(ModeOf(dir.path() / "a" / "b"), 0700u);
    EXPECT_EQ(ModeOf(path), 0600u);
    EXPECT_EQ(ModeOf(path.string() + "-wal"), 0600u);
    EXPECT_EQ(ModeOf(path.string() + "-shm"), 0600u);
    ASSERT_TRUE(connection->BackUpTo(dir.path() / "copy.db").ok());
    EXPECT_EQ(ModeOf(dir.path() / "copy.db"), 0600u);
  }
}

TEST(FilesTest, ModesOfWhatExistsStay) {
  const testing::TempDir dir;
  fs::create_directory(dir.path() / "d");
  fs::permissions(dir.path() / "d", fs::perms{0755});
  const fs::path path = dir.path() / "d" / "x.db";
  std::ofstream(path).close();
  fs::permissions(path, fs::perms{0660});
  auto connection = OpenAt(path).value();
  ASSERT_TRUE(connection->RunScript("CREATE TABLE t(a)").ok());
  EXPECT_EQ(ModeOf(dir.path() / "d"), 0755u);
  EXPECT_EQ(ModeOf(path), 0660u);
  EXPECT_EQ(ModeOf(path.string() + "-wal"), 0660u);
}

TEST(FilesTest, ASymlinkedFileIsRefused) {
  const testing::TempDir dir;
  ASSERT_TRUE(OpenAt(dir.path() / "real.db").ok());
  fs::create_symlink("real.db", dir.path() / "link.db");
  fs::create_symlink("nowhere.db", dir.path() / "dangling.db");
  for (const Access access : {Access::kReadOnly, Access::kReadWrite, Access::kReadWriteOrCreate}) {
    for (const char* name : {"link.db", "dangling.db"}) {
      const auto opened = OpenAt(dir.path() / name, access);
      ASSERT_FALSE(opened.ok()) << name;
      EXPECT_EQ(opened.error().code(), Errc::kCantOpen);
      EXPECT_NE(opened.error().message().find("symbolic link"), std::string::npos);
    }
  }
  EXPECT_FALSE(fs::exists(dir.path() / "nowhere.db"));
}

TEST(FilesTest, AFileWithAnotherNameIsRefused) {
  const testing::TempDir dir;
  ASSERT_TRUE(OpenAt(dir.path() / "real.db").ok());
  fs::create_hard_link(dir.path() / "real.db", dir.path() / "other.db");
  for (const char* name : {"real.db", "other.db"}) {
    const auto opened = OpenAt(dir.path() / name);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_NE(opened.error().message().find("hard links"), std::string::npos);
  }
  fs::remove(dir.path() / "other.db");
  EXPECT_TRUE(OpenAt(dir.path() / "real.db").ok());
}

TEST(FilesTest, ASymlinkedParentDirectoryIsRefusedHoweverItIsSpelled) {
  const testing::TempDir dir;
  fs::create_directories(dir.path() / "real" / "deep");
  fs::create_directory_symlink("real", dir.path() / "link");
  for (const char* spelled : {"link/x.db", "link/./x.db", "link//x.db", "./link/././x.db"}) {
    const auto opened = OpenAt(dir.path() / spelled);
    ASSERT_FALSE(opened.ok()) << spelled;
    EXPECT_NE(opened.error().message().find("symbolic link"), std::string::npos);
  }
  EXPECT_TRUE(fs::is_empty(dir.path() / "real" / "deep"));
  EXPECT_FALSE(fs::exists(dir.path() / "real" / "x.db"));
}

TEST(FilesTest, SymlinksAboveTheParentDirectoryDoNotHurt) {
  const testing::TempDir dir;
  fs::create_directories(dir.path() / "real" / "deep");
  fs::create_directory_symlink("real", dir.path() / "link");
  auto connection = OpenAt(dir.path() / "link" / "deep" / "x.db").value();
  EXPECT_EQ(connection->path(), dir.path() / "real" / "deep" / "x.db");
  EXPECT_TRUE(OpenAt(dir.path() / "link" / "new" / "x.db").ok());
  EXPECT_TRUE(fs::exists(dir.path() / "real" / "new" / "x.db"));
  // ".." after a link is where the kernel says it is, and never itself a link.
  EXPECT_TRUE(OpenAt(dir.path() / "link" / ".." / "y.db").ok());
  EXPECT_TRUE(fs::exists(dir.path() / "y.db"));
}

TEST(FilesTest, WhatIsNoRegularFileIsRefusedWithoutBeingOpened) {
  const testing::TempDir dir;
  ASSERT_EQ(::mkfifo((dir.path() / "fifo").c_str(), 0600), 0);  // opening one would wait for ever
  fs::create_directory(dir.path() / "directory");
  for (const char* name : {"fifo", "directory"}) {
    const auto opened = OpenAt(dir.path() / name);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().code(), Errc::kCantOpen);
    EXPECT_NE(opened.error().message().find("not a regular file"), std::string::npos);
  }
  for (const fs::path& path : {fs::path(), dir.path() / "", dir.path() / "."}) {
    EXPECT_EQ(OpenAt(path).error().code(), Errc::kCantOpen) << path;
  }
}

TEST(FilesTest, OnlyCreatingAccessCreates) {
  const testing::TempDir dir;
  for (const Access access : {Access::kReadOnly, Access::kReadWrite}) {
    const auto opened = OpenAt(dir.path() / "missing.db", access);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code(), Errc::kCantOpen);
    EXPECT_EQ(OpenAt(dir.path() / "no" / "x.db", access).error().code(), Errc::kCantOpen);
  }
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

// The superuser may write everything, so this runs in a child that is nobody.
TEST(FilesTest, AWriteProtectedFileIsRefusedForWritingAndServedForReading) {
  const testing::TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  fs::permissions(temp.directory(), fs::perms{0777});
  fs::permissions(temp.path(), fs::perms{0444});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65'534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(10);
    const auto writing = OpenAt(temp.path(), Access::kReadWrite);
    if (writing.ok()) ::_exit(11);
    if (writing.error().code() != Errc::kReadOnly) ::_exit(12);
    ::_exit(OpenAt(temp.path(), Access::kReadOnly).ok() ? 0 : 13);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(FilesTest, AFileInTheWayOfADirectoryIsNamed) {
  const testing::TempDir dir;
  std::ofstream(dir.path() / "file").close();
  const auto opened = OpenAt(dir.path() / "file" / "x.db");
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message().find((dir.path() / "file").string()), std::string::npos);
}

TEST(FilesTest, APrivateFileIsNeverMadeOverAnother) {
  const testing::TempDir dir;
  EXPECT_TRUE(CreatePrivateFile(dir.path() / "x").ok());
  EXPECT_EQ(CreatePrivateFile(dir.path() / "x").error().code(), Errc::kAlreadyExists);
  fs::create_symlink("nowhere", dir.path() / "y");
  EXPECT_EQ(CreatePrivateFile(dir.path() / "y").error().code(), Errc::kAlreadyExists);
  EXPECT_FALSE(fs::exists(dir.path() / "nowhere"));
}

}  // namespace
}  // namespace interlock::sqlite
