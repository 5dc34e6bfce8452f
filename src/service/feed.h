#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "domain/event.h"
#include "events/frame.h"

namespace interlock {
class Logger;
}

// The event log as its readers see it: page by page (Feed::Page), or followed (Feed::Follow), which
// replays what is in the log and then goes live, without a gap and without a duplicate. Those who
// replay take turns, a few at a time (service/replay_queue.h), and leave the storage to others.
namespace interlock::service {

class CommitSignal;
class Storage;

using events::Frame;

// What to follow.
struct FollowRequest {
  std::string project;  // exactly this one; "" is a project like any other
  // The id of an agent, for all of the project's events; of message.created only those whose
  // recipient it is, and those name it as `agent`. A replay also has the mail under its bare name
  // (AddressBook::OwnerOf). Nothing: all events as the log has them.
  std::optional<std::string> agent = {};
  // Everything after it, then live; 0 = from the oldest event kept. Nothing: only what is new.
  std::optional<domain::Cursor> since = {};
  std::vector<std::string> types = {};  // only these; none = every type
};

// Why Follower::Next() came to an end.
enum class FollowEnd : std::uint8_t {
  kLagged,    // it took its frames too slowly; it may resume after the last one it got
  kStopping,  // the server stops
  kClosed,    // Close() was called, or the waiting coroutine was cancelled
  kFailed,    // storage failed while replaying, or what was to be replayed is pruned by now
};
FollowEnd WhyEnded(const Error& error);

// The end of the log, when `error` refuses a cursor that is beyond it; nothing for other errors.
std::optional<domain::Cursor> NewestIfAhead(const Error& error);

// One consumer of the log. Belongs to the strand of the coroutine that calls Next(): every function
// is called there.
//
// Invariant: the frames of all Next() together are the events of the request, each once, in the
// order of cursors, up to the end. Only live-only events (without a cursor) may stand anywhere.
class Follower {
 public:
  class Impl;
  explicit Follower(std::unique_ptr<Impl> impl);
  ~Follower();  // REQUIRES: no Next() is under way
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // The next frames, at least one; waits until there is one. At most one call at a time. After an
  // error (see WhyEnded) every further call fails in the same way.
  boost::asio::awaitable<Result<std::vector<Frame>>> Next();

  // Which types it hears, from now on. To one that hears every type, Subscribe() means these types
  // only; to others, these types too. kInvalidArgument, and no change, when there are too many.
  Result<void> Subscribe(const std::vector<std::string>& types);
  Result<void> Unsubscribe(const std::vector<std::string>& types);

  // Ends a Next() that waits, and all later ones, with kClosed. Idempotent.
  void Close();

  // The peer has not taken a frame in time and is cut off: it counts as lagged. Then as Close().
  void GiveUp();

 private:
  const std::unique_ptr<Impl> impl_;
};

// One page of the log.
struct EventPageRequest {
  std::optional<std::string> project = {};  // nothing = of every project
  domain::Cursor since = 0;                 // events after it; 0 = from the oldest kept
  std::size_t limit = 100;                  // 1 to Feed::kPageMax
  std::vector<std::string> types = {};      // only these; none = every type
};

struct EventPage {
  std::vector<domain::Event> events;
  // Where to go on. It may be past the last event here: what a filter left out counts as looked
  // at. Fewer events than asked for do not mean that the log ends here, since one request looks at
  // a bounded number of rows; the log ends where the cursor no longer moves.
  domain::Cursor cursor = 0;
};

// Thread-safe.
class Feed {
 public:
  static constexpr std::size_t kPageMax = 1000;

  struct Options {
    std::size_t outbox_events_max = 1024;  // what may wait for one consumer
    std::size_t outbox_bytes_max = std::size_t{1024} * 1024;
    std::size_t types_max = 64;   // in one consumer's filter
    std::size_t replays_max = 2;  // reads of replays at a time, of all consumers together
  };

  struct Stats {
    std::size_t followers = 0;
    std::uint64_t lagged = 0;         // consumers that were too slow, each once, since the start
    domain::Cursor published = 0;     // all that is in the log up to here has been handed out
    std::size_t replays_running = 0;  // reads of replays that storage has
    std::size_t replays_waiting = 0;  // and those that wait for it
  };

  // All must outlive it. `commits` tells when to look into the log.
  Feed(Storage& storage, CommitSignal& commits, Clock& clock, Logger& log, Options options);
  ~Feed();  // Stop()
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Begins after `newest`, the last cursor of the log (store::NewestCursor). REQUIRES: called once,
  // before anybody writes or follows.
  void Start(domain::Cursor newest);

  // kGone, slug cursor_expired, detail oldest_cursor: events after `since` are pruned already.
  // kConflict, slug cursor_ahead, detail newest: `since` is beyond the end of the log.
  // kUnavailable: the server stops. Otherwise what storage says.
  boost::asio::awaitable<Result<std::unique_ptr<Follower>>> Follow(FollowRequest request);

  // kGone and kConflict as above.
  boost::asio::awaitable<Result<EventPage>> Page(EventPageRequest request);

  // An event that is in no log (its cursor is 0): only who follows right now hears of it.
  void PublishLive(const domain::Event& event);

  // Ends all followers with kStopping, and publishes no more. Idempotent.
  // REQUIRES: before Storage::Stop().
  void Stop();

  Stats stats() const;

 private:
  friend class Follower;
  struct Parts;
  const std::shared_ptr<Parts> parts_;
};

}  // namespace interlock::service
