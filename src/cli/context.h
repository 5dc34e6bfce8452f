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
  bool verbose = false;  // results say more; IC_LOG_LEVEL is about stderr alone
  LogLevel level = LogLevel::kWarn;
  LogFormat format = LogFormat::kText;  // of what is said on stderr
};

// What the process has from outside; main() fills it, tests make their own.
struct World {
  Clock& clock;
  RandomSource& random;
  int input = 0;  // the descriptor that is standard input
  int error = 2;  // and error, for questions; everything else is said through Outcome
  std::function<std::optional<std::string>(const char* name)> environment;
};

// What a command has to work with. The database is opened when it is first asked for, once.
//
// One thread.
class Context {
 public:
  explicit Context(World world) : world_(std::move(world)) {}

  Globals globals;
  std::string_view command;  // "state set", for messages

  bool json() const { return globals.json; }
  bool verbose() const { return globals.verbose; }
  Clock& clock() { return world_.clock; }
  RandomSource& random() { return world_.random; }
  // Whole seconds since 1970.
  std::int64_t Now();
  // Empty variables count as not set.
  std::optional<std::string> Environment(const char* name) const;
  // Where it runs, by the name that the shell has for it ($PWD) when that is the same place; kIo
  // when that directory is gone.
  Result<std::filesystem::path> Directory() const;
  // Standard input to its end. kPayloadTooLarge when there is more than `most`.
  Result<std::string> Input(std::size_t most);

  // Asks a person; true when a line of standard input says y or yes.
  bool Confirm(std::string_view question);

  // fn(db::Connection&) -> Result<T>: see kernel::Database::Read.
  template <typename Fn>
  std::invoke_result_t<Fn&, db::Connection&> Read(Fn&& fn) {
    IL_TRY(kernel::Database * database, Open(kernel::Database::Access::kRead));
    return database->Read(std::forward<Fn>(fn));
  }
  // fn(kernel::Transaction&) -> Result<T>: see kernel::Database::Write.
  template <typename Fn>
  std::invoke_result_t<Fn&, kernel::Transaction&> Write(Fn&& fn) {
    for (int tries = 1;; ++tries) {
      IL_TRY(kernel::Database * database, Open(kernel::Database::Access::kWrite));
      auto result = database->Write(fn);
      const bool moved = !result && result.error().code() == Errc::kCancelled;
      if (!moved || !database->HasMoved() || tries == kTriesWhenMoved) return result;
    }
  }
  // A database that is open for reading is opened anew when it is to be written, and one whose file
  // was replaced meanwhile in any case.
  Result<kernel::Database*> Open(kernel::Database::Access access);
  // Where the database is, or would be.
  Result<kernel::Database::Options> DatabaseOptions() const;

  // Says something on stderr that is no failure: `what` happened, `remedy` is what to do.
  void Warn(std::string_view what, std::string_view remedy = {});
  // The same in the form of --log-format, for a failure.
  void Fail(const Error& error, std::string_view default_remedy);
  // What was said so far.
  std::string TakeDiagnostics() { return std::exchange(diagnostics_, {}); }

  // To be called when the answer is out.
  void Finish();

 private:
  static constexpr int kTriesWhenMoved = 10;

  void Say(LogLevel level, std::string_view what, std::string_view remedy);

  World world_;
  std::optional<kernel::Database::Options> place_;  // looked for once: a call means one file
  std::optional<kernel::Database> database_;
  std::string diagnostics_;
};

}  // namespace interlock::cli
