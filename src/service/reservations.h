#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/result.h"
#include "db/connection.h"
#include "domain/event.h"
#include "domain/reservation.h"
#include "glob/budget.h"
#include "service/wait_queue.h"

namespace interlock::service {

struct Claims;
struct Effort;
struct GrantRules;
struct Tried;
class Storage;

// How agents keep out of each other's way: whoever is to change files reserves them first. What is
// granted, refused, renewed or handed on is decided and written in one transaction, so of many that
// ask at once exactly as many are granted as may hold together.
//
// Thread-safe. The coroutines run on the caller's strand and own what they are given. `project` in
// a reference: nothing means every project; within one, a reservation of another is not there.
class Reservations {
 public:
  struct Options {
    Duration heartbeat_grace = std::chrono::minutes(5);  // a holder seen since then is active
    std::int64_t held_max = 256;                         // by one agent in one project
    // Gets an event for each refusal, which is in no log.
    std::function<void(const domain::Event&)> publish_live = {};
  };

  // All must outlive it.
  Reservations(Storage& storage, Clock& clock, UuidMaker& uuids, const Limits& limits,
               Options options);

  // Agents are named by id, or by a name of the project as AddressBook says; kConflict
  // (ambiguous_recipient).
  struct Wish {
    std::string project;
    std::string agent;
    std::vector<std::string> patterns;  // all are granted, or none
    bool literal = false;               // they are paths, whatever characters they have
    domain::Access access = domain::Access::kShared;
    std::string reason = {};
    std::int64_t ttl_minutes = 0;                         // domain::LeaseFor()
    std::chrono::seconds patience{0};                     // how long it may wait for its turn
    WaitQueue::Reach reach = WaitQueue::Reach::kProject;  // of whoever asks
  };
  // The agent that a verdict is about.
  struct Asker {
    std::string agent = {};  // its id
    std::string name = {};   // empty: nobody registered it
    std::string project = {};
  };
  struct Granted {
    std::vector<domain::Reservation> reservations;  // one per pattern, in their order
    Asker asker = {};
  };
  struct Refused {
    std::vector<domain::Conflict> conflicts;         // all of them
    std::optional<std::size_t> queue_position = {};  // from 1; of one that waited
    Asker asker = {};
  };
  struct Deadlocked {
    std::vector<std::string> agents;  // each is in the way of the one before it; the first is ours
  };
  using Verdict = std::variant<Granted, Refused, Deadlocked>;

  // A claim that the agent already holds is the same reservation again, with the later end. An
  // invalid pattern: kInvalidPattern and its like. More than the agent may hold: kRateLimited,
  // reservation_limit. Cancelling a wait leaves nothing behind. An agent that has deregistered,
  // also while it waits, is granted nothing until it registers again: kNotFound.
  boost::asio::awaitable<Result<Verdict>> Reserve(Wish wish);

  struct Question {
    std::string project;
    std::string pattern;
    bool literal = false;
    domain::Access access = domain::Access::kExclusive;
    std::string except_agent = {};  // whose holds do not count
  };
  // What is in the way of a claim, those who wait not counted.
  boost::asio::awaitable<Result<std::vector<domain::Conflict>>> Check(Question question);

  struct Ref {
    std::string id;
    std::optional<std::string> project = {};
    std::string agent = {};  // who asks
  };
  boost::asio::awaitable<Result<domain::Reservation>> Get(Ref ref);

  // Longer by so many minutes from now; one that ran out is granted anew if its paths are free. Of
  // its owner only (kForbidden); released or swept: kNotFound.
  boost::asio::awaitable<Result<Verdict>> Renew(Ref ref, std::int64_t ttl_minutes);

  // To another agent, as a new grant. Of its owner only, while it holds. Refused when the owner
  // keeps something that overlaps. An agent that holds the same already has it once: the later end
  // and a new fence in the one that it had, while the other is released.
  boost::asio::awaitable<Result<Verdict>> Transfer(Ref ref, std::string to_agent);

  // By its owner. Released already: kNotFound; one that ran out may still be released.
  boost::asio::awaitable<Result<void>> Release(Ref ref);

  // By anybody who says who it is, when the holder was not heard of for long enough; else
  // kConflict, holder_active. The holder finds a message about it.
  struct Ended {
    domain::Reservation reservation;
    std::string holder_name = {};  // empty: nobody registered it
  };
  boost::asio::awaitable<Result<Ended>> ForceRelease(Ref ref, std::string reason);

  // Of an agent, all of them; else of a project, the active ones. The newest first.
  struct Owner {
    std::string agent;
    std::optional<std::string> project = {};   // nothing = wherever they are
    std::optional<std::string> named_in = {};  // the project in which `agent` is a name
  };
  boost::asio::awaitable<Result<std::vector<domain::Reservation>>> ListOfAgent(Owner owner);
  boost::asio::awaitable<Result<std::vector<domain::Reservation>>> ListOfProject(
      std::string project);

  // As clients see them: one, and {"reservations":[…]}.
  std::string Json(const domain::Reservation& reservation) const;
  std::string ListJson(const std::vector<domain::Reservation>& reservations) const;

  // These reservations are gone; whoever waits for their paths may go on.
  void TellGone(const std::vector<domain::Reservation>& gone);
  // The agent has deregistered, or may have, and these at least were released: its own waits end,
  // too. Or a bare name, and what was held under it has another holder.
  void TellLeft(std::string_view agent, const std::vector<domain::Reservation>& released);

  // Ends every wait with kUnavailable. REQUIRES: before storage is stopped.
  void StopWaits() { waits_.Stop(); }

  // How many hold right now, everywhere. A peek (storage.h): for who watches the server.
  boost::asio::awaitable<Result<std::int64_t>> CountActive();

  std::size_t waiting() const { return waits_.size(); }
  // Of one project, or (nothing) of all.
  std::size_t CountWaiting(const std::optional<std::string>& project) const;

 private:
  class Attempt;
  using WriteFn = std::function<Result<Tried>(db::Transaction&, const GrantRules&)>;
  using LookFn = std::function<Result<std::vector<domain::Conflict>>(
      db::Connection&, const GrantRules&, glob::Budget&)>;

  GrantRules Rules(Effort effort) const;
  // Runs `write` with little to compare; if that is not enough, `look` beside the write lock with
  // the rest of `steps`, and `write` again, for which only what was granted since is left.
  boost::asio::awaitable<Result<Tried>> Decide(std::int64_t steps, WriteFn write, LookFn look);
  boost::asio::awaitable<Result<Effort>> Look(std::int64_t steps, LookFn look);
  // The same with the id of the agent for its name, which is one of the reservation's project.
  Result<Ref> ById(db::Connection& connection, Ref ref) const;
  // ById() of the first call, again in each later one.
  using ResolvedRef = std::function<Result<Ref>(db::Connection&)>;
  ResolvedRef ResolveOnce(Ref ref) const;
  Result<void> CheckTexts(const Wish& wish) const;
  void PublishConflict(const Claims& claims, const Refused& refused) const;
  void Undo(const std::shared_ptr<const Claims>& claims, int tries = 2);
  Verdict Hear(Tried tried);
  boost::asio::awaitable<Result<Ended>> End(std::string id,
                                            std::function<Result<Ended>(db::Transaction&)> release);

  Storage& storage_;
  Clock& clock_;
  UuidMaker& uuids_;
  const Limits limits_;
  const Options options_;
  WaitQueue waits_;
};

std::string ConflictJson(const domain::Conflict& conflict);

}  // namespace interlock::service
