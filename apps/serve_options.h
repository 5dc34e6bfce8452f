#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>

#include "auth/access.h"
#include "base/log.h"
#include "db/sqlite/connection.h"
#include "service/limits.h"

namespace interlock::app {

// What `intermute serve` was asked to do.
struct ServeOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 7338;  // 0 = any free one
  std::filesystem::path database = "intermute.db";
  std::filesystem::path socket;  // empty = none
  // The file of `ic` into which reservations are mirrored; empty = none, unless it is to be looked
  // for.
  std::filesystem::path intercore_db;
  bool coordination_dual_write = false;
  std::filesystem::path keys_file = "intermute.keys.yaml";
  auth::AccessRules access;
  sqlite::Durability durability = sqlite::Durability::kFull;
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  enum class NetworkFs : std::uint8_t { kRefuse, kAllow } network_fs = NetworkFs::kRefuse;
  int io_threads = 2;
  int retain_days = 30;  // 0 = for ever
  std::chrono::milliseconds sweep_interval{60'000};
  std::chrono::milliseconds heartbeat_grace{300'000};
  std::int64_t reservations_max = 256;  // of one agent in one project
  Limits limits;
};

// What `intermute init` was asked to do.
struct InitOptions {
  std::string project;
  std::filesystem::path keys_file = "intermute.keys.yaml";
};

// The command line said it all: print `text` and end.
struct Done {
  int exit_code;
  std::string text;  // to stdout when the code is 0, else to stderr
};

// What the environment says; flags go before it.
struct Environment {
  std::string keys_file;  // INTERMUTE_KEYS_FILE; blank = not set
};

// Reads the command line of `intermute`. Help and version are Done with 0; mistakes are Done with 1
// and say what is wrong and how to write it.
std::variant<ServeOptions, InitOptions, Done> ParseCommandLine(int argc, const char* const* argv,
                                                               const Environment& environment);

}  // namespace interlock::app
