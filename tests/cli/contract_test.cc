// What holds for every command of `ic`: its exit codes, where it prints, and that a refusal leaves
// everything as it was. The commands are those of the table, so that none is forgotten.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "cli/command.h"
#include "cli/ic_process.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"
#include "testing/raw_db.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcCall;
using testing::IcPlace;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

enum class Uses { kNothing, kReads, kWrites };

// A call of each command that is right, with arguments behind its words, and what it needs of the
// database. `setup` has made run $RUN with an agent and an action.
struct Sample {
  Words arguments;
  Uses uses;
};

const std::map<std::string, Sample>& Samples() {
  static const std::map<std::string, Sample> kSamples = {
      {"help", {{}, Uses::kNothing}},
      {"version", {{}, Uses::kNothing}},
      {"init", {{}, Uses::kNothing}},
      {"health", {{}, Uses::kReads}},
      {"migrate rollback", {{"--yes"}, Uses::kNothing}},
      {"completion bash", {{}, Uses::kNothing}},
      {"completion next", {{"--", "x"}, Uses::kNothing}},
      {"compat status", {{"--dir=."}, Uses::kReads}},
      {"compat check", {{"dispatch"}, Uses::kReads}},
      {"compat import", {{"--dir=old"}, Uses::kWrites}},
      {"compat clean", {{"--dir=old"}, Uses::kReads}},
      {"state set", {{"k", "s", "1"}, Uses::kWrites}},
      {"state get", {{"k", "s"}, Uses::kReads}},
      {"state delete", {{"k", "s"}, Uses::kWrites}},
      {"state delete-all", {{"k"}, Uses::kWrites}},
      {"state list", {{"k"}, Uses::kReads}},
      {"state prune", {{}, Uses::kWrites}},
      {"state incr", {{"n", "s"}, Uses::kWrites}},
      {"state wait", {{"k", "s", "--timeout=10ms"}, Uses::kReads}},
      {"sentinel check", {{"g", "s", "--interval=60"}, Uses::kWrites}},
      {"sentinel check-many", {{"g", "s", "60", "h", "s", "0"}, Uses::kWrites}},
      {"sentinel reset", {{"g", "s"}, Uses::kWrites}},
      {"sentinel reset-all", {{"g"}, Uses::kWrites}},
      {"sentinel list", {{}, Uses::kReads}},
      {"sentinel prune", {{"--older-than=1h"}, Uses::kWrites}},
      {"lock acquire", {{"n", "s", "--owner=1:h", "--timeout=10ms"}, Uses::kNothing}},
      {"lock release", {{"n", "s", "--owner=1:h"}, Uses::kNothing}},
      {"lock list", {{}, Uses::kNothing}},
      {"lock stale", {{}, Uses::kNothing}},
      {"lock clean", {{}, Uses::kNothing}},
      {"run create", {{"--goal=g"}, Uses::kWrites}},
      {"run status", {{"$RUN"}, Uses::kReads}},
      {"run phase", {{"$RUN"}, Uses::kReads}},
      {"run list", {{}, Uses::kReads}},
      {"run current", {{}, Uses::kReads}},
      {"run events", {{"$RUN"}, Uses::kReads}},
      {"run tokens", {{"$RUN"}, Uses::kReads}},
      {"run budget", {{"$RUN"}, Uses::kReads}},
      {"run advance", {{"$RUN"}, Uses::kWrites}},
      {"run skip", {{"$RUN", "planned", "--reason=r"}, Uses::kWrites}},
      {"run rollback", {{"$RUN", "--to-phase=brainstorm"}, Uses::kWrites}},
      {"run cancel", {{"$RUN"}, Uses::kWrites}},
      {"run abandon", {{"$RUN"}, Uses::kWrites}},
      {"run set", {{"$RUN", "--complexity=2"}, Uses::kWrites}},
      {"run agent add", {{"$RUN"}, Uses::kWrites}},
      {"run agent list", {{"$RUN"}, Uses::kReads}},
      {"run agent update", {{"$AGENT", "--status=completed"}, Uses::kWrites}},
      {"run artifact add", {{"$RUN", "--phase=planned", "--path=f"}, Uses::kWrites}},
      {"run artifact list", {{"$RUN"}, Uses::kReads}},
      {"run action add", {{"$RUN", "--phase=planned", "--command=c"}, Uses::kWrites}},
      {"run action list", {{"$RUN"}, Uses::kReads}},
      {"run action update",
       {{"$RUN", "--phase=planned", "--command=do", "--mode=m"}, Uses::kWrites}},
      {"run action delete", {{"$RUN", "--phase=planned", "--command=do"}, Uses::kWrites}},
  };
  return kSamples;
}

