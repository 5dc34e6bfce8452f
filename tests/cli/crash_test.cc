// Several writers call `ic` at once, and the calls are killed with SIGKILL at random moments, again
// and again on the same file. Each writer keeps a ledger of what it was answered. After each round
// everything that was acknowledged is there exactly once, nothing that was refused is there, and no
// version, no number and no event was given twice.

#include <fmt/format.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "cli/crash_ledger.h"
#include "cli/ic_process.h"
#include "testing/cycles.h"
#include "testing/on_threads.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using testing::Below;
using testing::Contest;
using testing::Finished;
using testing::Heard;
using testing::IcPlace;
using testing::IcProcess;
using testing::kSlowBuild;
using testing::Ledger;
using testing::NumberAfter;
using testing::Snapshot;

constexpr int kWriters = 4;
constexpr int kCalls = kSlowBuild ? 12 : 25;  // of each writer in a round

// Whether it says no, with exit code 1.
enum class Refused : std::uint8_t { kNever, kPerhaps, kAlways };

// Of each at least one must be acknowledged.
constexpr std::array kKinds = {"count",      "swap",      "claim",    "acquire",   "release",
                               "own delete", "own count", "own swap", "own set",   "own claim",
                               "create",     "cancel",    "rollback", "add agent", "advance"};

// One call and what it means.
struct Call {
  std::string kind;  // of kKinds
  std::vector<std::string> words;
  std::string answer = {};  // on standard output, with a * for what is not known before
  std::string key = {};     // of the thing that it changes; "" = nothing of the writer's own
  std::string text = {};    // of the thing afterwards; a * becomes the first word of the answer
  Refused refused = Refused::kNever;
};

struct Counts {
  int calls = 0;
  int acknowledged = 0;
  std::map<std::string, int> of_kind = {};  // of those
  int refused = 0;
  int killed = 0;    // before they answered
  int too_late = 0;  // after that
  int happened = 0;  // of those killed, as the file says
  int did_not_happen = 0;
};

