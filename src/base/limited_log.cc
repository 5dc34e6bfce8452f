#include "base/limited_log.h"

#include <cstdint>
#include <map>
#include <utility>

#include "base/mutex.h"

namespace interlock {

// Shared with the timer, which may fire while the log ends.
class LimitedLog::Counts : public std::enable_shared_from_this<Counts> {
 public:
  Counts(Logger& log, Clock& clock, Options options)
      : log_(log), clock_(clock), options_(options) {}

  // Whether a line of this kind may be written now; counts it if not.
  bool Admit(LogLevel level, std::string_view kind) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!running_) Begin();
    Count& count = kinds_[kind];
    count.level = level;
    if (count.written < options_.lines_max) {
      ++count.written;
      return true;
    }
    ++count.hidden;
    return false;
  }

  // The window ends: the next line begins another one.
  void End() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!std::exchange(running_, false)) return;
    for (auto& [kind, count] : kinds_) {
      if (count.hidden > 0) {
        log_.Log(count.level, "more lines of this kind are not shown",
                 {{"kind", kind}, {"count", count.hidden}});
      }
      count = {};
    }
  }

 private:
  struct Count {
    LogLevel level = LogLevel::kInfo;
    std::size_t written = 0;
    std::uint64_t hidden = 0;
  };

  void Begin() IL_REQUIRES(mutex_) {
    running_ = true;
    clock_.Schedule(options_.window, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->End();
    });
  }

  Logger& log_;
  Clock& clock_;
  const Options options_;
  Mutex mutex_;
  bool running_ IL_GUARDED_BY(mutex_) = false;  // a window, whose timer waits
  std::map<std::string_view, Count> kinds_ IL_GUARDED_BY(mutex_);
};

LimitedLog::LimitedLog(Logger& log, Clock& clock, Options options)
    : log_(log), counts_(std::make_shared<Counts>(log, clock, options)) {}

// A timer that fires from now on finds no window, and touches the log no more.
LimitedLog::~LimitedLog() { counts_->End(); }

void LimitedLog::LogSome(LogLevel level, std::string_view kind, Logger::Fields fields) {
  if (counts_->Admit(level, kind)) log_.Log(level, kind, fields);
}

}  // namespace interlock
