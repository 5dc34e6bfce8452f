#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

// Which file the database of `ic` is. Only looks; makes nothing. Safe from any thread.
namespace interlock::kernel {

// What decides it, strongest first.
struct Wish {
  std::optional<std::string> flag;         // --db
  std::optional<std::string> environment;  // INTERCORE_DB
  std::filesystem::path directory;         // where the program runs; absolute
};

// --db must end in .db, hold no "..", and lie below the directory, also when symlinks on its way
// are followed: a hook that pastes a stranger's text into it reaches nothing else. The directory
// goes by any of its names, and the path that comes out has its real one. INTERCORE_DB is the
// user's own and may lie anywhere. Without either it is the first .clavain/intercore.db from the
// directory upwards, and when there is none, the one that would be made in the directory.
// kInvalidArgument names the rule that was broken.
//
// A directory of the file that is a symlink is refused later, when it is opened.
Result<std::filesystem::path> Locate(const Wish& wish);

}  // namespace interlock::kernel
