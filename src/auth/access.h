#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "auth/caller.h"
#include "base/result.h"

// Decides whether a request is admitted, and for which caller. Pure functions.
namespace interlock::auth {

class Keyring;

// A header field as received: the number of its occurrences and the first value.
struct HeaderField {
  std::size_t count = 0;
  std::string_view first = {};
};

// The facts of a request that the decision needs.
struct RequestFacts {
  enum class Channel : std::uint8_t { kTcp, kUnix };
  Channel channel = Channel::kTcp;
  std::string_view address = {};  // of the peer: "127.0.0.1", "::1"; empty on a Unix socket

  HeaderField authorization = {};
  HeaderField host = {};
  HeaderField origin = {};
  HeaderField fetch_site = {};     // Sec-Fetch-Site, which browsers add to requests of a page
  HeaderField forwarded_for = {};  // X-Forwarded-For
  std::string_view agent_id = {};  // X-Agent-ID
};

// Settings of the operator.
struct AccessRules {
  bool require_agent_token = false;  // a write on behalf of an agent needs that agent's token
  bool insecure = false;             // treat every request as one from this machine
};

// Admits or rejects a request.
//
// (1) A bearer key, if sent, decides: a known key admits to its project from any machine; an
// unknown
//     or malformed key is 401, even from this machine.
// (2) Without a key, only a request from this machine is admitted, to every project, and only if
// the
//     keys file allows it; otherwise 401. A request is from this machine if it arrives over the
//     Unix socket or from a loopback address and was not forwarded for another machine
//     (X-Forwarded-For).
// (3) A request admitted by (2) must not come from a web page. 403 if its Origin is not this
// server,
//     if its Host is not a loopback name or address (DNS rebinding), or if its Sec-Fetch-Site names
//     another site (images and links have no Origin).
//
// Caller::from_here is the result of the test in (2), with or without a key. The caller's agent is
// the claim of X-Agent-ID; WithToken() adds the identity that a token proves.
Result<Caller> Admit(const RequestFacts& facts, const Keyring& keyring, const AccessRules& rules);

// Returns the caller after its X-Agent-Token was found to belong to `agent`: the token supplies the
// identity. 403 if X-Agent-ID claims an agent with another id and name. An unknown token is
// ignored, so this is not called for one.
Result<Caller> WithToken(Caller caller, std::string_view agent, std::string_view name = {});

// True if `text` is the name of the agent that the caller has proved to be. False for a text in the
// form of an id, because it may be the id of another agent.
bool NamesItself(const Caller& caller, std::string_view text);

// True if an admitted caller would be admitted with these keys too: its key still exists and opens
// the same project, or a caller without a key still needs none.
bool StillAdmitted(const Caller& caller, const Keyring& keyring);

// Checks whether the caller may write on behalf of `agent`. 403 only if --require-agent-token is
// set and the caller has not sent the agent's token.
Result<void> MayActAs(const Caller& caller, std::string_view agent, const AccessRules& rules);

// True for 127.0.0.0/8, ::1, and IPv4-mapped 127.0.0.0/8, in the format of inet_pton(3).
bool IsLoopbackAddress(std::string_view text);

}  // namespace interlock::auth
