#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "base/id.h"
#include "base/version.h"
#include "testing/fake_clock.h"

namespace interlock::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CommandResult Ic(std::initializer_list<const char*> arguments) {
  testing::FakeClock clock;
  Csprng random;
  Context context({.clock = clock, .random = random, .input = -1, .environment = [](const char*) {
                     return std::nullopt;
                   }});
  return Run(context, std::vector<const char*>(arguments));
}

std::vector<const Command*> AllCommands() {
  std::vector<const Command*> all;
  for (const Group& group : Groups()) {
    for (const Command& command : group.commands()) all.push_back(&command);
  }
  return all;
}

TEST(CommandTest, WithoutACommandItPrintsItsUsage) {
  for (const CommandResult& outcome : {Ic({}), Ic({"--help"}), Ic({"help"}), Ic({"-h"})}) {
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const Group& group : Groups()) {
      EXPECT_THAT(outcome.out, HasSubstr("\n  " + std::string(group.name) + " "));
    }
  }
}

TEST(CommandTest, EveryCommandExplainsItself) {
  std::set<std::string_view> paths;
  for (const Command* command : AllCommands()) {
    const std::string path(command->path);
    EXPECT_TRUE(paths.insert(command->path).second) << path;
    const std::string help = HelpText(*command);
    EXPECT_THAT(help, StartsWith("usage: ic " + path));
    EXPECT_THAT(help, HasSubstr("Example:\n  ")) << path;
    EXPECT_THAT(help, HasSubstr("ic " + path)) << path;
    EXPECT_LE(command->at_least, command->at_most);
    std::istringstream words(path + " --help");
    const std::vector<std::string> line(std::istream_iterator<std::string>(words), {});
    std::vector<const char*> pointers;
    pointers.reserve(line.size());
    for (const std::string& word : line) pointers.push_back(word.c_str());
    testing::FakeClock clock;
    Csprng random;
    Context context({.clock = clock, .random = random, .environment = [](const char*) {
                       return std::nullopt;
                     }});
    const CommandResult by_flag = cli::Run(context, pointers);
    EXPECT_EQ(by_flag.exit_code, 0) << path;
    EXPECT_EQ(by_flag.out, help);
  }
}

TEST(CommandTest, EveryGroupExplainsItself) {
  for (const Group& group : Groups()) {
    const std::string name(group.name);
    const CommandResult by_help = Ic({"help", name.c_str()});
    EXPECT_EQ(by_help.exit_code, 0);
    EXPECT_THAT(by_help.out, StartsWith("usage: ic " + name));
  }
}

TEST(CommandTest, UnknownCommandsAreUsageErrorsWithAHint) {
  const CommandResult typo = Ic({"verison"});
  EXPECT_EQ(typo.exit_code, 3);
  EXPECT_EQ(typo.err, "ic: unknown command 'verison'\ndid you mean 'ic version'?\n");
  EXPECT_EQ(typo.out, "") << "two lines are enough; the rest is in 'ic help'";
  const CommandResult other = Ic({"frobnicate"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("run 'ic help'"));
  EXPECT_EQ(Ic({"help", "frobnicate"}).exit_code, 3);
  EXPECT_EQ(Ic({"--frobnicate", "version"}).exit_code, 3);
  EXPECT_EQ(Ic({"version", "--frobnicate"}).exit_code, 3);
  EXPECT_EQ(Ic({"version", "extra"}).exit_code, 3);
  EXPECT_EQ(Ic({"help", "version", "extra"}).exit_code, 3);
  EXPECT_THAT(Ic({""}).err, StartsWith("ic: unknown command ''\n"));
  EXPECT_EQ(Ic({""}).exit_code, 3);
  EXPECT_EQ(Ic({"", "version"}).exit_code, 3);
  EXPECT_EQ(Ic({"help", ""}).exit_code, 3);
}

TEST(CommandTest, VersionIsForPeopleAndForPrograms) {
  const std::string version(BuildInfo().version);
  const CommandResult text = Ic({"version"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, StartsWith("ic " + version + "\n"));
  EXPECT_THAT(text.out, ContainsRegex("\ncommit: .+\n"));
  EXPECT_THAT(text.out, ContainsRegex("\ntarget: linux/[a-z0-9]+\n"));
  EXPECT_EQ(Ic({"--version"}).out, text.out);

  for (const CommandResult& json : {Ic({"version", "--json"}), Ic({"--json", "version"})}) {
    EXPECT_EQ(json.exit_code, 0);
    EXPECT_THAT(json.out, StartsWith("{\n  \"version\": \"" + version + "\",\n  \"commit\": \""));
    for (const char* key : {"commit_time", "dirty", "os", "arch", "source", "compiler"}) {
      EXPECT_THAT(json.out, HasSubstr("\"" + std::string(key) + "\": "));
    }
#if defined(__clang__)
    EXPECT_THAT(json.out, HasSubstr("\"compiler\": \"clang++ " __clang_version__));
#else
    EXPECT_THAT(json.out, HasSubstr("\"compiler\": \"g++ " __VERSION__));
#endif
  }
  EXPECT_EQ(Ic({"version", "--json=false"}).out, text.out);
}

}  // namespace
}  // namespace interlock::cli
