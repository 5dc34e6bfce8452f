// S28 for `ic run`: what it exits with when it is called wrongly, and that it then does nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "cli/run_place.h"
#include "testing/seeded_random.h"

namespace interlock {
namespace {

using testing::Finished;
using ::testing::StartsWith;

// Sanitizers make a process some ten times slower; there a part of the cases will do.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStride = 4;
#else
constexpr std::size_t kStride = 1;
#endif

struct Case {
  int exit_code;
  std::vector<std::string> arguments;  // after "run"; RUN is a run that exists
};

class RunExitTest : public testing::RunPlaceTest {
 protected:
  RunExitTest() : run_(Create({"--bead=taken"})) {}

  // Everything there is.
  std::string Content() const {
    return Text(
        "SELECT (SELECT group_concat(id || status || phase || complexity || auto_advance || "
        "coalesce(metadata, '') || max_dispatches || updated_at) FROM runs) || '/' || "
        "(SELECT count(*) FROM phase_events) || '/' || (SELECT count(*) FROM run_agents) || '/' || "
        "(SELECT count(*) FROM run_artifacts) || '/' || (SELECT count(*) FROM phase_actions) || "
        "'/' || (SELECT count(*) FROM state)");
  }
  void Check(const std::vector<Case>& cases) const {
    const std::string before = Content();
    for (std::size_t i = testing::TestSeed() % kStride; i < cases.size(); i += kStride) {
      const Case& one = cases[i];
      std::vector<std::string> arguments = {"run"};
      for (const std::string& word : one.arguments)
        arguments.push_back(word == "RUN" ? run_ : word);
      SCOPED_TRACE(::testing::PrintToString(arguments));
      const Finished end = Ic(arguments);
      EXPECT_EQ(end.exit_code, one.exit_code) << end.err;
      if (one.exit_code == 0) continue;
      EXPECT_EQ(end.out, "");
      EXPECT_THAT(end.err, StartsWith("ic: run"));
      EXPECT_GE(std::ranges::count(end.err, '\n'), 2)
          << "what is wrong, then what to do: " << end.err;
    }
    EXPECT_EQ(Content(), before);
  }

