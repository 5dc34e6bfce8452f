#include "kernel/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class InputFileTest : public ::testing::Test {
 protected:
  InputFileTest() {
    fs::create_directories(here_ / "sub/deep");
    Write(here_ / "a.json", "in here");
    Write(here_ / "sub/deep/b.json", "below");
    Write(temp_.path() / "outside.json", "outside");
  }

  static void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  std::string Read(const std::string& path, std::size_t most = 100) {
    const auto text = ReadFileUnder(here_, path, most);
    if (text.ok()) return *text;
    EXPECT_EQ(text.error().exit_code(), 2);
    EXPECT_EQ(text.error().details().size(), 1) << "what to do";
    return "refused: " + text.error().message();
  }

  testing::TempDir temp_;
  fs::path here_ = temp_.path() / "here";
};

TEST_F(InputFileTest, FilesUnderTheDirectoryAreRead) {
  EXPECT_EQ(Read("a.json"), "in here");
  EXPECT_EQ(Read("./sub//deep/b.json"), "below");
  EXPECT_EQ(Read("sub/../a.json"), "in here");
  EXPECT_EQ(Read((here_ / "sub/deep/b.json").string()), "below");
  Write(here_ / "empty", "");
  EXPECT_EQ(Read("empty"), "");
  Write(here_ / "..name", "an odd name");
  EXPECT_EQ(Read("..name"), "an odd name");
}

TEST_F(InputFileTest, PathsThatLeadElsewhereAreRefused) {
  for (const std::string path : {"../outside.json", "sub/../../outside.json", "/etc/hostname", "",
                                 ".", "..", "sub/..", "/"}) {
    EXPECT_THAT(Read(path), HasSubstr("under the current directory")) << path;
  }
  EXPECT_THAT(Read((temp_.path() / "outside.json").string()),
              HasSubstr("under the current directory"));
  EXPECT_THAT(Read(here_.string() + "x/a.json"), HasSubstr("under the current directory"));
}

TEST_F(InputFileTest, SymlinksAreRefusedWhereverTheyStandAndLead) {
  fs::create_symlink(temp_.path() / "outside.json", here_ / "out.json");
  fs::create_symlink(here_ / "a.json", here_ / "in.json");
  fs::create_directory_symlink(here_ / "sub", here_ / "link");
  fs::create_symlink("nowhere", here_ / "broken");
  for (const std::string path : {"out.json", "in.json", "link/deep/b.json", "broken"}) {
    EXPECT_THAT(Read(path), HasSubstr("symlink")) << path;
  }
}

TEST_F(InputFileTest, OnlyRegularFilesThatCanBeReadAreRead) {
  EXPECT_THAT(Read("sub"), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo((here_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(Read("pipe"), HasSubstr("not a regular file")) << "and it does not wait";
  EXPECT_THAT(Read("missing"), HasSubstr("No such file"));
  EXPECT_THAT(Read("a.json/x"), HasSubstr("Not a directory"));
  if (::geteuid() == 0) return;  // may read everything
  ASSERT_EQ(::chmod((here_ / "a.json").c_str(), 0), 0);
  EXPECT_THAT(Read("a.json"), HasSubstr("Permission denied"));
}

TEST_F(InputFileTest, TheSizeIsBounded) {
  EXPECT_EQ(Read("a.json", 7), "in here");
  EXPECT_THAT(Read("a.json", 6), HasSubstr("more than 6 bytes"));
}

}  // namespace
}  // namespace interlock::kernel