// Calls `ic` one call after the other, and kills some. One thread.
class Writer {
 public:
  Writer(int number, const IcPlace& place, Contest& contest)
      : number_(number),
        place_(place),
        contest_(contest),
        holder_({.arguments = {"/bin/sleep", "86400"}, .directory = place.path().parent_path()}),
        rng_(testing::TestSeed() * 100 + static_cast<std::uint64_t>(number)),
        writes_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(writes_.get(), place.database().parent_path().c_str(), IN_MODIFY),
              0);
  }

  // The last call is killed together with those of the others.
  void PlayRound(int round, std::barrier<>& all) {
    round_ = round;
    for (int i = 0; i + 1 < kCalls; ++i) AnyCall(nullptr);
    AnyCall(&all);
  }

  Ledger& ledger() { return ledger_; }
  const Counts& counts() const { return counts_; }
  Counts& counts() { return counts_; }
  // The name that stands for a process that lives as long as the writer.
  std::string owner() const { return std::to_string(holder_.pid()); }

 private:
  void AnyCall(std::barrier<>* all) {
    switch (Below(rng_, 8)) {
      case 0: {
        const Finished run =
            Do({.kind = "count", .words = {"state", "incr", "counted", "all"}, .answer = "*"}, all);
        return contest_.HearSum(heard_, run.out);
      }
      case 1:
        return Swap(all);
      case 2: {
        const std::string name = fmt::format("{}-{}", round_, Below(rng_, 6));
        Do({.kind = "claim",
            .words = {"sentinel", "check", "shared", name, "--interval=0"},
            .answer = "allowed",
            .refused = Refused::kPerhaps},
           all);
        return contest_.HearVerdict(heard_, name);
      }
      case 3:
        return Lock(all);
      case 4:
      case 5:
        return Own(RunCall(), all);
      default:
        return Own(Below(rng_, 4) == 0 ? SentinelCall() : StateCall(), all);
    }
  }

  void Swap(std::barrier<>* all) {
    const std::string payload = NewName();
    const std::string version = std::to_string(contest_.version());
    const Finished run = Do(
        {.kind = "swap",
         .words = {"--json", "state", "set", "swapped", "all", payload, "--if-version=" + version},
         .answer = R"({"version":*})",
         .refused = Refused::kPerhaps},
        all);
    contest_.HearSwap(heard_, payload, run);
  }

  void Lock(std::barrier<>* all) {
    const bool gives_back = contest_.holder() == number_;
    if (gives_back) contest_.LetGo(number_);
    const std::string verb = gives_back ? "release" : "acquire";
    Do({.kind = verb,
        .words = {"--verbose", "lock", verb, "crash", "all", "--owner=" + owner(),
                  gives_back ? "" : "--timeout=0"},
        .answer = verb + "d crash/all",
        .refused = gives_back ? Refused::kNever : Refused::kPerhaps},
       all);
    if (heard_ == Heard::kAnswer && !gives_back) contest_.HearAcquired(number_);
  }

  // A call about a thing of the writer's own.
  void Own(const Call& call, std::barrier<>* all) {
    const Finished run = Do(call, all);
    if (call.refused == Refused::kAlways) return;
    if (heard_ == Heard::kNothing) return ledger_.LoseSight(call.key, call.text);
    std::string text = call.text;
    if (const std::size_t star = text.find('*'); star != std::string::npos) {
      text.replace(star, 1, run.out.substr(0, run.out.find_first_of(" \n")));
    }
    ledger_.Acknowledge(call.key, std::move(text));
  }

  Call StateCall() {
    const std::string scope = fmt::format("{}-{}", number_, Below(rng_, 12));
    const std::string key = "state own " + scope;
    if (!ledger_.IsCertain(key)) return SentinelCall();
    const std::int64_t version = NumberAfter(ledger_.Text(key), "version=");
    const std::int64_t payload = NumberAfter(ledger_.Text(key), "payload=");
    const std::string next = fmt::format("version={} payload=", version + 1);
    const std::string told = fmt::format(R"({{"version":{}}})", version + 1);
    const std::string number = std::to_string(Below(rng_, 1000));
    switch (Below(rng_, 6)) {
      case 0:
        if (version == 0) break;
        return {"own delete", {"state", "delete", "own", scope}, "deleted", key, ""};
      case 1:
        return {"own count",
                {"state", "incr", "own", scope, "--by=7"},
                std::to_string(payload + 7),
                key,
                next + std::to_string(payload + 7)};
      case 2:
        return {"own swap",
                {"--json", "state", "set", "own", scope, number,
                 fmt::format("--if-version={}", version)},
                told,
                key,
                next + number};
      case 3:
        return {.kind = "own swap",
                .words = {"--json", "state", "set", "own", scope, "-1",
                          fmt::format("--if-version={}", version + 3)},
                .refused = Refused::kAlways};
      default:
        break;
    }
    return {"own set", {"--json", "state", "set", "own", scope, number}, told, key, next + number};
  }

  Call SentinelCall() {
    const std::string name = NewName();
    return {"own claim",
            {"sentinel", "check", "own", name, "--interval=0"},
            "allowed",
            "sentinel own " + name,
            "fired"};
  }

  Call RunCall() {
    const std::size_t bead = Below(rng_, runs_.size());
    std::string& goal = runs_.at(bead);
    const std::string key = "run " + goal;
    if (!goal.empty() && !ledger_.IsCertain(key)) return SentinelCall();
    const std::string text = goal.empty() ? "" : ledger_.Text(key);
    const std::string bead_flag = fmt::format("--bead={}-{}", number_, bead);
    if (!text.contains(" active ")) {
      goal = NewName();
      return {"create",
              {"run", "create", "--goal=" + goal, bead_flag, Phases()},
              "*",
              "run " + goal,
              "id=* active p0 events=0 agents=0"};
    }
    const std::string id = text.substr(3, text.find(' ') - 3);
    const std::int64_t phase = NumberAfter(text, " p");
    const std::int64_t events = NumberAfter(text, "events=");
    const std::int64_t agents = NumberAfter(text, "agents=");
    const auto after = [&](std::string_view status, std::int64_t to, int more_events,
                           int more_agents) {
      return fmt::format("id={} {} p{} events={} agents={}", id, status, to, events + more_events,
                         agents + more_agents);
    };
    switch (Below(rng_, 8)) {
      case 0:
        return {"cancel", {"run", "cancel", id}, "cancelled", key, after("cancelled", phase, 1, 0)};
      case 1:
        if (phase == 0) break;
        return {"rollback",
                {"run", "rollback", id, "--to-phase=p0", "--reason=why"},
                "{*}",
                key,
                after("active", 0, 1, 0)};
      case 2:
        return {"add agent", {"run", "agent", "add", id}, "*", key, after("active", phase, 0, 1)};
      case 3:  // the bead has a run
        return {.kind = "create",
                .words = {"run", "create", "--goal=never", bead_flag},
                .refused = Refused::kAlways};
      default:
        break;
    }
    const bool ends = phase + 2 == kPhases;
    return {"advance",
            {"run", "advance", id},
            fmt::format("p{} → p{}", phase, phase + 1),
            key,
            after(ends ? "completed" : "active", phase + 1, 1, 0)};
  }

  // Starts it, and kills it now and then.
  Finished Do(const Call& call, std::barrier<>* all) {
    std::vector<std::string> words = call.words;
    std::erase(words, "");
    ++counts_.calls;
    const auto process =
        place_.Start({.arguments = std::move(words),
                      .environment = {"INTERCORE_LOCK_DIR=" + (place_.path() / "locks").string()}});
    const auto begin = std::chrono::steady_clock::now();
    if (all != nullptr) {
      static_cast<void>(process->EndsWithin(SomeTime()));
      all->arrive_and_wait();
      process->Signal(SIGKILL);
    } else if (Below(rng_, 2) == 0 && !EndsBeforeItsTime(*process)) {
      process->Signal(SIGKILL);
    }
    Finished run = process->Finish();
    const bool killed = run.exit_code == 128 + SIGKILL;
    if (!killed) {  // how long a call takes now, more or less
      typical_ = (3 * typical_ + std::chrono::duration_cast<microseconds>(
                                     std::chrono::steady_clock::now() - begin)) /
                 4;
    }
    std::string out = run.out;
    // What was printed was heard, whatever became of the process then.
    const bool answered = out.ends_with('\n');
    if (answered) out.pop_back();
    const bool as_told = answered && ::fnmatch(call.answer.c_str(), out.c_str(), 0) == 0;
    if (as_told && (killed || run.exit_code == 0)) {
      heard_ = Heard::kAnswer;
      ++counts_.acknowledged;
      ++counts_.of_kind[call.kind];
      if (killed) ++counts_.too_late;
    } else if (run.exit_code == 1 || (killed && out == "throttled")) {
      EXPECT_NE(call.refused, Refused::kNever)
          << "refused: " << ::testing::PrintToString(call.words) << run.err;
      heard_ = Heard::kRefusal;
      ++counts_.refused;
    } else {
      EXPECT_TRUE(killed && out.empty()) << ::testing::PrintToString(call.words) << run.exit_code
                                         << " '" << run.out << "' " << run.err;
      heard_ = Heard::kNothing;
      ++counts_.killed;
    }
    return run;
  }

  // Its time is some moment, or shortly after somebody has written.
  bool EndsBeforeItsTime(const IcProcess& process) {
    if (Below(rng_, 2) == 0) return process.EndsWithin(SomeTime());
    std::array<char, 4096> events;
    while (::read(writes_.get(), events.data(), events.size()) > 0) continue;
    pollfd written{.fd = writes_.get(), .events = POLLIN, .revents = 0};
    ::poll(&written, 1, static_cast<int>(typical_.count() / 1000 + 1));
    return process.EndsWithin(microseconds(Below(rng_, 500)));
  }
  // From before it has begun to after its end, and mostly while it writes.
  microseconds SomeTime() {
    const auto most = static_cast<std::size_t>(typical_.count());
    const std::size_t least = Below(rng_, 4) == 0 ? 0 : most / 2;
    return microseconds(least + Below(rng_, most));
  }
  std::string NewName() { return fmt::format("{}{:06}", number_ + 1, ++names_); }

  static constexpr int kPhases = 12;
  static std::string Phases() {
    std::string text = "--phases=[";
    for (int i = 0; i < kPhases; ++i) text += fmt::format(R"({}"p{}")", i == 0 ? "" : ",", i);
    return text + "]";
  }

  const int number_;
  const IcPlace& place_;
  Contest& contest_;
  testing::ChildProcess holder_;  // of the lock
  std::mt19937_64 rng_;
  UniqueFd writes_;  // tells when anybody writes to the database
  Ledger ledger_;
  Counts counts_;
  Heard heard_ = Heard::kNothing;  // of the last call
  int round_ = 0;
  int names_ = 0;
  std::array<std::string, 3> runs_;  // the goal of the newest run of each bead
  microseconds typical_{5000};
};

