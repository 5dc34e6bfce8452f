// The mixed workload of mixed_load.h for a long time: soak MINUTES FILE.csv
//
// A hundred agents ask at a steady pace and make their connections anew now and then; beside them
// followers of the event log do the same. Every second one line of the file says what the server
// uses and how long it took to answer. In the end it is told in words whether that stayed flat, and
// what the database consists of; exit code 1 means that something grew that should not.
//
// The first quarter of the time is left to warm-up: what is compared is the second quarter and the
// last one.

#include <poll.h>
#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "mixed_load.h"
#include "process_use.h"
#include "testing/server_process.h"
#include "testing/ws_client.h"

namespace interlock::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::WsClient;

constexpr int kAgents = 100;
constexpr std::size_t kFollowers = 20;
constexpr double kRequestsPerSecond = 1'500;
constexpr int kReconnectEvery = 50;  // requests of one agent
constexpr milliseconds kInterval{1'000};

// Those who follow the event log of the project, on a thread of their own. Each leaves after some
// seconds and comes back with the last cursor it has seen; one that misses an event ends the
// program.
class Followers {
 public:
  explicit Followers(std::uint16_t port) : port_(port), thread_([this] { Run(); }) {}
  ~Followers() { Stop(); }
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  void Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::uint64_t received() const { return received_; }
  std::uint64_t reconnects() const { return reconnects_; }

 private:
  struct Follower {
    std::optional<WsClient> socket = {};
    std::int64_t cursor = 0;
    Clock::time_point until = {};
  };

  void Connect(Follower& follower) {
    std::string target = "/ws/events?project=bench";
    if (follower.cursor > 0) target += "&since_cursor=" + std::to_string(follower.cursor);
    follower.socket.reset();
    follower.socket.emplace(WsClient::Tcp(port_, target));
    IL_CHECK(follower.socket->open(), "a follower was refused");
    follower.until = Clock::now() + milliseconds(2'000 + random_() % 8'000);
  }

  void Receive(Follower& follower) {
    do {
      const auto text = follower.socket->ReadText();
      IL_CHECK(text.has_value(), "a follower was closed");
      const std::size_t at = text->find("\"cursor\":");
      IL_CHECK(at != std::string::npos, *text);
      const std::int64_t cursor = std::atoll(text->c_str() + at + 9);
      // All events are of this project, so that none is left out.
      IL_CHECK(follower.cursor == 0 || cursor == follower.cursor + 1, "an event is missing");
      follower.cursor = cursor;
      ++received_;
    } while (follower.socket->HasFrame());
  }

  void Run() {
    std::vector<Follower> followers(kFollowers);
    for (Follower& follower : followers) Connect(follower);
    while (!stopping_) {
      std::vector<pollfd> waits;
      waits.reserve(kFollowers);
      for (Follower& follower : followers) {
        if (Clock::now() > follower.until) {
          Connect(follower);
          ++reconnects_;
        }
        waits.push_back({follower.socket->http().fd(), POLLIN, 0});
      }
      ::poll(waits.data(), waits.size(), 50);
      for (std::size_t i = 0; i < waits.size(); ++i) {
        if (waits[i].revents != 0 || followers[i].socket->HasFrame()) Receive(followers[i]);
      }
    }
  }

  const std::uint16_t port_;
  std::minstd_rand random_{1};
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> received_ = 0;
  std::atomic<std::uint64_t> reconnects_ = 0;
  std::thread thread_;  // last: starts when everything above is built
};

// One line of the file.
struct Sample {
  double second = 0;
  double memory_mib = 0;
  double files = 0;
  double wal_mib = 0;
  double database_mib = 0;
  double requests_per_s = 0;
  double read_p50_ms = 0;
  double read_p99_ms = 0;
  double write_p50_ms = 0;
  double write_p99_ms = 0;
};

double FileMiB(const fs::path& path) {
  std::error_code missing;
  const auto bytes = fs::file_size(path, missing);
  return missing ? 0 : static_cast<double>(bytes) / (1024 * 1024);
}

double OpenFiles(pid_t pid) {
  const fs::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<double>(std::distance(begin(files), end(files)));
}

void Write(std::FILE* file, const Sample& s) {
  std::fprintf(file, "%.0f,%.2f,%.0f,%.3f,%.3f,%.0f,%.3f,%.3f,%.3f,%.3f\n", s.second, s.memory_mib,
               s.files, s.wal_mib, s.database_mib, s.requests_per_s, s.read_p50_ms, s.read_p99_ms,
               s.write_p50_ms, s.write_p99_ms);
  std::fflush(file);
}

// What must not grow, and by how much it may differ without having grown.
struct Judged {
  const char* name;
  const char* unit;
  double Sample::* member;
  double part;   // of what it was
  double least;  // and in any case
};
constexpr Judged kJudged[] = {
    {"memory", "MiB", &Sample::memory_mib, 0.10, 4},
    {"file descriptors", "", &Sample::files, 0.05, 5},
    {"the log (WAL)", "MiB", &Sample::wal_mib, 0.25, 2},
    {"reads, p50", "ms", &Sample::read_p50_ms, 0.5, 0.3},
    {"reads, p99", "ms", &Sample::read_p99_ms, 1.0, 5},
    {"writes, p50", "ms", &Sample::write_p50_ms, 0.5, 1},
    {"writes, p99", "ms", &Sample::write_p99_ms, 1.0, 10},
};

double Middle(const std::vector<Sample>& samples, std::size_t begin, std::size_t end,
              double Sample::* member) {
  std::vector<double> values;
  values.reserve(end - begin);
  for (std::size_t i = begin; i < end; ++i) values.push_back(samples[i].*member);
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

// True: everything stayed as it was.
bool Judge(const std::vector<Sample>& samples) {
  const std::size_t quarter = samples.size() / 4;
  bool all_flat = true;
  for (const Judged& judged : kJudged) {
    const double before = Middle(samples, quarter, 2 * quarter, judged.member);
    const double after = Middle(samples, samples.size() - quarter, samples.size(), judged.member);
    const bool flat = after - before <= std::max(judged.least, before * judged.part);
    all_flat = all_flat && flat;
    std::printf("  %-18s %-9s second quarter %9.2f, last quarter %9.2f %s\n", judged.name,
                flat ? "flat:" : "GROWS:", before, after, judged.unit);
  }
  return all_flat;
}

// A row of a query by hand: text, number.
std::vector<std::pair<std::string, std::int64_t>> Query(sqlite3* db, const std::string& sql) {
  std::vector<std::pair<std::string, std::int64_t>> rows;
  sqlite3_stmt* statement = nullptr;
  IL_CHECK(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK, sql);
  while (sqlite3_step(statement) == SQLITE_ROW) {
    rows.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)),
                      sqlite3_column_int64(statement, 1));
  }
  sqlite3_finalize(statement);
  return rows;
}

