#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/secret.h"
#include "domain/agent.h"
#include "domain/reservation.h"
#include "service/signs_of_life.h"

namespace interlock::service {

class Storage;

// Which agent a request is about. Within a project, one of another project is not there.
struct AgentRef {
  std::string id;  // or its name, as AddressBook says; kConflict (ambiguous_recipient)
  std::optional<std::string> project = {};  // nothing = every project
  // A change of the agent reaches its reservations in this project only; nothing = in all projects.
  std::optional<std::string> holds_in = {};
};

// What agents do with themselves: come, show that they live, say what they are and who may write to
// them, and go. Every change that is committed has its one event in the log; a heartbeat has none.
//
// Thread-safe. The coroutines run on the caller's strand and own what they are given. An agent that
// is not there, or deregistered, is kNotFound unless said otherwise; a text or a number beyond its
// limit is kInvalidArgument.
class Agents {
 public:
  // Hears of an agent that goes, by its id, and of the reservations that are released with it; of
  // one that may have gone, too, with none; and of a bare name whose reservations are a registered
  // agent's now.
  using OnLeft =
      std::function<void(const std::string& agent, const std::vector<domain::Reservation>&)>;

  // All must outlive it.
  Agents(Storage& storage, Clock& clock, RandomSource& random, UuidMaker& uuids,
         const Limits& limits = {}, OnLeft on_left = {})
      : storage_(storage),
        clock_(clock),
        random_(random),
        uuids_(uuids),
        limits_(limits),
        on_left_(std::move(on_left)) {}

  struct Registration {
    std::string project = {};
    // Trimmed; blank = one is made, unlike those of the project's living agents.
    std::string name = {};
    std::string session_id = {};  // blank = one is made; else a UUID, see domain::IsSessionId()
    std::optional<domain::Capabilities> capabilities = {};
    std::optional<domain::Metadata> metadata = {};
    std::string status = {};
    Secret shown_token = {};  // the caller's own, by which an agent takes its session up again
    domain::SessionProof proof = domain::SessionProof::kAge;
  };
  struct Registered {
    domain::Agent agent;
    Secret token;  // shown this once; storage has its hash only
  };
  // A new agent, or, when the session has one that may be taken over, that agent with everything
  // new but its id, its birth and its policies; its old token is then worth nothing. Reservations
  // under its bare name become its own, if nobody else has the name. The check and
  // the write are one transaction, so of many that ask at once one wins. kConflict when the session
  // has an active agent.
  boost::asio::awaitable<Result<Registered>> Register(Registration registration);

  struct Pulse {
    std::string focus_state = {};    // empty = it says nothing about its focus
    std::int64_t renew_minutes = 0;  // what it holds lasts at least so long from now; 0 = as it is
  };
  // The agent lives. Gives its id.
  boost::asio::awaitable<Result<std::string>> Heartbeat(AgentRef ref, Pulse pulse);

  // The living agent.
  boost::asio::awaitable<Result<domain::Agent>> Get(AgentRef ref);

  // The id of the agent that the text means, or the text itself when it means nobody.
  boost::asio::awaitable<Result<std::string>> IdOf(std::optional<std::string> project,
                                                   std::string text);

  // In whose name a request is made.
  struct Speaker {
    std::string agent;                         // an id or a name
    std::optional<std::string> named_in = {};  // the project of a name; nothing = any project
    std::optional<std::string> only_in = {};   // it speaks only for agents of this project
  };
  // A request was made in its name, which is as good as a heartbeat: the agent lives. Changes
  // nothing for a text that means no agent, or several. Costs no write; and no read either, once
  // the id of the agent is known.
  boost::asio::awaitable<void> Saw(Speaker speaker);
  // The same for as long as a stream of the agent is open.
  boost::asio::awaitable<SignsOfLife::Stream> OpenStream(Speaker speaker);

  // Which of the living are wanted; what is empty filters nothing.
  struct Filter {
    std::optional<std::string> project = {};     // nothing = every project
    std::vector<std::string> capabilities = {};  // at least one of them
    std::string repo = {};                       // that metadata, trimmed
    std::string active_bead_id = {};             // that metadata, trimmed
  };
  // The last seen first, chosen among the Limits::agents_listed_max last seen. The sink is filled
  // on a storage thread while the coroutine waits, so whatever it makes of the agents costs no io
  // thread; it is the caller's again after success, and to be left alone after an error, for a read
  // that took too long may still be filling it.
  boost::asio::awaitable<Result<void>> List(Filter filter, std::shared_ptr<domain::AgentSink> sink);

  // Adds the entries, each in the place of one with the same key. Counts as a sign of life; when
  // every entry was there already it is nothing else, and logs nothing.
  boost::asio::awaitable<Result<domain::Agent>> MergeMetadata(AgentRef ref,
                                                              domain::Metadata entries);

  struct AgentPolicies {
    std::string agent_id;  // the text of the reference, when it means nobody
    domain::Policies policies;
  };
  // The defaults for one that nobody registered; one that is deregistered still has its own.
  boost::asio::awaitable<Result<AgentPolicies>> PoliciesOf(AgentRef ref);
  // By name; an empty one stays as it is, but one must be given.
  struct PolicyChange {
    std::string mail = {};
    std::string live = {};
  };
  boost::asio::awaitable<Result<AgentPolicies>> SetPolicies(AgentRef ref, PolicyChange change);

  // Whom the agent lets write to it, in the order of their bytes, after the change. Adding one that
  // is there and removing one that is not change nothing and log nothing. A contact is an id or a
  // name; the agent that a name means now stays the contact.
  boost::asio::awaitable<Result<std::vector<std::string>>> ContactsOf(AgentRef ref);
  boost::asio::awaitable<Result<std::vector<std::string>>> AddContact(AgentRef ref,
                                                                      std::string contact);
  boost::asio::awaitable<Result<std::vector<std::string>>> RemoveContact(AgentRef ref,
                                                                         std::string contact);

  // The agent goes: listed no more, its token worth nothing, what it holds released, its mail kept.
  // Gives the agent.
  boost::asio::awaitable<Result<domain::Agent>> Deregister(AgentRef ref);

  // The living agent that this token was given to.
  struct TokenOwner {
    std::string id;
    std::string name;

    bool operator==(const TokenOwner&) const = default;
  };
  boost::asio::awaitable<Result<std::optional<TokenOwner>>> OfToken(Secret token);

  // How many were seen within domain::kStaleAfter. A peek (storage.h): for who watches the server.
  boost::asio::awaitable<Result<std::int64_t>> CountActive();

 private:
  // The id of the agent that speaks.
  boost::asio::awaitable<std::optional<std::string>> Find(Speaker speaker);

  Storage& storage_;
  Clock& clock_;
  RandomSource& random_;
  UuidMaker& uuids_;
  const Limits limits_;
  const OnLeft on_left_;
};

// The agent object as lists, answers and events show it: no token, no policies.
std::string AgentJson(const domain::Agent& agent);

// {"agent_id","policy","live_contact_policy"}
std::string PoliciesJson(std::string_view id, domain::Policies policies);

}  // namespace interlock::service
