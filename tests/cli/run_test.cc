// `ic run` as hooks and scripts call it: what goes in, what comes out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "cli/run_place.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class RunTest : public testing::RunPlaceTest {
 protected:
  void Write(const fs::path& path, const std::string& text) const {
    fs::create_directories((place_.path() / path).parent_path());
    std::ofstream(place_.path() / path, std::ios::binary) << text;
  }
  std::string Read(const fs::path& path) const {
    std::ifstream file(place_.path() / path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string project() const { return place_.path().string(); }
};

TEST_F(RunTest, S08AnOrphanIsFoundAbandonedAndReplaced) {
  const std::string orphan = Create({"--bead=b", "--session=gone"});
  const std::string list = Out({"run", "list", "--project=.", "--bead=b", "--status=active"});
  EXPECT_EQ(list, orphan + "\tactive\tbrainstorm\tb");
  EXPECT_EQ(Ic({"run", "create", "--bead=b"}).exit_code, 1);
  EXPECT_EQ(Out({"run", "abandon", orphan}), "abandoned");
  const std::string next = Create({"--bead=b"});
  EXPECT_EQ(Out({"run", "cancel", next}), "cancelled");
  const std::string completed = Create({"--bead=b", "--phases=[\"x\",\"y\"]"});
  EXPECT_EQ(Out({"run", "advance", completed}), "x → y");
  Create({"--bead=b"});
  Create({"--goal=no bead"});
  Create({"--goal=no bead"});
}

TEST_F(RunTest, S08TakeoverReplacesARunThatWasLeftAlone) {
  const std::string old = Create({"--bead=b"});
  const Finished early = Ic({"run", "create", "--bead=b", "--takeover-after=60m"});
  EXPECT_EQ(early.exit_code, 1);
  EXPECT_THAT(early.err, HasSubstr(old));
  place_.Sql("UPDATE runs SET updated_at = updated_at - 3601");
  const Finished taken = Ic({"run", "create", "--bead=b", "--takeover-after=60m"});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr(old));
  EXPECT_THAT(Out({"run", "events", old}), HasSubstr("\tabandon\t"));
}

// What counts is the last change, not the age.
TEST_F(RunTest, S08ARunThatIsWorkedOnIsNotTakenOverHoweverOldItIs) {
  const std::string run = Create({"--bead=b"});
  const std::string agent = Out({"run", "agent", "add", run});
  const std::vector<std::vector<std::string>> work = {
      {"advance", run},
      {"rollback", run, "--to-phase=brainstorm"},
      {"skip", run, "planned", "--reason=r"},
      {"set", run, "--complexity=2"},
      {"agent", "add", run},
      {"agent", "update", agent, "--status=completed"},
      {"artifact", "add", run, "--phase=planned", "--path=f"},
      {"action", "add", run, "--phase=planned", "--command=c"},
      {"action", "update", run, "--phase=planned", "--command=c", "--mode=m"},
      {"action", "delete", run, "--phase=planned", "--command=c"},
  };
  for (std::vector<std::string> words : work) {
    const std::string what = ::testing::PrintToString(words);
    place_.Sql("UPDATE runs SET created_at = created_at - 7200, updated_at = updated_at - 7200");
    words.insert(words.begin(), "run");
    Out(std::move(words));
    const Finished refused = Ic({"run", "create", "--bead=b", "--takeover-after=60m"});
    ASSERT_EQ(refused.exit_code, 1) << what;
    EXPECT_THAT(refused.err, HasSubstr(run)) << what;
  }
  place_.Sql("UPDATE runs SET updated_at = updated_at - 7200");
  Out({"run", "action", "list", run});  // to look is no work
  Out({"run", "status", run});
  EXPECT_EQ(Ic({"run", "create", "--bead=b", "--takeover-after=60m"}).exit_code, 0);
}

TEST_F(RunTest, S07TheIndexIsPartialAndUnique) {
  EXPECT_EQ(Int("SELECT count(*) FROM pragma_index_list('runs') WHERE \"unique\" = 1 AND partial = "
                "1 AND name = 'ic_runs_one_per_bead'"),
            1);
}

