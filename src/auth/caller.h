#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "auth/sha256.h"

namespace interlock::auth {

// The author of an admitted request.
struct Caller {
  enum class Mode : std::uint8_t {
    kLocal,  // from this machine without a key: may use every project
    kKey,    // with a key: may use only the key's project
  };
  // How the agent of the request is known.
  enum class Identity : std::uint8_t {
    kNone,     // the request names no agent
    kClaimed,  // from X-Agent-ID, not verified
    kProved,   // from the agent's token
  };

  Mode mode = Mode::kLocal;
  std::string project = {};        // of the key; empty in local mode
  std::optional<Digest> key = {};  // digest of the key; nullopt in local mode
  bool from_here = false;          // made on this machine and not forwarded for another one
  Identity identity = Identity::kNone;
  std::string agent = {};  // its id; if kClaimed, possibly its name; empty if kNone
  std::string name = {};   // name of the agent; empty unless kProved
};

}  // namespace interlock::auth