std::vector<const cli::Command*> AllCommands() {
  std::vector<const cli::Command*> all;
  for (const cli::Group& group : cli::Groups()) {
    for (const cli::Command& command : group.commands()) all.push_back(&command);
  }
  return all;
}

Words WordsOf(const cli::Command& command) {
  std::istringstream path{std::string(command.path)};
  return {std::istream_iterator<std::string>(path), {}};
}

std::string Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the connections that this process opens do while it lives: finds every write that is not
// inside a transaction begun with BEGIN IMMEDIATE. A transaction that begins by reading and writes
// later fails, without waiting, when another one has written in between.
class WriteTrace {
 public:
  WriteTrace() {
    the_one_ = this;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(Attach));
  }
  ~WriteTrace() {
    sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(Attach));
    the_one_ = nullptr;
  }
  WriteTrace(const WriteTrace&) = delete;
  WriteTrace& operator=(const WriteTrace&) = delete;

  int begun = 0;                    // for writing
  int writes = 0;                   // statements
  std::vector<std::string> strays;  // those of them that are outside

 private:
  static int Attach(sqlite3* db, char** /*message*/, const sqlite3_api_routines* /*api*/) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, OnStatement, db);
  }
  static int OnStatement(unsigned /*event*/, void* db, void* statement, void* /*text*/) {
    if (the_one_ == nullptr) return 0;
    the_one_->Note(static_cast<sqlite3*>(db), static_cast<sqlite3_stmt*>(statement));
    return 0;
  }
  void Note(sqlite3* db, sqlite3_stmt* statement) {
    const std::string text = sqlite3_sql(statement);
    if (text.starts_with("BEGIN")) {
      immediate_[db] = text == "BEGIN IMMEDIATE";
      if (immediate_[db]) ++begun;
      return;
    }
    if (sqlite3_stmt_readonly(statement) != 0) return;
    const bool sets_up = text.starts_with("PRAGMA ") && !text.contains("_version=") &&
                         !text.contains("application_id=");  // those are kept in the file
    if (sets_up) return;
    ++writes;
    const bool open = sqlite3_get_autocommit(db) == 0;
    if (!open || !immediate_[db]) strays.push_back(text);
  }

  static inline WriteTrace* the_one_ = nullptr;
  std::map<sqlite3*, bool> immediate_;  // how the last transaction began
};

class ContractTest : public ::testing::Test {
 protected:
  ContractTest() {
    place_.Init();
    fs::create_directory(place_.path() / "old");
    std::ofstream(place_.path() / "f") << "content";
    run_ = Line(place_.Ic({"run", "create", "--goal=first"}));
    place_.Ic({"run", "advance", run_});
    agent_ = Line(place_.Ic({"run", "agent", "add", run_}));
    place_.Ic({"run", "action", "add", run_, "--phase=planned", "--command=do"});
    place_.Ic({"state", "set", "k", "s", "1"});
  }
  static std::string Line(const Finished& finished) {
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out.substr(0, finished.out.find('\n'));
  }
  // The locks of a test are its own.
  IcCall Call(Words words) const {
    for (std::string& word : words) {
      if (word == "$RUN") word = run_;
      if (word == "$AGENT") word = agent_;
    }
    return {.arguments = std::move(words),
            .environment = {"INTERCORE_LOCK_DIR=" + (place_.path() / "locks").string()}};
  }
  Finished Ic(Words words) const { return place_.Run(Call(std::move(words))); }
  static Words Right(const cli::Command& command) {
    Words words = WordsOf(command);
    const Sample& sample = Samples().at(std::string(command.path));
    words.insert(words.end(), sample.arguments.begin(), sample.arguments.end());
    return words;
  }
  static Uses UsesOf(const cli::Command& command) {
    return Samples().at(std::string(command.path)).uses;
  }
  // Everything that could be written.
  std::string Content() const {
    return Bytes(place_.database()) + Bytes(place_.database().string() + "-wal") +
           (fs::exists(place_.path() / "locks/n/s") ? "locked" : "");
  }
  // Runs it and holds that it was refused with `code` and left no trace.
  void Refused(const IcCall& call, int code, const std::string& what) const {
    const std::string before = Content();
    const Finished finished = place_.Run(call);
    EXPECT_EQ(finished.exit_code, code) << what << '\n' << finished.err;
    EXPECT_EQ(finished.out, "") << what;
    EXPECT_THAT(finished.err, HasSubstr("ic")) << what;
    EXPECT_TRUE(Content() == before) << what << " wrote something";
  }

