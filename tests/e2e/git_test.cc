// The programs in a git work tree: `git status` shows nothing of theirs, and no key is ever added.
// The real git judges.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "e2e_test.h"

namespace interlock::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Texts = std::vector<std::string>;

class GitTest : public E2eTest {
 protected:
  GitTest() {
    ::setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    ::setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    fs::create_directory(File("repo"));
    Git("init -q");
    Git("config user.name t");
    Git("config user.email t@example.org");
    std::ofstream(File("repo/README")) << "hello\n";
    Git("add README");
    Git("commit -q -m first");
  }

  // The command, run in a directory of the test; its output is kept outside.
  Texts In(const std::string& directory, Texts command) const {
    command.insert(command.begin(), {"/usr/bin/env", "-C", File(directory).string()});
    return command;
  }
  testing::Finished RunIn(const std::string& directory, Texts command) const {
    return testing::RunProgram(In(directory, std::move(command)), Directory());
  }
  testing::Finished InitIc(const std::string& directory = "repo") const {
    return RunIn(directory, {ServerProcess::Program("ic"), "init"});
  }

  // The output of the command; a failure fails the test.
  std::string Git(const std::string& words, const std::string& directory = "repo") const {
    const auto done = RunIn(directory, {"/bin/sh", "-c", "git " + words + " 2>&1"});
    EXPECT_EQ(done.exit_code, 0) << words << '\n' << done.out;
    return done.out;
  }
  std::string Shown(const std::string& directory = "repo") const {
    return Git("status --porcelain --untracked-files=all", directory);
  }
  // After `git add -A`, which is undone.
  std::string Added(const std::string& directory = "repo") const {
    Git("add -A", directory);
    const std::string names = Git("diff --cached --name-only", directory);
    Git("reset -q", directory);
    return names;
  }
  // A server on a free port with its defaults, started in this directory.
  std::unique_ptr<ChildProcess> Serve(const std::string& directory, Texts flags = {}) const {
    flags.insert(flags.begin(), {ServerProcess::Program("intermute"), "serve", "--port=0"});
    auto server = std::make_unique<ChildProcess>(ChildProcess::Options{
        .arguments = In(directory, std::move(flags)), .directory = Directory()});
    EXPECT_TRUE(server->WaitForLine("listening on http://", ServerProcess::kPatience))
        << server->Stderr();
    return server;
  }
  testing::Finished InitKeys() const {
    return RunIn("repo", {ServerProcess::Program("intermute"), "init", "--project=web"});
  }
  // Neither the server nor `intermute init` leaves a key where git would add it.
  void CheckNoKeyIsMade() const {
    const auto server = Serve("repo");
    Stop(*server);
    EXPECT_THAT(server->Stderr(), HasSubstr("WARN cannot make a keys file; only this machine can "
                                            "be served error=\"forbidden: git would add "));
    EXPECT_FALSE(fs::exists(File("repo/intermute.keys.yaml")));
    const auto init = InitKeys();
    EXPECT_EQ(init.exit_code, 1);
    EXPECT_THAT(init.out + init.err, HasSubstr("git would add "));
    EXPECT_THAT(init.out + init.err, Not(HasSubstr("Bearer")));
    EXPECT_FALSE(fs::exists(File("repo/intermute.keys.yaml")));
  }
  static void Stop(ChildProcess& server) {
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(ServerProcess::kPatience), 0) << server.Stderr();
  }
};

TEST_F(GitTest, AServerLeavesNothingThatGitShowsOrAdds) {
  for (const char* directory : {"repo", "repo/sub dir [x]"}) {
    SCOPED_TRACE(directory);
    fs::create_directories(File(directory));
    const auto server = Serve(directory, {"--socket=s.sock"});
    EXPECT_TRUE(fs::exists(File(directory) / "intermute.db-wal"));
    EXPECT_TRUE(fs::exists(File(directory) / "intermute.keys.yaml"));
    EXPECT_EQ(Shown(), "");
    EXPECT_EQ(Added(), "");
    Stop(*server);
    EXPECT_EQ(Shown(), "");
    EXPECT_THAT(server->Stderr(), HasSubstr("INFO git ignores the files of this server"));
  }
  EXPECT_FALSE(fs::exists(File("repo/.gitignore"))) << "the user's files are left alone";
  Stop(*Serve("repo"));
}