class Game {
 public:
  Game() {
    place_.Init();
    for (int i = 0; i < kWriters; ++i) {
      writers_.push_back(std::make_unique<Writer>(i, place_, contest_));
    }
  }

  const IcPlace& place() const { return place_; }

  // Everybody writes and is killed. Gives what is not as it must be afterwards.
  std::vector<std::string> PlayRound() {
    ++rounds_;
    std::barrier all(kWriters);
    testing::OnThreads(kWriters, [&](int number) {
      writers_[static_cast<std::size_t>(number)]->PlayRound(rounds_, all);
    });
    return Check();
  }

  std::vector<std::string> Check() {
    std::vector<std::string> wrong;
    const auto add = [&wrong](const std::vector<std::string>& more) {
      wrong.insert(wrong.end(), more.begin(), more.end());
    };
    // First `ic` itself, that it finds what the killed ones left.
    const Finished write = place_.Ic({"--timeout=0", "state", "set", "after", "all", "1"});
    if (write.exit_code != 0) wrong.push_back("a lock has stayed: " + write.err);
    const Finished health = place_.Ic({"health", "--full"});
    if (health.out != "ok\n") wrong.push_back("health: " + health.out + health.err);
    const Snapshot now = Take(place_);
    add(now.faults);
    const auto [before, after] = std::ranges::mismatch(events_, now.events);
    if (before != events_.end()) wrong.push_back("the event " + *before + " is gone, or another");
    events_ = now.events;
    add(contest_.Check(now.things));
    for (const auto& writer : writers_) {
      const Ledger::Checked checked = writer->ledger().Check(now.things);
      add(checked.lies);
      writer->counts().happened += checked.happened;
      writer->counts().did_not_happen += checked.did_not_happen;
    }
    for (const auto& [key, text] : now.things) {
      if (!IsKnown(key)) wrong.push_back("nobody was granted " + key + ": " + text);
    }
    add(CheckLocks());
    return wrong;
  }

