#include "service/mirror.h"

#include <algorithm>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "intercore/locks.h"
#include "service/storage.h"
#include "store/mirror.h"

namespace interlock::service {
namespace {

using domain::Cursor;
using intercore::Lock;
using store::MirrorMark;
using store::ReservationChanges;

// How far a copy is that has this row as its last.
void Remember(const Lock& lock, MirrorMark& mark) {
  mark.last_id = lock.id;
  mark.last_owner = lock.owner;
  mark.last_expires_at = lock.expires_at;
  mark.last_released_at = lock.released_at.value_or(0);
}

// Has the file all that was written up to the mark? Its row may be newer: the mark is saved seldom,
// and `ic` closes rows that ran out. A lease never becomes shorter, and what was let go stays so.
bool Fits(const MirrorMark& mark, const std::optional<Lock>& found) {
  if (mark.last_id.empty()) return true;
  if (!found) return false;
  if (mark.last_released_at != 0) return found->released_at == mark.last_released_at;
  if (found->expires_at != mark.last_expires_at) return found->expires_at > mark.last_expires_at;
  return found->released_at || found->owner == mark.last_owner;
}

std::vector<Lock> LocksOf(const ReservationChanges& changes) {
  std::vector<Lock> locks;
  locks.reserve(changes.changed.size());
  for (const domain::Reservation& one : changes.changed) locks.push_back(intercore::LockOf(one));
  return locks;
}

}  // namespace

// Shared with the timers that the clock holds. The fields without a guard belong to the thread.
class Mirror::Core : public std::enable_shared_from_this<Mirror::Core> {
 public:
  Core(Storage& storage, Clock& clock, Logger& log, std::unique_ptr<db::ForeignFile> file,
       Options options)
      : storage_(storage), clock_(clock), log_(log), file_(std::move(file)), options_(options) {}

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }

