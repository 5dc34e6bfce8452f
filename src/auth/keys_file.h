#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "auth/keyring.h"
#include "base/id.h"
#include "base/result.h"
#include "base/secret.h"

// The keys file on disk. Whoever reads it finds a whole one at any moment, also after a kill or a
// power cut: new content is written beside it, synced, and put in its place in one step. What a
// killed writer leaves beside it ("<name>.new-…", mode 0600) nobody reads.
namespace interlock::auth {

struct LoadedKeys {
  enum class Exposure : std::uint8_t {
    kPrivate,
    kOpenToOthers,  // its mode lets users besides the owner read or write it
  };
  Keyring keyring;
  Exposure exposure = Exposure::kPrivate;
  bool blank = false;  // the file holds nothing at all
};

// Reads the file. kNotFound when there is none; else errors name the file and, for its content, the
// line, and never show a key.
Result<LoadedKeys> LoadKeys(const std::filesystem::path& path);

// Makes the file when there is none: one key for the project "dev", requests from this machine
// allowed without, mode 0600. Returns the key; nothing when something of that name is there, which
// is never touched. Of several processes that start at once exactly one makes it.
Result<std::optional<Secret>> BootstrapKeys(const std::filesystem::path& path,
                                            RandomSource& random);

// Adds a new key for `project` and returns it. What is in the file stays, except comments; mode and
// owner stay, and a symbolic link goes on pointing to the file. Made with mode 0600 when missing.
// Fails, with the file as it was, when it is not a good keys file. Several at once are all kept.
//
// REQUIRES: `project` is trimmed and not empty.
Result<Secret> AppendKey(const std::filesystem::path& path, std::string_view project,
                         RandomSource& random);

}  // namespace interlock::auth
