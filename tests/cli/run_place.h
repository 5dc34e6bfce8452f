#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/ic_process.h"

namespace interlock::testing {

// A test of `ic run` in a directory with a new database.
class RunPlaceTest : public ::testing::Test {
 protected:
  RunPlaceTest() { place_.Init(); }

  Finished Ic(std::vector<std::string> arguments) const { return place_.Ic(std::move(arguments)); }
  // Its output without the newline; fails the test when it does not exit with 0.
  std::string Out(std::vector<std::string> arguments) const {
    const std::string call = ::testing::PrintToString(arguments);
    Finished finished = Ic(std::move(arguments));
    EXPECT_EQ(finished.exit_code, 0) << call << ": " << finished.err;
    if (finished.out.ends_with('\n')) finished.out.pop_back();
    return std::move(finished.out);
  }
  std::string Create(std::vector<std::string> more = {"--goal=g"}) const {
    more.insert(more.begin(), {"run", "create"});
    return Out(std::move(more));
  }
  std::int64_t Int(const db::Sql& sql) const { return place_.Int(sql); }
  std::string Text(const db::Sql& sql) const { return place_.Text(sql); }

  const IcPlace place_;
};

// "p0","p1",… as --phases takes it.
inline std::string PhasesFlag(int count) {
  std::string text = "--phases=[";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + "\"";
  return text + "]";
}

}  // namespace interlock::testing
