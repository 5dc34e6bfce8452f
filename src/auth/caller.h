#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "auth/sha256.h"

namespace interlock::auth {

// Who makes a request, once it was let in.
struct Caller {
  enum class Mode : std::uint8_t {
    kLocal,  // from this machine, without a key: may work in every project
    kKey,    // with a key: may work in the key's project only
  };
  // What is known of the agent behind the request.
  enum class Identity : std::uint8_t {
    kNone,     // it named none
    kClaimed,  // X-Agent-ID says so
    kProved,   // it showed the agent's token
  };

  Mode mode = Mode::kLocal;
  std::string project = {};        // of the key; empty in local mode
  std::optional<Digest> key = {};  // the key itself, as the keyring knows it; none in local mode
  bool from_here = false;          // the request was made on this machine, and for nobody elsewhere
  Identity identity = Identity::kNone;
  std::string agent = {};  // its id, or, when kClaimed, perhaps its name; empty when kNone
  std::string name = {};   // of the agent; empty unless kProved
};

}  // namespace interlock::auth