TEST_F(RunTest, S16TheFileIsInWalModeAndForeignKeysAreInForce) {
  EXPECT_EQ(Text("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(Ic({"run", "agent", "add", "nosuchrn"}).exit_code, 1);
  EXPECT_EQ(Int("SELECT count(*) FROM run_agents"), 0);
}

TEST_F(RunTest, S17TheCurrentRunIsThatOfTheProject) {
  fs::create_directories(place_.path() / "A" / "deep");
  fs::create_directory(place_.path() / "B");
  fs::create_directory_symlink("A", place_.path() / "L");
  const auto in = [&](const char* directory, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "current"});
    return place_.Run({.arguments = std::move(arguments), .directory = directory});
  };
  const std::string old = Create({"--goal=g", "--project=A", "--session=s1"});
  const std::string a = Create({"--goal=g", "--project=./A/../A/", "--session=s2"});
  const std::string b = Create({"--goal=g", "--project=" + project() + "/B"});
  const std::string link = Create({"--goal=g", "--project=L"});
  EXPECT_EQ(in("A", {}).out, a + "\n") << "the newest, made in the same second";
  EXPECT_EQ(in("A", {"--project=."}).out, a + "\n");
  EXPECT_EQ(in("A", {"--project=../B"}).out, b + "\n");
  EXPECT_EQ(in("B", {}).out, b + "\n");
  EXPECT_EQ(in("A/deep", {"--project=.."}).out, a + "\n");
  EXPECT_EQ(in("A", {"--session=s1"}).out, old + "\n");
  EXPECT_EQ(in("", {"--project=L/"}).out, link + "\n") << "a symlink is a project of its own";
  EXPECT_EQ(in("A", {"--all-projects"}).out, link + "\n");
  const Finished none = in("A/deep", {});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(in("A/deep", {"--json"}).out, "{\"found\":false}\n");
  EXPECT_EQ(in("A", {"--session=other"}).exit_code, 1);
  EXPECT_EQ(in("A", {"--json"}).out,
            "{\"found\":true,\"goal\":\"g\",\"id\":\"" + a + "\",\"phase\":\"brainstorm\"}\n");
}

TEST_F(RunTest, S17TheCurrentDirectoryIsThatOfTheShell) {
  fs::create_directory(place_.path() / "real");
  fs::create_directory_symlink("real", place_.path() / "link");
  const std::string link = project() + "/link";
  const auto at = [&](const std::string& pwd, std::vector<std::string> arguments) {
    return place_.Run(
        {.arguments = std::move(arguments), .environment = {"PWD=" + pwd}, .directory = "real"});
  };
  const std::string run = at(link, {"run", "create", "--goal=g"}).out;
  EXPECT_EQ(at(link, {"run", "current"}).out, run);
  EXPECT_EQ(at(link, {"run", "current", "--project=" + link}).out, run);
  EXPECT_EQ(at(link, {"run", "current", "--project=."}).out, run);
  EXPECT_EQ(at(project() + "/real", {"run", "current"}).exit_code, 1);
  EXPECT_EQ(at("/", {"run", "current", "--project=../link"}).out, run) << "PWD is another place";
}

TEST_F(RunTest, S26TimesAreIntegers) {
  const std::string run = Create({"--bead=b", "--token-budget=1", "--phases=[\"x\",\"y\"]"});
  Out({"run", "agent", "add", run});
  Out({"run", "artifact", "add", run, "--phase=x", "--path=f"});
  Out({"run", "action", "add", run, "--phase=y", "--command=c"});
  Out({"run", "advance", run});
  EXPECT_EQ(Text("SELECT group_concat(DISTINCT t) FROM (SELECT typeof(created_at) AS t FROM runs "
                 "UNION ALL SELECT typeof(updated_at) FROM runs "
                 "UNION ALL SELECT typeof(completed_at) FROM runs "
                 "UNION ALL SELECT typeof(created_at) FROM phase_events "
                 "UNION ALL SELECT typeof(created_at) FROM run_agents "
                 "UNION ALL SELECT typeof(updated_at) FROM run_agents "
                 "UNION ALL SELECT typeof(created_at) FROM run_artifacts "
                 "UNION ALL SELECT typeof(created_at) FROM phase_actions "
                 "UNION ALL SELECT typeof(updated_at) FROM phase_actions)"),
            "integer");
}

