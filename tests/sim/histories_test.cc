// Sixteen clients reserve (some wait for it), renew, release and hand on what overlaps, while the
// server is killed and started again on the same file. Whether what they were told makes sense is
// judged by linearizability.h, from their side only.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/time_text.h"
#include "db/sqlite/connection.h"
#include "json/parse.h"
#include "json/value.h"
#include "sim/linearizability.h"
#include "testing/on_threads.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/server_process.h"
#include "testing/temp_db.h"

namespace interlock::sim {
namespace {

using std::chrono::milliseconds;
using testing::Below;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::ServerProcess;

constexpr int kClients = 16;
constexpr db::Sql kIntegrity = "PRAGMA integrity_check";
const std::array<std::string, 4> kGroups = {"north", "east", "south", "west"};
const std::array<std::string, 3> kFiles = {"/a", "/b", "/*"};

std::string AgentName(std::size_t number) { return "agent-" + std::to_string(number); }

std::string Text(const json::Object& object, std::string_view field) {
  const json::Value* value = object.if_contains(field);
  return value == nullptr ? "" : std::string(json::View(value->get_string()));
}

// A reservation, or an entry of `conflicts`.
Seen SeenIn(const json::Value& value) {
  const json::Object& object = value.get_object();
  const bool conflict = object.contains("reservation_id");
  return {.id = Text(object, conflict ? "reservation_id" : "id"),
          .agent = Text(object, "agent_id"),
          .pattern = Text(object, conflict ? "pattern" : "path_pattern"),
          .exclusive = object.at("exclusive").as_bool(),
          .fence = object.at("fence").as_int64(),
          .expires_at = ParseRfc3339(Text(object, "expires_at")).value().micros};
}

bool IsOutcomeUnknown(const HttpAnswer& answer) {
  return answer.status == 503 &&
         Text(json::Parse(answer.body).value().get_object(), "error") == "outcome_unknown";
}

// One client: what it knows, and what it asks next. Used by one thread at a time.
class Client {
 public:
  Client(int number, std::atomic<std::int64_t>& ticks)
      : number_(number),
        agent_(AgentName(static_cast<std::size_t>(number))),
        rng_(testing::TestSeed() * 1000 + static_cast<std::uint64_t>(number)),
        ticks_(ticks) {}

  // Asks until the connection ends. What it never heard of is left without an end, and so is what
  // the server cannot tell (503 outcome_unknown). What it is turned away with (any other 503) was
  // not done and is no part of the history: if it was done all the same, nothing explains it.
  void PlayUntilTheEnd(const ServerProcess& server) {
    HttpClient http = server.Connect();
    http.StopRecording();
    while (http.connected()) {
      Operation operation = Next();
      operation.begin = ++ticks_;
      const std::optional<HttpAnswer> answer = Ask(http, operation);
      if (answer && answer->status == 503 && !IsOutcomeUnknown(*answer)) {
        ++turned_away_;
        continue;
      }
      if (answer && answer->status != 503) {
        operation.end = ++ticks_;
        Read(*answer, operation);
        Remember(operation);
      }
      const bool goes_on = operation.heard != Heard::kNothing;
      history_.push_back(std::move(operation));
      if (!goes_on) return;
    }
  }

  // The server is dead: nothing will come any more of what is still open.
  void Close() {
    for (Operation& one : history_) {
      if (one.end == Operation::kNever) one.end = ++ticks_;
    }
  }

  const History& history() const { return history_; }
  std::int64_t turned_away() const { return turned_away_; }

 private:
  Operation Next() {
    const std::size_t roll = Below(rng_, 100);
    const std::string& group = kGroups[Below(rng_, kGroups.size())];
    Operation next{.client = number_, .call = Call::kReserve, .agent = agent_};
    const std::vector<Seen>& from = Below(rng_, 5) == 0 || own_.empty() ? others_ : own_;
    if (roll < 12) {
      next.call = Call::kLook;
      next.pattern = group + "/*";
      return next;
    }
    if (roll < 50 || from.empty()) {
      next.pattern = group + kFiles[Below(rng_, kFiles.size())];
      next.exclusive = Below(rng_, 3) != 0;
      next.wait_seconds = Below(rng_, 6) == 0 ? 1 : 0;
      return next;
    }
    const Seen& target = from[Below(rng_, from.size())];
    next.call = roll < 60 ? Call::kRenew : roll < 70 ? Call::kTransfer : Call::kRelease;
    next.id = target.id;
    next.pattern = target.pattern;
    if (next.call == Call::kTransfer) next.to_agent = AgentName(Below(rng_, kClients));
    return next;
  }

