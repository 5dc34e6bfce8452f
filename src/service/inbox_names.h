#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "domain/event.h"

namespace interlock::service {

// Which inboxes a text asks for, as far as that is known without the database: those of ids, and of
// texts that mean nobody. What a name means depends on the time, so names are never here, nor are
// ids of agents that share their name.
//
// Thread-safe. Invariants:
// (1) An agent that comes or goes is forgotten, with its name and with whoever else has the name,
//     inside the transaction that writes it.
// (2) A read that did not see the last that came or went teaches nothing.
// (3) Memory is bounded: `texts_max` texts, each of which fits a mail address.
class InboxNames {
 public:
  static constexpr std::size_t kTextsMax = 16'384;

  explicit InboxNames(std::size_t texts_max = kTextsMax) : texts_max_(texts_max) {}

  struct Boxes {
    std::string agent;
    std::string bare_name = {};  // in the same project; empty = none
  };
  std::optional<Boxes> Find(std::string_view project, std::string_view text) IL_EXCLUDES(mutex_);

  // A read that saw everything up to `seen` found this. REQUIRES: the text is not a name, and
  // nobody else has the bare name.
  void Learn(std::string_view project, std::string_view text, Boxes boxes, domain::Cursor seen)
      IL_EXCLUDES(mutex_);

  // The agent is being registered or deregistered, by the event with this cursor.
  void Changed(std::string_view project, std::string_view id, std::string_view name,
               domain::Cursor cursor) IL_EXCLUDES(mutex_);

 private:
  const std::size_t texts_max_;
  Mutex mutex_;
  domain::Cursor changed_ IL_GUARDED_BY(mutex_) = 0;  // the last
  std::unordered_map<std::string, Boxes> boxes_ IL_GUARDED_BY(mutex_);
  // The text in boxes_ of the agent that has a bare name.
  std::unordered_map<std::string, std::string> owners_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::service