  const std::string run_;
};

TEST_F(RunExitTest, S28CreateRefusesWhatItCannotUnderstand) {
  std::ofstream(place_.path() / "bad.json") << "{";
  const auto with = [](std::string flag) {
    return std::vector<std::string>{"create", "--goal=g", std::move(flag)};
  };
  std::vector<Case> cases;
  for (const char* flag : {"--complexity=0",
                           "--complexity=6",
                           "--complexity=x",
                           "--complexity=",
                           "--phases=x",
                           "--phases=[\"a\"]",
                           "--phases=[\"a\",\"a\"]",
                           "--phases=[\"a\",\"b c\"]",
                           "--gates={}",
                           "--gates=[]",
                           "--gates={",
                           "--gates-file=bad.json",
                           "--metadata=[1]",
                           "--metadata={",
                           "--metadata=x",
                           "--token-budget=0",
                           "--token-budget=-1",
                           "--token-budget=1.5",
                           "--budget-warn-pct=0",
                           "--budget-warn-pct=100",
                           "--max-agents=-1",
                           "--max-dispatches=x",
                           "--bead=",
                           "--session=",
                           "--takeover-after=1m",
                           "--projects=a",
                           "--projects=a,,b",
                           "--projects=a,./a",
                           "--unknown=1",
                           "--debounce=1",
                           "stray",
                           "--goal"}) {
    cases.push_back({3, with(flag)});
  }
  for (const char* flag : {"--gates-file=none.json", "--gates-file=.", "--gates-file=/dev/zero",
                           "--actions={", "--actions=[]", "--actions={\"a\":{}}",
                           "--actions={\"a\":{\"command\":\"c\",\"args\":\"{\"}}"}) {
    cases.push_back({2, with(flag)});
  }
  cases.push_back({3, {"create"}});
  cases.push_back({3, {"create", "--goal="}});
  cases.push_back({3, {"create", "--bead=n", "--takeover-after=5"}});
  cases.push_back({3, {"create", "--bead=n", "--takeover-after=-5s"}});
  cases.push_back({3, {"create", "--goal=g", "--project=a", "--projects=b,c"}});
  cases.push_back({3, {"create", "--goal=g", "--gates={}", "--gates-file=bad.json"}});
  cases.push_back({1, {"create", "--bead=taken"}});
  cases.push_back({1, {"create", "--bead=taken", "--takeover-after=1h"}});
  Check(cases);
}

TEST_F(RunExitTest, S28CommandsThatReadRefuseWhatTheyCannotUnderstand) {
  Check({{3, {}},
         {3, {"frob"}},
         {3, {"status"}},
         {3, {"status", "RUN", "more"}},
         {1, {"status", "nope"}},
         {1, {"status", ""}},
         {3, {"phase"}},
         {1, {"phase", "nope"}},
         {3, {"list", "stray"}},
         {3, {"list", "--status=odd"}},
         {3, {"list", "--status="}},
         {3, {"list", "--active", "--status=failed"}},
         {3, {"list", "--project="}},
         {3, {"list", "--bead="}},
         {0, {"list", "--project=/none"}},
         {1, {"current", "--project=/none"}},
         {3, {"current", "--session="}},
         {3, {"current", "--project=.", "--all-projects"}},
         {3, {"events"}},
         {0, {"events", "nope"}},
         {3, {"tokens"}},
         {0, {"tokens", "nope"}},
         {3, {"budget"}},
         {1, {"budget", "nope"}},
         {3, {"agent"}},
         {3, {"agent", "frob"}},
         {3, {"agent", "list"}},
         {0, {"agent", "list", "nope"}},
         {0, {"artifact", "list", "nope"}},
         {3, {"artifact", "list", "RUN", "--phase="}},
         {0, {"action", "list", "nope"}},
         {3, {"action", "list"}}});
}

TEST_F(RunExitTest, S28CommandsThatMoveARunRefuseWhatTheyCannotDo) {
  Check({{3, {"advance"}},
         {3, {"advance", "RUN", "--priority=x"}},
         {3, {"advance", "RUN", "--frob"}},
         {1, {"advance", "nope"}},
         {3, {"skip", "RUN"}},
         {3, {"skip", "RUN", "planned"}},
         {3, {"skip", "RUN", "planned", "--reason="}},
         {1, {"skip", "RUN", "done", "--reason=x"}},
         {1, {"skip", "RUN", "brainstorm", "--reason=x"}},
         {1, {"skip", "RUN", "nope", "--reason=x"}},
         {1, {"skip", "nope", "planned", "--reason=x"}},
         {3, {"rollback"}},
         {3, {"rollback", "RUN"}},
         {3, {"rollback", "RUN", "--to-phase="}},
         {3, {"rollback", "RUN", "--layer=data"}},
         {3, {"rollback", "RUN", "--layer=code", "--format=xml"}},
         {1, {"rollback", "nope", "--layer=code"}},
         {1, {"rollback", "RUN", "--to-phase=brainstorm"}},
         {1, {"rollback", "RUN", "--to-phase=done", "--dry-run"}},
         {1, {"rollback", "RUN", "--to-phase=nope"}},
         {1, {"rollback", "nope", "--to-phase=brainstorm"}},
         {3, {"cancel"}},
         {1, {"cancel", "nope"}},
         {3, {"abandon"}},
         {1, {"abandon", "nope"}},
         {3, {"set", "RUN"}},
         {3, {"set", "RUN", "--complexity=9"}},
         {3, {"set", "RUN", "--auto-advance=yes"}},
         {3, {"set", "RUN", "--force-full="}},
         {3, {"set", "RUN", "--metadata-merge=[]"}},
         {3, {"set", "RUN", "--metadata-merge="}},
         {3, {"set", "RUN", "--metadata-merge={"}},
         {3, {"set", "RUN", "--max-dispatches=-1"}},
         {1, {"set", "RUN", "--max-dispatches=1"}},
         {1, {"set", "nope", "--complexity=1"}}});
}

TEST_F(RunExitTest, S28WhatBelongsToARunIsRefusedLikewise) {
  Check({{3, {"agent", "add"}},
         {1, {"agent", "add", "nope"}},
         {3, {"agent", "update", "nope"}},
         {3, {"agent", "update", "nope", "--status=odd"}},
         {1, {"agent", "update", "nope", "--status=failed"}},
         {3, {"artifact", "add", "RUN"}},
         {3, {"artifact", "add", "RUN", "--phase=p"}},
         {3, {"artifact", "add", "RUN", "--path=f"}},
         {1, {"artifact", "add", "nope", "--phase=p", "--path=f"}},
         {3, {"action", "add", "RUN", "--phase=p"}},
         {3, {"action", "add", "RUN", "--command=c"}},
         {3, {"action", "add", "RUN", "--phase=p", "--command=c", "--args={"}},
         {3, {"action", "add", "RUN", "--phase=p", "--command=c", "--priority=high"}},
         {2, {"action", "add", "nope", "--phase=p", "--command=c"}},
         {3, {"action", "update", "RUN", "--phase=p", "--command=c"}},
         {3, {"action", "update", "RUN", "--phase=p", "--command=c", "--mode="}},
         {1, {"action", "update", "RUN", "--phase=p", "--command=c", "--mode=m"}},
         {3, {"action", "delete", "RUN", "--phase=p"}},
         {1, {"action", "delete", "RUN", "--phase=p", "--command=c"}}});
}

TEST_F(RunExitTest, S28WithoutADatabaseEveryCommandThatNeedsOneExitsWithTwo) {
  const testing::IcPlace empty;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"run", "create", "--goal=g"},
                                             {"run", "status", "x"},
                                             {"run", "list"},
                                             {"run", "current"},
                                             {"run", "advance", "x"},
                                             {"run", "budget", "x"},
                                             {"run", "agent", "add", "x"}}) {
    const Finished end = empty.Ic(arguments);
    EXPECT_EQ(end.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(end.out, "");
    EXPECT_THAT(end.err, ::testing::HasSubstr("run 'ic init'"));
  }
  EXPECT_EQ(empty.Ic({"run", "create"}).exit_code, 3) << "a wrong call is wrong without one, too";
}

}  // namespace
}  // namespace interlock
