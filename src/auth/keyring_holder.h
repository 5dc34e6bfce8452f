#pragma once

#include <memory>
#include <utility>

#include "auth/keyring.h"
#include "base/mutex.h"

namespace interlock::auth {

// The keyring that is in force. A reload puts another in its place; whoever took the old one keeps
// it for as long as it is looked at, so no request sees half of each.
//
// Thread-safe. (A std::atomic<std::shared_ptr> spins on a lock of its own that g++ 12's thread
// sanitizer cannot see.)
class KeyringHolder {
 public:
  explicit KeyringHolder(Keyring keyring) : keyring_(Share(std::move(keyring))) {}

  // Never null.
  std::shared_ptr<const Keyring> Get() const IL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return keyring_;
  }

  void Set(Keyring keyring) IL_EXCLUDES(mutex_) {
    auto replacement = Share(std::move(keyring));
    const MutexLock lock(mutex_);
    keyring_.swap(replacement);  // the old one dies after the lock, should it be the last
  }

 private:
  static std::shared_ptr<const Keyring> Share(Keyring keyring) {
    return std::make_shared<const Keyring>(std::move(keyring));
  }

  mutable Mutex mutex_;
  std::shared_ptr<const Keyring> keyring_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::auth
