#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

// The base directory of all locks. It may lie in /tmp, where every user can create entries, so its
// path is opened component by component, and its entries are opened relative to the open directory.
// Stateless, so safe from any thread.
namespace interlock::kernel {

inline constexpr std::string_view kLockBaseDefault = "/tmp/intercore/locks";

enum class IfMissing : std::uint8_t { kCreate, kFail };

// Opens the base directory. with kCreate, creates missing directories with mode 0700.
//
// kForbidden (with a remedy): other users could tamper with the locks. This is the case if
// - the base itself belongs to another user, even root: its owner can change everything in it;
// - another user (except root) created a directory on the path in a world-writable directory;
// - a component is a symlink, except one of root before the last component (a linked /tmp).
// kInvalidArgument: the path is not absolute. kNotFound: the base does not exist; with kCreate,
// another process removed it at the same moment.
Result<UniqueFd> OpenLockBase(const std::string& base, IfMissing if_none);

// Opens a directory in `parent`, never through a symlink. Errors as above.
Result<UniqueFd> OpenLockDirectory(int parent, const std::string& name, IfMissing if_none);

// Converts an errno: "opening /x: No space left on device". Like all errors here, it has a remedy
// in its detail "do".
Error LockSystemError(int error, std::string_view what);

}  // namespace interlock::kernel