TEST_F(GitTest, ANewDirectoryOfTheDatabaseIsHiddenToo) {
  const auto server = Serve("repo", {"--db=var/i.db", "--keys-file=var/keys.yaml"});
  EXPECT_EQ(Shown(), "");
  EXPECT_EQ(Added(), "");
  Stop(*server);
}

TEST_F(GitTest, AnIgnoreFileOfTheUserStaysAsItIs) {
  std::ofstream(File("repo/.gitignore")) << "*.log\n";
  Git("add .gitignore");
  Git("commit -q -m ignore");
  Stop(*Serve("repo"));
  EXPECT_EQ(Shown(), "");
}

TEST_F(GitTest, InitLeavesNoKeyThatGitAdds) {
  for (const char* file : {"intermute.keys.yaml", "etc/keys.yaml"}) {
    fs::create_directories(File("repo/etc"));
    const auto done = RunIn("repo", {ServerProcess::Program("intermute"), "init", "--project=web",
                                     std::string("--keys-file=") + file});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, Not(HasSubstr("Warning")));
    EXPECT_TRUE(fs::exists(File("repo") / file));
    EXPECT_EQ(Shown(), "");
    EXPECT_EQ(Added(), "");
  }
}

TEST_F(GitTest, IcInitLeavesNothingThatGitShowsOrAdds) {
  for (int i = 0; i < 2; ++i) {
    const auto done = InitIc();
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_EQ(done.err, "");
    EXPECT_TRUE(fs::exists(File("repo/.clavain/intercore.db")));
    EXPECT_EQ(Shown(), "");
    EXPECT_EQ(Added(), "");
  }
  std::ofstream(File("repo/.clavain/config.yaml")) << "a: b\n";
  EXPECT_EQ(Shown(), "?? .clavain/config.yaml\n") << "other files there stay visible";
}

TEST_F(GitTest, LinkedWorkTreesAndSubmodulesAreWorkTreesToo) {
  Git("worktree add -q ../second");
  Git("-c protocol.file.allow=always submodule --quiet add ../repo/.git module");
  Git("commit -q -m module");
  for (const char* directory : {"second", "repo/module"}) {
    SCOPED_TRACE(directory);
    const auto server = Serve(directory);
    EXPECT_EQ(InitIc(directory).exit_code, 0);
    EXPECT_EQ(Shown(directory), "");
    EXPECT_EQ(Added(directory), "");
    EXPECT_EQ(Shown(), "");
    Stop(*server);
  }
}

TEST_F(GitTest, ARepositoryThatCannotBeWrittenIsOneWarningAndTheProgramsGoOn) {
  fs::remove_all(File("repo/.git/info"));
  std::ofstream(File("repo/.git/info")) << "no directory";
  const auto server = Serve("repo");
  Stop(*server);
  const std::string log = server->Stderr();
  const std::size_t first = log.find("WARN git may add the files of this server");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("WARN git", first + 1), std::string::npos) << log;
  const auto ic = InitIc();
  EXPECT_EQ(ic.exit_code, 0);
  EXPECT_THAT(ic.err, HasSubstr("ic: init: warning: git may add " +
                                File("repo/.clavain/intercore.db").string()));
  CheckNoKeyIsMade();
}

TEST_F(GitTest, KeyThatAnIgnoreFileIncludesIsNotMade) {
  std::ofstream(File("repo/.gitignore")) << "!*.yaml\n";
  Git("add .gitignore");
  Git("commit -q -m ignore");
  CheckNoKeyIsMade();
  EXPECT_EQ(Added(), "");
  std::ofstream(File("repo/.gitignore")) << "*.log\n";
  EXPECT_EQ(InitKeys().exit_code, 0);
  EXPECT_EQ(Added(), ".gitignore\n");
}

TEST_F(GitTest, NoKeyIsMadeInARepositoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(File("repo/.git").c_str(), 12345, 12345), 0);
  CheckNoKeyIsMade();
}

TEST_F(GitTest, NoKeyIsAddedToAFileThatGitTracks) {
  std::ofstream(File("repo/intermute.keys.yaml")) << "projects: {}\n";
  Git("add -f intermute.keys.yaml");
  Git("commit -q -m keys");
  EXPECT_EQ(InitKeys().exit_code, 1);
  EXPECT_EQ(Shown(), "");
}

}  // namespace
}  // namespace interlock::e2e
