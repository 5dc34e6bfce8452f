#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "db/database.h"
#include "db/sqlite/connection.h"
#include "db/sqlite/request_queue.h"

namespace interlock::sqlite {

// Who runs the requests: threads of ours, or a simulation that calls StepOnce().
enum class Drive : std::uint8_t { kThreads, kByHand };

// The only writer of one SQLite file. Writes that queue up while a commit runs share the next
// transaction, hence one fsync; nothing is ever delayed to make a batch larger. One that fails or
// throws is undone alone.
//
// Thread-safe. Invariants:
// (1) Once built, only the writer thread (or the one that steps by hand) touches the connection.
// (2) `done` runs exactly once per accepted write: after COMMIT, in the order of commit, on the
//     writer thread, with no lock held. A `done` that throws fails a check.
// (3) A COMMIT that failed after SQLite began to write the log leaves durability open: every write
//     of the batch that had succeeded hears kOutcomeUnknown; the connection is closed, and reopened
//     and checked before the next batch. That holds for a full disk too: the last bytes of a batch
//     may be in the log although the call that wrote them failed. The detail `cause` has the slug
//     of what failed. Guessing would let us confirm a
//     reservation that a restart forgets, or deny one that it remembers.
// (4) A batch that breaks before that (SQLite rolls back everything on some errors, or a deferred
//     constraint fails the COMMIT) has surely left nothing. The write at fault hears its error; the
//     others run again, each in a transaction of its own.
// (5) A write that fails after others of its batch succeeded may fail on account of what they wrote
//     ("exists already"). It hears that failure only once they are committed; when their COMMIT
//     fails, it runs again alone, on what is there then. What storage itself failed stands.
// (6) Most writes that fail have changed nothing before, so that there is nothing to undo: a batch
//     begins without savepoints, which would cost each of its writes a copy of every page it
//     touches. When one fails after a change, the batch is rolled back and run again with a
//     savepoint around each, and so are some that follow.
// (7) The log is moved into the file after the answers of a batch, not inside its COMMIT.
// (8) Pages whose sync failed once are readable, but no later sync brings them to the disk: a
//     power cut takes them, and with them all that was built upon them. A log that was there before
//     the connection is therefore written over itself, moved into the file and emptied before the
//     first batch, or when closing if there was none. Who reads an old snapshot meanwhile makes
//     that batch kBusy.
// (9) Nothing is written to a file that is no longer where it was opened, and where the next server
//     would look for it, nor to a log that is not: such batches hear kUnavailable, see
//     Connection::CheckInPlace(), until it is back.
// (10) Nothing that throws on the writer thread, such as an allocation or `reopen`, ends it: the
//     batch hears kOutOfMemory, or kOutcomeUnknown when its COMMIT had begun.
class GroupWriter {
 public:
  using Write = db::Database::WriteFn;
  using Done = db::Database::Done;
  using Ticket = db::Database::Ticket;
  using Reopen = std::function<Result<std::unique_ptr<Connection>>()>;
  using OnReopened = std::function<void(Connection&)>;
  using OnCommitted = std::function<void(db::Connection* own)>;

  struct Options {
    std::size_t queue_max = 4096;  // Submit() refuses beyond this, so memory stays bounded
    std::size_t batch_max = 256;   // writes per COMMIT: bounds how long the first one waits
    int log_pages_max = 16'000;    // 64 MB: a longer log is moved into the file, see (7)
    Drive drive = Drive::kThreads;
    Ticket first_ticket = 1;
    std::atomic<bool>* in_place = nullptr;  // where to report the result of (9), if anywhere
    // Hears of each new connection before the next batch uses it, on the writer thread. What a
    // batch of unknown outcome left behind can be read here. Must not throw.
    OnReopened on_reopened = {};
    // Told that readers may now see more than before: after each COMMIT that did not surely fail,
    // and after each reopening, which may bring to light what a failed one had kept; before the
    // answers of that batch, on the writer thread. It says when to look, not what there is. `own`
    // is the writer's connection, outside of any transaction, for a quick look; null where it has
    // none now. Must be quick and must not throw.
    OnCommitted on_committed = {};
  };