  IcPlace place_;
  std::string run_;
  std::string agent_;
};

TEST_F(ContractTest, EveryCommandHasASampleAndEverySampleWorks) {
  std::set<std::string> paths;
  for (const cli::Command* command : AllCommands()) {
    const std::string path(command->path);
    paths.insert(path);
    ASSERT_TRUE(Samples().contains(path)) << path;
    const Finished finished = Ic(Right(*command));
    EXPECT_LE(finished.exit_code, 1) << path << ": " << finished.err;
  }
  for (const auto& [path, sample] : Samples()) EXPECT_TRUE(paths.contains(path)) << path;
}

TEST_F(ContractTest, S05EveryWriteOfEveryCommandIsInATransactionThatBeganAsOne) {
  const fs::path before = fs::current_path();
  fs::current_path(place_.path());
  SystemClock clock;
  Csprng random;
  WriteTrace trace;
  const auto run = [&](const Words& words, const fs::path& database) {
    const IcCall call = Call(words);
    std::vector<const char*> arguments;
    arguments.reserve(call.arguments.size());
    for (const std::string& argument : call.arguments) arguments.push_back(argument.c_str());
    cli::Context context({.clock = clock,
                          .random = random,
                          .input = -1,
                          .environment = [&](const char* name) -> std::optional<std::string> {
                            if (std::string_view(name) == "INTERCORE_DB") return database.string();
                            if (std::string_view(name) != "INTERCORE_LOCK_DIR") return std::nullopt;
                            return (place_.path() / "locks").string();
                          }});
    const cli::CommandResult outcome = cli::Run(context, arguments);
    context.Finish();
    EXPECT_LE(outcome.exit_code, 1) << words.front() << ": " << outcome.err;
  };
  run({"init"}, place_.path() / "new.db");
  EXPECT_GT(trace.writes, 20) << "the tables";
  for (const cli::Command* command : AllCommands()) {
    const int begun = trace.begun;
    run(Right(*command), place_.database());
    if (UsesOf(*command) == Uses::kWrites) {
      EXPECT_GT(trace.begun, begun) << command->path;
    }
    EXPECT_THAT(trace.strays, IsEmpty()) << command->path;
  }
  EXPECT_GT(trace.writes, 40);
  // That it sees one that does otherwise.
  const testing::RawDb raw(place_.path() / "raw.db");
  raw.Run("CREATE TABLE t (x)");
  raw.Run("BEGIN; SELECT * FROM t; INSERT INTO t VALUES (1); COMMIT");
  EXPECT_GE(trace.strays.size(), 2U);
  fs::current_path(before);
}

// One line of compact JSON, or nothing where there is nothing to say.
TEST_F(ContractTest, WithJsonEveryResultIsJson) {
  const std::set<std::string> texts = {"help", "completion bash", "completion next", "run phase"};
  const std::set<std::string> pretty = {"version", "run rollback"};
  for (const cli::Command* command : AllCommands()) {
    const std::string path(command->path);
    if (texts.contains(path)) continue;
    Words words = Right(*command);
    words.insert(words.begin(), "--json");
    const Finished finished = Ic(words);
    EXPECT_LE(finished.exit_code, 1) << path << ": " << finished.err;
    if (finished.out.empty()) continue;
    const Result<json::Value> value = json::Parse(finished.out);
    ASSERT_TRUE(value.ok()) << path << ": " << finished.out;
    if (pretty.contains(path)) continue;
    EXPECT_EQ(finished.out, json::Write(*value) + "\n") << path;
  }
}

