#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "domain/event.h"
#include "events/outbox.h"
#include "store/events.h"

namespace interlock::events {

// Where the log meets those who listen. One publisher brings the events in the order of cursors;
// consumers join and leave at any time.
//
// Thread-safe; nothing here ever waits for a consumer. Invariants:
// (1) `published` only rises, and every event up to it has been offered to all who had joined
//     before it was published.
// (2) Joining and publishing exclude each other: Join() returns H, everything after H will be
//     offered, nothing up to H will be. So a consumer that reads (since, H] in the log and takes
//     the rest from its outbox has each event once.
// (3) An event reaches the consumers of its project and no other; project "" is one like any other.
// (4) Of message.created, a consumer that is an agent hears only if it is a recipient.
class Hub {
 public:
  explicit Hub(domain::Cursor published) : published_(published) {}
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Makes `outbox` live for all events of `project` after the returned cursor, or after
  // `not_before`, if that is later. One that has joined begins anew. Nothing: the hub is closed.
  std::optional<domain::Cursor> Join(const std::string& project,
                                     const std::shared_ptr<Outbox>& outbox,
                                     domain::Cursor not_before) IL_EXCLUDES(mutex_);
  void Leave(const std::string& project, const std::shared_ptr<Outbox>& outbox) IL_EXCLUDES(mutex_);

  // The next event of the log; nothing happens with one that was skipped. REQUIRES: called by one
  // thread at a time, in the order of cursors.
  void Publish(const store::DeliveredEvent& delivered) IL_EXCLUDES(mutex_);

  // One that is in no log (cursor 0). Any thread.
  void PublishLive(const domain::Event& event) IL_EXCLUDES(mutex_);

  // While nobody listens nobody need read the events: `published` may simply move on. False, and
  // nothing happens, if somebody has joined meanwhile. Any thread.
  bool SkipTo(domain::Cursor cursor) IL_EXCLUDES(mutex_);
  bool HasListeners() IL_EXCLUDES(mutex_);

  // Tells all outboxes that the server stops; nobody joins any more. Idempotent.
  void Close() IL_EXCLUDES(mutex_);

  domain::Cursor published() IL_EXCLUDES(mutex_);
  std::size_t listeners() IL_EXCLUDES(mutex_);

 private:
  using Outboxes = std::vector<std::shared_ptr<Outbox>>;
  struct Audience {
    Outboxes whole;                          // of the project
    std::map<std::string, Outboxes> agents;  // by agent

    Outboxes& Of(const Outbox& outbox) { return outbox.agent() ? agents[*outbox.agent()] : whole; }
  };
  using Wakes = std::vector<Outbox::Wake>;

  static void OfferTo(const Outboxes& outboxes, FrameMaker& frames, Wakes& wakes);
  static void OfferToAll(const Audience& audience, FrameMaker& frames, Wakes& wakes);
  static void OfferMessage(const Audience& audience, const std::vector<std::string>& recipients,
                           FrameMaker& frames, Wakes& wakes);

  Mutex mutex_;
  domain::Cursor published_ IL_GUARDED_BY(mutex_);
  std::map<std::string, Audience> projects_ IL_GUARDED_BY(mutex_);
  std::size_t listeners_ IL_GUARDED_BY(mutex_) = 0;
  bool closed_ IL_GUARDED_BY(mutex_) = false;
};

}  // namespace interlock::events
