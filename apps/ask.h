#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "client.h"
#include "serve_options.h"

namespace interlock::app {

// Where the answer goes, and so what it looks like.
struct Screen {
  bool is_terminal = false;  // tables; otherwise JSON
  std::size_t columns = 80;  // of the terminal

  // Of this process's standard output.
  static Screen Find();
};

// Asks a running server and returns what to print: a table on a terminal, one line of JSON
// otherwise and with --json. Exit code 0: answered; 1: the command line is mistaken, or the server
// refused; 2: no server answers.
Done Ask(const AskOptions& options, const Screen& screen);

// What `who` asks about, as the server takes it.
struct Place {
  std::string pattern;
  bool literal = true;

  bool operator==(const Place&) const = default;
};

// `path` as people give it: a path means itself; a directory, or a path that ends in "/", means
// everything below it; and a path with wildcards that is no file is a pattern.
//
// The root is the project when its name is an absolute path, else that of the git work tree around
// `here`, the current directory. A relative path is seen from `here` when that lies below the root,
// and from the root otherwise; an absolute path below the root becomes relative to it, also one
// that leads there through symbolic links. kInvalidArgument: "../" leads out of the root.
Result<Place> PlaceOf(const AskOptions& options, const std::filesystem::path& here);

// "45s", "12m", "3h05m", "2d": how long, with no more digits than a glance can take.
std::string Roughly(Duration duration);

}  // namespace interlock::app