TEST_F(ContractTest, WhatIsDoneIsSaidInJsonToo) {
  const auto json = [this](Words words) {
    words.insert(words.begin(), "--json");
    return Line(Ic(std::move(words)));
  };
  const std::string second = Line(Ic({"run", "create", "--goal=second"}));
  const std::string both = Line(Ic({"run", "create", "--goal=both", "--projects=a,b"}));
  EXPECT_EQ(json({"init"}), R"({"path":")" + place_.database().string() + R"(","schema":100})");
  EXPECT_EQ(json({"health"}), R"({"status":"ok"})");
  EXPECT_EQ(json({"run", "set", "$RUN", "--complexity=2"}),
            R"({"id":")" + run_ + R"(","status":"updated"})");
  EXPECT_EQ(json({"run", "agent", "update", "$AGENT", "--status=failed"}),
            R"({"id":")" + agent_ + R"(","status":"failed"})");
  const std::string action = R"({"command":"do","phase":"planned","run_id":")" + run_;
  EXPECT_EQ(
      json({"run", "action", "update", "$RUN", "--phase=planned", "--command=do", "--mode=m"}),
      action + R"(","status":"updated"})");
  EXPECT_EQ(json({"run", "action", "delete", "$RUN", "--phase=planned", "--command=do"}),
            action + R"(","status":"deleted"})");
  EXPECT_EQ(json({"run", "cancel", "$RUN"}), R"({"id":")" + run_ + R"(","status":"cancelled"})");
  EXPECT_EQ(json({"run", "abandon", second}), R"({"id":")" + second + R"(","status":"abandoned"})");
  EXPECT_EQ(json({"run", "cancel", both}),
            R"({"children":2,"id":")" + both + R"(","status":"cancelled"})");
  EXPECT_EQ(json({"lock", "clean"}), R"({"cleaned":0})");
}

// A terminal that is shown it must not obey it.
TEST_F(ContractTest, WhatIsEchoedInAMessageMovesNoCursor) {
  const std::string odd = "a\x1b[31m\nb\x9b\x7f\xc2\x9b";
  for (const Words& words : {Words{odd},
                             {"state", odd},
                             {"state", "get", odd, "s"},
                             {"run", "status", odd},
                             {"state", "get", "k", "s", "--" + odd},
                             {"state", "get", "k", "s", "--timeout=" + odd},
                             {"lock", "acquire", odd, "s"},
                             {"lock", "release", "n", odd},
                             {"sentinel", "check", odd, "s", "--interval=0"},
                             {"--db=" + odd + ".db", "state", "get", "k", "s"}}) {
    const Finished finished = Ic(words);
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_NE(finished.err, "");
    EXPECT_LE(std::ranges::count(finished.err, '\n'), 2) << finished.err;
    for (const char bad : {'\x1b', '\x9b', '\x7f'}) {
      EXPECT_EQ(finished.err.find(bad), std::string::npos) << finished.err;
    }
  }
  EXPECT_THAT(Ic({"state", "get", odd, "s"}).err, HasSubstr(R"('a\x1b[31m\nb\x9b\x7f\xc2\x9b')"));
}

TEST_F(ContractTest, S28AWrongCommandLineIs3AndChangesNothing) {
  for (const cli::Command* command : AllCommands()) {
    const std::string path(command->path);
    Words flagged = Right(*command);
    flagged.insert(flagged.begin() + static_cast<std::ptrdiff_t>(WordsOf(*command).size()),
                   "--no-such-flag");
    Refused(Call(flagged), 3, path + " --no-such-flag");
    if (command->at_least > 0) Refused(Call(WordsOf(*command)), 3, path + " alone");
    if (command->at_most != cli::kAnyNumber) {
      Words more = WordsOf(*command);
      more.resize(more.size() + command->at_most + 1, "x");
      Refused(Call(more), 3, path + " with too many");
    }
    for (const cli::Flag& flag : command->flags) {
      if (flag.value.empty()) continue;
      Words bare = Right(*command);
      bare.insert(bare.begin() + static_cast<std::ptrdiff_t>(WordsOf(*command).size()),
                  "--" + std::string(flag.name));
      bare.insert(bare.begin() + static_cast<std::ptrdiff_t>(WordsOf(*command).size()) + 1, "--");
      Refused(Call(bare), 3, path + " --" + std::string(flag.name) + " without its value");
    }
  }
}

