#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "db/connection.h"

namespace interlock::db {

// The database of another program, which we may write to and which may be gone, locked, replaced or
// damaged at any time. It is never made and its schema never changed.
//
// Used by one thread at a time. Calls wait for the disk, and a short while for a lock.
class ForeignFile {
 public:
  enum class Found : std::uint8_t {
    kStill,  // the same as at the last call
    kAnew,   // opened just now: the first time, after a failure, or in place of another one
  };

  virtual ~ForeignFile() = default;

  // Opens the file, unless it is open and still the one of that name.
  virtual Result<Found> Find() = 0;

  // Runs `fn` in one transaction, which stays only when `fn` succeeds. After any failure the file
  // is closed, and the next Find() opens it. kOutcomeUnknown: it may yet have been committed.
  // REQUIRES: the last Find() succeeded, and every Write() since.
  virtual Result<void> Write(const std::function<Result<void>(Transaction&)>& fn) = 0;

  // Lets go of it. Find() opens it again.
  virtual void Close() = 0;
};

}  // namespace interlock::db
