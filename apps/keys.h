#pragma once

#include <filesystem>
#include <optional>

#include "auth/keyring.h"
#include "auth/keyring_holder.h"
#include "base/id.h"
#include "base/log.h"
#include "base/result.h"
#include "http/socket.h"

// What the server does with its keys file.
namespace interlock::app {

// Where a person looks: standard output or standard error, whichever is a terminal.
class Terminal {
 public:
  // Looks at the two once.
  static Terminal Find();
  // `fd` is taken for a terminal; nothing = there is none. For tests.
  explicit Terminal(std::optional<int> fd) : fd_(fd) {}

  // False when there is no terminal.
  bool Show(std::string_view text) const;

  // True when there was one and its window was closed.
  bool HungUp() const;

 private:
  std::optional<int> fd_;
};

// Makes the keys file if there is none, and reads it. A new key is shown on the terminal and
// nowhere else. A file that cannot be made, or that git would add, is only a warning, since this
// machine needs no key; one that cannot be read is an error.
Result<auth::Keyring> OpenKeys(const std::filesystem::path& path, RandomSource& random,
                               const Terminal& terminal, Clock& clock, Logger& log);

// Reads the file again and puts it in force; when that fails, also because it is gone, the old keys
// stay. The log says which.
void ReloadKeys(const std::filesystem::path& path, auth::KeyringHolder& holder, Logger& log);

// Refuses a socket that other machines can reach when nobody there could show a key.
Result<void> RefuseWithoutKeys(const http::ListeningSocket& socket, const auth::Keyring& keyring);

}  // namespace interlock::app
