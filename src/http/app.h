#pragma once

#include <string_view>

#include "auth/access.h"

namespace interlock {
class Logger;
}

namespace interlock::auth {
class KeyringHolder;
}

namespace interlock::service {
class Agents;
class Feed;
class Health;
class Live;
class Mail;
class Mailbox;
class Planning;
class Reservations;
class Status;
class Windows;
}  // namespace interlock::service

namespace interlock::http {

class Metrics;

// What handlers may use: the log, the keys and the services, built by main() and alive until the
// server has stopped.
struct App {
  std::string_view version;
  Logger& log;
  Metrics& metrics;
  const auth::KeyringHolder& keys;
  auth::AccessRules access;
  service::Health& health;
  service::Agents& agents;
  service::Mail& mail;
  service::Mailbox& mailbox;
  service::Feed& feed;
  service::Planning& planning;
  service::Reservations& reservations;
  service::Status& status;
  service::Live& live;
  service::Windows& windows;
};

}  // namespace interlock::http
