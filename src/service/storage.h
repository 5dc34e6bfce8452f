#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "db/database.h"
#include "resilience/breaker.h"
#include "resilience/guard.h"
#include "resilience/retry.h"
#include "service/address.h"
#include "service/inbox_marks.h"
#include "service/inbox_names.h"
#include "service/signs_of_life.h"

namespace interlock::service {

// The database as every use case sees it: db::Database's two verbs behind a breaker each and one
// retry, bounded in time. Nothing else in the server talks to the database. Writes that fail, of a
// full disk say, leave reads alone.
//
// Thread-safe; never waits. Rules for both verbs:
// (1) `done` runs exactly once whatever happens, refusals included, with no lock held: before the
//     call returns, on the calling thread, when it is refused (kCircuitOpen, kUnavailable); inside
//     Call::Cancel(); on the clock's thread when the time is up; otherwise on a storage thread. So
//     it must be quick, must not throw, and is best a post to the caller's own executor.
// (2) The whole time, queues and retries included, is at most `budget`. Then a read, or a write
//     that has not begun and now never will, hears kStorageTimeout. A write that is running hears
//     kOutcomeUnknown: it may yet be committed.
// (3) Hence `fn` may still be running after `done` was told so. It must own what it touches; the
//     forms with a value type see to that for results: Read<Agent>(fn, done).
// (4) `fn` may run several times, one after the other, each from the start.
//
// REQUIRES: Stop(), then Database::Close(), before it is destroyed.
class Storage {
 public:
  using ReadFn = db::Database::ReadFn;
  using WriteFn = db::Database::WriteFn;
  using Done = resilience::Done;  // move-only function of Result<void>
  using Call = resilience::Call;  // Cancel() says that the caller no longer wants it
  template <typename T>
  using DoneWith = std::move_only_function<void(Result<T>)>;

  enum class Verb : std::uint8_t { kRead, kWrite };
  using OnBreakerChange =
      std::function<void(Verb, resilience::Breaker::State from, resilience::Breaker::State to)>;

  struct Options {
    resilience::Breaker::Options breaker = {};  // of both
    resilience::Retry::Options retry = {};
    Duration budget = std::chrono::seconds(10);
    OnBreakerChange on_breaker_change = nullptr;
    resilience::Retry::Random random = resilience::SystemRandom();
    std::size_t inboxes_max = InboxMarks::kInboxesMax;
    std::function<bool()> in_place = nullptr;  // false: the database is not where it was opened
    std::string log_id = {};                   // of the database, see Ping(); empty = any
    AddressBook::Options addresses = {};
  };

  // Both must outlive it.
  Storage(db::Database& database, Clock& clock) : Storage(database, clock, Options{}) {}
  Storage(db::Database& database, Clock& clock, Options options);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Call Read(ReadFn fn, Done done);
  Call Write(WriteFn fn, Done done);

  // The same for an `fn` that returns Result<T>; `done` hears the value of the run that counted.
  template <typename T>
  Call Read(std::function<Result<T>(db::Connection&)> fn, DoneWith<T> done);
  template <typename T>
  Call Write(std::function<Result<T>(db::Transaction&)> fn, DoneWith<T> done);

  // For who watches the server: a read past breaker and retry, with a budget of its own, so that
  // what it tells is how the storage is now, and soon.
  Call Peek(Duration budget, ReadFn fn, Done done);
  template <typename T>
  Call Peek(Duration budget, std::function<Result<T>(db::Connection&)> fn, DoneWith<T> done);

  // Does the database answer at all? Peeks with one small read; store/ping.h says what it can show.
  // kStorageTimeout when the budget (500 ms for /health) is used up. kUnavailable, slug
  // cannot_open, when the file holds another database: from then on all other calls are refused
  // alike, since SQLite would mix the pages of both.
  Call Ping(Duration budget, Done done);

