#pragma once

#include <string_view>

namespace interlock {
class Logger;
}

namespace interlock::service {
class Health;
}

namespace interlock::http {

// What handlers may use: the log and the services, built by main() and alive until the server has
// stopped.
struct App {
  std::string_view version;
  Logger& log;
  service::Health& health;
};

}  // namespace interlock::http
