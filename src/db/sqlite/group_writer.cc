#include "db/sqlite/group_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace interlock::sqlite {
namespace {

constexpr int kCarefulBatches = 64;  // after a write that failed when it had changed something

}  // namespace

GroupWriter::GroupWriter(std::unique_ptr<Connection> connection, Reopen reopen, Options options,
                         Clock& clock)
    : options_(std::move(options)),
      reopen_(std::move(reopen)),
      clock_(clock),
      connection_(std::move(connection)),
      queue_({.name = "write", .max = options_.queue_max, .first_ticket = options_.first_ticket}) {
  IL_CHECK(connection_ != nullptr);
  IL_CHECK(options_.batch_max > 0);
  if (options_.drive == Drive::kThreads) thread_ = std::thread([this] { Run(); });
}

GroupWriter::~GroupWriter() {
  const Result<void> closed = Close();  // who cares for the result calls Close() before
}

void GroupWriter::Run() {
  while (true) {
    std::vector<Queue::Request> requests = TakeContained(queue_, options_.batch_max);
    if (requests.empty()) return;
    RunBatch(std::move(requests));
    TidyLog();
  }
}

// What fails here fails no write: the log just grows until it works.
void GroupWriter::TidyLog() {
  if (connection_ == nullptr) return;
  try {
    const Result<bool> moved = connection_->TidyLog(options_.log_pages_max);
    if (!moved || !*moved) return;
  } catch (...) {
    connection_.reset();  // see (10)
    return;
  }
  MutexLock lock(mutex_);
  ++stats_.log_moves;
}

bool GroupWriter::StepOnce() {
  IL_CHECK(options_.drive == Drive::kByHand);
  std::vector<Queue::Request> requests = queue_.TryTake(options_.batch_max);
  if (requests.empty()) return false;
  RunBatch(std::move(requests));
  TidyLog();
  return true;
}

Result<void> GroupWriter::Close() {
  IL_CHECK(!Executing::Here(this), "closed from a storage callback");
  std::call_once(close_once_, [this] {
    queue_.Close();
    if (options_.drive == Drive::kByHand) {
      while (StepOnce()) {
      }
    } else {
      thread_.join();
    }
    close_result_ = CloseConnection();
  });
  return close_result_;
}

Result<void> GroupWriter::CloseConnection() {
  // Spoilt by the last batch: readers cannot empty the log that it left.
  if (connection_ == nullptr) {
    IL_TRY(connection_, reopen_());
    log_settled_ = false;
  }
  if (!log_settled_) connection_->DoubtLog();  // see (8)
  Result<void> emptied = connection_->Checkpoint();
  connection_.reset();
  // Another process reads or writes: the log is its own to empty, and nothing is lost.
  if (!emptied && emptied.error().code() == Errc::kBusy) return {};
  return emptied;
}

void GroupWriter::RunBatch(std::vector<Queue::Request> requests) {
  const Executing executing(this);
  std::vector<Pending> batch;
  try {
    batch.resize(requests.size());
  } catch (const std::bad_alloc&) {
    for (Queue::Request& request : requests) {
      Pending pending{.request = std::move(request), .result = OutOfMemory()};
      Answer(pending);
    }
    return;
  }
  for (std::size_t i = 0; i < requests.size(); ++i) batch[i].request = std::move(requests[i]);
  const Verdict verdict = AttemptContained(batch);
  // What a failed COMMIT may have kept precedes what is committed after it, so it is told first.
  const bool unknown = verdict == Verdict::kUnknown;
  for (Pending& pending : batch) {
    if (unknown && pending.settled) Answer(pending);
  }
  for (Pending& pending : batch) {
    if (unknown && pending.settled) continue;
    if (verdict != Verdict::kSettled && !pending.settled) {
      // Alone, a second verdict is always final.
      IL_CHECK(AttemptContained(std::span(&pending, 1)) == Verdict::kSettled);
    }
    Answer(pending);
  }
}

