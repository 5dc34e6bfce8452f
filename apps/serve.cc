#include "serve.h"

#include <fmt/format.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/keyring_holder.h"
#include "base/id.h"
#include "base/version.h"
#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "host.h"
#include "http/app.h"
#include "http/router.h"
#include "http/routes.h"
#include "http/server.h"
#include "service/agents.h"
#include "service/health.h"
#include "service/storage.h"
#include "store/schema.h"

namespace interlock::app {
namespace {

// Nobody is served yet, so there is time for a tool that is at work on the file.
constexpr std::chrono::seconds kMigrationPatience{30};

// What SIGTERM and SIGINT do: while the server starts they end the process at once, however long
// the database or a name server lets it wait; then the first one asks for an orderly stop, and the
// second ends the process. At once is as after kill -9, which the next start repairs, and the exit
// code is what a killed process returns to its shell.
class StopSignals {
 public:
  static void Install() {
    ::sem_init(&asked_, 0, 0);
    struct sigaction action{};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigaction(SIGINT, &action, nullptr);
  }

  static void BeginServing() { phase_ = Phase::kServing; }

  // Blocks until the orderly stop is asked for; the signal.
  static int Wait() {
    while (::sem_wait(&asked_) != 0) {
    }
    return number_;
  }

 private:
  enum class Phase : int { kStarting, kServing, kStopping };

  // Only async-signal-safe calls here.
  static void OnSignal(int number) {
    const int error = errno;
    Phase phase = Phase::kServing;
    if (phase_.compare_exchange_strong(phase, Phase::kStopping)) {
      number_ = number;
      ::sem_post(&asked_);
      errno = error;
      return;
    }
    if (phase == Phase::kStarting) {
      constexpr std::string_view kText = "intermute: stopped by a signal before it was ready\n";
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
    }
    ::_exit(128 + number);
  }

  static inline std::atomic<Phase> phase_{Phase::kStarting};
  static inline std::atomic<int> number_{0};
  static inline sem_t asked_;
};

// Everything that runs, in the order of dependence; members die in the opposite order.
class Running {
 public:
  Running(const ServeOptions& options, Clock& clock, Logger& log, DatabaseLock lock,
          std::unique_ptr<sqlite::Database> database)
      : log_(log),
        lock_(std::move(lock)),
        database_(std::move(database)),
        storage_(*database_, clock, StorageOptions(options.limits, log)),
        health_(&storage_, clock, options.limits.ping_timeout),
        uuids_(clock, random_),
        agents_(storage_, clock, random_, uuids_, options.limits),
        app_{.version = BuildInfo().version,
             .log = log,
             .keys = keys_,
             .access = {},
             .health = health_,
             .agents = agents_},
        router_(http::Routes()),
        server_(router_, app_, clock,
                {.limits = options.limits, .io_threads = options.io_threads}) {}

  void Start(std::vector<http::ListeningSocket> sockets) {
    std::string lines;
    for (http::ListeningSocket& socket : sockets) {
      lines += fmt::format("listening on {}\n", socket.url);
      log_.Info("listening", {{"url", socket.url}});
      server_.Listen(std::move(socket));
    }
    server_.Start();
    // Somebody may wait for these lines; nobody reading them is no reason to stop.
    std::fputs(lines.c_str(), stdout);
    std::fflush(stdout);
  }

  // The one way to stop, and its order.
  Result<void> Stop() {
    server_.StopAccepting();
    if (server_.Drain() == http::Server::Drained::kSomeAborted) {
      log_.Warn("closed connections whose requests did not end in time");
    }
    storage_.Stop();
    Result<void> closed = database_->Close();  // readers, then the writer, which truncates the log
    server_.Join();
    return closed;
  }

 private:
  static service::Storage::Options StorageOptions(const Limits& limits, Logger& log) {
    service::Storage::Options options;
    options.budget = limits.storage_timeout;
    options.on_breaker_change = [&log](resilience::Breaker::State from,
                                       resilience::Breaker::State to) {
      log.Warn("the circuit breaker changed", {{"from", ToString(from)}, {"to", ToString(to)}});
    };
    return options;
  }

