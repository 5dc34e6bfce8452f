#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace interlock {

using Duration = std::chrono::microseconds;

// Wall-clock time: microseconds since 1970 in UTC, as it is stored and sent. It may jump.
struct Timestamp {
  std::int64_t micros = 0;

  auto operator<=>(const Timestamp&) const = default;
  friend Timestamp operator+(Timestamp t, Duration d) { return {t.micros + d.count()}; }
  friend Timestamp operator-(Timestamp t, Duration d) { return {t.micros - d.count()}; }
  friend Duration operator-(Timestamp a, Timestamp b) { return Duration(a.micros - b.micros); }
};

// The only source of time. Code that waits, times out or stamps a row takes a Clock&, so that tests
// and simulations run it on virtual time (tests/testing/fake_clock.h).
//
// Thread-safe.
class Clock {
 public:
  using TimerId = std::uint64_t;  // 0 is never a timer

  virtual ~Clock() = default;

  // For what is stored or shown.
  virtual Timestamp Now() = 0;

  // For what is measured: never goes backwards, has no meaning outside this process.
  virtual Duration Monotonic() = 0;

  // Runs `fn` once, after `delay` of monotonic time, on the clock's timer thread. `fn` must be
  // quick and must not throw.
  virtual TimerId Schedule(Duration delay, std::function<void()> fn) = 0;

  // True: the timer was waiting and now never runs. False: it ran, is running, or was cancelled.
  virtual bool Cancel(TimerId id) = 0;
};

// The machine's time. The timer thread starts with the first Schedule().
class SystemClock final : public Clock {
 public:
  SystemClock();
  ~SystemClock() override;  // forgets the timers that wait, and joins the thread

  Timestamp Now() override;
  Duration Monotonic() override;
  TimerId Schedule(Duration delay, std::function<void()> fn) override;
  bool Cancel(TimerId id) override;

 private:
  class Timers;
  std::unique_ptr<Timers> timers_;
};

}  // namespace interlock
