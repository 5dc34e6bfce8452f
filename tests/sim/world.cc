#include "sim/world.h"

#include <sqlite3.h>

#include <array>
#include <utility>

#include "base/check.h"
#include "db/migrate.h"
#include "store/events.h"
#include "store/schema.h"
#include "testing/random.h"

namespace interlock::sim {
namespace {

using sqlite::DiskOp;
using testing::Below;

// So small that followers fall behind, and batches have neighbours.
constexpr std::size_t kOutboxEvents = 24;
constexpr std::size_t kInboxes = 4;  // fewer than there are, so that some are forgotten
constexpr std::size_t kBatchMax = 8;
constexpr int kLogPagesMax = 40;  // so short a log is moved into the file every few batches

// A little more than a request waits for storage.
constexpr Duration kStorageTime = std::chrono::seconds(11);

sqlite::DatabaseOptions OptionsOf(const testing::TempDb& file, const sqlite::FaultVfs& vfs) {
  sqlite::DatabaseOptions options;
  options.path = file.path();
  options.busy_timeout = std::chrono::milliseconds(0);  // SQLite would wait by the machine's time
  options.batch_max = kBatchMax;
  options.log_pages_max = kLogPagesMax;
  options.readers = 1;
  options.drive = sqlite::Drive::kByHand;
  options.vfs = vfs.name();
  return options;
}

}  // namespace

// ---- Server

Server::Server(const sqlite::DatabaseOptions& options, Clock& clock, RandomSource& random,
               UuidMaker& uuids, Logger& log, std::function<double()> jitter,
               std::function<void()> committed)
    : database_(sqlite::Database::Open(WithSignal(options, commits_, std::move(committed)), clock)
                    .value()),
      storage_(*database_, clock, {.random = std::move(jitter), .inboxes_max = kInboxes}),
      feed(storage_, commits_, clock, log, {.outbox_events_max = kOutboxEvents}),
      reservations(storage_, clock, uuids, Limits(), ReservationOptions()),
      agents(storage_, clock, random, uuids, Limits(),
             [this](const auto& agent, const auto& released) {
               reservations.TellLeft(agent, released);
             }),
      mail(storage_, clock, uuids),
      mailbox(storage_, clock),
      sweeper_(
          storage_, clock, log, [this] { return feed.stats().published; }, SweeperOptions()),
      sign_writer_(storage_, clock) {}

sqlite::DatabaseOptions Server::WithSignal(sqlite::DatabaseOptions options,
                                           service::CommitSignal& commits,
                                           std::function<void()> committed) {
  options.on_committed = [&commits, committed = std::move(committed)](db::Connection* own) {
    committed();
    commits.Notify(own);
  };
  return options;
}

service::Reservations::Options Server::ReservationOptions() {
  return {.heartbeat_grace = kGrace,
          .publish_live = [this](const domain::Event& event) { feed.PublishLive(event); }};
}

service::Sweeper::Options Server::SweeperOptions() {
  return {
      .retain = std::chrono::days(1),
      .rows_max = 50,
      .heartbeat_grace = kGrace,
      .on_expired = [this](const auto& expired) { reservations.TellGone(expired.reservations); }};
}

void Server::Start(domain::Cursor newest) {
  feed.Start(newest);
  sweeper_.Start();
  sign_writer_.Start();
}

void Server::Stop() {
  sweeper_.Stop();
  reservations.StopWaits();
  feed.Stop();
  sign_writer_.Stop();
  storage_.Stop();
  const Result<void> closed = database_->Close();  // fails when the power is off
}

// ---- World

World::World(std::uint64_t seed, Hooks hooks)
    : rng_(seed),
      hooks_(std::move(hooks)),
      random_(seed),
      uuids_(clock_, random_),
      log_(clock_, unheard_, {.level_min = LogLevel::kError}),
      vfs_(seed) {
  const auto connection = Open(sqlite::Access::kReadWriteOrCreate);
  IL_CHECK(db::Migrator(store::ServerSchema(), {.database = file_.path()}, clock_)
               .Run(*connection)
               .ok());
  MakeServer();
}

World::~World() { Stop(); }

void World::Stop() {
  if (server_) StopServer();
}

std::unique_ptr<sqlite::Connection> World::Open(sqlite::Access access) {
  sqlite::OpenOptions opening = file_.options(access);
  opening.vfs = vfs_.name();
  return sqlite::Connection::Open(opening).value();
}

void World::MakeServer() {
  server_ = std::make_unique<Server>(
      OptionsOf(file_, vfs_), clock_, random_, uuids_, log_,
      [this] { return static_cast<double>(Below(rng_, 1000)) / 1000; },
      [this] {
        if (std::exchange(slow_, false)) clock_.Advance(kStorageTime);
      });
  server_->Start(store::NewestCursor(*OpenToRead()).value());
}

// What is under way ends by itself within the time that storage has at most; only then may the
// sweeper be stopped, which waits for its step.
void World::StopServer() {
  Settle();
  clock_.Advance(kStorageTime);
  Settle();
  server_->Stop();
  log_moves_ += server_->database().writer_stats().log_moves;
  Poll();
  hooks_.stopped();
  server_.reset();
  IL_CHECK(clock_.timers_waiting() == 0, "a timer outlives its server");
}

void World::LookAtWhatIsLeft(const std::function<void()>& look) {
  vfs_.disk().PowerOn();
  look();
  vfs_.disk().CutPower(sqlite::Survival::kAll);
}

void World::Restart() {
  StopServer();
  if (!powered()) vfs_.disk().PowerOn();
  io_.restart();
  MakeServer();
}

void World::Poll() {
  io_.restart();
  io_.poll();
}

// One call of the disk fails, or a few in a row, somewhere on the way of the next step.
void World::Arm(Weather weather) {
  slow_ = weather == Weather::kSlow;
  if (weather == Weather::kFair || weather == Weather::kSlow) return;
  // Most while the commit is written, some while the log is moved into the file after it.
  const bool late = Below(rng_, 4) == 0;
  if (weather == Weather::kPowerCut) {
    const auto nth = static_cast<std::int64_t>(1 + Below(rng_, late ? 40 : 6));
    constexpr std::array kSurvivals = {sqlite::Survival::kNothing, sqlite::Survival::kSome,
                                       sqlite::Survival::kAll};
    return vfs_.disk().CutPowerAtStep(nth, kSurvivals.at(Below(rng_, kSurvivals.size())));
  }
  constexpr std::array kOps = {DiskOp::kWrite,  DiskOp::kWrite,    DiskOp::kWrite,
                               DiskOp::kSync,   DiskOp::kSync,     DiskOp::kRead,
                               DiskOp::kLock,   DiskOp::kShmLock,  DiskOp::kShmLock,
                               DiskOp::kShmMap, DiskOp::kTruncate, DiskOp::kOpen};
  constexpr std::array kEffects = {sqlite::Effect::kNothing, sqlite::Effect::kPart,
                                   sqlite::Effect::kWhole};
  sqlite::Fault fault{.op = kOps.at(Below(rng_, kOps.size()))};
  // A commit has few of each.
  fault.nth = static_cast<std::int64_t>(1 + Below(rng_, late ? 20 : 3));
  fault.calls = static_cast<std::int64_t>(1 + Below(rng_, 3));  // more, and SQLite would sleep
  fault.effect = kEffects.at(Below(rng_, kEffects.size()));
  if (fault.op == DiskOp::kWrite && Below(rng_, 4) == 0) fault.code = SQLITE_FULL;
  vfs_.disk().Inject(fault);
}

bool World::StepWriter(Weather weather) {
  Arm(weather);
  write_began_at_ = clock_.Now();
  const bool stepped = server_->database().StepWriter();
  vfs_.disk().Heal();
  slow_ = false;
  if (stepped) hooks_.after_write();
  Poll();
  return stepped;
}

bool World::StepReader(Weather weather) {
  Arm(weather == Weather::kFair ? Weather::kFair : Weather::kFault);
  const bool stepped = server_->database().StepReader();
  vfs_.disk().Heal();
  Poll();
  return stepped;
}

void World::Settle() {
  Poll();
  bool more = true;
  while (more) {
    const bool wrote = StepWriter(Weather::kFair);
    const bool read = StepReader(Weather::kFair);
    more = wrote || read;
  }
}

}  // namespace interlock::sim