  // What is known of inboxes without a read. Whoever puts mail into one tells it.
  InboxMarks& inboxes() { return inboxes_; }
  // Whether that may be answered: not for a database that was removed or replaced.
  bool in_place() const { return !overwritten_ && (!in_place_ || in_place_()); }
  // Every registration and deregistration of an agent must tell it.
  InboxNames& inbox_names() { return inbox_names_; }

  // When agents were last seen, beyond what is stored.
  SignsOfLife& signs() { return signs_; }

  // Which agent a text means.
  AddressBook& addresses() { return addresses_; }

  // The worse of both: open, then half-open, then closed.
  resilience::Breaker::State breaker_state() const;
  resilience::Breaker::State breaker_state(Verb verb) const { return BreakerOf(verb).state(); }
  resilience::Breaker::Status breaker_status(Verb verb) const { return BreakerOf(verb).status(); }

  // The first step of closing: ends waits between tries with kUnavailable and refuses new calls.
  // What is queued or running is finished by Database::Close(). Not to be called from a `done`.
  void Stop();

 private:
  Result<void> CheckLogId(db::Connection& connection);

  const resilience::Breaker& BreakerOf(Verb verb) const {
    return verb == Verb::kRead ? read_breaker_ : write_breaker_;
  }

  db::Database& database_;
  const Duration budget_;
  resilience::Breaker read_breaker_;
  resilience::Breaker write_breaker_;
  resilience::Retry retry_;
  resilience::Retry peek_;  // retries nothing
  resilience::Guard read_guard_;
  resilience::Guard write_guard_;
  InboxMarks inboxes_;
  InboxNames inbox_names_;
  SignsOfLife signs_;
  AddressBook addresses_;
  const std::function<bool()> in_place_;
  const std::string log_id_;
  std::atomic<bool> overwritten_ = false;  // by another database, as a ping found
};

namespace internal {

// Brings the value of the run that counted away from the storage thread. Runs of one `fn` follow
// each other, and the value may be read only after one that succeeded was told.
template <typename T, typename Source>
struct Carrier {
  static_assert(!std::is_void_v<T>, "use the form without a value type");

  explicit Carrier(std::function<Result<T>(Source&)> run) : fn(std::move(run)) {}

  std::function<Result<T>(Source&)> fn;
  std::optional<T> value;

  Result<void> Run(Source& source) {
    value.reset();
    IL_TRY(T made, fn(source));
    value.emplace(std::move(made));
    return {};
  }
  static resilience::Done Deliver(std::shared_ptr<Carrier> carrier,
                                  std::move_only_function<void(Result<T>)> done) {
    return [carrier = std::move(carrier), done = std::move(done)](Result<void> result) mutable {
      if (!result.ok()) return done(std::move(result).error());
      done(std::move(*carrier->value));
    };
  }
};

}  // namespace internal

template <typename T>
Storage::Call Storage::Read(std::function<Result<T>(db::Connection&)> fn, DoneWith<T> done) {
  auto carrier = std::make_shared<internal::Carrier<T, db::Connection>>(std::move(fn));
  return Read([carrier](db::Connection& connection) { return carrier->Run(connection); },
              internal::Carrier<T, db::Connection>::Deliver(carrier, std::move(done)));
}

template <typename T>
Storage::Call Storage::Write(std::function<Result<T>(db::Transaction&)> fn, DoneWith<T> done) {
  auto carrier = std::make_shared<internal::Carrier<T, db::Transaction>>(std::move(fn));
  return Write([carrier](db::Transaction& transaction) { return carrier->Run(transaction); },
               internal::Carrier<T, db::Transaction>::Deliver(carrier, std::move(done)));
}

template <typename T>
Storage::Call Storage::Peek(Duration budget, std::function<Result<T>(db::Connection&)> fn,
                            DoneWith<T> done) {
  auto carrier = std::make_shared<internal::Carrier<T, db::Connection>>(std::move(fn));
  return Peek(
      budget, [carrier](db::Connection& connection) { return carrier->Run(connection); },
      internal::Carrier<T, db::Connection>::Deliver(carrier, std::move(done)));
}

}  // namespace interlock::service
