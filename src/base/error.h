#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace interlock {

// Every way an operation of ours can fail. The enum is closed: what a failure means to an HTTP
// client, to a shell and to a log reader is decided in one table (error.cc), not where it happens.
// Expected outcomes (a conflict, a missing agent) are values of the operation, not errors, except
// at the edge where they become an answer.
enum class Errc : std::uint8_t {
  // What the caller asked for cannot be done as asked.
  kInvalidArgument,
  kUsage,  // wrong command-line arguments
  kBadJson,
  kInvalidPattern,
  kAbsolutePattern,
  kPatternTooComplex,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kMethodNotAllowed,
  kRequestTimeout,
  kConflict,
  kAlreadyExists,
  kGone,
  kPayloadTooLarge,
  kUpgradeRequired,  // only a WebSocket is served here
  kRateLimited,
  kHeaderTooLarge,
  kCancelled,  // the caller no longer wants the answer

  // The server cannot do it now; the same request may succeed later.
  kUnavailable,     // a queue is full, or the server is stopping
  kCircuitOpen,     // the breaker keeps calls away from failing storage
  kStorageTimeout,  // the time for storage ran out before the operation was done
  kOutcomeUnknown,  // COMMIT failed in a way that leaves durability open

  // What storage reports. `kBusy` is the only one worth retrying at once.
  kBusy,
  kIo,
  kDiskFull,
  kCorrupt,
  kReadOnly,
  kOutOfMemory,
  kCantOpen,
  kNotADatabase,
  kSchemaTooNew,
  kForeignSchema,  // a database made by another program
  kConstraint,
  kTooBig,

  kInternal,  // our own bug
};

// One row of the table: what an Errc means outside.
struct ErrcInfo {
  Errc code;
  std::string_view slug;  // stable, snake_case; the `error` field of an answer
  int http_status;
  int exit_code;  // of `ic`: 1 = expected negative, 2 = unexpected error, 3 = usage
};

const ErrcInfo& Describe(Errc code);

// All rows, in the order of the enum; for tests and documentation.
std::span<const ErrcInfo> AllErrcs();

// True for failures of the storage itself (I/O, busy, full, corrupt, out of memory), which the
// circuit breaker counts. What a caller did wrong is never one of them.
bool IsInfrastructure(Errc code);

// A failure with its explanation. `message` is a sentence for a person and says what to do;
// `details` are extra fields of a JSON error answer.
class Error {
 public:
  using Value = std::variant<std::string, std::int64_t>;

  Error(Errc code, std::string message) : code_(code), message_(std::move(message)) {}

  // Replaces the slug of the table by a narrower one, or by a text that clients know verbatim.
  Error&& WithSlug(std::string slug) &&;
  Error&& WithDetail(std::string key, Value value) &&;
  // Puts "where: " before the message, for context on the way up.
  Error&& In(std::string_view where) &&;

  Errc code() const { return code_; }
  std::string_view slug() const { return slug_.empty() ? Describe(code_).slug : slug_; }
  int http_status() const { return Describe(code_).http_status; }
  int exit_code() const { return Describe(code_).exit_code; }
  const std::string& message() const { return message_; }
  const std::vector<std::pair<std::string, Value>>& details() const { return details_; }

 private:
  Errc code_;
  std::string slug_;  // empty = the table's
  std::string message_;
  std::vector<std::pair<std::string, Value>> details_;
};

// "slug: message", for logs and test failures.
std::ostream& operator<<(std::ostream& out, const Error& error);

}  // namespace interlock
