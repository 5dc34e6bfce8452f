#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/secret.h"
#include "domain/window.h"

namespace interlock::service {

class Storage;

// The terminals that agents say they work in, and the messages that wait to be surfaced there.
//
// Thread-safe. The coroutines run on the caller's strand and own what they are given.
class Windows {
 public:
  // All must outlive it.
  Windows(Storage& storage, Clock& clock, UuidMaker& ids, const Limits& limits = {})
      : storage_(storage), clock_(clock), ids_(ids), limits_(limits) {}

  struct Registration {
    std::string project = {};
    std::string uuid = {};
    std::string agent_id = {};      // or its name
    Secret token = {};              // the agent's own, given when it registered
    std::string display_name = {};  // empty = the agent's id
    std::string tmux_target = {};   // empty = none
    bool agent_of_project = false;  // an agent of another project is refused
  };
  // Makes the window, or takes over the one with that UUID. kForbidden (agent_token_mismatch): the
  // token is not that agent's. kInvalidArgument: "invalid tmux_target", or a text that is too long.
  boost::asio::awaitable<Result<domain::Window>> Put(Registration registration);

  // Those that count, the most recently active first.
  boost::asio::awaitable<Result<std::vector<domain::Window>>> List(std::string project);

  // The window does not count any more; one that is not there is fine. With `owner`, kForbidden
  // when it is another agent's.
  boost::asio::awaitable<Result<void>> Expire(std::string project, std::string uuid,
                                              std::optional<std::string> owner);

  struct Poke {
    std::string message_id;
    std::string sender;       // its id, if it is registered
    std::string sender_name;  // empty when it is not
    std::string thread_id;    // empty: the message is in none
    std::string text;         // the message in its envelope
    Timestamp created_at;
  };
  struct PokePage {
    std::vector<Poke> pokes;
    bool more = false;  // others wait, and come when these were surfaced
  };
  // Messages that were to be put before the agent and were not, oldest first; a page of them. Here
  // and below, `agent` is an id or a name (AddressBook).
  boost::asio::awaitable<Result<PokePage>> PendingPokes(std::string project, std::string agent);
  // The agent has seen it. Repeating it, and a message that waits for nothing, are fine.
  boost::asio::awaitable<Result<void>> Surface(std::string project, std::string agent,
                                               std::string message_id);

 private:
  Result<void> Check(const Registration& registration) const;

  Storage& storage_;
  Clock& clock_;
  UuidMaker& ids_;
  const Limits limits_;
};

// The window object as answers and events show it.
std::string WindowJson(const domain::Window& window);

}  // namespace interlock::service
