#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

// The directory that all locks lie in. It may stand in /tmp, where everybody can make entries, so
// it is walked to step by step, and what lies in it is named relative to the open directory.
// Stateless, so safe from any thread.
namespace interlock::kernel {

inline constexpr std::string_view kLockBaseDefault = "/tmp/intercore/locks";

enum class IfNoBase : std::uint8_t { kMake, kFail };

// The base, open. Directories that are missing are made, 0700.
//
// Refused (kForbidden, with what to do) is what others could tamper with: a base of another user,
// root's included, since everything in it is its owner's to change; one that is reached through a
// directory which another user made where everybody can, root's excepted, who could do so anyway;
// and symlinks, except root's on the way to it (a linked /tmp). kInvalidArgument: not an absolute
// path. kNotFound: there
// is none; with kMake, somebody removed it just then.
Result<UniqueFd> OpenLockBase(const std::string& base, IfNoBase if_none);

// A directory in `parent`, open; never through a symlink. Errors as above.
Result<UniqueFd> OpenLockDirectory(int parent, const std::string& name, IfNoBase if_none);

// What a failed call of the system means: "doing what: No space left on device". As all errors here
// it says in its detail "do" what to do.
Error LockSystemError(int error, std::string_view what);

}  // namespace interlock::kernel
