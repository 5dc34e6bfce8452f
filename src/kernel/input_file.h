#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace interlock::kernel {

// Reads a file whose name comes from untrusted input. The file must be a regular file under
// `directory` with at most `most` bytes, and no part of its path below `directory` may be a
// symlink. Each part is opened relative to the part before it, so nobody can swap in a symlink
// between check and open. `path` may be absolute; ".." is resolved as text.
//
// kForbidden: the path leaves the directory, or is not a regular file. kCantOpen: the file does not
// exist or is not readable. Also kPayloadTooLarge and kIo. Every error has a detail "do".
// Stateless, so safe from any thread.
Result<std::string> ReadFileUnder(const std::filesystem::path& directory, std::string_view path,
                                  std::size_t most);

}  // namespace interlock::kernel
