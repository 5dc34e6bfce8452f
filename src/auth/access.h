#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "auth/caller.h"
#include "base/result.h"

// Who is let in, and in whose name. Pure: the facts of a request go in, the decision comes out.
namespace interlock::auth {

class Keyring;

// A header field as received: how often it was sent, and the first value.
struct HeaderField {
  std::size_t count = 0;
  std::string_view first = {};
};

// What is known of a request at the door.
struct Knock {
  enum class Door : std::uint8_t { kTcp, kUnix };
  Door door = Door::kTcp;
  std::string_view address = {};  // of the peer: "127.0.0.1", "::1"; empty on a Unix socket

  HeaderField authorization = {};
  HeaderField host = {};
  HeaderField origin = {};
  HeaderField fetch_site = {};     // Sec-Fetch-Site, which browsers add to what a page asks for
  HeaderField forwarded_for = {};  // X-Forwarded-For
  std::string_view agent_id = {};  // X-Agent-ID
};

// What the operator decided when the server was started.
struct AccessRules {
  bool require_agent_token = false;  // a write in an agent's name needs that agent's token
  bool insecure = false;             // everybody counts as being on this machine
};

// Lets a request in or not.
//
// (1) A bearer key, when sent, decides: a known one lets in to its project, wherever the request
//     comes from; an unknown or malformed one is 401, also from this machine.
// (2) Without one, only a request from this machine is let in, to every project, and only where the
//     keys file allows it; else 401. From this machine means: over the Unix socket or from a
//     loopback address, and not forwarded for anybody else (X-Forwarded-For).
// (3) A request let in by (2) must not be a web page's: an Origin that is not this server's own, a
//     Host that is no loopback name or address (a name that was bent to point here), or a
//     Sec-Fetch-Site that names another site (images and links carry no Origin) is 403.
//
// Caller::from_here is what (2) calls from this machine, key or not. The caller's agent is what
// X-Agent-ID claims; WithToken() adds what a token proves.
Result<Caller> Admit(const Knock& knock, const Keyring& keyring, const AccessRules& rules);

// The caller once its X-Agent-Token was found to be that of `agent`: the token supplies the
// identity. 403 when X-Agent-ID claims another agent than that id or name. A token that is nobody's
// is ignored, so there is nothing to call this with.
Result<Caller> WithToken(Caller caller, std::string_view agent, std::string_view name = {});

// Whether `text` is the name of the agent that the caller has proved to be. A text in the form of
// an id is none: it may be another agent's.
bool NamesItself(const Caller& caller, std::string_view text);

// Whether who was let in as `caller` would be let in with these keys too: the key is still there
// and opens the same project, or who came without one still needs none.
bool StillAdmitted(const Caller& caller, const Keyring& keyring);

// Whether the caller may write in the name of `agent`: always, unless --require-agent-token asks
// for the agent's token and the caller has not shown it (403).
Result<void> MayActAs(const Caller& caller, std::string_view agent, const AccessRules& rules);

// 127.0.0.0/8, ::1, and the former as an IPv6 address; text as inet_pton(3) reads it.
bool IsLoopbackAddress(std::string_view text);

}  // namespace interlock::auth