GroupWriter::Verdict GroupWriter::AttemptContained(std::span<Pending> batch) {
  const Verdict verdict = AttemptCaught(batch);
  if (committing_) NotifyCommitted();
  return verdict;
}

GroupWriter::Verdict GroupWriter::AttemptCaught(std::span<Pending> batch) {
  committing_ = false;
  try {
    return Attempt(batch);
  } catch (...) {
    connection_.reset();  // rolls back, if a transaction is open
  }
  for (Pending& pending : batch) {
    if (pending.settled || (committing_ && !pending.result.ok())) continue;
    pending.result = committing_ ? Error(Errc::kOutcomeUnknown, "outcome unknown") : OutOfMemory();
    pending.settled = true;
  }
  return committing_ && batch.size() > 1 ? Verdict::kUnknown : Verdict::kSettled;
}

GroupWriter::Verdict GroupWriter::Attempt(std::span<Pending> batch) {
  std::optional<Verdict> ended;
  while (!ended) {
    if (const Result<void> begun = Begin(); !begun) {
      for (Pending& pending : batch) pending.result = begun.error();
      return Verdict::kSettled;
    }
    ended = RunAll(batch, careful_batches_ > 0 ? Undo::kOne : Undo::kBatch);
  }
  if (careful_batches_ > 0) --careful_batches_;
  const Verdict verdict = *ended;
  IL_CHECK(connection_ == nullptr || !connection_->in_transaction());
  const auto spoilt = [](const Pending& p) {
    return !p.result.ok() && SpoilsConnection(p.result.error().code());
  };
  if (std::ranges::any_of(batch, spoilt)) connection_.reset();
  return verdict;
}

// Nothing: it was rolled back, and is to run again with savepoints.
std::optional<GroupWriter::Verdict> GroupWriter::RunAll(std::span<Pending> batch, Undo undo) {
  bool changed = false;  // by a write of this batch, which is not yet committed
  for (Pending& pending : batch) {
    const std::int64_t before = connection_->changes();
    pending.result =
        undo == Undo::kOne ? RunOneInSavepoint(pending.request.fn) : RunOne(pending.request.fn);
    const bool failed = !pending.result.ok();
    pending.settled = failed && (!changed || IsInfrastructure(pending.result.error().code()));
    changed = changed || !failed;
    if (!connection_->in_transaction()) {
      IL_CHECK(failed);     // the whole batch was rolled back on its account, see (4)
      connection_.reset();  // whatever it says, storage may have failed beneath it
      return batch.size() == 1 ? Verdict::kSettled : Verdict::kRolledBack;
    }
    if (undo == Undo::kBatch && failed && connection_->changes() != before) {
      connection_->Rollback();
      if (batch.size() == 1) return Verdict::kSettled;
      careful_batches_ = kCarefulBatches;
      return std::nullopt;
    }
  }
  if (!changed) {
    connection_->Rollback();
    return Verdict::kSettled;
  }
  return Commit(batch);
}

Result<void> GroupWriter::RunOne(const Write& write) {
  db::Transaction transaction(*connection_);
  Result<void> result = RunContained(write, transaction);
  if (result.ok() && !connection_->in_transaction()) {
    return Error(Errc::kInternal,
                 "a write went on after a failure that had rolled back its transaction");
  }
  return result;
}

Result<void> GroupWriter::RunOneInSavepoint(const Write& write) {
  IL_TRY_VOID(connection_->Savepoint());
  Result<void> result = RunOne(write);
  if (!connection_->in_transaction()) return result;
  if (result.ok()) result = connection_->ReleaseSavepoint();
  if (result.ok()) return result;
  Result<void> undone = connection_->RollbackToSavepoint();
  if (undone.ok()) undone = connection_->ReleaseSavepoint();
  if (!undone.ok())
    connection_->Rollback();  // what cannot be undone alone is undone with the batch
  return result;
}