  static std::optional<HttpAnswer> Ask(HttpClient& http, const Operation& one) {
    const std::string as = "X-Agent-ID: " + one.agent + "\r\n";
    const std::string target = "/api/reservations/" + one.id;
    bool sent = false;
    switch (one.call) {
      case Call::kReserve:
        sent = http.Request("POST", "/api/reservations",
                            R"({"project":"p","ttl_minutes":1440,"agent_id":")" + one.agent +
                                R"(","path_pattern":")" + one.pattern + R"(","exclusive":)" +
                                (one.exclusive ? "true" : "false") + R"(,"wait_seconds":)" +
                                std::to_string(one.wait_seconds) + "}");
        break;
      case Call::kRenew:
        sent = http.Request("POST", target + "/renew", R"({"ttl_minutes":1440})", as);
        break;
      case Call::kTransfer:
        sent = http.Request("POST", target + "/transfer",
                            R"({"to_agent":")" + one.to_agent + R"("})", as);
        break;
      case Call::kRelease:
        sent = http.Request("DELETE", target, "", as);
        break;
      case Call::kLook:
        sent = http.Request(
            "GET", "/api/reservations/check?project=p&agent=nobody&pattern=" + one.pattern);
        break;
    }
    return sent ? http.Read() : std::nullopt;
  }

  static void Read(const HttpAnswer& answer, Operation& one) {
    switch (answer.status) {
      case 200:
      case 201:
        one.heard = Heard::kDone;
        break;
      case 403:
        one.heard = Heard::kForbidden;
        return;
      case 404:
        one.heard = Heard::kGone;
        return;
      case 409:
        one.heard = Heard::kConflict;
        break;
      default:
        ADD_FAILURE() << answer.status << " " << answer.body << "\n" << sim::Text(one);
        return;
    }
    if (one.call == Call::kRelease) return;
    const json::Value body = json::Parse(answer.body).value();
    if (const json::Value* conflicts = body.get_object().if_contains("conflicts")) {
      if (conflicts->is_null()) return;
      for (const json::Value& each : conflicts->as_array()) {
        if (each.get_object().contains("waiting")) {
          ++one.waiters;
        } else {
          one.seen.push_back(SeenIn(each));
        }
      }
    } else if (body.get_object().contains("cycle")) {
      one.heard = Heard::kGaveUp;
    } else {
      one.seen.push_back(SeenIn(body));
    }
  }

  // Whose is what now, as far as this answer tells.
  void Remember(const Operation& one) {
    const auto forget = [this](const std::string& id) {
      std::erase_if(own_, [&](const Seen& seen) { return seen.id == id; });
    };
    if (!one.id.empty()) forget(one.id);
    for (const Seen& seen : one.seen) {
      if (seen.agent == agent_) {
        forget(seen.id);
        own_.push_back(seen);
      } else {
        others_.push_back(seen);
        if (others_.size() > 8) others_.erase(others_.begin());
      }
    }
  }

  const int number_;
  const std::string agent_;
  std::mt19937_64 rng_;
  std::atomic<std::int64_t>& ticks_;
  std::vector<Seen> own_;
  std::vector<Seen> others_;
  History history_;
  std::int64_t turned_away_ = 0;
};

// Where a history that nothing explains is kept: beside the program.
std::string WriteDown(const History& history, const std::string& why) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto path = folder / fmt::format("history-of-seed-{}.txt", testing::TestSeed());
  std::ofstream file(path);
  file << why << "\n";
  for (const Operation& one : history) file << Text(one) << "\n";
  return path.string();
}

