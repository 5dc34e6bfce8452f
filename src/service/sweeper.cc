#include "service/sweeper.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "service/storage.h"
#include "store/events.h"
#include "store/message_retention.h"

namespace interlock::service {
namespace {

using domain::Cursor;

// What holds for one step. Read before the write, which may run several times.
struct Sweep {
  Timestamp now;
  Timestamp older_than;  // what the retention lets go
  Cursor published = 0;
  std::size_t rows_max = 0;
};

struct Step {
  std::int64_t removed = 0;
  std::optional<Cursor> next = {};  // where the chore goes on; nothing = it is done
};

Result<Step> SweepEvents(db::Transaction& tx, const Sweep& sweep, Cursor /*at*/) {
  IL_TRY(const std::int64_t removed, store::PruneEvents(tx, {.now = sweep.now,
                                                             .older_than = sweep.older_than,
                                                             .through = sweep.published,
                                                             .rows_max = sweep.rows_max}));
  Step step{.removed = removed};
  if (std::cmp_equal(removed, sweep.rows_max)) step.next = 0;
  return step;
}

Result<Step> SweepMessages(db::Transaction& tx, const Sweep& sweep, Cursor at) {
  IL_TRY(const store::PrunedMessages pruned,
         store::PruneMessages(tx, sweep.older_than, at, static_cast<std::int64_t>(sweep.rows_max)));
  Step step{.removed = pruned.removed};
  if (pruned.continue_after != 0) step.next = pruned.continue_after;
  return step;
}

// When a chore is to be done.
enum class When : std::uint8_t {
  kAlways,
  kRetention,  // unless everything is kept for ever
};

struct Chore {
  std::string_view name;  // for the log
  When when;
  Result<Step> (*run)(db::Transaction& tx, const Sweep& sweep, Cursor at);
};

// In this order: while the event of a message is there, its recipients are known.
constexpr std::array kChores = {
    Chore{"events", When::kRetention, SweepEvents},
    Chore{"messages", When::kRetention, SweepMessages},
};

}  // namespace

// Shared with the callbacks that storage and clock hold. A sweep is a chain of steps: each one's
// callback begins the next. So at most one is under way, and `chore_`, `at_` belong to it.
class Sweeper::Core : public std::enable_shared_from_this<Sweeper::Core> {
 public:
  Core(Storage& storage, Clock& clock, Logger& log, std::function<Cursor()> published,
       Options options)
      : storage_(storage),
        clock_(clock),
        log_(log),
        published_(std::move(published)),
        options_(options) {}

  void ScheduleSweep(Duration delay) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    busy_ = false;
    idle_.NotifyAll();
    if (stopped_) return;
    timer_ = clock_.Schedule(delay, [self = shared_from_this()] { self->BeginSweep(); });
  }

  void Stop() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stopped_ = true;
    if (timer_ != 0) clock_.Cancel(std::exchange(timer_, 0));
    while (busy_) idle_.Wait(mutex_);
  }

  Stats stats() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return stats_;
  }

 private:
  void BeginSweep() IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      timer_ = 0;
      if (stopped_) return;
      busy_ = true;
    }
    chore_ = 0;
    at_ = 0;
    RunStep();
  }

  // The next step of the sweep, or its end.
  void RunStep() IL_EXCLUDES(mutex_) {
    while (chore_ < kChores.size() && kChores.at(chore_).when == When::kRetention &&
           options_.retain.count() == 0) {
      ++chore_;
    }
    if (stopped()) return ScheduleSweep({});
    if (chore_ == kChores.size()) {
      Count(&Stats::sweeps, 1);
      return ScheduleSweep(options_.interval);
    }
    const Timestamp now = clock_.Now();
    const Sweep sweep{.now = now,
                      .older_than = now - options_.retain,
                      .published = published_(),
                      .rows_max = options_.rows_max};
    storage_.Write<Step>(
        [sweep, at = at_, run = kChores.at(chore_).run](db::Transaction& tx) {
          return run(tx, sweep, at);
        },
        [self = shared_from_this()](Result<Step> step) { self->OnStep(std::move(step)); });
  }

  // A chore that fails is left for the next sweep; the others get their turn.
  void OnStep(Result<Step> step) IL_EXCLUDES(mutex_) {
    if (step.ok()) {
      Count(&Stats::removed, static_cast<std::uint64_t>(step->removed));
    } else {
      Count(&Stats::failures, 1);
      log_.Warn("clearing away what is old failed; the next sweep tries again",
                {{"what", kChores.at(chore_).name}, {"error", step.error()}});
    }
    if (step.ok() && step->next) {
      at_ = *step->next;
    } else {
      ++chore_;
      at_ = 0;
    }
    RunStep();
  }

  bool stopped() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return stopped_;
  }
  void Count(std::uint64_t Stats::* counter, std::uint64_t by) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stats_.*counter += by;
  }

  Storage& storage_;
  Clock& clock_;
  Logger& log_;
  const std::function<Cursor()> published_;
  const Options options_;
  std::size_t chore_ = 0;  // of the sweep under way
  Cursor at_ = 0;          // where its chore stands
  Mutex mutex_;
  CondVar idle_;
  bool busy_ IL_GUARDED_BY(mutex_) = false;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
  Clock::TimerId timer_ IL_GUARDED_BY(mutex_) = 0;
  Stats stats_ IL_GUARDED_BY(mutex_);
};

Sweeper::Sweeper(Storage& storage, Clock& clock, Logger& log, std::function<Cursor()> published,
                 Options options)
    : core_(std::make_shared<Core>(storage, clock, log, std::move(published), options)) {}

Sweeper::~Sweeper() { Stop(); }

void Sweeper::Start() { core_->ScheduleSweep(Duration{0}); }
void Sweeper::Stop() { core_->Stop(); }
Sweeper::Stats Sweeper::stats() const { return core_->stats(); }

}  // namespace interlock::service
