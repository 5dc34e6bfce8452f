#include "serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/app.h"
#include "api/dispatch.h"
#include "api/metrics.h"
#include "api/route_table.h"
#include "api/routes.h"
#include "auth/keyring_holder.h"
#include "base/git_tree.h"
#include "base/id.h"
#include "base/limited_log.h"
#include "base/version.h"
#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "host.h"
#include "http/server.h"
#include "intercore.h"
#include "keys.h"
#include "service/agents.h"
#include "service/commit_signal.h"
#include "service/feed.h"
#include "service/health.h"
#include "service/lapse_watch.h"
#include "service/live.h"
#include "service/mail.h"
#include "service/mailbox.h"
#include "service/mirror.h"
#include "service/planning.h"
#include "service/reservations.h"
#include "service/sign_writer.h"
#include "service/status.h"
#include "service/storage.h"
#include "service/sweeper.h"
#include "service/tmux.h"
#include "service/windows.h"
#include "signals.h"
#include "store/events.h"
#include "store/meta.h"
#include "store/schema.h"

namespace interlock::app {
namespace {

// Nobody is served yet, so there is time for a tool that is at work on the file.
constexpr std::chrono::seconds kMigrationPatience{30};

// Who is told of a commit. The database has both from its start; who listens comes later.
struct Commits {
  std::shared_ptr<service::CommitSignal> feed = std::make_shared<service::CommitSignal>();
  std::shared_ptr<service::CommitSignal> mirror = std::make_shared<service::CommitSignal>();
};

// Everything that runs, in the order of dependence; members die in the opposite order.
class Running {
 public:
  // `commits` is what `database` notifies.
  Running(const ServeOptions& options, Clock& clock, Logger& log, DatabaseLock lock,
          std::string log_id, Commits commits, std::unique_ptr<sqlite::Database> database,
          auth::Keyring keyring)
      : log_(log),
        events_(log, clock),
        lock_(std::move(lock)),
        metrics_(api::Routes(), clock, [this] { return Numbers(); }),
        commits_(std::move(commits)),
        database_(std::move(database)),
        storage_(*database_, clock, StorageOptions(options, *database_, log_id, log)),
        keys_(std::move(keyring)),
        uuids_(clock, random_),
        reservations_(storage_, clock, uuids_, options.limits, ReservationOptions(options)),
        feed_(storage_, *commits_.feed, clock, log, FeedOptions(options.limits)),
        sweeper_(
            storage_, clock, log, [this] { return feed_.stats().published; },
            SweeperOptions(options)),
        lapses_(storage_, clock, LapseOptions(options)),
        sign_writer_(storage_, clock),
        mirror_(MakeMirror(options, storage_, clock, log)),
        health_(&storage_, clock, options.limits.ping_timeout),
        agents_(storage_, clock, random_, uuids_, options.limits,
                [this](const auto& agent, const auto& released) {
                  reservations_.TellLeft(agent, released);
                }),
        mail_(storage_, clock, uuids_, MailOptions(options.limits)),
        mailbox_(storage_, clock),
        planning_(storage_, clock, uuids_, options.limits),
        status_(storage_, reservations_, feed_, clock,
                {.heartbeat_grace = options.heartbeat_grace}),
        tmux_(clock, {.queue_max = options.limits.tmux_queue_max}),
        live_(storage_, clock, uuids_, mail_, tmux_, log, LiveOptions(options.limits)),
        windows_(storage_, clock, uuids_, options.limits),
        app_{.version = BuildInfo().version,
             .log_id = std::move(log_id),
             .log = log,
             .events = events_,
             .metrics = metrics_,
             .keys = keys_,
             .access = options.access,
             .health = health_,
             .agents = agents_,
             .mail = mail_,
             .mailbox = mailbox_,
             .feed = feed_,
             .planning = planning_,
             .reservations = reservations_,
             .status = status_,
             .live = live_,
             .windows = windows_},
        routes_(api::Routes()),
        dispatcher_(routes_, app_),
        server_(dispatcher_, log, events_, clock,
                {.limits = options.limits, .io_threads = options.io_threads}) {}

