#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/sha256.h"
#include "base/result.h"

namespace interlock::auth {

// Whether a request from this machine needs a key.
enum class LocalPolicy : std::uint8_t { kNoKeyNeeded, kKeyNeeded };

// The keys of the server; each opens one project. It stores only their SHA-256, so that neither its
// memory nor the time of a comparison reveals a key. Built from a keys file:
//
//   default_policy:
//     allow_localhost_without_auth: true        # optional; true when absent
//   projects:
//     dev:
//       keys:
//         - <key in clear>
//         - sha256:<64 hexadecimal digits>      # the hash of a key, without the key itself
//
// Immutable, hence safe to share between threads.
class Keyring {
 public:
  // The keyring of an empty file: no keys, and this machine needs none.
  Keyring() = default;

  // Parses the text of a keys file. Trims keys, skips blank ones, and ignores unknown fields. An
  // error names the line and never shows a key. Errors are: an invalid file, aliases, a key under
  // two projects (even if one of them is hashed), and a duplicate project.
  static Result<Keyring> Parse(std::string_view yaml);

  // Returns the project that a key opens, or nullopt for an unknown key. The time depends only on
  // the number of keys, not on which key matches or how much of it.
  std::optional<std::string> Find(std::string_view key) const;
  std::optional<std::string> FindDigest(const Digest& digest) const;  // of a key

  // True if every key of `other` opens the same project here.
  bool Includes(const Keyring& other) const;

  LocalPolicy local_policy() const { return local_policy_; }
  std::size_t key_count() const { return keys_.size(); }
  std::size_t project_count() const { return projects_.size(); }  // with keys

 private:
  class Reader;
  struct Key {
    Digest digest;
    std::size_t project;  // index of projects_
  };

  LocalPolicy local_policy_ = LocalPolicy::kNoKeyNeeded;
  std::vector<std::string> projects_;
  std::vector<Key> keys_;
};

}  // namespace interlock::auth
