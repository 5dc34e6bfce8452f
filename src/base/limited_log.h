#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"

namespace interlock {

// Log lines about events that clients cause, so many that a client could flood the log. In each
// window of time only so many lines of a kind are written; the others are counted, and one line
// gives their number when the window ends. A kind is its message, which is a constant of the code
// and has one level, so the kinds are few.
//
// Thread-safe. When the level is off a call costs a comparison.
class LimitedLog {
 public:
  struct Options {
    std::size_t lines_max = 20;  // of a kind in a window
    Duration window = std::chrono::seconds(10);
  };

  // Both must outlive it.
  LimitedLog(Logger& log, Clock& clock, Options options);
  LimitedLog(Logger& log, Clock& clock) : LimitedLog(log, clock, Options()) {}
  ~LimitedLog();  // writes the counts that are left
  LimitedLog(const LimitedLog&) = delete;
  LimitedLog& operator=(const LimitedLog&) = delete;

  // REQUIRES: `kind` lives as long as the program.
  void Info(std::string_view kind, Logger::Fields fields) {
    if (log_.Enabled(LogLevel::kInfo)) LogSome(LogLevel::kInfo, kind, fields);
  }
  void Error(std::string_view kind, Logger::Fields fields) {
    if (log_.Enabled(LogLevel::kError)) LogSome(LogLevel::kError, kind, fields);
  }

 private:
  class Counts;

  void LogSome(LogLevel level, std::string_view kind, Logger::Fields fields);

  Logger& log_;
  const std::shared_ptr<Counts> counts_;
};

}  // namespace interlock
