#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string_view>

#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "db/sqlite/database.h"
#include "db/sqlite/fault_vfs.h"
#include "service/agents.h"
#include "service/commit_signal.h"
#include "service/feed.h"
#include "service/mail.h"
#include "service/mailbox.h"
#include "service/reservations.h"
#include "service/sign_writer.h"
#include "service/storage.h"
#include "service/sweeper.h"
#include "testing/fake_clock.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::sim {

inline constexpr Duration kGrace = std::chrono::minutes(2);  // of heartbeats

// The services of a server without their threads, on a real SQLite file that lies on a disk in
// memory. Destroyed only after Stop().
class Server {
 public:
  // `committed` runs after each COMMIT, before anybody hears of it.
  Server(const sqlite::DatabaseOptions& options, Clock& clock, RandomSource& random,
         UuidMaker& uuids, Logger& log, std::function<double()> jitter,
         std::function<void()> committed);

  void Start(domain::Cursor newest);
  // In the order of apps/serve.cc. REQUIRES: no sweep is under way.
  void Stop();

  sqlite::Database& database() { return *database_; }
  service::SignsOfLife& signs() { return storage_.signs(); }
  // Requests reach the storage.
  bool healthy() const { return storage_.breaker_state() == resilience::Breaker::State::kClosed; }

 private:
  static sqlite::DatabaseOptions WithSignal(sqlite::DatabaseOptions options,
                                            service::CommitSignal& commits,
                                            std::function<void()> committed);
  service::Reservations::Options ReservationOptions();
  service::Sweeper::Options SweeperOptions();

  service::CommitSignal commits_;
  const std::unique_ptr<sqlite::Database> database_;
  service::Storage storage_;

 public:
  service::Feed feed;
  service::Reservations reservations;
  service::Agents agents;
  service::Mail mail;
  service::Mailbox mailbox;

 private:
  service::Sweeper sweeper_;
  service::SignWriter sign_writer_;
};

// Everything that a simulated server stands on, and the server. Nothing in it happens by itself:
// time stands still, the storage does nothing and no coroutine goes on until somebody says so. So
// one thread drives all of it, and equal seeds give equal worlds.
class World {
 public:
  struct Hooks {
    // After each step of the writer, and before anybody hears of it: what it wrote can be looked
    // at.
    std::function<void()> after_write;
    // A server has stopped and everybody has been answered; it is about to be destroyed.
    std::function<void()> stopped;
  };
  World(std::uint64_t seed, Hooks hooks);
  ~World();  // Stop()
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  testing::FakeClock& clock() { return clock_; }
  boost::asio::io_context& io() { return io_; }
  Server& server() { return *server_; }

  // One batch of writes, one read; false when none waits. Then all coroutines that can go on do.
  // With a fault, a call of the disk fails on the way, or, with kPowerCut, the power goes: then the
  // server is down until Restart(). kSlow: the COMMIT takes longer than anybody waits for storage.
  enum class Weather : std::uint8_t { kFair, kFault, kSlow, kPowerCut };
  bool StepWriter(Weather weather);
  bool StepReader(Weather weather);
  // When the last batch of writes was begun, by the wall clock.
  Timestamp write_began_at() const { return write_began_at_; }
  std::size_t writes_waiting() { return server_->database().writer_stats().queue_depth; }
  std::size_t reads_waiting() { return server_->database().reader_stats().queue_depth; }
  void Poll();

  // Until nothing can happen without time passing.
  void Settle();
  bool powered() { return vfs_.disk().powered(); }

  // What the power cut has left can be looked at; then the power is off as before, and the server
  // has noticed nothing. REQUIRES: the power is off.
  void LookAtWhatIsLeft(const std::function<void()>& look);

  // The server stops, in good order unless the power is off, and starts anew.
  void Restart();

  // The end of the world. Idempotent.
  void Stop();

  // For who looks in from outside. REQUIRES: the power is on.
  std::unique_ptr<sqlite::Connection> OpenToRead() { return Open(sqlite::Access::kReadOnly); }
  std::unique_ptr<sqlite::Connection> OpenToWrite() { return Open(sqlite::Access::kReadWrite); }

  // What the disk did to us so far.
  std::int64_t faults() { return vfs_.disk().fired(); }
  // How often the log was moved into the file between two batches.
  std::uint64_t log_moves() {
    return log_moves_ + (server_ ? server_->database().writer_stats().log_moves : 0);
  }

 private:
  std::unique_ptr<sqlite::Connection> Open(sqlite::Access access);
  void MakeServer();
  void StopServer();
  void Arm(Weather weather);

  class Silence final : public LogSink {
   public:
    void Write(std::string_view /*line*/) override {}
  };

  std::mt19937_64 rng_;
  const Hooks hooks_;
  bool slow_ = false;  // the next COMMIT is
  Timestamp write_began_at_;
  std::uint64_t log_moves_ = 0;  // of the servers before this one
  testing::FakeClock clock_;
  testing::SeededRandom random_;
  UuidMaker uuids_;
  Silence unheard_;
  Logger log_;
  testing::TempDb file_;
  sqlite::FaultVfs vfs_;
  boost::asio::io_context io_{1};
  std::unique_ptr<Server> server_;
};

}  // namespace interlock::sim
