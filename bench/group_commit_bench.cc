// Group commit against one commit per write: 64 threads, synchronous=FULL, the same statements, in
// one run on one real file system. Rounds alternate, so that a disk that slows down slows all.
//
// The file lies in the current directory, or in the directory given as the first argument. A tmpfs
// has no fsync to share and would make the comparison meaningless: it is refused.

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "db/sqlite/connection.h"
#include "db/sqlite/group_writer.h"
#include "on_disk.h"
#include "report.h"

namespace interlock::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 64;
constexpr int kRounds = 5;
constexpr int kWritesPerThreadAlone = 8;  // one commit each: the slow side
constexpr int kWritesPerThreadGrouped = 100;
constexpr std::size_t kBatchMax = 256;

constexpr db::Sql kInsertEvent = "INSERT INTO events(project, kind, payload) VALUES (?1, ?2, ?3)";
constexpr db::Sql kTouchAgent =
    "INSERT INTO agents(id, seen) VALUES (?1, 1) ON CONFLICT (id) DO UPDATE SET seen = seen + 1";

// What a heartbeat costs: one row appended, one row changed.
Result<void> OneWrite(db::Connection& connection, int thread) {
  static const std::string kPayload(120, 'x');
  IL_TRY_VOID(connection.Run(kInsertEvent, "project", "agent.heartbeat", kPayload));
  IL_TRY_VOID(connection.Run(kTouchAgent, thread));
  return {};
}

struct Measured {
  double writes_per_s = 0;
  double per_commit = 0;
};

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void OnThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

std::unique_ptr<sqlite::Connection> OpenFresh(const fs::path& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path.string() + suffix);
  auto connection =
      sqlite::Connection::Open({.path = path, .access = sqlite::Access::kReadWriteOrCreate})
          .value();
  const Result<void> made = connection->RunScript(
      "CREATE TABLE events(cursor INTEGER PRIMARY KEY, project, kind, payload);"
      "CREATE TABLE agents(id INTEGER PRIMARY KEY, seen)");
  IL_CHECK(made.ok());
  return connection;
}

// 64 threads, a mutex, BEGIN IMMEDIATE … COMMIT around each write.
Measured Alone(const fs::path& path) {
  const auto connection = OpenFresh(path);
  Mutex mutex;
  const double took = Seconds([&] {
    OnThreads([&](int thread) {
      for (int i = 0; i < kWritesPerThreadAlone; ++i) {
        MutexLock lock(mutex);
        IL_CHECK(connection->BeginExclusive().ok());
        IL_CHECK(OneWrite(*connection, thread).ok());
        IL_CHECK(connection->Commit().ok());
      }
    });
  });
  return {kThreads * kWritesPerThreadAlone / took, 1};
}

// 64 threads, each waiting for its answer before the next write.
Measured Grouped(const fs::path& path, Clock& clock) {
  sqlite::GroupWriter writer(
      OpenFresh(path),
      []() -> Result<std::unique_ptr<sqlite::Connection>> {
        return Error(Errc::kInternal, "the benchmark does not reopen");
      },
      {.batch_max = kBatchMax}, clock);
  const double took = Seconds([&] {
    OnThreads([&](int thread) {
      for (int i = 0; i < kWritesPerThreadGrouped; ++i) {
        // Shared: the writer may still be inside set_value() when we have the answer.
        const auto told = std::make_shared<std::promise<bool>>();
        const auto ticket = writer.Submit(
            [thread](db::Transaction& tx) { return OneWrite(tx.connection(), thread); },
            [told](const Result<void>& result) { told->set_value(result.ok()); });
        IL_CHECK(ticket.ok());
        IL_CHECK(told->get_future().get());
      }
    });
  });
  const sqlite::GroupWriter::Stats stats = writer.stats();
  IL_CHECK(stats.committed == std::uint64_t{kThreads} * kWritesPerThreadGrouped);
  return {static_cast<double>(stats.committed) / took,
          static_cast<double>(stats.committed) / static_cast<double>(stats.commits)};
}

// The C interface alone, one thread, batches of the size that the writer reached: what is left
// between this and the writer is the price of queue, threads and savepoints.
Measured Raw(const fs::path& path, double batch) {
  OpenFresh(path);
  sqlite3* db = nullptr;
  IL_CHECK(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  IL_CHECK(sqlite3_exec(db, "PRAGMA synchronous=FULL", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_stmt* insert = nullptr;
  sqlite3_stmt* touch = nullptr;
  IL_CHECK(sqlite3_prepare_v2(db, kInsertEvent.text().data(),
                              static_cast<int>(kInsertEvent.text().size()), &insert,
                              nullptr) == SQLITE_OK);
  IL_CHECK(sqlite3_prepare_v2(db, kTouchAgent.text().data(),
                              static_cast<int>(kTouchAgent.text().size()), &touch,
                              nullptr) == SQLITE_OK);
  const std::string payload(120, 'x');
  const int writes = kThreads * kWritesPerThreadGrouped;
  const int per_commit = std::max(1, static_cast<int>(batch));
  const double took = Seconds([&] {
    for (int done = 0; done < writes;) {
      sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
      for (int i = 0; i < per_commit && done < writes; ++i, ++done) {
        sqlite3_bind_text(insert, 1, "project", -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 2, "agent.heartbeat", -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 3, payload.data(), static_cast<int>(payload.size()),
                          SQLITE_STATIC);
        IL_CHECK(sqlite3_step(insert) == SQLITE_DONE);
        sqlite3_reset(insert);
        sqlite3_bind_int(touch, 1, done % kThreads);
        IL_CHECK(sqlite3_step(touch) == SQLITE_DONE);
        sqlite3_reset(touch);
      }
      IL_CHECK(sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK);
    }
  });
  sqlite3_finalize(insert);
  sqlite3_finalize(touch);
  sqlite3_close(db);
  return {writes / took, static_cast<double>(per_commit)};
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int Run(const fs::path& directory) {
  if (!IsOnDisk(directory)) return 2;
  const fs::path path = directory / "group_commit_bench.db";
  SystemClock clock;
  std::vector<double> alone;
  std::vector<double> grouped;
  std::vector<double> raw;
  std::vector<double> batch;
  for (int round = 0; round < kRounds; ++round) {
    alone.push_back(Alone(path).writes_per_s);
    const Measured group = Grouped(path, clock);
    grouped.push_back(group.writes_per_s);
    batch.push_back(group.per_commit);
    raw.push_back(Raw(path, group.per_commit).writes_per_s);
  }
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path.string() + suffix);
  Report({"group commit, 64 writers, synchronous=FULL", Median(grouped), "writes/s",
          "one commit per write", Median(alone)});
  Report({"group commit, same batches", Median(grouped), "writes/s", "raw SQLite in one thread",
          Median(raw)});
  Report({"group commit, batch size", Median(batch), "writes/commit", "", 0});
  return 0;
}

}  // namespace
}  // namespace interlock::bench

int main(int argc, char** argv) {
  return interlock::bench::Run(argc > 1 ? argv[1] : std::filesystem::current_path());
}