  // For metrics; counts since the start. Committed, failed and unknown add up to all that ran.
  struct Stats {
    std::size_t queue_depth = 0;
    std::size_t queue_depth_max = 0;
    std::uint64_t refused = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t commits = 0;  // successful ones
    std::uint64_t committed = 0;
    std::uint64_t failed = 0;   // surely not committed
    std::uint64_t unknown = 0;  // of unknown outcome
    std::uint64_t reopened = 0;
    std::uint64_t log_moves = 0;     // into the file, see (7)
    std::size_t batch_size_max = 0;  // writes in the largest successful commit
    Duration commit_time_sum{0};     // inside successful COMMITs
    Duration commit_time_max{0};
  };

  // `reopen` makes a connection like `connection`; it is called on the writer thread after a
  // failure that spoils the old one, and again for each batch until it succeeds. Meanwhile batches
  // fail with its error.
  GroupWriter(std::unique_ptr<Connection> connection, Reopen reopen, Options options, Clock& clock);
  ~GroupWriter();  // Close()

  // Never waits. kUnavailable (full or closing): neither function will run.
  Result<Ticket> Submit(Write write, Done done) {
    return queue_.Push(std::move(write), std::move(done));
  }

  // True: it had not begun, and its `done` has been called here with kCancelled.
  bool Cancel(Ticket ticket) { return queue_.Cancel(ticket); }

  // Runs one batch of what waits now; false when nothing waits. REQUIRES: Drive::kByHand.
  bool StepOnce();

  void Refuse() { queue_.Refuse(); }  // no new writes; the queued ones go on

  // Refuses new writes, commits the queued ones, empties the log and closes the connection. One
  // that the last batch spoilt is opened anew for that, without telling `on_reopened`. Idempotent;
  // blocks until closed; not to be called from a storage callback. Fails when the log could not be
  // emptied, unless another process is using it.
  Result<void> Close();

  Stats stats() IL_EXCLUDES(mutex_);

 private:
  using Queue = RequestQueue<Write>;

  struct Pending {
    Queue::Request request;
    Result<void> result;
    bool settled = false;  // `result` stands, whatever becomes of the batch
  };
  enum class Verdict : std::uint8_t {
    kSettled,     // all results stand
    kRolledBack,  // nothing was kept: what is not settled runs again, alone
    kUnknown,     // the COMMIT failed, see (3): the same
  };

  enum class Undo : std::uint8_t { kBatch, kOne };  // what a write that fails can undo, see (6)

  void Run();
  void TidyLog() IL_EXCLUDES(mutex_);
  void RunBatch(std::vector<Queue::Request> requests);
  Verdict AttemptContained(std::span<Pending> batch);
  Verdict AttemptCaught(std::span<Pending> batch);
  Verdict Attempt(std::span<Pending> batch);
  std::optional<Verdict> RunAll(std::span<Pending> batch, Undo undo);
  Verdict Commit(std::span<Pending> batch);
  Result<void> RunOne(const Write& write);
  Result<void> RunOneInSavepoint(const Write& write);
  Result<void> Begin();
  Result<void> EnsureConnection();
  Result<void> SettleLog();  // see (8)
  void NotifyCommitted();
  void Answer(Pending& pending);
  void CountCommit(std::size_t writes, Duration took) IL_EXCLUDES(mutex_);
  Result<void> CloseConnection();

  const Options options_;
  const Reopen reopen_;
  Clock& clock_;
  std::unique_ptr<Connection> connection_;  // see (1); null: to be reopened
  bool log_settled_ = false;                // nothing of an earlier connection is in the log
  bool committing_ = false;                 // the COMMIT has begun, and did not surely fail
  int careful_batches_ = 0;                 // that are yet to run with savepoints, see (6)
  Queue queue_;
  Mutex mutex_;
  Stats stats_ IL_GUARDED_BY(mutex_);
  std::once_flag close_once_;
  Result<void> close_result_;  // written inside close_once_, read after it
  std::thread thread_;         // last: starts when everything above is built
};

}  // namespace interlock::sqlite
