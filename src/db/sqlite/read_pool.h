#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "db/database.h"
#include "db/sqlite/connection.h"
#include "db/sqlite/group_writer.h"
#include "db/sqlite/request_queue.h"

namespace interlock::sqlite {

// The readers of one SQLite file: N threads with a read-only connection each, fed by one queue. A
// read sees one snapshot of what is committed, and neither waits for a writer nor holds one up.
// Reads that waited already when a snapshot was taken may share it, since it shows all that was
// committed before they were submitted: with every new one SQLite forgets the pages it has read.
//
// Nothing is read from a file that is no longer where it was opened: such reads hear kUnavailable,
// see Connection::CheckInPlace(), until it is back. It is looked for with each snapshot.
//
// Thread-safe. `done` runs exactly once per accepted read, on a reader thread, with no lock held. A
// snapshot ends before the last `done` of those who shared it, so that a slow listener does not
// keep the log from shrinking. A `done` that throws fails a check.
class ReadPool {
 public:
  using Read = db::Database::ReadFn;
  using Done = db::Database::Done;
  using Ticket = db::Database::Ticket;
  using Open = std::function<Result<std::unique_ptr<Connection>>()>;

  struct Options {
    std::size_t queue_max = 4096;
    Drive drive = Drive::kThreads;
    Ticket first_ticket = 2;
    std::atomic<bool>* in_place = nullptr;  // where to report that, if anywhere
  };

  // For metrics; counts since the start.
  struct Stats {
    std::size_t queue_depth = 0;
    std::size_t queue_depth_max = 0;
    std::uint64_t refused = 0;
    std::uint64_t cancelled = 0;
  };

  // One thread per connection. `open` makes another one after a failure that spoils the first, on
  // the thread that needs it, and again for each read until it succeeds.
  ReadPool(std::vector<std::unique_ptr<Connection>> connections, Open open, const Options& options);
  ~ReadPool();  // Close()

  // Never waits. kUnavailable (full or closing): neither function will run.
  Result<Ticket> Submit(Read read, Done done) {
    return queue_.Push(std::move(read), std::move(done));
  }

  // True: it had not begun, and its `done` has been called here with kCancelled.
  bool Cancel(Ticket ticket) { return queue_.Cancel(ticket); }

  // Runs the oldest read that waits; false when none does. REQUIRES: Drive::kByHand.
  bool StepOnce();

  // Refuses new reads, finishes the accepted ones, closes the connections. Idempotent; blocks until
  // closed; not to be called from a storage callback.
  void Close();

  Stats stats();

 private:
  using Queue = RequestQueue<Read>;
  using Slot = std::unique_ptr<Connection>;  // null: to be reopened

  static constexpr int kReadsPerSnapshot = 16;

  void Run(Slot& slot);
  void RunShared(Slot& slot, Queue::Request first, int reads_max);
  Result<void> Attempt(Slot& slot, const Read& read);
  Result<void> TakeSnapshot(Slot& slot);
  Result<void> FindFile(Slot& slot);  // opens it where there is no connection

  const Options options_;
  const Open open_;
  std::vector<Slot> slots_;  // each touched by its own thread only
  Queue queue_;
  std::once_flag close_once_;
  std::vector<std::thread> threads_;  // last: start when everything above is built
};

}  // namespace interlock::sqlite