  void Notify() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    wanted_ = true;
    wake_.NotifyOne();
  }

  void Stop() IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      if (timer_ != 0) clock_.Cancel(std::exchange(timer_, 0));
      wake_.NotifyOne();
    }
    if (thread_.joinable()) thread_.join();
  }

  Stats stats() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return stats_;
  }

 private:
  void Run() noexcept {
    while (AwaitWork()) {
      const Result<void> passed = Guarded([this] { return Pass(); });
      if (passed.ok()) {
        OnSuccess();
      } else {
        OnFailure(passed.error());
      }
    }
    const Result<void> last = Guarded([this] { return Finish(); });
    if (!last.ok() && failures_ == 0) OnFailure(last.error());
    file_->Close();
  }

  // The thread's one place where exceptions end.
  template <typename Fn>
  Result<void> Guarded(Fn&& fn) {
    try {
      return std::forward<Fn>(fn)();
    } catch (const std::exception& thrown) {
      return Error(Errc::kInternal, thrown.what());
    }
  }

  // False when it is to stop.
  bool AwaitWork() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!stopped_ && (resting_ || !wanted_)) wake_.Wait(mutex_);
    wanted_ = false;
    return !stopped_;
  }

  // To the end of the log, or until it is to stop.
  Result<void> Pass() IL_EXCLUDES(mutex_) {
    bool ended = false;
    while (!ended) {
      IL_TRY(ended, Step());
      if (stopped()) return {};
    }
    MutexLock lock(mutex_);
    ++stats_.passes;
    return {};
  }

  Result<void> Finish() IL_EXCLUDES(mutex_) {
    bool ended = failures_ > 0;
    for (int steps = 0; !ended && steps < options_.last_steps_max; ++steps) {
      Result<bool> step = Step();
      if (!step.ok()) {
        IL_TRY_VOID(SavePlace());
        return step.error();
      }
      ended = *step;
    }
    return SavePlace();
  }

  // The next stretch of the log; true at its end.
  Result<bool> Step() IL_EXCLUDES(mutex_) {
    if (!mark_) {
      IL_TRY(mark_, Load());
    }
    IL_TRY_VOID(FindFile());
    auto changes = Read(mark_->cursor);
    if (!changes.ok() && changes.error().code() == Errc::kGone) {
      mark_->cursor = 0;
      changes = Read(0);
    }
    if (!changes.ok()) return changes.error();
    if (!changes->changed.empty()) IL_TRY_VOID(Write(*changes));
    mark_->cursor = changes->reached;
    {
      MutexLock lock(mutex_);
      stats_.cursor = mark_->cursor;
    }
    if (mark_->cursor - saved_ >= options_.save_every) IL_TRY_VOID(SavePlace());
    return changes->ended;
  }

  Result<void> FindFile() {
    IL_TRY(const auto found, file_->Find());
    if (found == db::ForeignFile::Found::kStill) return {};
    std::optional<Lock> last;
    IL_TRY_VOID(file_->Write([&](db::Transaction& tx) -> Result<void> {
      IL_TRY(last, intercore::FindLock(tx.connection(), mark_->last_id));
      return {};
    }));
    if (Fits(*mark_, last)) return {};
    log_.Info("the file of ic is not as it was left; mirroring all reservations again");
    mark_ = MirrorMark{};
    saved_ = 0;
    return {};
  }

  Result<void> Write(const ReservationChanges& changes) IL_EXCLUDES(mutex_) {
    const std::vector<Lock> locks = LocksOf(changes);
    std::size_t refused = 0;
    IL_TRY_VOID(file_->Write([&](db::Transaction& tx) -> Result<void> {
      IL_TRY(refused, intercore::WriteLocks(tx, locks));
      return {};
    }));
    if (refused == 0) Remember(locks.back(), *mark_);
    bool first = false;
    {
      MutexLock lock(mutex_);
      first = refused > 0 && stats_.refused == 0;
      stats_.written += locks.size() - refused;
      stats_.refused += refused;
    }
    if (first) log_.Warn("the file of ic refuses rows for reservations; they are left out");
    return {};
  }

  Result<MirrorMark> Load() {
    IL_TRY(MirrorMark mark, Ask<MirrorMark>(store::LoadMirrorMark));
    saved_ = mark.cursor;
    return mark;
  }

  Result<ReservationChanges> Read(Cursor after) {
    return Ask<ReservationChanges>([after, rows = options_.rows_max](db::Connection& connection) {
      return store::ReadReservationChanges(connection, after, rows);
    });
  }

  Result<void> SavePlace() {
    if (!mark_ || mark_->cursor == saved_) return {};
    auto heard = std::make_shared<std::promise<Result<void>>>();
    storage_.Write([mark = *mark_](db::Transaction& tx) { return store::SaveMirrorMark(tx, mark); },
                   [heard](Result<void> result) { heard->set_value(std::move(result)); });
    IL_TRY_VOID(heard->get_future().get());
    saved_ = mark_->cursor;
    return {};
  }

  // Waits for a read of our own database.
  template <typename T>
  Result<T> Ask(std::function<Result<T>(db::Connection&)> fn) {
    auto heard = std::make_shared<std::promise<Result<T>>>();
    storage_.Peek<T>(options_.storage_budget, std::move(fn),
                     [heard](Result<T> result) { heard->set_value(std::move(result)); });
    return heard->get_future().get();
  }

  void OnSuccess() IL_EXCLUDES(mutex_) {
    if (std::exchange(failures_, 0) > 0) {
      log_.Info("mirroring reservations into the file of ic again");
    }
    Rest(options_.pace, Outage::kNo);
  }

  void OnFailure(const Error& error) IL_EXCLUDES(mutex_) {
    const Duration delay = std::min<Duration>(
        options_.retry_max, options_.retry_min * (std::int64_t{1} << std::min(failures_, 20)));
    if (failures_++ == 0) {
      log_.Warn(
          "cannot mirror reservations into the file of ic; it is tried again, and what is "
          "missing is made up for then",
          {{"error", error}});
    }
    Rest(delay, Outage::kYes);
  }

  enum class Outage : std::uint8_t { kNo, kYes };

  // The next pass begins after `time`, when it is asked for or, in an outage, anyway.
  void Rest(Duration time, Outage outage) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stats_.in_outage = outage == Outage::kYes;
    if (outage == Outage::kYes) {
      ++stats_.failures;
      wanted_ = true;
    }
    resting_ = time > Duration{0};
    Schedule(resting_ ? time : options_.recheck);
  }

  void Schedule(Duration delay) IL_REQUIRES(mutex_) {
    if (timer_ != 0) clock_.Cancel(timer_);
    timer_ = 0;
    if (stopped_) return;
    timer_ = clock_.Schedule(delay, [self = shared_from_this()] { self->OnTimer(); });
  }

  // The end of a rest, or the time to look whether the file is still there.
  void OnTimer() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    timer_ = 0;
    if (stopped_) return;
    if (std::exchange(resting_, false)) {
      Schedule(options_.recheck);
    } else {
      wanted_ = true;
    }
    wake_.NotifyOne();
  }

  bool stopped() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return stopped_;
  }

  Storage& storage_;
  Clock& clock_;
  Logger& log_;
  const std::unique_ptr<db::ForeignFile> file_;
  const Options options_;
  std::optional<MirrorMark> mark_;  // nothing until it was read
  Cursor saved_ = 0;                // the place as our database has it
  int failures_ = 0;                // in a row
  Mutex mutex_;
  CondVar wake_;
  bool wanted_ IL_GUARDED_BY(mutex_) = true;
  bool resting_ IL_GUARDED_BY(mutex_) = false;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
  Clock::TimerId timer_ IL_GUARDED_BY(mutex_) = 0;
  Stats stats_ IL_GUARDED_BY(mutex_);
  std::thread thread_;  // set before, and joined after, all others use it
};

Mirror::Mirror(Storage& storage, Clock& clock, Logger& log, std::unique_ptr<db::ForeignFile> file,
               Options options)
    : core_(std::make_shared<Core>(storage, clock, log, std::move(file), options)) {}

Mirror::~Mirror() { Stop(); }

void Mirror::Start() { core_->Start(); }
void Mirror::Notify() { core_->Notify(); }
void Mirror::Stop() { core_->Stop(); }
Mirror::Stats Mirror::stats() const { return core_->stats(); }

}  // namespace interlock::service
