#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace interlock::kernel {

// The content of a file that was named by somebody who may know less than they think: it must lie
// under `directory`, be a regular file of at most `most` bytes, and no part of its path below the
// directory may be a symlink. Each part is opened from the one before, so nobody can put a symlink
// there between the look and the opening. `path` may be absolute; ".." is worked out as text.
//
// kForbidden: it leads elsewhere, or is no regular file. kCantOpen: it is not there, or not ours to
// read. kPayloadTooLarge, kIo. Every error has a detail "do". Stateless, so safe from any thread.
Result<std::string> ReadFileUnder(const std::filesystem::path& directory, std::string_view path,
                                  std::size_t most);

}  // namespace interlock::kernel
