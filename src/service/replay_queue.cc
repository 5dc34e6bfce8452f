#include "service/replay_queue.h"

#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"

namespace interlock::service {
namespace {

Error Stopping() {
  return Error(Errc::kUnavailable, "The server is stopping; repeat the request when it is back.");
}
Error Cancelled() { return Error(Errc::kCancelled, "The read is no longer wanted."); }

}  // namespace

// Everything behind the mutex of the core.
struct ReplayQueue::Job {
  Storage::ReadFn fn;
  Storage::Done done;  // null once it was told
  Storage::Call call;  // while it is with the storage
};

// Shared with the callbacks that storage holds.
class ReplayQueue::Core : public std::enable_shared_from_this<ReplayQueue::Core> {
 public:
  Core(Storage& storage, std::size_t running_max) : storage_(storage), running_max_(running_max) {
    IL_CHECK(running_max > 0);
  }

  // False: stopped, and nothing has happened.
  bool Add(const std::shared_ptr<Job>& job) IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (stopped_) return false;
      waiting_.push_back(job);
    }
    Pump();
    return true;
  }

  void Cancel(const std::shared_ptr<Job>& job) IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      std::erase(waiting_, job);
    }
    Abandon(*job, Cancelled());
  }

  void Stop() IL_EXCLUDES(mutex_) {
    std::deque<std::shared_ptr<Job>> ended;
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      ended = std::exchange(waiting_, {});
      ended.insert(ended.begin(), running_.begin(), running_.end());
    }
    for (const std::shared_ptr<Job>& job : ended) Abandon(*job, Stopping());
  }

  Stats stats() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return {.running = running_.size(), .waiting = waiting_.size()};
  }

 private:
  // Brings the reads that wait to the storage while there is room. One thread at a time does: one
  // that comes meanwhile leaves it to the other, which looks again before it ends. So a storage
  // that refuses at once, inside Begin(), makes a loop and no recursion.
  void Pump() IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (std::exchange(pumping_, true)) return;
    }
    while (const std::shared_ptr<Job> job = NextToRun()) Begin(job);
  }

  // Null: there is none, or no room, and whoever changes that is to Pump().
  std::shared_ptr<Job> NextToRun() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    pumping_ = !waiting_.empty() && running_.size() < running_max_;
    if (!pumping_) return nullptr;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    return running_.back();
  }

  void Begin(const std::shared_ptr<Job>& job) IL_EXCLUDES(mutex_) {
    Storage::Call call =
        storage_.Read(std::move(job->fn), [self = shared_from_this(), job](Result<void> read) {
          self->OnRead(job, std::move(read));
        });
    MutexLock lock(mutex_);
    job->call = std::move(call);
  }

  void OnRead(const std::shared_ptr<Job>& job, Result<void> read) IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      std::erase(running_, job);
    }
    Tell(*job, std::move(read));
    Pump();
  }

  // Whoever asked is told now; what runs may go on, and nobody will hear of it.
  void Abandon(Job& job, Error why) IL_EXCLUDES(mutex_) {
    Tell(job, std::move(why));
    Storage::Call call;
    {
      MutexLock lock(mutex_);
      call = job.call;
    }
    call.Cancel();
  }

  void Tell(Job& job, Result<void> result) IL_EXCLUDES(mutex_) {
    Storage::Done done;
    {
      MutexLock lock(mutex_);
      done = std::exchange(job.done, nullptr);
    }
    if (done) done(std::move(result));
  }

  Storage& storage_;
  const std::size_t running_max_;
  Mutex mutex_;
  std::deque<std::shared_ptr<Job>> waiting_ IL_GUARDED_BY(mutex_);   // in the order of arrival
  std::vector<std::shared_ptr<Job>> running_ IL_GUARDED_BY(mutex_);  // with the storage
  bool pumping_ IL_GUARDED_BY(mutex_) = false;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
};

void ReplayQueue::Call::Cancel() {
  const auto core = core_.lock();
  const auto job = job_.lock();
  if (core && job) core->Cancel(job);
}

ReplayQueue::ReplayQueue(Storage& storage, std::size_t running_max)
    : core_(std::make_shared<Core>(storage, running_max)) {}

ReplayQueue::~ReplayQueue() { Stop(); }

ReplayQueue::Call ReplayQueue::Submit(Storage::ReadFn fn, Storage::Done done) {
  const auto job = std::make_shared<Job>(std::move(fn), std::move(done), Storage::Call());
  if (!core_->Add(job)) job->done(Stopping());
  return {core_, job};
}

void ReplayQueue::Stop() { core_->Stop(); }
ReplayQueue::Stats ReplayQueue::stats() const { return core_->stats(); }

}  // namespace interlock::service