TEST_F(ContractTest, S24ANewerFileIsRefusedByEveryCommandAndStaysAsItIs) {
  place_.Sql("PRAGMA user_version=9999");
  for (const cli::Command* command : AllCommands()) {
    const std::string path(command->path);
    const bool refuses = UsesOf(*command) != Uses::kNothing || path == "init";
    if (!refuses) continue;
    const std::string before = Content();
    const Finished finished = Ic(Right(*command));
    EXPECT_EQ(finished.exit_code, 2) << path;
    EXPECT_EQ(finished.out, "") << path;
    EXPECT_THAT(finished.err, ::testing::AnyOf(HasSubstr("upgrade"), HasSubstr("newer"))) << path;
    EXPECT_TRUE(Content() == before) << path;
  }
}

TEST_F(ContractTest, WithoutADatabaseNothingIsMadeAndNothingIsCalledANo) {
  fs::remove_all(place_.path() / ".clavain");
  for (const cli::Command* command : AllCommands()) {
    if (UsesOf(*command) == Uses::kNothing) continue;
    const Finished finished = Ic(Right(*command));
    if (command->path == "compat status") {  // it is about what lies in files
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
      EXPECT_THAT(finished.out, HasSubstr("\tn/a\n"));
    } else {
      EXPECT_EQ(finished.exit_code, 2) << command->path;
      EXPECT_THAT(finished.err, HasSubstr("ic init")) << command->path;
    }
    EXPECT_FALSE(fs::exists(place_.path() / ".clavain")) << command->path;
  }
}

TEST_F(ContractTest, AFileThatIsNoDatabaseIs2AndNever1) {
  fs::remove(place_.database().string() + "-wal");
  fs::remove(place_.database().string() + "-shm");
  std::ofstream(place_.database(), std::ios::binary) << std::string(16384, 'x');
  for (const cli::Command* command : AllCommands()) {
    if (UsesOf(*command) == Uses::kNothing) continue;
    const Finished finished = Ic(Right(*command));
    EXPECT_EQ(finished.exit_code, 2) << command->path;
    EXPECT_THAT(finished.err, HasSubstr("backup")) << command->path;
  }
}

TEST_F(ContractTest, WhoMayNotWriteIsToldSo) {
  place_.GiveAway();
  fs::permissions(place_.database(), fs::perms(0400));
  for (const cli::Command* command : AllCommands()) {
    if (UsesOf(*command) != Uses::kWrites) continue;
    IcCall call = Call(Right(*command));
    call.unprivileged = true;
    Refused(call, 2, std::string(command->path));
  }
}

TEST_F(ContractTest, AFileThatMayNotBeReadIs2AndNothingIsWritten) {
  const fs::path file = place_.path() / "closed.json";
  std::ofstream(file) << "{}";
  fs::create_directory(place_.path() / "closed");
  std::ofstream(place_.path() / "closed" / "in.json") << "{}";
  place_.GiveAway();
  fs::permissions(file, fs::perms::none);
  fs::permissions(place_.path() / "closed", fs::perms::none);
  for (const std::string name : {"closed.json", "closed/in.json"}) {
    for (const Words& words :
         {Words{"state", "set", "a", "s", "@" + name},
          {"run", "create", "--goal=g", "--gates-file=" + name},
          {"run", "create", "--goal=g", "--gates-file=" + (place_.path() / name).string()}}) {
      IcCall call = Call(words);
      call.unprivileged = true;
      Refused(call, 2, words.back());
      const Finished finished = place_.Run(call);
      EXPECT_THAT(finished.err, HasSubstr(name)) << words.back();
      EXPECT_THAT(finished.err, HasSubstr("Permission denied")) << words.back();
    }
  }
  fs::permissions(place_.path() / "closed", fs::perms::owner_all);  // to be removed
}

