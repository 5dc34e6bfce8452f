// What a reservation costs when others hold many: reserving a file and releasing it again, with 10,
// 1 000 and 100 000 active reservations in the project, which must be about the same; and in a
// project full of patterns that begin with **, where every one of them has to be compared.
//
// Measured inside the transaction, as processor time of one thread: what a commit costs is the
// subject of group_commit_bench.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/clock.h"
#include "base/id.h"
#include "db/migrate.h"
#include "db/sqlite/connection.h"
#include "domain/reservation.h"
#include "report.h"
#include "service/grant.h"
#include "store/reservations.h"
#include "store/schema.h"

namespace interlock::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::minutes;

constexpr Timestamp kNow = {1'767'323'045'000'000};
constexpr int kAgents = 1000;  // who hold what is there

double CpuMicros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// A project in which `count` reservations are held.
class Project {
 public:
  Project(const fs::path& file, int count, const std::string& before, const std::string& after)
      : connection_(sqlite::Connection::Open({.path = file,
                                              .access = sqlite::Access::kReadWriteOrCreate,
                                              .durability = sqlite::Durability::kFast})
                        .value()) {
    IL_CHECK(
        db::Migrator(store::ServerSchema(), {.database = file}, clock_).Run(*connection_).ok());
    IL_CHECK(connection_->BeginExclusive().ok());
    db::Transaction tx(*connection_);
    for (int i = 0; i < count; ++i) {
      const auto number = std::to_string(i);
      std::string text = before;
      text.append(number).append(after);
      const domain::Reservation held = {.id = "held" + number,
                                        .project = "p",
                                        .agent = "agent" + std::to_string(i % kAgents),
                                        .pattern = std::move(text),
                                        .access = domain::Access::kExclusive,
                                        .fence = i + 1,
                                        .created_at = kNow,
                                        .expires_at = kNow + hours(1)};
      const auto pattern = store::ParseClaim(held.pattern, held.literal);
      IL_CHECK(store::InsertReservation(tx, held, *pattern).ok());
    }
    IL_CHECK(connection_->Commit().ok());
  }

  // To reserve and release once, of so many.
  double MicrosEach(int times, const std::string& pattern) {
    IL_CHECK(connection_->BeginExclusive().ok());
    db::Transaction tx(*connection_);
    const double start = CpuMicros();
    for (int i = 0; i < times; ++i) {
      service::Claims claims;
      claims.project = "p";
      claims.agent = "me";
      claims.access = domain::Access::kExclusive;
      claims.lease = minutes(30);
      const std::string id = "mine" + std::to_string(++made_);
      claims.all.push_back(
          {.pattern = store::ParseClaim(pattern, false).value(), .id = id, .same_as = 0});
      const auto tried =
          service::TryGrant(tx, claims, {.now = kNow, .grace = minutes(5), .held_max = 256}, {});
      IL_CHECK(tried.ok() &&
               std::holds_alternative<service::Reservations::Granted>(tried->verdict));
      IL_CHECK(service::ReleaseReservation(tx, {.id = id, .agent = "me"}, kNow).ok());
    }
    const double each = (CpuMicros() - start) / times;
    connection_->Rollback();
    return each;
  }

 private:
  SystemClock clock_;
  std::unique_ptr<sqlite::Connection> connection_;
  int made_ = 0;
};

void ReportGrowth(const fs::path& directory) {
  Project few(directory / "10.db", 10, "src/", "/main.cc");
  Project some(directory / "1000.db", 1000, "src/", "/main.cc");
  Project many(directory / "100000.db", 100'000, "src/", "/main.cc");
  const std::string file = "src/new/main.cc";
  double least[3] = {1e9, 1e9, 1e9};
  for (int round = 0; round < 7; ++round) {  // in turns: a busy moment meets all
    least[0] = std::min(least[0], few.MicrosEach(1000, file));
    least[1] = std::min(least[1], some.MicrosEach(1000, file));
    least[2] = std::min(least[2], many.MicrosEach(1000, file));
  }
  Report({"reserve+release a file, 1 000 held", least[1], "us", "10 held", least[0]});
  Report({"reserve+release a file, 100 000 held", least[2], "us", "10 held", least[0]});
}

void ReportWildcards(const fs::path& directory) {
  Project few(directory / "few.db", 10, "**/*.x", "");
  Project full(directory / "full.db", 10'000, "**/*.x", "");
  for (const std::string pattern : {"src/new/*.cc", "**/*.go"}) {
    double small = 1e9;
    double large = 1e9;
    for (int round = 0; round < 3; ++round) {
      small = std::min(small, few.MicrosEach(100, pattern));
      large = std::min(large, full.MicrosEach(20, pattern));
    }
    Report({"reserve+release " + pattern + ", 10 000 like **/*.x held", large, "us", "10 held",
            small});
  }
}

int Run(const fs::path& where) {
  std::string directory = where / "reserve_bench.XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::fprintf(stderr, "reserve_bench: cannot make a directory in %s\n", where.c_str());
    return 2;
  }
  ReportGrowth(directory);
  ReportWildcards(directory);
  fs::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace interlock::bench

int main(int argc, char** argv) {
  return interlock::bench::Run(argc > 1 ? argv[1] : std::filesystem::temp_directory_path());
}
