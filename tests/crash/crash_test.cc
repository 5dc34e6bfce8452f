// Clients write while the server is killed with SIGKILL, again and again, on the same file. After
// each restart everything that was acknowledged is there exactly once, nothing that was refused is,
// and no cursor and no fence was given twice.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "crash/ledger.h"
#include "crash/snapshot.h"
#include "crash/writer.h"
#include "json/parse.h"
#include "json/value.h"
#include "testing/cycles.h"
#include "testing/on_threads.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/server_process.h"
#include "testing/temp_db.h"

namespace interlock::crash {
namespace {

using std::chrono::milliseconds;
using testing::Below;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::ServerProcess;

constexpr int kWriters = 8;

json::Value Parsed(const HttpAnswer& answer) {
  return json::Parse(answer.body, {.limits = {.bytes_max = std::size_t{64} << 20U}}).value();
}

// Reads the log all the time: whoever was shown an event may have acted on it.
class Follower {
 public:
  // From where it is to the end of the log, or of the connection.
  void ReadPages(HttpClient& http) {
    std::int64_t asked = -1;
    while (asked != cursor_) {
      asked = cursor_;
      const auto answer =
          http.Get("/api/events?limit=1000&since_cursor=" + std::to_string(cursor_));
      if (!answer) return;
      if (answer->status != 200) {
        refusals_.push_back("the log is refused: " + answer->body);
        return;
      }
      const json::Value page = Parsed(*answer);
      for (const json::Value& each : page.get_object().at("events").as_array()) {
        const json::Object& event = each.get_object();
        seen_.push_back(
            {event.at("cursor").as_int64(), TextIn(event, "type"), TextIn(event, "entity_id")});
      }
      cursor_ = page.get_object().at("cursor").as_int64();
    }
  }

  void ReadUntilTheEnd(const ServerProcess& server, const std::atomic<bool>& ended) {
    HttpClient http = server.Connect();
    http.StopRecording();
    while (!ended) ReadPages(http);
  }

  const std::vector<LoggedEvent>& seen() const { return seen_; }
  const std::vector<std::string>& refusals() const { return refusals_; }

 private:
  std::int64_t cursor_ = 0;
  std::vector<LoggedEvent> seen_;
  std::vector<std::string> refusals_;
};

// Writers, a follower, and the lives of one server on the file in `directory`.
class Game {
 public:
  explicit Game(std::filesystem::path directory, const std::string& durability = "full")
      : directory_(std::move(directory)), flags_({"--durability=" + durability}) {
    ::unsetenv("INTERMUTE_KEYS_FILE");  // whoever runs the tests may have keys of their own
    for (int i = 0; i < kWriters; ++i) writers_.push_back(std::make_unique<Writer>(i));
  }

  // Starts the server, checks what it holds, lets everybody write, and kills it. Gives what was not
  // as it must be.
  std::vector<std::string> PlayOneLife() {
    if (Below(rng_, 4) == 0) DieAtBirth();
    ServerProcess server(directory_.string(), flags_);
    if (!server.ready()) return {"no start: " + server.process().Stderr()};
    std::vector<std::string> wrong = Check(server);
    if (!wrong.empty()) return wrong;
    if (++lives_ == 1) BuildWall(server);
    // Few, since the file grows by as much.
    const bool long_life = !testing::kSlowBuild && (lives_ == 3 || lives_ == 12);
    const Letters letters = long_life ? Letters::kLong : Letters::kShort;
    std::atomic<std::int64_t> answers = 0;
    std::atomic<bool> ended = false;
    testing::OnThreads(kWriters + 2, [&](int number) {
      if (number < kWriters) {
        writers_[static_cast<std::size_t>(number)]->WriteUntilTheEnd(server, answers, letters);
      } else if (number == kWriters) {
        follower_.ReadUntilTheEnd(server, ended);
      } else {
        if (long_life) {
          AwaitMoveOfLog(server, answers);
        } else {
          AwaitAnswers(server, answers);
        }
        Kill(server);
        ended = true;
      }
    });
    return wrong;
  }

