#include "db/sqlite/read_pool.h"

#include <optional>
#include <utility>

#include "base/check.h"

namespace interlock::sqlite {

ReadPool::ReadPool(std::vector<std::unique_ptr<Connection>> connections, Open open,
                   const Options& options)
    : options_(options),
      open_(std::move(open)),
      slots_(std::move(connections)),
      queue_({.name = "read",
              .max = options_.queue_max,
              .first_ticket = options_.first_ticket,
              .threads = static_cast<int>(slots_.size())}) {
  IL_CHECK(!slots_.empty());
  if (options_.drive == Drive::kByHand) return;
  threads_.reserve(slots_.size());
  try {
    for (Slot& slot : slots_) threads_.emplace_back([this, &slot] { Run(slot); });
  } catch (...) {  // no thread to be had: those that run must end first
    Close();
    throw;
  }
}

ReadPool::~ReadPool() { Close(); }

void ReadPool::Run(Slot& slot) {
  while (true) {
    std::vector<Queue::Request> requests = TakeContained(queue_, 1);
    if (requests.empty()) return;
    RunShared(slot, std::move(requests.front()), kReadsPerSnapshot);
  }
}

bool ReadPool::StepOnce() {
  IL_CHECK(options_.drive == Drive::kByHand);
  std::vector<Queue::Request> requests = queue_.TryTake(1);
  if (requests.empty()) return false;
  RunShared(slots_.front(), std::move(requests.front()), 1);
  return true;
}

void ReadPool::RunShared(Slot& slot, Queue::Request first, int reads_max) {
  const Executing executing(this);
  const Ticket end = queue_.next_ticket();  // before the snapshot is taken
  std::optional<Queue::Request> request(std::move(first));
  for (int reads = 1; request; ++reads) {
    Result<void> result = OutOfMemory();
    try {
      result = Attempt(slot, request->fn);
    } catch (...) {  // an allocation of ours, or `open`: what a read throws is contained
      slot.reset();
    }
    if (!result.ok() && SpoilsConnection(result.error().code())) slot.reset();
    request->fn = nullptr;  // what it captured dies before its owner hears
    std::optional<Queue::Request> next;
    if (reads < reads_max) next = queue_.TakeBefore(end);
    if (!next && slot != nullptr)
      slot->Rollback();  // ends the snapshot; cannot fail, as COMMIT can
    Tell(request->done, std::move(result));
    request = std::move(next);
  }
}

Result<void> ReadPool::Attempt(Slot& slot, const Read& read) {
  if (slot == nullptr || !slot->in_transaction()) IL_TRY_VOID(TakeSnapshot(slot));
  db::Connection& connection = *slot;
  return RunContained(read, connection);
}

Result<void> ReadPool::TakeSnapshot(Slot& slot) {
  const Result<void> found = FindFile(slot);
  if (options_.in_place != nullptr) {
    options_.in_place->store(found.ok(), std::memory_order_relaxed);
  }
  IL_TRY_VOID(found);
  return slot->BeginSnapshot();
}

Result<void> ReadPool::FindFile(Slot& slot) {
  if (slot == nullptr) {
    IL_TRY(slot, open_());
  }
  return slot->CheckInPlace();
}

void ReadPool::Close() {
  IL_CHECK(!Executing::Here(this), "closed from a storage callback");
  std::call_once(close_once_, [this] {
    queue_.Close();
    if (options_.drive == Drive::kByHand) {
      while (StepOnce()) {
      }
    }
    for (std::thread& thread : threads_) thread.join();
    for (Slot& slot : slots_) slot.reset();
  });
}

ReadPool::Stats ReadPool::stats() {
  const Queue::Stats queue = queue_.stats();
  return {queue.depth, queue.depth_max, queue.refused, queue.cancelled};
}

}  // namespace interlock::sqlite
