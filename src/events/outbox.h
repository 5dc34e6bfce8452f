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

// What waits for one consumer. The hub puts frames in and never waits; the consumer takes them out
// all at once. It holds a bounded number of frames and bytes: what does not fit makes the consumer
// lagged, and everything that waited is freed at once, so that one that stands still costs nothing.
//
// Thread-safe. Invariant: what Take() gives are the events since Open(), in the order of cursors,
// without one missing, until the state is no longer kOpen.
class Outbox {
 public:
  struct Limits {
    std::size_t events_max = 1024;
    std::size_t bytes_max = std::size_t{1024} * 1024;
  };
  enum class State : std::uint8_t {
    kOpen,
    kLagged,    // something did not fit; Open() begins anew
    kClosed,    // by the consumer
    kStopping,  // by the hub
  };
  using Wake = std::move_only_function<void()>;

  // `agent`: whose messages it hears; nothing = all, as the log has them.
  Outbox(std::optional<std::string> agent, TypeFilter filter, Limits limits)
      : agent_(std::move(agent)), limits_(limits), filter_(std::move(filter)) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  const std::optional<std::string>& agent() const { return agent_; }

  // ---- for the consumer

  struct Taken {
    std::vector<Frame> frames = {};  // empty unless open
    State state = State::kOpen;
  };
  Taken Take() IL_EXCLUDES(mutex_);
  State state() IL_EXCLUDES(mutex_);

  // Runs `wake` once, on any thread, as soon as Take() has something to tell. False: it has now,
  // and `wake` will not run. REQUIRES: no other one waits.
  bool Arm(Wake wake) IL_EXCLUDES(mutex_);

  void SetFilter(TypeFilter filter) IL_EXCLUDES(mutex_);

  // For good. Wakes who waits.
  void Close(State state) IL_EXCLUDES(mutex_);

  // ---- for the hub

  // Forgets what waits; from now on events after `floor` belong here. Nothing when closed.
  void Open(domain::Cursor floor) IL_EXCLUDES(mutex_);

  // Puts the event in if it belongs here. What it returns is to be run, with no lock held.
  [[nodiscard]] Wake Offer(FrameMaker& event) IL_EXCLUDES(mutex_);

 private:
  bool Ready() const IL_REQUIRES(mutex_) { return state_ != State::kOpen || !frames_.empty(); }
  void Free() IL_REQUIRES(mutex_);

  const std::optional<std::string> agent_;
  const Limits limits_;
  Mutex mutex_;
  TypeFilter filter_ IL_GUARDED_BY(mutex_);
  State state_ IL_GUARDED_BY(mutex_) = State::kOpen;
  domain::Cursor last_ IL_GUARDED_BY(mutex_) = 0;  // events up to it do not belong here
  std::vector<Frame> frames_ IL_GUARDED_BY(mutex_);
  std::size_t bytes_ IL_GUARDED_BY(mutex_) = 0;  // of frames_
  Wake wake_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::events