milliseconds TimeToPlay() {
  const char* text = std::getenv("IL_SECONDS");
  const int seconds = text != nullptr ? std::atoi(text) : testing::kSlowBuild ? 8 : 15;
  return std::chrono::seconds(seconds);
}

// Sixteen clients and the lives of one server, all on the file in `directory`.
class Game {
 public:
  explicit Game(std::filesystem::path directory) : directory_(std::move(directory)) {
    ::unsetenv("INTERMUTE_KEYS_FILE");  // whoever runs the tests may have keys of their own
    for (int i = 0; i < kClients; ++i) clients_.push_back(std::make_unique<Client>(i, ticks_));
  }

  void PlayOneLife() {
    ServerProcess server(directory_.string());
    ASSERT_TRUE(server.ready()) << server.process().Stderr();
    ++lives_;
    testing::OnThreads(kClients + 1, [&](int number) {
      if (number == kClients) {
        End(server);
      } else {
        clients_[static_cast<std::size_t>(number)]->PlayUntilTheEnd(server);
      }
    });
    for (const auto& client : clients_) client->Close();
  }

  // Lives until the clients have asked so often.
  void PlayOperations(std::size_t count) {
    const std::size_t until = TakeHistory().size() + count;
    while (TakeHistory().size() < until) ASSERT_NO_FATAL_FAILURE(PlayOneLife());
  }

  // What integrity_check says of the file. The server is down.
  std::string Integrity() const {
    return OpenFile()
        ->One(kIntegrity, [](const db::Row& row) { return row.String(0); })
        .value()
        .value_or("");
  }

  int lives() const { return lives_; }
  // Calls that a kill left without an answer: they had begun when it came.
  std::int64_t CountOutAtKills() const {
    return std::ranges::count_if(TakeHistory(), [this](const Operation& one) {
      return one.heard == Heard::kNothing && std::ranges::any_of(kills_, [&](std::int64_t kill) {
               return one.begin < kill && kill < one.end;
             });
    });
  }
  std::int64_t turned_away() const {
    std::int64_t sum = 0;
    for (const auto& client : clients_) sum += client->turned_away();
    return sum;
  }

  // Of all clients, in the order of what began first.
  History TakeHistory() const {
    History history;
    for (const auto& client : clients_) {
      history.insert(history.end(), client->history().begin(), client->history().end());
    }
    std::ranges::sort(history, {}, &Operation::begin);
    return history;
  }

  // Changes the file as no server would. The server is down.
  void Tamper(std::string_view script) const { ASSERT_TRUE(OpenFile()->RunScript(script).ok()); }

 private:
  // Kills it, now and then stops it in good order, at a moment that the seed chose.
  void End(ServerProcess& server) {
    // Now and then long enough for somebody to have waited in vain.
    const auto moment = milliseconds(50 + Below(rng_, Below(rng_, 8) == 0 ? 2000 : 400));
    EXPECT_FALSE(server.process().Wait(moment)) << server.process().Stderr();
    if (lives_ > 1 && Below(rng_, 4) == 0) {
      EXPECT_EQ(server.Stop(), 0) << server.process().Stderr();
    } else {
      kills_.push_back(++ticks_);
      server.process().Signal(SIGKILL);
      EXPECT_EQ(server.process().Wait(ServerProcess::kPatience), 128 + SIGKILL);
    }
  }

  std::unique_ptr<sqlite::Connection> OpenFile() const {
    return sqlite::Connection::Open({.path = directory_ / "test.db"}).value();
  }

  const std::filesystem::path directory_;
  std::mt19937_64 rng_{testing::TestSeed()};
  std::atomic<std::int64_t> ticks_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
  int lives_ = 0;
  std::vector<std::int64_t> kills_;  // when
};

