#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "service/storage.h"

namespace interlock::service {

// Reads that can wait, for those who catch up with the log: there may be hundreds of them at once,
// each with a long row of reads before it. At most `running_max` are with the storage at a time;
// the others wait here, first come first served and without a thread, so that most of the
// storage's readers are always left to everybody else.
//
// Thread-safe; never waits. Rules:
// (1) `done` runs exactly once per Submit(), with no lock held: inside Call::Cancel(), inside
//     Stop(), or as Storage says of a read, whose time counts from when it leaves this queue.
// (2) A read that is with the storage takes up its place until the storage has answered, also when
//     nobody wants it any more. Hence `fn` may still run after `done`: it owns what it touches.
class ReplayQueue {
 private:
  class Core;
  struct Job;

 public:
  // One read. Cancel() says that it is no longer wanted: `done` hears kCancelled before it returns,
  // whether the read waits or runs. Nothing happens when it is over.
  class Call {
   public:
    Call() = default;  // one that is over
    void Cancel();

   private:
    friend class ReplayQueue;
    Call(const std::shared_ptr<Core>& core, const std::shared_ptr<Job>& job)
        : core_(core), job_(job) {}
    std::weak_ptr<Core> core_;
    std::weak_ptr<Job> job_;
  };

  // `storage` must outlive it, or rather the last answer. REQUIRES: running_max > 0.
  ReplayQueue(Storage& storage, std::size_t running_max);
  ~ReplayQueue();  // Stop()
  ReplayQueue(const ReplayQueue&) = delete;
  ReplayQueue& operator=(const ReplayQueue&) = delete;

  Call Submit(Storage::ReadFn fn, Storage::Done done);

  // Ends all, whether they wait or run, and refuses new ones, with kUnavailable. Idempotent.
  void Stop();

  struct Stats {
    std::size_t running = 0;  // with the storage
    std::size_t waiting = 0;
  };
  Stats stats() const;

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace interlock::service
