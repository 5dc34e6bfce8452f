#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "auth/access.h"

namespace interlock {
class LimitedLog;
class Logger;
}  // namespace interlock

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

namespace interlock::api {

class Metrics;

// True once: for a log line that many requests deserve and one is enough of. Thread-safe.
class FirstTime {
 public:
  bool Take() { return !taken_.exchange(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> taken_ = false;
};

// What handlers may use: the log, the keys and the services, built by main() and alive until the
// server has stopped.
struct App {
  std::string_view version;
  std::string log_id = {};  // store/meta.h
  Logger& log;
  LimitedLog& events;  // log lines about what clients do
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
  FirstTime agent_without_project = {};
  FirstTime mail_without_project = {};
};

}  // namespace interlock::api