TEST(HistoriesTest, SomeOrderExplainsWhatClientsOfAMortalServerHeard) {
  const testing::TempDir directory;
  Game game(directory.path());
  const auto until = std::chrono::steady_clock::now() + TimeToPlay();
  while (std::chrono::steady_clock::now() < until) ASSERT_NO_FATAL_FAILURE(game.PlayOneLife());
  // On a machine that is busy with other things not much may have happened.
  ASSERT_NO_FATAL_FAILURE(game.PlayOperations(100));
  const History history = game.TakeHistory();
  const auto unheard = std::ranges::count(history, Heard::kNothing, &Operation::heard);
  const std::int64_t out = game.CountOutAtKills();
  const auto judging = std::chrono::steady_clock::now();
  const Judgement judgement = CheckGroups(history);
  const std::string why = judgement.explanation + CheckFences(history).value_or("");
  const auto judged =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - judging);
  const auto waited = std::ranges::count_if(history, [](const Operation& one) {
    return one.wait_seconds > 0 && one.heard == Heard::kDone;
  });
  const auto gave_up = std::ranges::count(history, Heard::kGaveUp, &Operation::heard);
  std::printf(
      "%zu operations, %d lives of the server, %td answers never heard, %lld of them when it was "
      "killed, %lld turned away, %td granted to who would have waited, %td "
      "waited for each other, at most %zu configurations, judged in %lld ms\n",
      history.size(), game.lives(), unheard, static_cast<long long>(out),
      static_cast<long long>(game.turned_away()), waited, gave_up, judgement.configurations_max,
      static_cast<long long>(judged.count()));
  for (const Heard heard : {Heard::kDone, Heard::kConflict, Heard::kForbidden, Heard::kGone}) {
    EXPECT_GT(std::ranges::count(history, heard, &Operation::heard), 0) << "nobody heard it";
  }
  for (const Call call :
       {Call::kReserve, Call::kRenew, Call::kRelease, Call::kTransfer, Call::kLook}) {
    const bool done = std::ranges::any_of(history, [call](const Operation& one) {
      return one.call == call && one.heard == Heard::kDone;
    });
    EXPECT_TRUE(done) << "never done: call " << static_cast<int>(call);
  }
  EXPECT_GT(out, 0) << "no kill came while somebody waited for an answer";
  EXPECT_EQ(game.Integrity(), "ok");
  EXPECT_TRUE(why.empty()) << why << "the whole history is in " << WriteDown(history, why);
}

// What a server would look like from outside that answers before it writes.
TEST(HistoriesTest, AServerThatLosesItsLastLifeIsFoundOut) {
  const testing::TempDir directory;
  const testing::TempDir copy;
  Game game(directory.path());
  ASSERT_NO_FATAL_FAILURE(game.PlayOperations(200));
  const auto all =
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy(directory.path(), copy.path(), all);
  ASSERT_NO_FATAL_FAILURE(game.PlayOperations(200));
  EXPECT_TRUE(CheckGroups(game.TakeHistory()).linearizable);
  for (const auto& file : std::filesystem::directory_iterator(directory.path())) {
    std::filesystem::remove(file.path());
  }
  std::filesystem::copy(copy.path(), directory.path(), all);
  ASSERT_NO_FATAL_FAILURE(game.PlayOperations(200));
  EXPECT_FALSE(CheckGroups(game.TakeHistory()).linearizable);
  EXPECT_TRUE(CheckFences(game.TakeHistory()));
}

// Ids, owners and fences are as they were told; only how long it lasts is not.
TEST(HistoriesTest, AServerThatLosesRenewalsIsFoundOut) {
  const testing::TempDir directory;
  Game game(directory.path());
  ASSERT_NO_FATAL_FAILURE(game.PlayOperations(200));
  EXPECT_TRUE(CheckGroups(game.TakeHistory()).linearizable);
  constexpr std::string_view kHourLess =
      "UPDATE reservations SET expires_at = expires_at - 3600000000 WHERE released_at IS NULL";
  ASSERT_NO_FATAL_FAILURE(game.Tamper(kHourLess));
  ASSERT_NO_FATAL_FAILURE(game.PlayOperations(200));
  EXPECT_FALSE(CheckGroups(game.TakeHistory()).linearizable);
  EXPECT_EQ(CheckFences(game.TakeHistory()).value_or(""), "");
}

}  // namespace
}  // namespace interlock::sim