  // After the last kill.
  std::vector<std::string> CheckOnceMore() {
    ServerProcess server(directory_.string(), flags_);
    if (!server.ready()) return {"no start: " + server.process().Stderr()};
    std::vector<std::string> wrong = Check(server);
    if (server.Stop() != 0) wrong.push_back("no orderly end: " + server.process().Stderr());
    return wrong;
  }

  // Of all writers.
  Counts counts() const {
    Counts all;
    for (const auto& writer : writers_) {
      for (std::size_t k = 0; k < kKindNames.size(); ++k) {
        all.acknowledged.at(k) += writer->counts().acknowledged.at(k);
      }
      all.repeated += writer->counts().repeated;
      all.refused += writer->counts().refused;
      all.unheard += writer->counts().unheard;
      all.turned_away += writer->counts().turned_away;
    }
    return all;
  }

  void Report(std::chrono::steady_clock::duration took) const {
    const Counts all = counts();
    std::string text;
    for (std::size_t k = 0; k < kKindNames.size(); ++k) {
      text += fmt::format("{} {} {}", k == 0 ? "" : ",", kKindNames.at(k), all.acknowledged.at(k));
    }
    text = fmt::format(
        "{} lives in {} s, {} more ended while they began, {} when the log was moved; {} writes "
        "acknowledged ({}), {} repeated, {} refused, {} turned away, {} not heard of ({} had "
        "happened, {} had not); {} events, last fence {}, {} events followed",
        lives_, std::chrono::duration_cast<std::chrono::seconds>(took).count(), births_, log_moves_,
        acknowledged(), text.substr(1), all.repeated, all.refused, all.turned_away, all.unheard,
        happened_, did_not_happen_, last_.log.size(),
        last_.fences.empty() ? 0 : last_.fences.rbegin()->first, follower_.seen().size());
    std::puts(text.c_str());
  }

  // Answers never heard that would have told of a change.
  std::int64_t unheard() const { return happened_ + did_not_happen_; }
  int log_moves() const { return log_moves_; }
  std::int64_t acknowledged() const {
    std::int64_t sum = 0;
    for (const std::int64_t count : counts().acknowledged) sum += count;
    return sum;
  }

 private:
  // Killed somewhere between exec and ready: while it recovers the log, as a rule.
  void DieAtBirth() {
    ++births_;
    std::vector<std::string> words = {ServerProcess::Program("intermute"), "serve", "--port=0",
                                      "--db=test.db"};
    words.insert(words.end(), flags_.begin(), flags_.end());
    testing::ChildProcess child({.arguments = std::move(words), .directory = directory_.string()});
    EXPECT_FALSE(child.Wait(milliseconds(Below(rng_, 40)))) << child.Stderr();
    child.Signal(SIGKILL);
    EXPECT_EQ(child.Wait(ServerProcess::kPatience), 128 + SIGKILL);
  }