// Which table the bytes are in, with its indexes, and how many each of its rows takes.
void ExplainSize(const fs::path& path) {
  sqlite3* db = nullptr;
  IL_CHECK(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  const auto tables =
      Query(db,
            "SELECT s.tbl_name, sum(d.pgsize) FROM dbstat AS d JOIN sqlite_schema AS s "
            "ON s.name = d.name WHERE d.aggregate = TRUE GROUP BY s.tbl_name ORDER BY 2 DESC");
  std::int64_t explained = 0;
  std::printf("\nthe database, %.1f MiB:\n", FileMiB(path));
  for (const auto& [table, bytes] : tables) {
    explained += bytes;
    if (bytes < 65'536) continue;
    const std::int64_t rows =
        Query(db, "SELECT '', count(*) FROM \"" + table + "\"").front().second;
    std::printf("  %-16s %9lld rows, %8.2f MiB with indexes, %6.0f bytes each\n", table.c_str(),
                static_cast<long long>(rows), static_cast<double>(bytes) / (1024 * 1024),
                rows == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(rows));
  }
  sqlite3_close(db);
  std::printf("  all tables       %26.2f MiB\n", static_cast<double>(explained) / (1024 * 1024));
}

Sample Take(const MixedLoad::Measured& measured, double second, pid_t pid,
            const fs::path& database) {
  return {.second = second,
          .memory_mib = ResidentMiB(pid),
          .files = OpenFiles(pid),
          .wal_mib = FileMiB(database.string() + "-wal"),
          .database_mib = FileMiB(database),
          .requests_per_s = measured.per_s(),
          .read_p50_ms = Percentile(measured.reads, 0.5) / 1e3,
          .read_p99_ms = Percentile(measured.reads, 0.99) / 1e3,
          .write_p50_ms = Percentile(measured.writes, 0.5) / 1e3,
          .write_p99_ms = Percentile(measured.writes, 0.99) / 1e3};
}

std::vector<Sample> Soak(testing::ServerProcess& server, const fs::path& database, double minutes,
                         std::FILE* file) {
  MixedLoad load(RegisterAgents(server.port(), kAgents),
                 {.requests_per_s = kRequestsPerSecond, .reconnect_every = kReconnectEvery});
  Followers followers(server.port());
  std::vector<Sample> samples;
  const Clock::time_point begin = Clock::now();
  const auto since = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  double requests = 0;
  double reconnects = 0;
  while (since() < minutes * 60) {
    const auto measured = load.Run(server.port(), milliseconds(0), kInterval);
    samples.push_back(Take(measured, since(), server.process().pid(), database));
    Write(file, samples.back());
    requests += measured.requests();
    reconnects += measured.reconnects;
    if (samples.size() % 30 == 0) {
      const Sample& last = samples.back();
      std::printf("  %4.0f s: %.1f MiB memory, %.0f files, %.1f MiB log, %.1f MiB database\n",
                  last.second, last.memory_mib, last.files, last.wal_mib, last.database_mib);
      std::fflush(stdout);
    }
  }
  followers.Stop();
  std::printf(
      "\n%.0f requests of %d agents in %.0f s, %.0f reconnects; %llu events to %zu "
      "followers, %llu reconnects\n",
      requests, kAgents, since(), reconnects, static_cast<unsigned long long>(followers.received()),
      kFollowers, static_cast<unsigned long long>(followers.reconnects()));
  return samples;
}

int Run(double minutes, const char* csv) {
  std::string directory = fs::absolute(csv).parent_path() / "soak.XXXXXX";
  std::FILE* const file = std::fopen(csv, "w");
  if (file == nullptr || ::mkdtemp(directory.data()) == nullptr) {
    std::fprintf(stderr, "soak: cannot write %s, or a directory beside it\n", csv);
    return 2;
  }
  std::fprintf(file,
               "second,memory_mib,files,wal_mib,database_mib,requests_per_s,read_p50_ms,"
               "read_p99_ms,write_p50_ms,write_p99_ms\n");
  RaiseFileLimit();
  testing::ServerProcess server(directory);
  if (!server.ready()) {
    std::fprintf(stderr, "soak: %s", server.process().Stderr().c_str());
    return 2;
  }
  const fs::path database = fs::path(directory) / "test.db";
  const std::vector<Sample> samples = Soak(server, database, minutes, file);
  std::fclose(file);
  const bool flat = Judge(samples);
  server.Stop();
  ExplainSize(database);
  fs::remove_all(directory);
  std::printf("\n%s\n", flat ? "everything stayed flat" : "something GROWS, see above");
  return flat ? 0 : 1;
}

}  // namespace
}  // namespace interlock::bench

int main(int argc, char** argv) {
  const double minutes = argc == 3 ? std::atof(argv[1]) : 0;
  if (minutes <= 0) {
    std::fprintf(stderr, "usage: soak MINUTES FILE.csv\n");
    return 2;
  }
  return interlock::bench::Run(minutes, argv[2]);
}
