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

// The keys that open the server, each to one project. It holds their SHA-256 only, so that neither
// its memory nor the time of a comparison tells a key. Made from a keys file:
//
//   default_policy:
//     allow_localhost_without_auth: true        # optional; true when absent
//   projects:
//     dev:
//       keys:
//         - <key in clear>
//         - sha256:<64 hexadecimal digits>      # the hash of a key, which then stands nowhere
//
// Immutable, hence safe to share between threads.
class Keyring {
 public:
  // What an empty file means: no keys, and this machine needs none.
  Keyring() = default;

  // Reads the text of a keys file. Keys are trimmed, blank ones skipped, unknown fields ignored.
  // Fails, with the line and never with a key, on text that is not such a file, on aliases, on a
  // key that stands under two projects (also when one of them is hashed) and on a project that
  // stands there twice.
  static Result<Keyring> Parse(std::string_view yaml);

  // The project that a key opens; nothing when no such key is there. The time depends on the number
  // of keys only, not on which one matches nor on how much of it.
  std::optional<std::string> Find(std::string_view key) const;
  std::optional<std::string> FindDigest(const Digest& digest) const;  // of a key

  // True when every key of `other` opens the same project here.
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
