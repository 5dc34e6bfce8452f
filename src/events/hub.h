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

// Connects the event log with its consumers. One publisher supplies the events in cursor order;
// consumers join and leave at any time.
//
// Thread-safe; it never waits for a consumer. Invariants:
// (1) `published` only increases. Every event up to it was offered to all consumers that had joined
//     before it was published.
// (2) Joining and publishing exclude each other. Join() returns a cursor H: every event after H is
//     offered, no event up to H is. So a consumer that reads (since, H] from the log and the rest
//     from its outbox receives each event once.
// (3) An event reaches only the consumers of its project; "" is a project like any other.
// (4) A consumer with an agent receives message.created only if the agent is a recipient.
class Hub {
 public:
  explicit Hub(domain::Cursor published) : published_(published) {}
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Opens `outbox` for all events of `project` after the returned cursor, or after `not_before` if
  // that is later. An outbox that has joined before starts again. nullopt: the hub is closed.
  std::optional<domain::Cursor> Join(const std::string& project,
                                     const std::shared_ptr<Outbox>& outbox,
                                     domain::Cursor not_before) IL_EXCLUDES(mutex_);
  void Leave(const std::string& project, const std::shared_ptr<Outbox>& outbox) IL_EXCLUDES(mutex_);

  // Publishes the next event of the log; ignores an event up to `published`. REQUIRES: called by
  // one thread at a time, in cursor order.
  void Publish(const store::DeliveredEvent& delivered) IL_EXCLUDES(mutex_);

  // Publishes an event that is not in the log (cursor 0). Safe from any thread.
  void PublishLive(const domain::Event& event) IL_EXCLUDES(mutex_);

  // Advances `published` without reading the events, which is possible while there is no consumer.
  // Returns false and does nothing if a consumer has joined. Safe from any thread.
  bool SkipTo(domain::Cursor cursor) IL_EXCLUDES(mutex_);
  bool HasListeners() IL_EXCLUDES(mutex_);

  // Closes all outboxes with kStopping and allows no further Join(). Idempotent.
  void Close() IL_EXCLUDES(mutex_);

  domain::Cursor published() IL_EXCLUDES(mutex_);
  std::size_t listeners() IL_EXCLUDES(mutex_);

 private:
  using Outboxes = std::vector<std::shared_ptr<Outbox>>;
  struct Audience {
    Outboxes whole;                          // consumers of the whole project
    std::map<std::string, Outboxes> agents;  // consumers of one agent, by agent

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
