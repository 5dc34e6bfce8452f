// The cost of hostile patterns. A project holds 8 000 of them; a check and a claim of 64 patterns
// must stay within the budget of matching, and eight clients that ask for nothing else must not
// hold up a reservation in another project.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "db/migrate.h"
#include "db/sqlite/connection.h"
#include "domain/reservation.h"
#include "glob/hostile_pattern.h"
#include "report.h"
#include "service/grant.h"
#include "store/reservations.h"
#include "store/schema.h"
#include "testing/server_process.h"

namespace interlock::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using testing::HttpClient;
using testing::ServerProcess;

constexpr int kHeld = 8000;
constexpr int kAttackers = 8;
constexpr int kBatch = 64;
constexpr double kMatchingMs = 10;
constexpr double kDelayMs = 25;

// 4 KiB with 64 branches, the `number`th of its kind.
std::string Hostile(std::string_view piece, int number) {
  return glob::Branches(glob::Repeat(piece, 27) + "x" + std::to_string(number), "bcdefghi");
}

double CpuMillis() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::unique_ptr<sqlite::Connection> Prepare(const fs::path& file, interlock::Clock& clock) {
  auto connection = sqlite::Connection::Open({.path = file,
                                              .access = sqlite::Access::kReadWriteOrCreate,
                                              .durability = sqlite::Durability::kFast})
                        .value();
  IL_CHECK(db::Migrator(store::ServerSchema(), {.database = file}, clock).Run(*connection).ok());
  IL_CHECK(connection->BeginExclusive().ok());
  db::Transaction tx(*connection);
  const Timestamp now = clock.Now();
  for (int i = 0; i < kHeld; ++i) {
    const domain::Reservation held = {.id = "held" + std::to_string(i),
                                      .project = "evil",
                                      .agent = "agent" + std::to_string(i / 250),
                                      .pattern = Hostile("*a", i),
                                      .fence = i + 1,
                                      .created_at = now,
                                      .expires_at = now + hours(1)};
    const auto pattern = store::ParseClaim(held.pattern, held.literal);
    IL_CHECK(store::InsertReservation(tx, held, *pattern).ok());
  }
  IL_CHECK(connection->Commit().ok());
  return connection;
}

// A claim of one pattern, or of all.
double ClaimMillis(sqlite::Connection& connection, Timestamp now,
                   const std::vector<std::string>& patterns) {
  service::Claims claims;
  claims.project = "evil";
  claims.agent = "me";
  claims.access = domain::Access::kExclusive;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    claims.all.push_back({.pattern = store::ParseClaim(patterns[i], false).value(),
                          .id = std::to_string(i),
                          .same_as = i});
  }
  double least = 1e9;
  for (int round = 0; round < 5; ++round) {
    glob::Budget budget;
    const double begin = CpuMillis();
    const auto found = service::FindInTheWay(
        connection, claims, {.now = now, .grace = minutes(5), .held_max = 256}, budget);
    least = std::min(least, CpuMillis() - begin);
    IL_CHECK(found.ok() || found.error().code() == Errc::kPatternTooComplex);
  }
  return least;
}

std::vector<std::string> Batch() {
  std::vector<std::string> patterns;
  for (int i = 0; i < kBatch; ++i) patterns.push_back("*b*/" + std::to_string(i) + "?c*");
  return patterns;
}

void ReportWork(const fs::path& file) {
  SystemClock clock;
  const auto connection = Prepare(file, clock);
  const std::string limit = "budget of matching";
  const Timestamp now = clock.Now();
  const std::string before = ", 8 000 hostile held, processor time";
  Report({"check of **/*.cc" + before, ClaimMillis(*connection, now, {"**/*.cc"}), "ms", limit,
          kMatchingMs});
  Report({"check of a hostile pattern" + before, ClaimMillis(*connection, now, {Hostile("*b", 0)}),
          "ms", limit, kMatchingMs});
  Report({"claim of 64 patterns" + before, ClaimMillis(*connection, now, Batch()), "ms", limit,
          kMatchingMs});
}

std::string Body(const std::string& project, const std::string& agent, const std::string& rest) {
  return R"({"project":")" + project + R"(","agent_id":")" + agent + R"(","exclusive":true,)" +
         rest + "}";
}

// Asks in turns for a check and for 64 patterns until it is told to stop.
void Attack(const ServerProcess& server, int number, const std::atomic<bool>& stop,
            std::atomic<int>& asked) {
  HttpClient client = server.Connect();
  std::string list;
  for (const std::string& pattern : Batch()) list += (list.empty() ? "\"" : ",\"") + pattern + "\"";
  const std::string batch =
      Body("evil", "attacker" + std::to_string(number), "\"path_patterns\":[" + list + "]");
  while (!stop) {
    const bool sent =
        asked % 2 == 0
            ? client.Request("GET", "/api/reservations/check?project=evil&pattern=**/*.cc")
            : client.Request("POST", "/api/reservations", batch);
    IL_CHECK(sent && client.Read().has_value());
    ++asked;
  }
}

// The 99th percentile of reserving a file in a project of its own, in milliseconds.
double ReserveP99(const ServerProcess& server, seconds time) {
  HttpClient client = server.Connect();
  std::vector<double> times;
  const Clock::time_point end = Clock::now() + time;
  for (int i = 0; Clock::now() < end; ++i) {
    const std::string file = "src/" + std::to_string(i) + ".cc";
    const std::string body =
        Body("good", "victim" + std::to_string(i / 200), R"("path_pattern":")" + file + "\"");
    const Clock::time_point begin = Clock::now();
    IL_CHECK(client.Request("POST", "/api/reservations", body));
    const auto answer = client.Read();
    IL_CHECK(answer && answer->status == 201);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    std::this_thread::sleep_for(milliseconds(2));
  }
  std::ranges::sort(times);
  return times[times.size() * 99 / 100];
}

int ReportDelay(const fs::path& directory) {
  ServerProcess server(directory);
  if (!server.ready()) {
    std::fprintf(stderr, "attack_bench: %s", server.process().Stderr().c_str());
    return 1;
  }
  const double alone = ReserveP99(server, seconds(3));
  std::atomic<bool> stop = false;
  std::atomic<int> asked = 0;
  double beside = 0;
  {
    std::vector<std::jthread> attackers;
    for (int i = 0; i < kAttackers; ++i) {
      attackers.emplace_back([&, i] { Attack(server, i, stop, asked); });
    }
    beside = ReserveP99(server, seconds(8));
    stop = true;
  }
  Report({"reserve in another project, p99, alone", alone, "ms", "promised delay", kDelayMs});
  Report({"reserve in another project, p99, beside eight attackers", beside, "ms", "promised delay",
          kDelayMs});
  Report({"answers to the eight attackers", asked / 8.0, "requests/s", "", 0});
  server.Stop();
  return 0;
}

int Run(const fs::path& where) {
  std::string directory = where / "attack_bench.XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::fprintf(stderr, "attack_bench: cannot make a directory in %s\n", where.c_str());
    return 2;
  }
  ReportWork(fs::path(directory) / "test.db");
  const int code = ReportDelay(directory);
  fs::remove_all(directory);
  return code;
}

}  // namespace
}  // namespace interlock::bench

int main(int argc, char** argv) {
  return interlock::bench::Run(argc > 1 ? argv[1] : std::filesystem::temp_directory_path());
}
