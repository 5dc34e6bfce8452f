#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "db/connection.h"

namespace interlock::db {

// A database as the services see it: two verbs, both asynchronous, both bounded.
//
// Thread-safe. Neither verb ever waits. An accepted request runs its `done` exactly once, on a
// storage thread (when cancelled, on the thread that cancels), with no lock held, and must not
// throw there; a refused one (kUnavailable: the queue is full, or the database is closing) runs
// neither function.
class Database {
 public:
  using ReadFn = std::function<Result<void>(Connection&)>;
  using WriteFn = std::function<Result<void>(Transaction&)>;
  using Done = std::function<void(Result<void>)>;
  using Ticket = std::uint64_t;  // names an accepted request; 0 is none

  virtual ~Database() = default;

  // Runs `fn` on a snapshot of what is committed. Reads run beside each other and beside writes.
  virtual Result<Ticket> Read(ReadFn fn, Done done) = 0;

  // Runs `fn` in a transaction. `done` hears success only when it is durable; the order of
  // completion is the order of commit. An `fn` that fails or throws leaves no trace.
  virtual Result<Ticket> Write(WriteFn fn, Done done) = 0;

  // True: the request had not begun, never will, and its `done` has been called with kCancelled.
  // False: it is running or done; its own result is or will be told.
  virtual bool Cancel(Ticket ticket) = 0;

  // Refuses new requests, finishes the accepted ones, closes the files: readers first, then the
  // writer, which truncates the log. Idempotent; blocks until all is closed.
  virtual Result<void> Close() = 0;
};

}  // namespace interlock::db
