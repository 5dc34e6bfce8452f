#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/result.h"
#include "kernel/database.h"

namespace interlock::cli {

// The flags of `ic` itself.
struct Globals {
  bool json = false;
  std::optional<std::string> db;
  std::chrono::milliseconds busy_timeout{5000};
  bool verbose = false;  // more detailed results; IC_LOG_LEVEL affects only stderr
  LogLevel level = LogLevel::kWarn;
  LogFormat format = LogFormat::kText;  // of the messages on stderr
};

// The environment of the process. main() fills it in; tests supply their own.
struct ProcessEnvironment {
  Clock& clock;
  RandomSource& random;
  int input = 0;  // file descriptor of standard input
  int error = 2;  // file descriptor for questions; CommandResult carries all other messages
  std::function<std::optional<std::string>(const char* name)> environment;
};

// The environment of a running command. Opens the database once, at its first use.
//
// For one thread.
class Context {
 public:
  explicit Context(ProcessEnvironment process) : process_(std::move(process)) {}

  Globals globals;
  std::string_view command;  // "state set", for messages

  bool json() const { return globals.json; }
  bool verbose() const { return globals.verbose; }
  Clock& clock() { return process_.clock; }
  RandomSource& random() { return process_.random; }
  // Unix seconds.
  std::int64_t Now();
  // An empty variable counts as unset.
  std::optional<std::string> Environment(const char* name) const;
  // The current directory, as $PWD if that is the same directory. kIo if the directory was removed.
  Result<std::filesystem::path> Directory() const;
  // Reads standard input to its end. kPayloadTooLarge if it has more than `most` bytes.
  Result<std::string> Input(std::size_t most);

  // Asks the user; true if a line of standard input is y, Y or yes.
  bool Confirm(std::string_view question);

  // Calls fn(db::Connection&) -> Result<T>: see kernel::Database::Read.
  template <typename Fn>
  std::invoke_result_t<Fn&, db::Connection&> Read(Fn&& fn) {
    IL_TRY(kernel::Database * database, Open(kernel::Database::OpenMode::kRead));
    return database->Read(std::forward<Fn>(fn));
  }
  // Calls fn(kernel::Transaction&) -> Result<T>: see kernel::Database::Write.
  template <typename Fn>
  std::invoke_result_t<Fn&, kernel::Transaction&> Write(Fn&& fn) {
    for (int tries = 1;; ++tries) {
      IL_TRY(kernel::Database * database, Open(kernel::Database::OpenMode::kWrite));
      auto result = database->Write(fn);
      const bool moved = !result && result.error().code() == Errc::kCancelled;
      if (!moved || !database->HasMoved() || tries == kTriesWhenMoved) return result;
    }
  }
  // Reopens the database if it is open only for reading and `mode` is kWrite, or if its file was
  // replaced.
  Result<kernel::Database*> Open(kernel::Database::OpenMode mode);
  // Path and options of the database, which need not exist.
  Result<kernel::Database::Options> DatabaseOptions() const;

  // Adds a warning to the diagnostics.
  void Warn(std::string_view what, std::string_view remedy = {});
  // Adds an error to the diagnostics.
  void Fail(const Error& error, std::string_view default_remedy);
  // Returns and clears the diagnostics, in the format of --log-format.
  std::string TakeDiagnostics() { return std::exchange(diagnostics_, {}); }

  // Call this after the answer is printed.
  void Finish();

 private:
  static constexpr int kTriesWhenMoved = 10;

  void AddDiagnostic(LogLevel level, std::string_view what, std::string_view remedy);

  ProcessEnvironment process_;
  std::optional<kernel::Database::Options> database_options_;  // cached: a process uses one file
  std::optional<kernel::Database> database_;
  std::string diagnostics_;
};

}  // namespace interlock::cli