  Counts Report() const {
    Counts all;
    for (const auto& writer : writers_) {
      const Counts& counts = writer->counts();
      all.calls += counts.calls;
      all.acknowledged += counts.acknowledged;
      for (const auto& [kind, count] : counts.of_kind) all.of_kind[kind] += count;
      all.refused += counts.refused;
      all.killed += counts.killed;
      all.too_late += counts.too_late;
      all.happened += counts.happened;
      all.did_not_happen += counts.did_not_happen;
    }
    std::string kinds;
    for (const auto& [kind, count] : all.of_kind) kinds += fmt::format(", {} {}", kind, count);
    std::puts(
        fmt::format("{} rounds: {} calls, {} acknowledged ({}), {} refused, {} killed before they "
                    "answered ({} had written, {} had not), {} killed after; {} events",
                    rounds_, all.calls, all.acknowledged,
                    kinds.substr(std::min(kinds.size(), std::size_t{2})), all.refused, all.killed,
                    all.happened, all.did_not_happen, all.too_late, events_.size())
            .c_str());
    return all;
  }

 private:
  bool IsKnown(const std::string& key) const {
    if (key.ends_with(" all") || key.starts_with("sentinel shared ")) return true;
    return std::ranges::any_of(writers_,
                               [&key](const auto& writer) { return writer->ledger().Knows(key); });
  }

