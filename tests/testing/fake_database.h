#pragma once

#include <map>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "db/database.h"

namespace interlock::testing {

// A database that does what a test says: succeed, fail with a given error, or not answer until it
// is told to. It runs no function, so it needs no connection.
//
// Thread-safe; `done` runs on the thread that makes the request, or that calls Answer().
class FakeDatabase final : public db::Database {
 public:
  // From now on every request succeeds, fails so, or waits.
  void Succeed() IL_EXCLUDES(mutex_) { Set(Mode::kSucceed, std::nullopt); }
  void Fail(Error error) IL_EXCLUDES(mutex_) { Set(Mode::kFail, std::move(error)); }
  void Hold() IL_EXCLUDES(mutex_) { Set(Mode::kHold, std::nullopt); }

  // Answers what waits, in the order it came; says how many there were.
  std::size_t Answer(const Result<void>& result) IL_EXCLUDES(mutex_) {
    std::map<Ticket, Done> held;
    {
      MutexLock lock(mutex_);
      held.swap(held_);
    }
    for (auto& [ticket, done] : held) done(result);
    return held.size();
  }
  // Held requests count as running: they cannot be taken back.
  void StartHeld() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    running_ = true;
  }
  std::size_t held() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return held_.size();
  }

  Result<Ticket> Read(ReadFn /*fn*/, Done done) override { return Request(std::move(done)); }
  Result<Ticket> Write(WriteFn /*fn*/, Done done) override { return Request(std::move(done)); }

  bool Cancel(Ticket ticket) override {
    Done done;
    {
      MutexLock lock(mutex_);
      const auto found = held_.find(ticket);
      if (found == held_.end() || running_) return false;
      done = std::move(found->second);
      held_.erase(found);
    }
    done(Error(Errc::kCancelled, "cancelled"));
    return true;
  }

  Result<void> Close() override {
    Answer(Error(Errc::kUnavailable, "closed"));
    return {};
  }

 private:
  enum class Mode { kSucceed, kFail, kHold };

  void Set(Mode mode, std::optional<Error> error) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    mode_ = mode;
    error_ = std::move(error);
  }

  Result<Ticket> Request(Done done) IL_EXCLUDES(mutex_) {
    Result<void> answer;
    Ticket ticket = 0;
    {
      MutexLock lock(mutex_);
      ticket = ++last_;
      if (mode_ == Mode::kHold) {
        held_.emplace(ticket, std::move(done));
        return ticket;
      }
      if (mode_ == Mode::kFail) answer = *error_;
    }
    done(std::move(answer));
    return ticket;
  }

  Mutex mutex_;
  Mode mode_ IL_GUARDED_BY(mutex_) = Mode::kSucceed;
  std::optional<Error> error_ IL_GUARDED_BY(mutex_);
  std::map<Ticket, Done> held_ IL_GUARDED_BY(mutex_);
  bool running_ IL_GUARDED_BY(mutex_) = false;
  Ticket last_ IL_GUARDED_BY(mutex_) = 0;
};

}  // namespace interlock::testing
