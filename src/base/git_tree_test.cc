#include "base/git_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace interlock {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class GitTreeTest : public ::testing::Test {
 protected:
  GitTreeTest() {
    std::string name = (fs::canonical(fs::temp_directory_path()) / "git-tree-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) directory_ = name;
  }
  ~GitTreeTest() override { fs::remove_all(directory_); }

  fs::path Root() const { return directory_ / "repo"; }
  void MakeRepository() const { fs::create_directories(Root() / ".git" / "info"); }
  fs::path Exclude() const { return Root() / ".git" / "info" / "exclude"; }
  static std::string Read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  fs::path directory_;
};

TEST_F(GitTreeTest, TheRootIsTheNearestDirectoryWithAGitDirectoryOrFile) {
  EXPECT_EQ(FindGitRoot(Root()), std::nullopt);
  MakeRepository();
  fs::create_directories(Root() / "module" / "src");
  EXPECT_EQ(FindGitRoot(Root()), Root());
  EXPECT_EQ(FindGitRoot(Root() / "module" / "src"), Root());
  EXPECT_EQ(FindGitRoot(Root() / "not" / "there"), Root());
  Write(Root() / "module" / ".git", "gitdir: ../.git/modules/module\n");
  EXPECT_EQ(FindGitRoot(Root() / "module" / "src"), Root() / "module");
}

TEST_F(GitTreeTest, APatternIsAddedOnceAndOtherLinesStay) {
  MakeRepository();
  Write(Exclude(), "# mine\n*.log");  // its last line has no end
  EXPECT_EQ(HideFromGit({Root() / "i.db", Root() / "sub" / "keys.yaml"}).value(), Hidden::kNow);
  EXPECT_EQ(Read(Exclude()), "# mine\n*.log\n/i.db*\n/sub/keys.yaml*\n");
  EXPECT_EQ(HideFromGit({Root() / "sub" / "keys.yaml", Root() / "i.db"}).value(), Hidden::kAlready);
  EXPECT_EQ(Read(Exclude()), "# mine\n*.log\n/i.db*\n/sub/keys.yaml*\n");
}

TEST_F(GitTreeTest, SpecialCharactersOfANameMeanThemselves) {
  MakeRepository();
  ASSERT_TRUE(HideFromGit({Root() / "a*[b]?\\c\nd"}).ok());
  EXPECT_EQ(Read(Exclude()), "/a\\*\\[b]\\?\\\\c?d*\n");
}

TEST_F(GitTreeTest, TheFileBehindALinkIsHiddenToo) {
  MakeRepository();
  Write(Root() / "secret" / "real.yaml", "");
  fs::create_symlink("secret/real.yaml", Root() / "keys.yaml");
  ASSERT_TRUE(HideFromGit({Root() / "keys.yaml"}).ok());
  EXPECT_EQ(Read(Exclude()), "/keys.yaml*\n/secret/real.yaml*\n");
}

TEST_F(GitTreeTest, OutsideAWorkTreeNothingIsWritten) {
  fs::create_directory(Root());
  EXPECT_EQ(HideFromGit({Root() / "i.db"}).value(), Hidden::kAlready);
  EXPECT_TRUE(fs::is_empty(Root()));
}

TEST_F(GitTreeTest, WorkTreesShareTheFileOfTheirRepository) {
  MakeRepository();
  const fs::path own = Root() / ".git" / "worktrees" / "second";
  const fs::path second = directory_ / "second";
  Write(own / "commondir", "../..\n");
  Write(second / ".git", "gitdir: " + own.string() + "\n");
  ASSERT_TRUE(HideFromGit({second / "i.db"}).ok());
  EXPECT_EQ(Read(Exclude()), "/i.db*\n");
  EXPECT_FALSE(fs::exists(own / "info"));
}

TEST_F(GitTreeTest, AMissingInfoDirectoryIsCreated) {
  fs::create_directories(Root() / ".git");
  ASSERT_TRUE(HideFromGit({Root() / "i.db"}).ok());
  EXPECT_EQ(Read(Exclude()), "/i.db*\n");
}

TEST_F(GitTreeTest, AnExcludeFileThatCannotBeWrittenIsAnErrorThatNamesIt) {
  fs::create_directories(Root() / ".git");
  Write(Root() / ".git" / "info", "no directory");
  const auto hidden = HideFromGit({Root() / "i.db"});
  ASSERT_FALSE(hidden.ok());
  EXPECT_THAT(hidden.error().message(), AllOf(HasSubstr("info"), HasSubstr(Root().string())));
}

TEST_F(GitTreeTest, ALinkInThePlaceOfTheExcludeFileIsNotFollowed) {
  MakeRepository();
  Write(directory_ / "victim", "precious");
  fs::create_symlink(directory_ / "victim", Exclude());
  EXPECT_FALSE(HideFromGit({Root() / "i.db"}).ok());
  EXPECT_EQ(Read(directory_ / "victim"), "precious");
}

TEST_F(GitTreeTest, ABrokenGitFileIsAnError) {
  for (const char* text : {"", "nonsense\n", "gitdir: "}) {
    Write(Root() / ".git", text);
    const auto hidden = HideFromGit({Root() / "i.db"});
    EXPECT_FALSE(hidden.ok()) << text;
  }
}

}  // namespace
}  // namespace interlock
