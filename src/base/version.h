#pragma once

#include <string_view>

namespace interlock {

// What this program was built from. The texts live as long as the program.
struct Build {
  std::string_view version;      // of the CMake project: "0.1.0"
  std::string_view commit;       // abbreviated hash; "" when built outside a git checkout
  std::string_view commit_time;  // RFC 3339; "" as above
  bool dirty;                    // the checkout differed from that commit
};

const Build& BuildInfo();

}  // namespace interlock
