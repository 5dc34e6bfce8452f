#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "db/connection.h"
#include "domain/mailbox.h"
#include "domain/sightings.h"
#include "store/agents.h"

namespace interlock::service {

// Finds the agent that an address means: an id, or a name.
//
// (1) An id always wins over a name, and is found in every project, living or deregistered.
// (2) A name means a living agent of the project (nothing: of any project): the one that was seen
//     within the grace; if none was, the one seen last. Two seen within the grace: kConflict,
//     ambiguous_recipient, with their ids.
// (3) Any other text means nobody.
//
// It reads from the connection that it is given: inside a transaction, its answer holds for the
// whole of that transaction.
//
// Thread-safe. It remembers ids and their projects, in bounded number. That is safe, because the
// row of an agent is never removed, and never moves to another project.
class AddressBook {
 public:
  struct Options {
    Duration grace = std::chrono::minutes(5);
    std::size_t ids_max = 16'384;  // more are all forgotten, and learnt anew
  };
  using Project = std::optional<std::string_view>;
  using Found = std::optional<store::AgentCard>;

  // `sightings` must outlive it.
  AddressBook(Options options, const domain::Sightings& sightings)
      : options_(options), sightings_(sightings) {}

  Result<Found> Find(db::Connection& connection, Project project, std::string_view text,
                     Timestamp now);
  // The same for a text that is no agent's id.
  Result<Found> FindNamed(db::Connection& connection, Project project, std::string_view name,
                          Timestamp now);
  // The agent that owns what is stored under a text, which is never two: the agent of that id, else
  // the living agent that the name means. Of several that were seen within the grace it is the one
  // whose id is the lowest, which is the one that registered first.
  Result<Found> FindKeeper(db::Connection& connection, std::string_view project,
                           std::string_view text, Timestamp now);
  // The id of the agent, or the text itself when it means nobody. Reads nothing for an id that it
  // remembers.
  Result<std::string> IdOf(db::Connection& connection, Project project, const std::string& text,
                           Timestamp now);
  // The project of the agent with this id, if the id is remembered. Reads nothing.
  std::optional<std::string> ProjectIfRemembered(const std::string& id) IL_EXCLUDES(mutex_);
  // Whether the text is no id and a living agent has it as its name, in whichever project. Reads
  // nothing for an id that it remembers.
  Result<bool> IsName(db::Connection& connection, const std::string& text);

  // Whose mail a text asks for.
  struct Owner {
    std::string agent;  // its id, or the text itself when it means nobody
    // Mail that was stored under its bare name, while nobody had that name, is its own, too, if it
    // is the keeper of that name.
    std::optional<domain::BareName> also = {};
    bool may_change = false;  // with time alone: it depends on who of several was seen
  };
  Result<Owner> OwnerOf(db::Connection& connection, Project project, const std::string& text,
                        Timestamp now);

 private:
  // The living agents of a name.
  struct Named {
    std::vector<store::AgentCard> active;    // seen within the grace
    std::optional<store::AgentCard> newest;  // the one seen last
    std::size_t count = 0;                   // of all
  };
  static Found KeeperAmong(const Named& named);
  Result<Named> FindAll(db::Connection& connection, Project project, std::string_view name,
                        Timestamp now);
  bool Remembers(const std::string& id) IL_EXCLUDES(mutex_);
  void Remember(const std::string& id, const std::string& project) IL_EXCLUDES(mutex_);

  const Options options_;
  const domain::Sightings& sightings_;
  Mutex mutex_;
  std::unordered_map<std::string, std::string> ids_ IL_GUARDED_BY(mutex_);  // to the project
};

}  // namespace interlock::service