  // `newest`: the last cursor of the event log.
  void Start(std::vector<http::ListeningSocket> sockets, domain::Cursor newest) {
    feed_.Start(newest);
    sweeper_.Start();
    lapses_.Start();
    sign_writer_.Start();
    if (mirror_) {
      mirror_->Start();
      commits_.mirror->Connect([this](db::Connection* /*own*/) { mirror_->Notify(); });
    }
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

  // Puts the keys file as it is now in force, also for connections that stay open.
  void ReloadKeys(const std::filesystem::path& file) {
    app::ReloadKeys(file, keys_, log_);
    server_.RecheckCallers();
  }

  // The one way to stop, and its order.
  Result<void> Stop() {
    sweeper_.Stop();
    lapses_.Stop();
    server_.StopAccepting();
    reservations_.StopWaits();  // those who wait are told, and those who follow
    feed_.Stop();
    if (server_.Drain() == http::Server::Drained::kSomeAborted) {
      log_.Warn("closed connections whose requests did not end in time");
    }
    tmux_.Stop();  // what was put before somebody is still written down
    commits_.mirror->Disconnect();
    if (mirror_) mirror_->Stop();
    sign_writer_.Stop();  // after the last request, which was a sign of life, too
    storage_.Stop();
    Result<void> closed = database_->Close();  // readers, then the writer, which truncates the log
    server_.Join();
    return closed;
  }

 private:
  static service::Storage::Options StorageOptions(const ServeOptions& serve,
                                                  const sqlite::Database& database,
                                                  const std::string& log_id, Logger& log) {
    service::Storage::Options options;
    options.budget = serve.limits.storage_timeout;
    options.addresses.grace = serve.heartbeat_grace;
    options.log_id = log_id;
    options.in_place = [&database] { return database.in_place(); };
    options.on_breaker_change = [&log](service::Storage::Verb verb, resilience::Breaker::State from,
                                       resilience::Breaker::State to) {
      log.Warn("the circuit breaker changed",
               {{"of", verb == service::Storage::Verb::kRead ? "reads" : "writes"},
                {"from", ToString(from)},
                {"to", ToString(to)}});
    };
    return options;
  }

  static std::unique_ptr<service::Mirror> MakeMirror(const ServeOptions& options,
                                                     service::Storage& storage, Clock& clock,
                                                     Logger& log) {
    auto file = MirrorFile(options);
    if (file == nullptr) return nullptr;
    return std::make_unique<service::Mirror>(storage, clock, log, std::move(file));
  }

  // For the metrics, while the server runs.
  api::ServerNumbers Numbers() {
    const auto writer = database_->writer_stats();
    const auto readers = database_->reader_stats();
    using Verb = service::Storage::Verb;
    const auto reading = storage_.breaker_status(Verb::kRead);
    const auto writing = storage_.breaker_status(Verb::kWrite);
    api::ServerNumbers numbers;
    numbers.version = BuildInfo().version;
    numbers.commit = BuildInfo().commit;
    numbers.write_queue = {.depth = writer.queue_depth,
                           .depth_max = writer.queue_depth_max,
                           .refused = writer.refused,
                           .cancelled = writer.cancelled};
    numbers.read_queue = {.depth = readers.queue_depth,
                          .depth_max = readers.queue_depth_max,
                          .refused = readers.refused,
                          .cancelled = readers.cancelled};
    numbers.writer = {.commits = writer.commits,
                      .committed = writer.committed,
                      .failed = writer.failed,
                      .unknown = writer.unknown,
                      .reopened = writer.reopened,
                      .batch_size_max = writer.batch_size_max,
                      .commit_time_sum = writer.commit_time_sum,
                      .commit_time_max = writer.commit_time_max};
    numbers.breaker_state = static_cast<std::uint64_t>(storage_.breaker_state());
    numbers.breaker_read_state = static_cast<std::uint64_t>(reading.state);
    numbers.breaker_write_state = static_cast<std::uint64_t>(writing.state);
    numbers.breaker_opened = reading.times_opened + writing.times_opened;
    numbers.connections = server_.connections();
    const auto feed = feed_.stats();
    numbers.event_cursor = static_cast<std::uint64_t>(feed.published);
    numbers.reservation_waiters = reservations_.waiting();
    numbers.websocket = {.consumers = feed.followers, .lagged = feed.lagged};
    numbers.process = ReadProcessUse();
    return numbers;
  }

  static service::Live::Options LiveOptions(const Limits& limits) {
    return {.pokes_max = limits.pokes_max, .window = limits.pokes_window};
  }

  static service::Mail::Options MailOptions(const Limits& limits) {
    return {.addresses_max = limits.addresses_max,
            .name_bytes_max = limits.mail_name_bytes_max,
            .broadcasts_max = limits.broadcasts_max,
            .broadcast_window = limits.broadcast_window};
  }

  service::Reservations::Options ReservationOptions(const ServeOptions& options) {
    return {.heartbeat_grace = options.heartbeat_grace,
            .held_max = options.reservations_max,
            .publish_live = [this](const domain::Event& event) { feed_.PublishLive(event); }};
  }

  service::Sweeper::Options SweeperOptions(const ServeOptions& options) {
    service::Sweeper::Options sweeping;
    sweeping.interval = options.sweep_interval;
    sweeping.retain = std::chrono::days(options.retain_days);
    sweeping.heartbeat_grace = options.heartbeat_grace;
    sweeping.on_expired = [this](const auto& expired) {
      reservations_.TellGone(expired.reservations);
      for (const domain::Reservation& one : expired.reservations) {
        const auto name = expired.names.find(one.agent);
        events_.Info("reservation expired",
                     {{"reservation", one.id},
                      {"agent", one.agent},
                      {"name", name != expired.names.end() ? name->second : ""},
                      {"project", one.project},
                      {"pattern", one.pattern}});
      }
    };
    return sweeping;
  }

  service::LapseWatch::Options LapseOptions(const ServeOptions& options) {
    return {.grace = options.heartbeat_grace,
            .interval = options.sweep_interval,
            .on_lapsed = [this](const store::SeenAgent& agent) {
              events_.Info("agent expired", {{"agent", agent.id},
                                             {"name", agent.name},
                                             {"project", agent.project},
                                             {"last_seen", agent.last_seen}});
            }};
  }

  static service::Feed::Options FeedOptions(const Limits& limits) {
    return {.outbox_events_max = limits.outbox_events_max,
            .outbox_bytes_max = limits.outbox_bytes_max,
            .types_max = limits.event_types_max,
            .replays_max = limits.replays_max};
  }

  Logger& log_;
  LimitedLog events_;
  const DatabaseLock lock_;
  api::Metrics metrics_;
  const Commits commits_;
  const std::unique_ptr<sqlite::Database> database_;
  service::Storage storage_;
  auth::KeyringHolder keys_;
  Csprng random_;
  UuidMaker uuids_;
  service::Reservations reservations_;
  service::Feed feed_;
  service::Sweeper sweeper_;
  service::LapseWatch lapses_;
  service::SignWriter sign_writer_;
  const std::unique_ptr<service::Mirror> mirror_;  // null when none was asked for
  service::Health health_;
  service::Agents agents_;
  service::Mail mail_;
  service::Mailbox mailbox_;
  service::Planning planning_;
  service::Status status_;
  service::TmuxInjector tmux_;
  service::Live live_;
  service::Windows windows_;
  api::App app_;
  const api::RouteTable routes_;
  api::Dispatcher dispatcher_;
  http::Server server_;
};

// The sockets that the options name; none that is open to strangers without their asking.
Result<std::vector<http::ListeningSocket>> Listen(const ServeOptions& options,
                                                  const auth::Keyring& keyring, Logger& log) {
  std::vector<http::ListeningSocket> sockets;
  IL_TRY(http::ListeningSocket tcp, http::ListenTcp(options.host, options.port));
  if (options.access.insecure) {
    log.Warn("everybody who can reach this server may do everything (--insecure)",
             {{"url", tcp.url}});
  } else {
    IL_TRY_VOID(RefuseWithoutKeys(tcp, keyring));
  }
  if (!options.socket.empty()) {
    IL_TRY(http::ListeningSocket socket, http::ListenUnix(options.socket));
    sockets.push_back(std::move(socket));
  }
  sockets.push_back(std::move(tcp));
  return sockets;
}

// Files that other users of this machine could get at, which is the operator's to decide.
void WarnOfOtherUsers(const ServeOptions& options, Logger& log) {
  if (OthersMayUse(options.database)) {
    log.Warn("other users may read or write the database; make it private (chmod 600)",
             {{"file", options.database.string()}});
  }
  constexpr std::string_view kRemedy = "take its directory from them (chmod o-w)";
  if (OthersMayReplace(options.database)) {
    log.Warn(fmt::format("other users may replace the database; {}", kRemedy),
             {{"file", options.database.string()}});
  }
  if (!options.socket.empty() && OthersMayReplace(options.socket)) {
    log.Warn(fmt::format("other users may replace the socket; {}", kRemedy),
             {{"file", options.socket.string()}});
  }
}

// Keeps the database, the keys and the socket out of `git status` and `git add`. A repository that
// cannot be written is no reason to stop.
void HideFilesFromGit(const ServeOptions& options, Logger& log) {
  std::vector<std::filesystem::path> files = {options.database, options.keys_file};
  if (!options.socket.empty()) files.push_back(options.socket);
  const Result<Hidden> hidden = HideFromGit(files);
  if (!hidden.ok()) {
    log.Warn("git may add the files of this server, also its keys; do not commit them",
             {{"error", hidden.error()}});
  } else if (*hidden == Hidden::kNow) {
    log.Info("git ignores the files of this server from now on (info/exclude of the repository)");
  }
}

// The log of events as the server finds it.
struct FoundLog {
  std::string id;
  domain::Cursor newest = 0;
};

// Read before the storage threads start, so that they have seen nothing yet.
Result<FoundLog> ReadLog(const ServeOptions& options) {
  IL_TRY(const auto connection,
         sqlite::Connection::Open({.path = options.database, .access = sqlite::Access::kReadOnly}));
  IL_TRY(std::string id, store::ReadLogId(*connection));
  IL_TRY(const domain::Cursor newest, store::NewestCursor(*connection));
  return FoundLog{.id = std::move(id), .newest = newest};
}

Result<std::unique_ptr<Running>> Open(const ServeOptions& options, const Terminal& terminal,
                                      Clock& clock, Logger& log) {
  IL_TRY_VOID(http::CheckTcpHost(options.host));
  if (options.network_fs == ServeOptions::NetworkFs::kRefuse) {
    IL_TRY_VOID(RefuseNetworkFileSystem(options.database));
  }
  IL_TRY(DatabaseLock lock, DatabaseLock::Acquire(options.database));
  HideFilesFromGit(options, log);
  IL_TRY_VOID(MigrateDatabase(options, clock, log));
  WarnOfOtherUsers(options, log);
  IL_TRY(const FoundLog events, ReadLog(options));
  sqlite::DatabaseOptions database_options;
  database_options.path = options.database;
  database_options.durability = options.durability;
  database_options.write_queue_max = options.limits.write_queue_max;
  database_options.read_queue_max = options.limits.read_queue_max;
  database_options.batch_max = options.limits.batch_max;
  database_options.readers = options.limits.readers;
  const Commits commits;
  database_options.on_committed = [commits](db::Connection* own) {
    commits.feed->Notify(own);
    commits.mirror->Notify(own);
  };
  IL_TRY(auto database, sqlite::Database::Open(database_options, clock));
  Csprng random;
  IL_TRY(auth::Keyring keyring, OpenKeys(options.keys_file, random, terminal, clock, log));
  IL_TRY(auto sockets, Listen(options, keyring, log));
  auto running = std::make_unique<Running>(options, clock, log, std::move(lock), events.id, commits,
                                           std::move(database), std::move(keyring));
  Signals::BeginServing();
  running->Start(std::move(sockets), events.newest);
  return running;
}

// Reloads the keys whenever that is asked for, until a stop is; the signal that asked for it. A
// closed window sends SIGHUP too: then nobody is left who would stop the server.
const char* WaitForStop(const ServeOptions& options, const Terminal& terminal, Running& running) {
  while (Signals::Wait() == Signals::Request::kReload) {
    if (terminal.HungUp()) return "SIGHUP";
    running.ReloadKeys(options.keys_file);
  }
  return Signals::StopName();
}

}  // namespace

Result<void> MigrateDatabase(const ServeOptions& options, Clock& clock, Logger& log) {
  const db::Schema schema = store::ServerSchema();
  IL_TRY(const auto connection,
         sqlite::Connection::Open({.path = options.database,
                                   .access = sqlite::Access::kReadWriteOrCreate,
                                   .durability = options.durability,
                                   .busy_timeout = kMigrationPatience,
                                   .upkeep = sqlite::LogUpkeep::kByCallerAndClose,
                                   .owner = std::string(schema.program)}));
  db::Migrator migrator(schema, {.database = options.database}, clock);
  const Result<db::MigrationOutcome> migrated = migrator.Run(*connection);
  const bool foreign = !migrated && migrated.error().code() == Errc::kForeignSchema;
  if (!foreign) connection->DoubtLog();  // an earlier server may have left it: see GroupWriter, (8)
  IL_TRY(const db::MigrationOutcome outcome, migrated);
  if (outcome.from == 0) {
    log.Info("created the database", {{"version", outcome.to}});
  } else if (outcome.from != outcome.to) {
    log.Info("migrated the database",
             {{"from", outcome.from}, {"to", outcome.to}, {"backup", outcome.backup.string()}});
  }
  // The file should be whole without its log. If that cannot be now, the first write sees to it.
  static_cast<void>(connection->CheckpointWithoutWaiting().ok());
  return {};
}

int Serve(const ServeOptions& given) {
  ::signal(SIGPIPE, SIG_IGN);  // a peer that is gone is an error of its write, not our end
  ::signal(SIGXFSZ, SIG_IGN);  // and a file that may not grow is one of a full disk
  Signals::Install();
  const std::uint64_t files_max = RaiseOpenFileLimit();
  const std::uint64_t files_open = ReadProcessUse().open_files.value_or(files_max);
  if (const auto enough = RefuseTooFewFiles(files_max, files_open, given.io_threads);
      !enough.ok()) {
    std::fputs(fmt::format("intermute: {}\n", enough.error().message()).c_str(), stderr);
    return 1;
  }
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
  const Terminal terminal = Terminal::Find();
  auto running = Open(options, terminal, clock, log);
  if (!running.ok()) {
    std::fputs(fmt::format("intermute: {}\n", running.error().message()).c_str(), stderr);
    return 1;
  }
  const char* const reason = WaitForStop(options, terminal, **running);
  log.Info("stopping", {{"signal", reason}});
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