  // One agent holds everything under wall/, so that others are refused it.
  void BuildWall(const ServerProcess& server) {
    HttpClient http = server.Connect();
    http.StopRecording();
    ASSERT_TRUE(http.Request("POST", "/api/reservations",
                             R"({"project":"p","agent_id":"mason","path_pattern":"wall/**",)"
                             R"("exclusive":true,"ttl_minutes":1440})"));
    const HttpAnswer answer = http.Read().value_or(HttpAnswer{});
    ASSERT_EQ(answer.status, 201) << answer.body;
    wall_.Acknowledge("reservation wall/**", ReservationText(BodyOf(answer)));
  }

  void AwaitAnswers(ServerProcess& server, const std::atomic<std::int64_t>& answers) {
    const bool many = !testing::kSlowBuild && Below(rng_, 10) == 0;
    const std::size_t answers_max = many ? 2000 : 200;
    const auto enough = static_cast<std::int64_t>(Below(rng_, answers_max));
    for (int ms = 0; answers < enough && ms < 10'000; ++ms) {
      if (server.process().Wait(milliseconds(1))) break;
    }
  }

  // The log that an earlier life left is moved into the file before the first write. After that the
  // file changes only when the log has become too long, and the server moves it under load: the
  // kill comes while it does so, or soon after.
  void AwaitMoveOfLog(ServerProcess& server, const std::atomic<std::int64_t>& answers) {
    std::optional<std::filesystem::file_time_type> before;
    for (int ms = 0; ms < 120'000; ++ms) {
      if (server.process().Wait(milliseconds(1))) break;
      if (answers == 0) continue;
      const auto now = std::filesystem::last_write_time(directory_ / "test.db");
      if (!before) before = now;
      if (now == *before) continue;
      ++log_moves_;
      return;
    }
    ADD_FAILURE() << "the log was not moved into the file in two minutes";
  }

  void Kill(ServerProcess& server) {
    const auto moment = milliseconds(Below(rng_, 10));
    EXPECT_FALSE(server.process().Wait(moment)) << server.process().Stderr();
    server.process().Signal(SIGKILL);
    EXPECT_EQ(server.process().Wait(ServerProcess::kPatience), 128 + SIGKILL);
  }

  // What is held: as the server says, and as the file does.
  static std::set<std::string> Held(HttpClient& http) {
    std::set<std::string> held;
    const auto answer = http.Get("/api/reservations?project=p");
    EXPECT_TRUE(answer && answer->status == 200);
    if (!answer) return held;
    const json::Value list = Parsed(*answer);
    for (const json::Value& one : list.get_object().at("reservations").as_array()) {
      held.insert("reservation " + TextIn(one.get_object(), "path_pattern") + " " +
                  ReservationText(one.get_object()));
    }
    return held;
  }
  static std::set<std::string> Held(const Snapshot& snapshot) {
    std::set<std::string> held;
    for (const auto& [key, thing] : snapshot.things) {
      if (thing.text.ends_with(" held")) held.insert(key + " " + thing.text);
    }
    return held;
  }

  // The mail since the last check, in the order of cursors: the same.
  std::vector<std::string> NewMail(HttpClient& http, const Writer& writer) const {
    std::vector<std::string> mail;
    const auto answer = http.Get(fmt::format("/api/inbox/{}?project=p&limit=1000&since_cursor={}",
                                             writer.inbox(), seen_until_));
    EXPECT_TRUE(answer);
    if (!answer) return mail;
    if (answer->status != 200) return {"the inbox is refused: " + answer->body};
    const json::Value page = Parsed(*answer);
    for (const json::Value& one : page.get_object().at("messages").as_array()) {
      const json::Object& message = one.get_object();
      mail.push_back(
          fmt::format("message {} {}", TextIn(message, "id"), message.at("cursor").as_int64()));
    }
    return mail;
  }
  std::map<std::string, std::vector<std::string>> NewMail(const Snapshot& snapshot) const {
    std::map<std::pair<std::string, std::int64_t>, std::string> in_order;  // by inbox and cursor
    for (const auto& [key, thing] : snapshot.things) {
      if (!key.starts_with("message ")) continue;
      const std::int64_t cursor = std::stoll(FieldOf(thing.text, "cursor"));
      if (cursor <= seen_until_) continue;
      in_order[{FieldOf(thing.text, "to"), cursor}] = fmt::format("{} {}", key, cursor);
    }
    std::map<std::string, std::vector<std::string>> mail;
    for (const auto& [place, text] : in_order) mail[place.first].push_back(text);
    return mail;
  }

  std::vector<std::string> Check(const ServerProcess& server) {
    Snapshot now = TakeSnapshot(directory_ / "test.db");
    std::vector<std::string> wrong = now.faults;
    const auto add = [&wrong](const std::vector<std::string>& more) {
      wrong.insert(wrong.end(), more.begin(), more.end());
    };
    add(Contradictions(last_, now));
    std::vector<const Ledger*> ledgers = {&wall_};
    add(wall_.Check(now).lies);
    for (const auto& writer : writers_) {
      const Ledger::Checked checked = writer->ledger().Check(now);
      add(checked.lies);
      happened_ += checked.happened;
      did_not_happen_ += checked.did_not_happen;
      ledgers.push_back(&writer->ledger());
    }
    add(Strangers(now, ledgers));
    // What was followed before the kill, and what it is from there on, is the log that there is.
    HttpClient http = server.Connect();
    http.StopRecording();
    follower_.ReadPages(http);
    add(follower_.refusals());
    if (follower_.seen() != now.log) wrong.emplace_back("who followed the log saw another one");
    if (Held(http) != Held(now)) wrong.emplace_back("the server lists other reservations");
    auto mail = NewMail(now);
    for (const auto& writer : writers_) {
      if (NewMail(http, *writer) == mail[writer->inbox()]) continue;
      wrong.push_back(writer->inbox() + " shows other mail");
    }
    seen_until_ = now.log.empty() ? 0 : now.log.back().cursor;
    last_ = std::move(now);
    return wrong;
  }

  const std::filesystem::path directory_;
  const std::vector<std::string> flags_;
  std::mt19937_64 rng_{testing::TestSeed()};
  std::vector<std::unique_ptr<Writer>> writers_;
  Follower follower_;
  Ledger wall_;
  Snapshot last_;
  std::int64_t seen_until_ = 0;  // the last cursor of last_
  int lives_ = 0;
  int births_ = 0;
  int log_moves_ = 0;  // into the file, under load
  std::int64_t happened_ = 0;
  std::int64_t did_not_happen_ = 0;
};

int Cycles() { return testing::CyclesOr(testing::kSlowBuild ? 5 : 20); }

void PlayAndCheck(const std::string& durability, int cycles) {
  const testing::TempDir directory;
  Game game(directory.path(), durability);
  const auto start = std::chrono::steady_clock::now();
  for (int cycle = 0; cycle < cycles; ++cycle) {
    const std::vector<std::string> wrong = game.PlayOneLife();
    ASSERT_TRUE(wrong.empty()) << "in cycle " << cycle << ":\n" << testing::Lines(wrong);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "in cycle " << cycle;
  }
  const std::vector<std::string> wrong = game.CheckOnceMore();
  EXPECT_TRUE(wrong.empty()) << testing::Lines(wrong);
  game.Report(std::chrono::steady_clock::now() - start);
  EXPECT_GT(game.unheard(), 0) << "no kill came between a request and its answer";
  if (cycles < 5) return;  // too few to tell
  for (std::size_t k = 0; k < kKindNames.size(); ++k) {
    EXPECT_GT(game.counts().acknowledged.at(k), 0) << "of kind " << kKindNames.at(k);
  }
  EXPECT_GT(game.counts().refused, 0);
  if (!testing::kSlowBuild) {
    EXPECT_GT(game.log_moves(), 0);
  }
}

TEST(CrashTest, WhatWasAcknowledgedOutlivesTheServerExactlyOnce) { PlayAndCheck("full", Cycles()); }

// It may lose to a power cut, but not to the end of the process.
TEST(CrashTest, FastDurabilityOutlivesTheServerToo) { PlayAndCheck("fast", (Cycles() + 3) / 4); }

// What a server would look like from outside that answers before it writes.
TEST(CrashTest, AServerThatLosesItsLastLifeIsFoundOut) {
  const testing::TempDir directory;
  const testing::TempDir copy;
  Game game(directory.path());
  ASSERT_EQ(testing::Lines(game.PlayOneLife()), "");
  const auto all = std::filesystem::copy_options::recursive;
  std::filesystem::copy(directory.path(), copy.path(), all);
  const std::int64_t before = game.acknowledged();
  while (game.acknowledged() == before) ASSERT_EQ(testing::Lines(game.PlayOneLife()), "");
  for (const auto& file : std::filesystem::directory_iterator(directory.path())) {
    std::filesystem::remove(file.path());
  }
  std::filesystem::copy(copy.path(), directory.path(), all);
  EXPECT_NE(testing::Lines(game.CheckOnceMore()), "");
}

}  // namespace
}  // namespace interlock::crash
