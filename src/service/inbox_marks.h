#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "domain/event.h"
#include "domain/mailbox.h"

namespace interlock::service {

// Where inboxes end. Agents ask for new mail far more often than there is any, and that there is
// none is known here, without the database.
//
// Thread-safe. Invariants:
// (1) Nothing that was committed stands in an inbox after its mark. A mark is raised inside the
//     transaction that delivers, before anybody can read or hear of the message. When that
//     transaction fails the mark is too high, which costs a read and hides nothing.
// (2) A delivery may be forgotten with its inbox, before or after it is committed. A read that did
//     not see it would put the mark too low; so what reads say counts only if they saw everything
//     up to the last delivery that was forgotten. Cursors rise in the order of commits.
// (3) Marks of inboxes that are there never sink.
// (4) What is kept is bounded, whatever anybody asks for: inboxes in number, and their names in
//     length. One with a longer name than any mail can be delivered to is looked up each time.
// (5) A cursor is answered only up to the newest that a read has seen: only the log can tell
//     whether one beyond that is ahead of the log, and a delivery may yet be rolled back.
class InboxMarks : public domain::DeliveryListener {
 public:
  static constexpr std::size_t kInboxesMax = 16'384;

  // More inboxes than that are all forgotten, and learnt anew.
  explicit InboxMarks(std::size_t inboxes_max = kInboxesMax) : inboxes_max_(inboxes_max) {}

  // True: nothing stands in the inbox after `cursor`, and the log reaches it. False: ask the
  // database.
  bool EndsBy(std::string_view project, std::string_view agent, domain::Cursor cursor)
      IL_EXCLUDES(mutex_);

  // A message is being put there.
  void Delivered(std::string_view project, std::string_view agent, domain::Cursor cursor) override
      IL_EXCLUDES(mutex_);

  // A read found that the inbox ends there.
  void Learn(std::string_view project, std::string_view agent, domain::InboxEnd end)
      IL_EXCLUDES(mutex_);

 private:
  void Raise(std::string key, domain::Cursor cursor) IL_REQUIRES(mutex_);

  const std::size_t inboxes_max_;
  Mutex mutex_;
  domain::Cursor delivered_ IL_GUARDED_BY(mutex_) = 0;  // the last
  domain::Cursor forgotten_ IL_GUARDED_BY(mutex_) = 0;  // the last, see (2)
  domain::Cursor seen_ IL_GUARDED_BY(mutex_) = 0;       // the newest that any read saw, see (5)
  std::unordered_map<std::string, domain::Cursor> marks_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::service
