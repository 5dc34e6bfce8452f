#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "domain/event.h"
#include "events/frame.h"
#include "events/type_filter.h"

namespace interlock::events {

// The queue of one consumer. The hub adds frames and never waits; the consumer takes all frames at
// once. The number of frames and bytes is limited. If a frame does not fit, the consumer becomes
// lagged and all waiting frames are freed, so that a stalled consumer costs no memory.
//
// Thread-safe. Invariant: while the state is kOpen, Take() returns all events since Open(), in
// cursor order and without gaps.
class Outbox {
 public:
  struct Limits {
    std::size_t events_max = 1024;
    std::size_t bytes_max = std::size_t{1024} * 1024;
  };
  enum class State : std::uint8_t {
    kOpen,
    kLagged,    // a frame did not fit; Open() starts again
    kClosed,    // closed by the consumer
    kStopping,  // closed by the hub
  };
  using Wake = std::move_only_function<void()>;

  // `agent`: receive only messages to this agent; nullopt = all events, as in the log.
  Outbox(std::optional<std::string> agent, TypeFilter filter, Limits limits)
      : agent_(std::move(agent)), limits_(limits), filter_(std::move(filter)) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  const std::optional<std::string>& agent() const { return agent_; }

  // ---- for the consumer

  struct Taken {
    std::vector<Frame> frames = {};  // empty unless the state is kOpen
    State state = State::kOpen;
  };
  Taken Take() IL_EXCLUDES(mutex_);
  State state() IL_EXCLUDES(mutex_);

  // Calls `wake` once, on any thread, as soon as Take() has a result. Returns false if it already
  // has one; `wake` is not called then. REQUIRES: no other wait is armed.
  bool Arm(Wake wake) IL_EXCLUDES(mutex_);

  void SetFilter(TypeFilter filter) IL_EXCLUDES(mutex_);

  // Closes the outbox permanently and wakes the consumer.
  void Close(State state) IL_EXCLUDES(mutex_);

  // ---- for the hub

  // Drops all waiting frames and accepts events after `floor`. No effect on a closed outbox.
  void Open(domain::Cursor floor) IL_EXCLUDES(mutex_);

  // Adds the event if it matches. The caller must call the returned function without a lock held.
  [[nodiscard]] Wake Offer(FrameMaker& event) IL_EXCLUDES(mutex_);

 private:
  bool Ready() const IL_REQUIRES(mutex_) { return state_ != State::kOpen || !frames_.empty(); }
  void Free() IL_REQUIRES(mutex_);

  const std::optional<std::string> agent_;
  const Limits limits_;
  Mutex mutex_;
  TypeFilter filter_ IL_GUARDED_BY(mutex_);
  State state_ IL_GUARDED_BY(mutex_) = State::kOpen;
  domain::Cursor last_ IL_GUARDED_BY(mutex_) = 0;  // only later events are accepted
  std::vector<Frame> frames_ IL_GUARDED_BY(mutex_);
  std::size_t bytes_ IL_GUARDED_BY(mutex_) = 0;  // of frames_
  Wake wake_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::events
