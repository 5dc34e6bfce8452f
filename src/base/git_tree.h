#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

// Git work trees. Stateless, so safe from any thread.
namespace interlock {

// The root of the work tree around `directory`: the nearest directory upwards with a ".git", which
// is a directory or, in a linked work tree and in a submodule, a file. Nothing outside a work tree.
std::optional<std::filesystem::path> FindGitRoot(const std::filesystem::path& directory);

enum class Hidden : std::uint8_t {
  kAlready,  // also for files outside a work tree
  kNow,
};

// Makes `git status` and `git add` pass over these files and over names that extend theirs
// ("x.db-wal", "x.db.lock"). The files need not exist; a file that git tracks stays tracked.
//
// The patterns are added to info/exclude of the repository, which is part of this clone and never
// committed. Nothing else is written, and a pattern is written once. Errors name that file:
// kReadOnly, kCantOpen, or kForbidden when the repository belongs to another user.
Result<Hidden> HideFromGit(const std::vector<std::filesystem::path>& files);

// HideFromGit(), and then asks the git program whether `git add -A` passes over the file: a
// .gitignore may include it in spite of info/exclude, and a tracked file is always added. Without a
// git program the result of HideFromGit() counts. kForbidden: git would add the file, or does not
// answer. Waits for git, at most two seconds.
Result<void> EnsureIgnoredByGit(const std::filesystem::path& file, Clock& clock);

}  // namespace interlock
