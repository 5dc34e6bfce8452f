#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

// Chooses the database file of `ic`. Creates nothing. Safe from any thread.
namespace interlock::kernel {

// The inputs of the choice, highest priority first.
struct DatabasePathInputs {
  std::optional<std::string> flag;         // --db
  std::optional<std::string> environment;  // INTERCORE_DB
  std::filesystem::path directory;         // the current directory; absolute
};

// --db must end in .db, contain no "..", and lie below the directory even after symlinks are
// resolved, so that untrusted text in --db cannot reach other files. The directory may be named
// through symlinks; the returned path has its real name. INTERCORE_DB may name any path, because
// the user sets it. Without both, the result is the first .clavain/intercore.db in the directory or
// its parents, or else the one that `ic init` would create in the directory. kInvalidArgument names
// the violated rule.
//
// A symlinked parent directory is rejected later, when the file is opened.
Result<std::filesystem::path> LocateDatabase(const DatabasePathInputs& inputs);

}  // namespace interlock::kernel