// Everything that a command could write is there to be written: none of them is let off.
TEST_F(ContractTest, AFullDiskIs2AndLosesNothing) {
  std::ofstream(place_.path() / "old" / "clavain-dispatch-x.json") << "{}";
  place_.Sql(
      "INSERT INTO state (key, scope_id, payload, updated_at, expires_at, version) "
      "VALUES ('gone', 's', '1', 1, 2, 1);"
      "INSERT INTO sentinels (name, scope_id, last_fired, interval_s) VALUES ('g', 's', 1, 60)");
  const fs::path directory = place_.database().parent_path();
  const fs::path copy = directory.string() + ".copy";
  fs::remove(place_.database().string() + "-shm");  // made anew from the log
  fs::copy(directory, copy);
  for (const cli::Command* command : AllCommands()) {
    if (UsesOf(*command) != Uses::kWrites) continue;
    fs::remove_all(directory);
    fs::copy(copy, directory);
    IcCall call = Call(Right(*command));
    call.file_bytes_max = fs::file_size(place_.database().string() + "-wal") + 100;
    ASSERT_GT(*call.file_bytes_max, 32768U) << "the file of shared memory has room";
    const Finished refused = place_.Run(call);
    EXPECT_EQ(refused.exit_code, 2) << command->path;
    EXPECT_EQ(refused.out, "") << command->path;
    EXPECT_THAT(refused.err, HasSubstr("disk")) << command->path;
    EXPECT_EQ(place_.Text("PRAGMA integrity_check"), "ok") << command->path;
    EXPECT_EQ(place_.Ic({"state", "get", "k", "s"}).out, "1\n") << command->path;
    // With room it does all of it, so nothing was done before.
    call.file_bytes_max.reset();
    const Finished done = place_.Run(call);
    EXPECT_EQ(done.exit_code, 0) << command->path << ": " << done.err;
    EXPECT_FALSE(done.out.starts_with("not found") || done.out.starts_with("0 "))
        << command->path << ": " << done.out;
  }
}

TEST_F(ContractTest, WithoutStandardOutputNothingIsDone) {
  for (const cli::Command* command : AllCommands()) {
    IcCall call = Call(Right(*command));
    call.output = "closed";
    Refused(call, 2, std::string(command->path));
  }
}

TEST_F(ContractTest, AResultThatCannotBePrintedIs2) {
  for (const Words& words :
       {Words{"state", "get", "k", "s"}, {"run", "status", "$RUN"}, {"help"}}) {
    IcCall call = Call(words);
    call.output = "/dev/full";
    const Finished finished = place_.Run(call);
    EXPECT_EQ(finished.exit_code, 2) << words[0];
    EXPECT_THAT(finished.err, HasSubstr("standard output"));
  }
}

// Values that no flag or argument takes: the code, and a word that the message must hold.
struct Wrong {
  Words words;
  int code;
  std::string says;
  std::string input = {};
};

std::string Deep(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += '[';
  for (int i = 0; i < depth; ++i) text += ']';
  return text;
}

const std::string& Secret() {
  static const std::string kText = R"({"k":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"})";
  return kText;
}

