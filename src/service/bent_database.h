#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/result.h"
#include "db/database.h"

namespace interlock::service {

// Passes everything on to another database; a test may bend what becomes of a write. Thread-safe.
class BentDatabase final : public db::Database {
 public:
  enum class Bend : std::uint8_t {
    kNone,
    kBusyAfterwards,     // what it did is rolled back, as by a busy database, and told as kBusy
    kUnknownAfterwards,  // it is committed, and told as kOutcomeUnknown
  };
  explicit BentDatabase(db::Database& inner) : inner_(inner) {}
  void BendNextWrite(Bend bend) { bend_ = bend; }
  // Called on the writer's thread after each write function that succeeded, before the commit; an
  // error undoes the write and is told in its place. To be set before the first write.
  void AfterEachWrite(std::function<Result<void>(db::Transaction&)> after) {
    after_ = std::move(after);
  }
  std::size_t writes() const { return writes_; }
  std::size_t reads() const { return reads_; }

  Result<Ticket> Read(ReadFn fn, Done done) override {
    ++reads_;
    return inner_.Read(std::move(fn), std::move(done));
  }
  Result<Ticket> Write(WriteFn fn, Done done) override {
    const Bend bend = bend_.exchange(Bend::kNone);
    auto run = [this, bend, fn = std::move(fn)](db::Transaction& tx) -> Result<void> {
      ++writes_;
      Result<void> result = fn(tx);
      if (bend == Bend::kBusyAfterwards) return Error(Errc::kBusy, "database is locked");
      return result.ok() && after_ ? after_(tx) : result;
    };
    auto tell = [bend, done = std::move(done)](Result<void> result) {
      if (bend == Bend::kUnknownAfterwards) result = Error(Errc::kOutcomeUnknown, "who knows");
      done(std::move(result));
    };
    return inner_.Write(std::move(run), std::move(tell));
  }
  bool Cancel(Ticket ticket) override { return inner_.Cancel(ticket); }
  Result<void> Close() override { return inner_.Close(); }

 private:
  db::Database& inner_;
  std::atomic<Bend> bend_ = Bend::kNone;
  std::function<Result<void>(db::Transaction&)> after_;
  std::atomic<std::size_t> writes_ = 0;  // runs of write functions
  std::atomic<std::size_t> reads_ = 0;
};

}  // namespace interlock::service