  Finished Lock(std::vector<std::string> words) const {
    words.insert(words.begin(), "lock");
    return place_.Run(
        {.arguments = std::move(words),
         .environment = {"INTERCORE_LOCK_DIR=" + (place_.path() / "locks").string()}});
  }
  // Whoever surely holds the lock does; everybody gives it back, and then anybody can have it.
  std::vector<std::string> CheckLocks() {
    std::vector<std::string> wrong;
    const Finished list = Lock({"list"});
    const std::optional<int> holder = contest_.holder();
    if (holder && !list.out.contains("\t" + writers_[static_cast<std::size_t>(*holder)]->owner())) {
      wrong.push_back("the lock is not held any more: " + list.out);
    }
    if (holder) contest_.LetGo(*holder);
    for (const auto& writer : writers_)
      Lock({"release", "crash", "all", "--owner=" + writer->owner()});
    Lock({"clean", "--older-than=0"});
    const Finished taken = Lock({"acquire", "crash", "all", "--timeout=0", "--owner=check"});
    if (taken.exit_code != 0) wrong.push_back("the lock stays held: " + taken.err);
    Lock({"release", "crash", "all", "--owner=check"});
    for (const auto& entry : fs::directory_iterator(place_.path() / "locks" / "crash")) {
      wrong.push_back("half a lock stays: " + entry.path().string());
    }
    return wrong;
  }

  IcPlace place_;
  Contest contest_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<std::string> events_;
  int rounds_ = 0;
};

int Cycles() { return testing::CyclesOr(kSlowBuild ? 2 : 20); }

TEST(IcCrashTest, WhatWasAcknowledgedIsThereExactlyOnceAndTheFileIsSound) {
  Game game;
  for (int round = 1; round <= Cycles(); ++round) {
    const std::vector<std::string> wrong = game.PlayRound();
    ASSERT_TRUE(wrong.empty()) << "in round " << round << ":\n" << testing::Lines(wrong);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "in round " << round;
  }
  const Counts counts = game.Report();
  EXPECT_GT(counts.killed, counts.calls / 20) << "too few to prove anything";
  EXPECT_LT(counts.killed, counts.calls * 4 / 5) << "too many to prove anything";
  EXPECT_GT(counts.did_not_happen, 0);
  if (Cycles() < 20) return;  // too few to tell
  for (const char* const kind : kKinds) EXPECT_TRUE(counts.of_kind.contains(kind)) << kind;
  EXPECT_EQ(counts.of_kind.size(), kKinds.size());
}

// What it looks like when a call answers before it writes.
TEST(IcCrashTest, AFileThatLosesARoundIsFoundOut) {
  Game game;
  EXPECT_EQ(testing::Lines(game.PlayRound()), "");
  const fs::path file = game.place().database().parent_path();
  const fs::path copy = file.string() + ".copy";
  fs::copy(file, copy);
  EXPECT_EQ(testing::Lines(game.PlayRound()), "");
  fs::remove_all(file);
  fs::rename(copy, file);
  EXPECT_FALSE(game.Check().empty());
}

}  // namespace
}  // namespace interlock