const std::vector<Wrong>& WrongState() {
  static const std::vector<Wrong> kCases = {
      {{"nothing"}, 3, "unknown command"},
      {{"state", "st"}, 3, "did you mean"},
      {{"state", "wiat"}, 3, "did you mean 'ic state wait'?"},
      {{"state"}, 3, "subcommand"},
      {{"state", "get", "k", "s", "--timeout=never"}, 3, "invalid timeout: never"},
      {{"state", "get", "k", "s", "--timeout=-1s"}, 3, "invalid timeout"},
      {{"state", "get", "k", "s", "--timeout=5"}, 3, "invalid timeout"},
      {{"--db=../x.db", "state", "get", "k", "s"}, 2, "path validation"},
      {{"--db=x.txt", "state", "get", "k", "s"}, 2, ".db"},
      {{"--db=/etc/x.db", "state", "get", "k", "s"}, 2, "current directory"},
      {{"--log-format=xml", "health"}, 3, "log-format"},
      {{"--json=maybe", "health"}, 3, "--json"},
      {{"compat", "clean", "--dir=old", "--dry-run=yes"}, 3, "--dry-run"},
      {{"state", "set", "k", "s", "2", "--if-absent=yes"}, 3, "--if-absent"},
      {{"state", "set", "Key", "s", "1"}, 2, "key"},
      {{"state", "set", "", "s", "1"}, 2, "key"},
      {{"state", "set", "a/b", "s", "1"}, 2, "key"},
      {{"state", "set", "1a", "s", "1"}, 2, "key"},
      {{"state", "set", std::string(201, 'a'), "s", "1"}, 2, "200"},
      {{"state", "get", "a;b", "s"}, 2, "key"},
      {{"state", "set", "a", "s", "{"}, 2, "line 1"},
      {{"state", "set", "a", "s", ""}, 2, ""},
      {{"state", "set", "a", "s"}, 2, "", "not json"},
      {{"state", "set", "a", "s", Deep(21)}, 2, "20"},
      {{"state", "set", "a", "s", "@large.json"}, 2, ""},
      {{"state", "set", "a", "s", "@missing.json"}, 2, "missing.json"},
      {{"state", "set", "a", "s", "@link.json"}, 2, "symlink"},
      {{"state", "set", "a", "s", "@dir.json"}, 2, "dir.json"},
      {{"state", "set", "a", "s", "@../outside.json"}, 2, "outside.json"},
      {{"state", "set", "a", "s", "@/etc/passwd"}, 2, "/etc/passwd"},
      {{"state", "set", "a", "s", Secret()}, 2, "likely secret"},
      {{"state", "set", "a", "s", "1", "--ttl=soon"}, 3, "--ttl"},
      {{"state", "set", "a", "s", "1", "--ttl=-5s"}, 3, "ttl"},
      {{"state", "set", "a", "s", "1", "--ttl=500ms"}, 2, "second"},
      {{"state", "set", "a", "s", "1", "--debounce=5s"}, 3, "--debounce"},
      {{"state", "set", "a", "s", "1", "--if-version=x"}, 3, "--if-version"},
      {{"state", "incr", "k", "s", "--by=1.5"}, 3, "--by"},
      {{"state", "wait", "k", "s", "--since-version=x", "--timeout=1s"}, 3, "--since-version"},
      {{"sentinel", "check", "g", "s"}, 3, "--interval"},
      {{"sentinel", "check", "g", "s", "--interval=-1"}, 3, "interval"},
      {{"sentinel", "check", "g", "s", "--interval=soon"}, 3, "--interval"},
      {{"sentinel", "check", "g", "s", "--interval=99999999999999999999"}, 3, "--interval"},
      {{"sentinel", "check-many", "g", "s"}, 3, ""},
      {{"sentinel", "check-many", "g", "s", "60", "h"}, 3, ""},
      {{"sentinel", "check-many", "g", "s", "60", "h", "s", "x"}, 3, ""},
      {{"sentinel", "prune"}, 3, "--older-than"},
      {{"sentinel", "prune", "--older-than=x"}, 3, "--older-than"},
  };
  return kCases;
}

