#include "service/tail.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "service/storage.h"
#include "store/events.h"

namespace interlock::service {

using domain::Cursor;

// Shared with the callbacks that storage and clock hold, so that it outlives them. Only the pass
// under way publishes, and only its callbacks begin the next step; hence no lock is held then.
class Tail::Core : public std::enable_shared_from_this<Tail::Core> {
 public:
  Core(Storage& storage, std::shared_ptr<events::Hub> hub, Clock& clock, Logger& log,
       Options options)
      : storage_(storage), hub_(std::move(hub)), clock_(clock), log_(log), options_(options) {}

  void Notify(db::Connection* own) IL_EXCLUDES(mutex_) {
    if (own != nullptr && SkipToEnd(*own)) return;
    {
      MutexLock lock(mutex_);
      if (stopped_) return;
      if (busy_) {
        again_ = true;
        return;
      }
      busy_ = true;
    }
    Read();
  }

  void Stop() IL_EXCLUDES(mutex_) {
    Clock::TimerId timer = 0;
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      timer = std::exchange(timer_, 0);
    }
    if (timer != 0) clock_.Cancel(timer);
  }

 private:
  using Batch = store::DeliveredChunk;

  // False: somebody listens, or the end is not known; read what there is.
  bool SkipToEnd(db::Connection& connection) noexcept {
    if (hub_->HasListeners()) return false;
    try {
      const Result<Cursor> newest = store::NewestCursor(connection);
      return newest.ok() && hub_->SkipTo(*newest);
    } catch (const std::exception&) {
      return false;
    }
  }

  // Begins one read of a pass. A read that cannot even begin is one that failed.
  void Read() noexcept {
    try {
      if (hub_->HasListeners()) {
        ReadEvents();
      } else {
        ReadNewest();
      }
    } catch (const std::exception& thrown) {
      OnFailure(Error(Errc::kInternal, thrown.what()));
    }
  }

  void ReadEvents() {
    storage_.Peek<Batch>(
        options_.read_budget,
        [after = hub_->published(), rows = options_.rows_max](db::Connection& connection) {
          return store::ReadDelivered(connection, after, rows);
        },
        [self = shared_from_this()](Result<Batch> batch) { self->OnEvents(std::move(batch)); });
  }

  void ReadNewest() {
    storage_.Peek<Cursor>(
        options_.read_budget, store::NewestCursor,
        [self = shared_from_this()](Result<Cursor> newest) { self->OnNewest(std::move(newest)); });
  }

  void OnEvents(Result<Batch> batch) IL_EXCLUDES(mutex_) {
    if (!batch.ok()) return OnFailure(batch.error());
    for (const store::DeliveredEvent& delivered : batch->events) {
      if (stopped()) break;
      hub_->Publish(delivered);
    }
    OnSuccess(!batch->ended);
  }

  void OnNewest(Result<Cursor> newest) IL_EXCLUDES(mutex_) {
    if (!newest.ok()) return OnFailure(newest.error());
    const bool skipped = hub_->SkipTo(*newest);
    OnSuccess(!skipped);
  }

  // `more`: this pass has not seen the end.
  void OnSuccess(bool more) IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      failures_ = 0;
      busy_ = !stopped_ && (std::exchange(again_, false) || more);
      if (!busy_) return;
    }
    Read();
  }

  // The pass rests until the timer runs; it stays under way meanwhile, see (1).
  void OnFailure(const Error& error) noexcept IL_EXCLUDES(mutex_) {
    Duration delay{0};
    {
      MutexLock lock(mutex_);
      if (stopped_) return;
      delay = std::min<Duration>(options_.retry_max,
                                 options_.retry_min * (std::int64_t{1} << std::min(failures_, 20)));
      ++failures_;
    }
    log_.Warn("cannot read the event log; those who follow it wait",
              {{"error", error}, {"retry_in", delay}});
    MutexLock lock(mutex_);
    if (stopped_) return;
    timer_ = clock_.Schedule(delay, [self = shared_from_this()] { self->OnTimer(); });
  }

  void OnTimer() IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      timer_ = 0;
      if (stopped_) return;
    }
    Read();
  }

  bool stopped() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return stopped_;
  }

  Storage& storage_;
  const std::shared_ptr<events::Hub> hub_;
  Clock& clock_;
  Logger& log_;
  const Options options_;
  Mutex mutex_;
  bool busy_ IL_GUARDED_BY(mutex_) = false;
  bool again_ IL_GUARDED_BY(mutex_) = false;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
  int failures_ IL_GUARDED_BY(mutex_) = 0;  // in a row
  Clock::TimerId timer_ IL_GUARDED_BY(mutex_) = 0;
};

Tail::Tail(Storage& storage, std::shared_ptr<events::Hub> hub, Clock& clock, Logger& log,
           Options options)
    : core_(std::make_shared<Core>(storage, std::move(hub), clock, log, options)) {}

Tail::~Tail() { Stop(); }

void Tail::Notify(db::Connection* own) { core_->Notify(own); }
void Tail::Stop() { core_->Stop(); }

}  // namespace interlock::service
