#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>

#include "auth/access.h"
#include "base/limits.h"
#include "base/log.h"
#include "client.h"
#include "db/sqlite/connection.h"

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

// What `intermute status`, `who` and `agents` were asked.
struct AskOptions {
  enum class Question : std::uint8_t { kStatus, kWho, kAgents } question = Question::kStatus;
  ServerAddress server;
  std::string project;   // empty = all, or the key's
  std::string path;      // of kWho
  bool literal = false;  // the path means itself, whatever characters it has
  bool json = false;     // also on a terminal
};

// What `intermute inbox` was asked to do.
struct InboxOptions {
  ServerAddress server;
  std::string project;
  std::string agent;
  enum class Mark : std::uint8_t { kNothing, kSurfaced } mark = Mark::kNothing;
};

// The command line said it all: print `text` and end.
struct Done {
  int exit_code = 0;
  std::string text;  // to stdout when the code is 0, else to stderr
};

// What the environment says; flags go before it.
struct Environment {
  std::string keys_file;     // INTERMUTE_KEYS_FILE; blank = not set
  std::string url = {};      // INTERMUTE_URL
  std::string socket = {};   // INTERMUTE_SOCKET, a path; INTERMUTE_URL goes before it
  std::string api_key = {};  // INTERMUTE_API_KEY
  std::string project = {};  // INTERMUTE_PROJECT
};

// Reads the command line of `intermute`. Help and version are Done with 0; mistakes are Done with 1
// and two lines: what is wrong, and which --help to read.
std::variant<ServeOptions, InitOptions, AskOptions, InboxOptions, Done> ParseCommandLine(
    int argc, const char* const* argv, const Environment& environment);

}  // namespace interlock::app