const std::vector<Wrong>& WrongRunsAndLocks() {
  static const std::vector<Wrong> kCases = {
      {{"run", "create"}, 3, "--goal"},
      {{"run", "create", "--goal=g", "--complexity=9"}, 3, "--complexity"},
      {{"run", "create", "--goal=g", "--complexity=x"}, 3, "--complexity"},
      {{"run", "create", "--goal=g", "--phases=[\"a\"]"}, 3, "phases"},
      {{"run", "create", "--goal=g", "--phases=no"}, 3, "phases"},
      {{"run", "create", "--goal=g", "--metadata=[]"}, 3, "metadata"},
      {{"run", "create", "--goal=g", "--gates=x"}, 3, "gates"},
      {{"run", "create", "--goal=g", "--gates-file=nowhere.json"}, 2, "nowhere.json"},
      {{"run", "create", "--goal=g", "--gates-file=link.json"}, 2, "symlink"},
      {{"run", "create", "--goal=g", "--gates-file=dir.json"}, 2, "dir.json"},
      {{"run", "create", "--goal=g", "--metadata=" + Secret()}, 2, "likely secret"},
      {{"run", "create", "--goal=g", "--metadata={\"a\":" + Deep(20) + "}"}, 3, "--metadata"},
      {{"run", "set", "$RUN", "--metadata-merge=" + Secret()}, 2, "likely secret"},
      {{"run", "action", "add", "$RUN", "--phase=planned", "--command=c", "--args=" + Secret()},
       2,
       "likely secret"},
      {{"run", "create", "--goal=g",
        R"(--actions={"planned":{"command":"c","args":"[\"password=12345678\"]"}})"},
       2,
       "likely secret"},
      {{"run", "create", "--goal=g", "--actions=x"}, 2, "actions"},
      {{"run", "create", "--goal=g", "--budget-warn-pct=100"}, 3, "--budget-warn-pct"},
      {{"run", "create", "--goal=g", "--project=a", "--projects=b,c"}, 3, "--projects"},
      {{"run", "create", "--goal=g", "--takeover-after=x", "--bead=b"}, 3, "--takeover-after"},
      {{"run", "status", "unknown1"}, 1, "unknown1"},
      {{"run", "phase", "unknown1"}, 1, "unknown1"},
      {{"run", "advance", "unknown1"}, 1, "unknown1"},
      {{"run", "cancel", "unknown1"}, 1, "unknown1"},
      {{"run", "abandon", "unknown1"}, 1, "unknown1"},
      {{"run", "skip", "$RUN", "planned"}, 3, "--reason"},
      {{"run", "skip", "$RUN", "nowhere", "--reason=r"}, 1, "nowhere"},
      {{"run", "rollback", "$RUN"}, 3, "--to-phase"},
      {{"run", "rollback", "$RUN", "--to-phase=done"}, 1, "done"},
      {{"run", "set", "$RUN"}, 3, ""},
      {{"run", "set", "$RUN", "--auto-advance=maybe"}, 3, "--auto-advance"},
      {{"run", "set", "$RUN", "--metadata-merge=[1]"}, 3, "metadata"},
      {{"run", "agent", "add", "unknown1"}, 1, "unknown1"},
      {{"run", "agent", "update", "$AGENT", "--status=fine"}, 3, "--status"},
      {{"run", "agent", "update", "unknown1", "--status=failed"}, 1, "unknown1"},
      {{"run", "artifact", "add", "$RUN", "--phase=planned"}, 3, "--path"},
      {{"run", "action", "add", "$RUN", "--phase=planned"}, 3, "--command"},
      {{"run", "action", "add", "$RUN", "--phase=planned", "--command=do"}, 1, "do"},
      {{"lock", "acquire", "..", "s"}, 2, ".."},
      {{"lock", "acquire", "a/b", "s"}, 2, "a/b"},
      {{"lock", "acquire", "", "s"}, 2, ""},
      {{"lock", "acquire", "n", "s", "--timeout=x"}, 3, "--timeout"},
      {{"lock", "stale", "--older-than=x"}, 3, "--older-than"},
      {{"lock", "release", "n", "s", "--owner=1:h"}, 1, ""},
  };
  return kCases;
}

TEST_F(ContractTest, S28WrongValuesAreRefusedWithTheirNameAndNothingIsWritten) {
  std::ofstream(place_.path().parent_path() / "outside.json") << "1";
  fs::create_symlink("f", place_.path() / "link.json");
  fs::create_directory(place_.path() / "dir.json");
  std::ofstream(place_.path() / "large.json") << std::string((std::size_t{1} << 20) + 10, '1');
  std::vector<Wrong> cases = WrongState();
  cases.insert(cases.end(), WrongRunsAndLocks().begin(), WrongRunsAndLocks().end());
  for (const Wrong& wrong : cases) {
    IcCall call = Call(wrong.words);
    call.input = wrong.input;
    std::string what;
    for (const std::string& word : wrong.words) what += word.substr(0, 60) + ' ';
    const std::string before = Content();
    const Finished finished = place_.Run(call);
    EXPECT_EQ(finished.exit_code, wrong.code) << what << '\n' << finished.err;
    EXPECT_EQ(finished.out, "") << what;
    EXPECT_NE(finished.err, "") << what;
    EXPECT_THAT(finished.err, HasSubstr(wrong.says)) << what;
    EXPECT_TRUE(Content() == before) << what << "wrote something";
  }
}

}  // namespace
}  // namespace interlock
