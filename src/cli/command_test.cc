#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <vector>

#include "base/version.h"

namespace interlock::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Outcome Ic(std::initializer_list<const char*> arguments) {
  return Run(std::vector<const char*>(arguments));
}

TEST(CommandTest, WithoutACommandItPrintsItsUsage) {
  for (const Outcome& outcome : {Ic({}), Ic({"--help"}), Ic({"help"}), Ic({"-h"})}) {
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const Command& command : Commands()) {
      EXPECT_THAT(outcome.out, HasSubstr(std::string(command.name)));
    }
  }
}

TEST(CommandTest, EveryCommandExplainsItself) {
  std::set<std::string_view> names;
  for (const Command& command : Commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    const std::string name(command.name);
    const Outcome by_help = Ic({"help", name.c_str()});
    const Outcome by_flag = Ic({name.c_str(), "--help"});
    EXPECT_EQ(by_help.exit_code, 0);
    EXPECT_EQ(by_help.out, by_flag.out);
    EXPECT_THAT(by_help.out, StartsWith("usage: ic " + name));
    EXPECT_THAT(by_help.out, HasSubstr("Example"));
  }
}

TEST(CommandTest, UnknownCommandsAreUsageErrorsWithAHint) {
  const Outcome typo = Ic({"verison"});
  EXPECT_EQ(typo.exit_code, 3);
  EXPECT_EQ(typo.err, "ic: unknown command 'verison'\ndid you mean 'ic version'?\n");
  EXPECT_THAT(typo.out, StartsWith("usage: ic"));
  const Outcome other = Ic({"frobnicate"});
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
  const Outcome text = Ic({"version"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, StartsWith("ic " + version + "\n"));
  EXPECT_THAT(text.out, ContainsRegex("\ncommit: .+\n"));
  EXPECT_THAT(text.out, ContainsRegex("\ntarget: linux/[a-z0-9]+\n"));
  EXPECT_EQ(Ic({"--version"}).out, text.out);

  for (const Outcome& json : {Ic({"version", "--json"}), Ic({"--json", "version"})}) {
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