GroupWriter::Verdict GroupWriter::Commit(std::span<Pending> batch) {
  const Duration start = clock_.Monotonic();
  committing_ = true;
  const Result<void> committed = connection_->Commit();
  if (committed.ok()) {
    const auto writes =
        std::ranges::count_if(batch, [](const Pending& p) { return p.result.ok(); });
    CountCommit(static_cast<std::size_t>(writes), clock_.Monotonic() - start);
    return Verdict::kSettled;
  }
  if (connection_->in_transaction()) {
    committing_ = false;
    connection_->Rollback();
    if (SpoilsConnection(committed.error().code())) connection_.reset();
    if (batch.size() > 1) return Verdict::kRolledBack;
    batch.front().result = committed.error();
    return Verdict::kSettled;
  }
  for (Pending& pending : batch) {
    if (!pending.result.ok()) continue;
    pending.result = Error(Errc::kOutcomeUnknown,
                           "the change may or may not have been kept; look before repeating it. " +
                               committed.error().message())
                         .WithDetail("cause", std::string(committed.error().slug()));
    pending.settled = true;
  }
  return batch.size() == 1 ? Verdict::kSettled : Verdict::kUnknown;
}

Result<void> GroupWriter::Begin() {
  IL_TRY_VOID(EnsureConnection());
  Result<void> begun = SettleLog();
  if (begun.ok()) begun = connection_->BeginExclusive();
  if (!begun.ok() && SpoilsConnection(begun.error().code())) connection_.reset();
  if (!begun.ok()) return begun;
  Result<void> in_place = connection_->CheckInPlace();
  if (options_.in_place != nullptr) {
    options_.in_place->store(in_place.ok(), std::memory_order_relaxed);
  }
  if (!in_place.ok()) connection_->Rollback();
  return in_place;
}

Result<void> GroupWriter::SettleLog() {
  if (log_settled_) return {};
  connection_->DoubtLog();
  IL_TRY_VOID(connection_->Checkpoint());
  log_settled_ = true;
  return {};
}

Result<void> GroupWriter::EnsureConnection() {
  if (connection_ != nullptr) return {};
  IL_TRY(std::unique_ptr<Connection> connection, reopen_());
  // Opening read the file and its log; a write lock proves that the shared memory works too.
  IL_TRY_VOID(connection->BeginExclusive());
  const Result<int> version = connection->SchemaVersion();
  connection->Rollback();
  if (!version.ok()) return version.error();
  connection_ = std::move(connection);
  log_settled_ = false;
  {
    MutexLock lock(mutex_);
    ++stats_.reopened;
  }
  if (options_.on_reopened) options_.on_reopened(*connection_);
  NotifyCommitted();
  return {};
}

void GroupWriter::NotifyCommitted() {
  if (options_.on_committed) options_.on_committed(connection_.get());
}

void GroupWriter::Answer(Pending& pending) {
  if (!pending.result.ok()) {
    MutexLock lock(mutex_);
    ++(pending.result.error().code() == Errc::kOutcomeUnknown ? stats_.unknown : stats_.failed);
  }
  pending.request.fn = nullptr;  // what it captured dies before its owner hears
  Tell(pending.request.done, std::move(pending.result));
  pending.request.done = nullptr;
}

void GroupWriter::CountCommit(std::size_t writes, Duration took) {
  MutexLock lock(mutex_);
  ++stats_.commits;
  stats_.committed += writes;
  stats_.batch_size_max = std::max(stats_.batch_size_max, writes);
  stats_.commit_time_sum += took;
  stats_.commit_time_max = std::max(stats_.commit_time_max, took);
}

GroupWriter::Stats GroupWriter::stats() {
  const Queue::Stats queue = queue_.stats();
  MutexLock lock(mutex_);
  Stats now = stats_;
  now.queue_depth = queue.depth;
  now.queue_depth_max = queue.depth_max;
  now.refused = queue.refused;
  now.cancelled = queue.cancelled;
  return now;
}

}  // namespace interlock::sqlite
