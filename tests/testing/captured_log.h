#pragma once

#include <string>
#include <string_view>

#include "base/log.h"
#include "base/mutex.h"

namespace interlock::testing {

// Keeps log lines for a test to look at. Thread-safe.
class CapturedLog final : public LogSink {
 public:
  void Write(std::string_view line) override IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    text_ += line;
  }
  std::string text() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return text_;
  }
  bool Contains(std::string_view part) { return text().find(part) != std::string::npos; }

 private:
  Mutex mutex_;
  std::string text_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::testing