TEST_F(RunTest, ACreatedRunIsShownWithEverything) {
  EXPECT_THAT(Create(), MatchesRegex("[a-z0-9]{8}"));
  EXPECT_THAT(Out({"--json", "run", "create", "--goal=g", "--phases=[\"x\",\"y\"]"}),
              MatchesRegex("\\{\"id\":\"[a-z0-9]{8}\",\"phase\":\"x\"\\}"));
  const std::string run = Create(
      {"--goal=a\tb", "--bead=bd", "--session=s", "--scope-id=sc", "--goal-id=gi", "--complexity=5",
       "--phases=[ \"x\", \"y\" ]", "--metadata={\"k\": 1}",
       "--gates={\"x→y\":[{\"check\":\"artifact_exists\",\"phase\":\"x\"}]}", "--token-budget=10",
       "--budget-warn-pct=50", "--budget-enforce", "--max-agents=2", "--max-dispatches=3"});
  const std::string created =
      Text("SELECT CAST(created_at AS TEXT) FROM runs WHERE bead_id = 'bd'");
  EXPECT_EQ(Out({"run", "status", run, "--json"}),
            "{\"auto_advance\":true,\"bead_id\":\"bd\",\"budget_enforce\":true,"
            "\"budget_warn_pct\":50,\"complexity\":5,\"created_at\":" +
                created +
                ",\"force_full\":false,\"gate_rules\":{\"x→y\":[{\"Check\":\"artifact_exists\","
                "\"Phase\":\"x\",\"Tier\":\"\"}]},\"goal\":\"a\\tb\",\"goal_id\":\"gi\",\"id\":\"" +
                run +
                "\",\"max_agents\":2,\"max_dispatches\":3,\"metadata\":\"{\\\"k\\\": 1}\","
                "\"phase\":\"x\",\"phases\":[\"x\",\"y\"],\"project_dir\":\"" +
                project() +
                "\",\"scope_id\":\"sc\",\"session_id\":\"s\",\"status\":\"active\","
                "\"token_budget\":10,\"updated_at\":" +
                created + "}");
  EXPECT_EQ(Out({"run", "phase", run}), "x");
  EXPECT_EQ(Out({"run", "status", run}),
            "ID: " + run + "\nStatus: active\nPhase: x\nGoal: a b\nProject: " + project() +
                "\nComplexity: 5\nScope: sc\nBead: bd\nSession: s\n"
                "Budget: 10 (warning at 50%)\nMaxDisp: 3");
  EXPECT_EQ(Out({"run", "list", "--active", "--scope=sc"}), run + "\tactive\tx\ta b");
  EXPECT_EQ(Out({"run", "list", "--status=failed", "--json"}), "[]");
}

TEST_F(RunTest, AGatesFileIsReadAsTheFlagIs) {
  Write("gates.json", "{\"x→y\": []}\n");
  const std::string run = Create({"--goal=g", "--phases=[\"x\",\"y\"]", "--gates-file=gates.json"});
  EXPECT_THAT(Out({"run", "status", run, "--json"}), HasSubstr("\"gate_rules\":{\"x→y\":[]}"));
}

TEST_F(RunTest, APortfolioHasAChildForEachProject) {
  const std::string text = Create({"--goal=g", "--projects=a,b", "--project="});
  EXPECT_THAT(text, MatchesRegex("[a-z0-9]{8}\n  child: [a-z0-9]{8}\n  child: [a-z0-9]{8}"));
  const std::string parent = text.substr(0, 8);
  EXPECT_THAT(Out({"run", "status", parent}),
              MatchesRegex("(.|\n)*Children: \\(2\\)\n\t[a-z0-9]+\tactive\tbrainstorm\t.*/a\n"
                           "\t[a-z0-9]+\tactive\tbrainstorm\t.*/b"));
  EXPECT_THAT(Out({"run", "status", parent, "--json"}), HasSubstr("\"children\":[{\"auto_advance"));
  EXPECT_THAT(Out({"run", "list", "--portfolio"}), StartsWith(parent));
  EXPECT_EQ(Out({"run", "set", parent, "--max-dispatches=3"}), "updated");
  EXPECT_EQ(Out({"run", "cancel", parent}), "cancelled (portfolio + 2 children)");
  EXPECT_EQ(Int("SELECT count(*) FROM phase_events WHERE event_type = 'cancel'"), 3);
  EXPECT_THAT(Out({"--json", "run", "create", "--goal=g", "--projects=a,b"}),
              MatchesRegex("\\{\"children\":\\[\"[a-z0-9]{8}\",\"[a-z0-9]{8}\"\\],\"id\":.*"));
}