  Logger& log_;
  const DatabaseLock lock_;
  const std::unique_ptr<sqlite::Database> database_;
  service::Storage storage_;
  service::Health health_;
  auth::KeyringHolder keys_{auth::Keyring()};
  Csprng random_;
  UuidMaker uuids_;
  service::Agents agents_;
  http::App app_;
  const http::Router router_;
  http::Server server_;
};

Result<std::unique_ptr<Running>> Open(const ServeOptions& options, Clock& clock, Logger& log) {
  if (options.network_fs == ServeOptions::NetworkFs::kRefuse) {
    IL_TRY_VOID(RefuseNetworkFileSystem(options.database));
  }
  IL_TRY(DatabaseLock lock, DatabaseLock::Acquire(options.database));
  IL_TRY_VOID(MigrateDatabase(options, clock, log));
  sqlite::DatabaseOptions database_options;
  database_options.path = options.database;
  database_options.durability = options.durability;
  database_options.write_queue_max = options.limits.write_queue_max;
  database_options.read_queue_max = options.limits.read_queue_max;
  database_options.batch_max = options.limits.batch_max;
  database_options.readers = options.limits.readers;
  IL_TRY(auto database, sqlite::Database::Open(database_options, clock));
  std::vector<http::ListeningSocket> sockets;
  IL_TRY(http::ListeningSocket tcp, http::ListenTcp(options.host, options.port));
  if (!options.socket.empty()) {
    IL_TRY(http::ListeningSocket socket, http::ListenUnix(options.socket));
    sockets.push_back(std::move(socket));
  }
  sockets.push_back(std::move(tcp));
  auto running =
      std::make_unique<Running>(options, clock, log, std::move(lock), std::move(database));
  StopSignals::BeginServing();
  running->Start(std::move(sockets));
  return running;
}

}  // namespace

Result<void> MigrateDatabase(const ServeOptions& options, Clock& clock, Logger& log) {
  const db::Schema schema = store::ServerSchema();
  IL_TRY(const auto connection,
         sqlite::Connection::Open({.path = options.database,
                                   .access = sqlite::Access::kReadWriteOrCreate,
                                   .durability = options.durability,
                                   .busy_timeout = kMigrationPatience,
                                   .owner = std::string(schema.program)}));
  db::Migrator migrator(schema, {.database = options.database}, clock);
  IL_TRY(const db::MigrationOutcome outcome, migrator.Run(*connection));
  if (outcome.from != outcome.to) {
    log.Info("migrated the database",
             {{"from", outcome.from}, {"to", outcome.to}, {"backup", outcome.backup.string()}});
  }
  return {};
}

int Serve(const ServeOptions& given) {
  ::signal(SIGPIPE, SIG_IGN);  // a peer that is gone is an error of its write, not our end
  StopSignals::Install();
  const std::uint64_t files_max = RaiseOpenFileLimit();
  ServeOptions options = given;
  options.limits = FitToOpenFiles(given.limits, files_max);

  SystemClock clock;
  FdLogSink sink(STDERR_FILENO);
  Logger log(clock, sink, {.level_min = options.log_level, .format = options.log_format});
  log.Info("starting", {{"version", BuildInfo().version},
                        {"commit", BuildInfo().commit},
                        {"database", options.database.string()},
                        {"open_files_max", files_max}});

  if (options.limits.connections_max < given.limits.connections_max) {
    log.Warn("the limit of open files allows fewer connections; raise it (ulimit -Hn)",
             {{"open_files_max", files_max},
              {"wanted", given.limits.connections_max},
              {"connections_max", options.limits.connections_max}});
  }
  auto running = Open(options, clock, log);
  if (!running.ok()) {
    std::fputs(fmt::format("intermute: {}\n", running.error().message()).c_str(), stderr);
    return 1;
  }
  const int number = StopSignals::Wait();
  log.Info("stopping", {{"signal", number == SIGTERM ? "SIGTERM" : "SIGINT"}});
  if (const auto stopped = (*running)->Stop(); !stopped.ok()) {
    std::fputs(
        fmt::format("intermute: closing the database failed: {}\n", stopped.error().message())
            .c_str(),
        stderr);
    return 1;
  }
  log.Info("stopped");
  return 0;
}

}  // namespace interlock::app
