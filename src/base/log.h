#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/secret.h"

// Log lines with a level, a message and fields, as text for people or as JSON for machines:
//
//   logger.Info("listening", {{"address", address}, {"port", port}});
//   2026-01-02T03:04:05.000006Z INFO listening address=127.0.0.1 port=7338
//   {"time":"2026-01-02T03:04:05.000006Z","level":"info","message":"listening","address":…}
//
// One event is one line and one write(2), whatever the texts hold: control characters, invisible
// direction marks and bytes that are no UTF-8 are escaped, so that no client can forge a line or
// steer a terminal. Long texts are cut. There is no global logger: main() makes one and passes it.
namespace interlock {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError };
enum class LogFormat : std::uint8_t { kText, kJson };

// Takes whole lines, newline included. Thread-safe.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Write(std::string_view line) = 0;
};

// Writes to a file descriptor, which stays its owner's: 2 for stderr. Lines of many threads do not
// mix; those up to PIPE_BUF (4096 bytes) do not mix with other processes' either. A line that
// cannot be written is lost: there is nowhere to say so.
class FdLogSink final : public LogSink {
 public:
  explicit FdLogSink(int fd) : fd_(fd) {}
  void Write(std::string_view line) override IL_EXCLUDES(mutex_);

 private:
  const int fd_;
  Mutex mutex_;  // one line at a time, also when the kernel takes it in pieces
};

// One key=value of a line. Refers to its texts, so it lives only as long as the call.
struct LogField {
  // Implicit on purpose: fields are written as {"key", value}.
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  LogField(std::string_view k, double v) : key(k), value(v) {}
  LogField(std::string_view k, Duration v) : key(k), value(v) {}       // "1.5s"
  LogField(std::string_view k, Timestamp v) : key(k), value(v) {}      // RFC 3339
  LogField(std::string_view k, const Error& v) : key(k), value(&v) {}  // "slug: message"
  LogField(std::string_view k, const Secret& /*v*/) : key(k), value(kSecretShown) {}
  template <std::signed_integral Int>
  LogField(std::string_view k, Int v) : key(k), value(std::int64_t{v}) {}
  template <std::unsigned_integral Int>
    requires(!std::same_as<Int, bool>)
  LogField(std::string_view k, Int v) : key(k), value(std::uint64_t{v}) {}

  std::string_view key;
  std::variant<std::string_view, bool, double, std::int64_t, std::uint64_t, Duration, Timestamp,
               const Error*>
      value;
};

// Thread-safe.
class Logger {
 public:
  struct Options {
    LogLevel level_min = LogLevel::kInfo;  // events below it cost a comparison
    LogFormat format = LogFormat::kText;
    std::size_t text_bytes_max = 2048;  // of the message and of each value; more is cut
  };
  using Fields = std::initializer_list<LogField>;

  // Both must outlive it.
  Logger(Clock& clock, LogSink& sink, Options options);
  Logger(Clock& clock, LogSink& sink) : Logger(clock, sink, Options()) {}

  // `message` says what happened, in words that do not change from event to event; what changes is
  // in the fields.
  void Debug(std::string_view message, Fields fields = {}) {
    Log(LogLevel::kDebug, message, fields);
  }
  void Info(std::string_view message, Fields fields = {}) { Log(LogLevel::kInfo, message, fields); }
  void Warn(std::string_view message, Fields fields = {}) { Log(LogLevel::kWarn, message, fields); }
  void Error(std::string_view message, Fields fields = {}) {
    Log(LogLevel::kError, message, fields);
  }
  void Log(LogLevel level, std::string_view message, Fields fields = {});

  bool Enabled(LogLevel level) const { return level >= options_.level_min; }

 private:
  Clock& clock_;
  LogSink& sink_;
  const Options options_;
};

}  // namespace interlock