TEST_F(RunTest, AnAdvancePrintsWhereItCameToAndWhatIsDueThere) {
  const std::string run =
      Create({"--goal=g",
              "--actions={\"brainstorm-reviewed\":{\"command\":\"/work\",\"args\":"
              "\"[\\\"${artifact:plan}\\\"]\",\"mode\":\"auto\"}}"});
  Write("pl\"an.md", "abc");
  Out({"run", "artifact", "add", run, "--phase=brainstorm", "--path=pl\"an.md", "--type=plan"});
  Out({"run", "agent", "add", run});
  EXPECT_EQ(Out({"run", "advance", run, "--priority=0"}),
            "brainstorm → brainstorm-reviewed\n  → /work [\"pl\\\"an.md\"]  [auto]");
  EXPECT_EQ(Out({"run", "skip", run, "strategized", "--reason=none", "--actor=me"}),
            "skipped: strategized");
  EXPECT_EQ(Out({"run", "skip", run, "polish", "--reason=none", "--json"}),
            "{\"phase\":\"polish\",\"status\":\"skipped\"}");
  EXPECT_EQ(Out({"run", "advance", run, "--json", "--skip-reason=late"}),
            "{\"active_agent_count\":1,\"advanced\":true,\"event_type\":\"advance\","
            "\"from_phase\":\"brainstorm-reviewed\",\"gate_result\":\"none\",\"gate_tier\":"
            "\"none\",\"next_gate_requirements\":[\"artifact_exists\"],\"reason\":\"late\","
            "\"to_phase\":\"planned\"}");
  EXPECT_EQ(Out({"run", "events", run}),
            "brainstorm → brainstorm-reviewed\tadvance\tnone\t\n"
            "brainstorm-reviewed → strategized\tskip\t\tactor=me: none\n"
            "brainstorm-reviewed → polish\tskip\t\tnone\n"
            "brainstorm-reviewed → planned\tadvance\tnone\tlate");
}

TEST_F(RunTest, AnEventCarriesTheTraceOfItsCaller) {
  const std::string run = Create();
  const Finished advanced =
      place_.Run({.arguments = {"run", "advance", run},
                  .environment = {"IC_TRACE_ID=tr", "IC_SPAN_ID=sp", "IC_PARENT_SPAN_ID=pa"}});
  EXPECT_EQ(advanced.exit_code, 0) << advanced.err;
  Out({"run", "advance", run});
  const std::string events = Out({"run", "events", run, "--json"});
  EXPECT_THAT(events, HasSubstr("\"trace_id\":\"tr\",\"span_id\":\"sp\",\"parent_span_id\":\"pa\","
                                "\"input_artifact_refs\":[\"phase:brainstorm\"]"));
  EXPECT_THAT(events, HasSubstr("\"trace_id\":\"" + run + "\",\"input_artifact_refs\""));
}

