#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "auth/keyring.h"
#include "base/id.h"
#include "base/result.h"
#include "base/secret.h"

// The keys file on disk. A reader always finds a complete file, even after a kill or a power
// failure: new content is written to a temporary file, synced and renamed. Nobody reads the
// temporary file that a killed writer leaves behind ("<name>.new-…", mode 0600).
namespace interlock::auth {

struct LoadedKeys {
  enum class Exposure : std::uint8_t {
    kPrivate,
    kOpenToOthers,  // other users may read or write it
  };
  Keyring keyring;
  Exposure exposure = Exposure::kPrivate;
  bool blank = false;  // the file is empty, or contains only white space
};

// Reads the file. kNotFound if it does not exist. Other errors name the file and, for a mistake in
// its content, the line; they never show a key.
Result<LoadedKeys> LoadKeys(const std::filesystem::path& path);

// Creates the file if it does not exist: one key for the project "dev", requests from this machine
// allowed without a key, mode 0600. Returns the key, or nullopt if the name exists; an existing
// file is never changed. Of several concurrent processes exactly one creates it.
Result<std::optional<Secret>> BootstrapKeys(const std::filesystem::path& path,
                                            RandomSource& random);

// Adds a new key for `project` and returns it. Keeps the other content except comments, the mode,
// the owner, and a symlink to the file. Creates a missing file with mode 0600. If the file is
// invalid, fails and does not change it. Concurrent calls lose no key.
//
// REQUIRES: `project` is trimmed and not empty.
Result<Secret> AppendKey(const std::filesystem::path& path, std::string_view project,
                         RandomSource& random);

}  // namespace interlock::auth