TEST_F(RunTest, ARunThatWaitsForAPersonIsPaused) {
  const std::string run = Create();
  Out({"run", "set", run, "--auto-advance=false"});
  const Finished paused = Ic({"run", "advance", run});
  EXPECT_EQ(paused.exit_code, 1);
  EXPECT_EQ(paused.out, "brainstorm (blocked: pause)\n");
  const Finished json = Ic({"run", "advance", run, "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(json.out,
            "{\"advanced\":false,\"event_type\":\"pause\",\"from_phase\":\"brainstorm\","
            "\"gate_result\":\"none\",\"gate_tier\":\"none\",\"reason\":\"auto_advance disabled\","
            "\"to_phase\":\"brainstorm-reviewed\"}\n");
  EXPECT_EQ(Out({"run", "advance", run, "--skip-reason=seen"}), "brainstorm → brainstorm-reviewed");
}

TEST_F(RunTest, TheHookOfTheProjectHearsOfTheAdvance) {
  const std::string run = Create();
  const fs::path hook = ".clavain/hooks/on-phase-advance";
  Write(hook, "#!/bin/sh\ncat > heard.json\necho noise\nexit 3\n");
  fs::permissions(place_.path() / hook, fs::perms(0700));
  const Finished advanced = Ic({"run", "advance", run});
  EXPECT_EQ(advanced.exit_code, 0) << "a hook that fails is only a warning";
  EXPECT_EQ(advanced.out, "brainstorm → brainstorm-reviewed\n");
  EXPECT_THAT(advanced.err, HasSubstr("exited with 3"));
  EXPECT_THAT(Read("heard.json"),
              MatchesRegex("\\{\"id\":1,\"run_id\":\"" + run +
                           "\",\"source\":\"phase\",\"type\":\"advance\",\"from_state\":"
                           "\"brainstorm\",\"to_state\":\"brainstorm-reviewed\",\"envelope\":"
                           "\\{.*\\},\"timestamp\":\".*Z\"\\}\n"));
}

TEST_F(RunTest, ARollbackPrintsWhatWasUndone) {
  const std::string run = Create();
  Out({"run", "advance", run});
  Write("f", "abc");
  Out({"run", "artifact", "add", run, "--phase=brainstorm-reviewed", "--path=f"});
  Out({"run", "artifact", "add", run, "--phase=brainstorm", "--path=gone", "--dispatch=d"});
  Out({"run", "agent", "add", run});
  EXPECT_EQ(Out({"run", "rollback", run, "--to-phase=brainstorm", "--dry-run"}),
            "{\n  \"dry_run\": true,\n  \"from_phase\": \"brainstorm-reviewed\",\n"
            "  \"rolled_back_phases\": [\n    \"brainstorm-reviewed\"\n  ],\n"
            "  \"to_phase\": \"brainstorm\"\n}");
  EXPECT_EQ(Out({"run", "rollback", run, "--to-phase=brainstorm", "--reason=no"}),
            "{\n  \"cancelled_dispatches\": 0,\n  \"failed_agents\": 1,\n"
            "  \"from_phase\": \"brainstorm-reviewed\",\n  \"marked_artifacts\": 1,\n"
            "  \"reason\": \"no\",\n  \"rolled_back_phases\": [\n    \"brainstorm-reviewed\"\n"
            "  ],\n  \"to_phase\": \"brainstorm\"\n}");
  EXPECT_THAT(Out({"run", "rollback", run, "--layer=code", "--phase=brainstorm"}),
              StartsWith("[\n  {\n    \"content_hash\": null,\n    \"dispatch_id\": \"d\",\n"
                         "    \"dispatch_name\": null,"));
  EXPECT_THAT(Out({"run", "rollback", run, "--layer=code", "--format=text"}),
              HasSubstr("<unknown>  brainstorm-reviewed  file  rolled_back  ba7816bf8f01...  f"));
  EXPECT_EQ(Out({"run", "rollback", run, "--layer=code", "--phase=polish"}), "[]");
}

TEST_F(RunTest, ARollbackNeedsTheBeadToBeFree) {
  const std::string first = Create({"--bead=b", "--phases=[\"x\",\"y\"]"});
  Out({"run", "advance", first});
  const std::string second = Create({"--bead=b"});
  const Finished back = Ic({"run", "rollback", first, "--to-phase=x"});
  EXPECT_EQ(back.exit_code, 1);
  EXPECT_THAT(back.err, HasSubstr("UNIQUE"));
  EXPECT_THAT(back.err, HasSubstr(second));
  EXPECT_EQ(Out({"run", "phase", first}), "y");
}

TEST_F(RunTest, ABudgetThatIsUsedUpSaysSoEveryTime) {
  const std::string run = Create({"--goal=g", "--token-budget=100"});
  EXPECT_THAT(Out({"run", "budget", run}), HasSubstr("Status: OK"));
  place_.Sql(
      "INSERT INTO dispatches (id, project_dir, scope_id, created_at, input_tokens, "
      "output_tokens, cache_hits) VALUES ('d', '/', '" +
      run + "', 1, 60, 40, 20)");
  for (int i = 0; i < 2; ++i) {
    const Finished budget = Ic({"run", "budget", run, "--json"});
    EXPECT_EQ(budget.exit_code, 1);
    EXPECT_EQ(budget.out, "{\"budget\":100,\"exceeded\":true,\"run_id\":\"" + run +
                              "\",\"usage_pct\":100,\"used\":100,\"warn_pct\":80,"
                              "\"warning\":true}\n");
    EXPECT_THAT(Ic({"run", "budget", run}).out, HasSubstr("Status: EXCEEDED"));
  }
  EXPECT_EQ(Out({"run", "events", run}),
            " → \tbudget.warning\t\t100 of 100 tokens used\n"
            " → \tbudget.exceeded\t\t100 of 100 tokens used");
  EXPECT_EQ(Out({"run", "tokens", run, "--json"}),
            "{\"cache_hits\":20,\"cache_ratio\":25.0,\"input_tokens\":60,\"output_tokens\":40,"
            "\"run_id\":\"" +
                run + "\",\"total_tokens\":100}");
  const std::string free = Create();
  EXPECT_EQ(Out({"run", "budget", free}), "Run " + free + ": no budget set");
  EXPECT_EQ(Out({"run", "budget", free, "--json"}),
            "{\"budget\":null,\"message\":\"no budget set\",\"run_id\":\"" + free + "\"}");
}

TEST_F(RunTest, AgentsAndArtifactsAreListed) {
  const std::string run = Create();
  EXPECT_EQ(Out({"run", "agent", "list", run, "--json"}), "[]");
  const std::string agent =
      Out({"run", "agent", "add", run, "--type=codex", "--name=n", "--dispatch-id=d"});
  EXPECT_EQ(Out({"run", "agent", "list", run}), agent + "\tcodex\tactive\tn");
  EXPECT_EQ(Out({"run", "agent", "update", agent, "--status=completed"}), "updated");
  EXPECT_THAT(Out({"run", "agent", "list", run, "--json"}),
              MatchesRegex("\\[\\{\"agent_type\":\"codex\",\"created_at\":[0-9]+,\"dispatch_id\":"
                           "\"d\",\"id\":\"" +
                           agent + "\",\"name\":\"n\",\"run_id\":\"" + run +
                           "\",\"status\":\"completed\",\"updated_at\":[0-9]+\\}\\]"));
  EXPECT_THAT(Out({"run", "agent", "add", run, "--json"}),
              MatchesRegex("\\{\"id\":\"[a-z0-9]{8}\"\\}"));
  Write("f", "abc");
  const std::string artifact =
      Out({"run", "artifact", "add", run, "--phase=x", "--path=f", "--type=plan"});
  EXPECT_EQ(Out({"run", "artifact", "list", run, "--phase=x"}), artifact + "\tx\tplan\tf");
  EXPECT_EQ(Out({"run", "artifact", "list", run, "--phase=y"}), "");
  EXPECT_THAT(Out({"run", "artifact", "list", run, "--json"}),
              StartsWith("[{\"content_hash\":\"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177"
                         "a9cb410ff61f20015ad\",\"created_at\":"));
  Out({"run", "artifact", "add", run, "--phase=y", "--path=none"});
  EXPECT_THAT(Out({"run", "artifact", "list", run, "--phase=y", "--json"}),
              Not(HasSubstr("content_hash")));
}

TEST_F(RunTest, ActionsAreAddedListedUpdatedAndDeleted) {
  const std::string run = Create();
  EXPECT_EQ(Out({"run", "action", "list", run}), "No actions registered.");
  EXPECT_EQ(Out({"run", "action", "list", run, "--json"}), "[]");
  EXPECT_EQ(Out({"run", "action", "add", run, "--phase=p", "--command=/c", "--args={ \"a\":\n1}"}),
            "Added action 1: p → /c");
  EXPECT_EQ(Out({"--json", "run", "action", "add", run, "--phase=p", "--command=/d"}),
            "{\"id\":2}");
  EXPECT_EQ(Ic({"run", "action", "add", run, "--phase=p", "--command=/d"}).exit_code, 1);
  EXPECT_EQ(Out({"run", "action", "update", run, "--phase=p", "--command=/c", "--priority=9"}),
            "Updated: p → /c");
  EXPECT_EQ(Out({"run", "action", "list", run, "--json"}),
            "[{\"action_type\":\"command\",\"command\":\"/d\",\"id\":2,\"mode\":\"interactive\","
            "\"phase\":\"p\",\"priority\":0,\"run_id\":\"" +
                run +
                "\"},{\"action_type\":\"command\",\"args\":{\"a\":1},\"command\":\"/c\",\"id\":1,"
                "\"mode\":\"interactive\",\"phase\":\"p\",\"priority\":9,\"run_id\":\"" +
                run + "\"}]");
  EXPECT_EQ(Out({"run", "action", "delete", run, "--phase=p", "--command=/c"}), "Deleted: p → /c");
  EXPECT_EQ(Ic({"run", "action", "delete", run, "--phase=p", "--command=/c"}).exit_code, 1);
  EXPECT_EQ(Out({"run", "action", "list", run}), "2\tp\tcommand\t/d\tinteractive\t0\t");
}

}  // namespace
}  // namespace interlock
