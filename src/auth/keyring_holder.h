#pragma once

#include <memory>
#include <utility>

#include "auth/keyring.h"
#include "base/mutex.h"

namespace interlock::auth {

// The current keyring. A reload replaces it; a caller of Get() keeps the old keyring while it uses
// it, so no request sees a mixture.
//
// Thread-safe. (std::atomic<std::shared_ptr> uses an internal spin lock that the thread sanitizer
// of g++ 12 does not understand.)
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
    keyring_.swap(replacement);  // the old keyring is destroyed after the lock is released
  }

 private:
  static std::shared_ptr<const Keyring> Share(Keyring keyring) {
    return std::make_shared<const Keyring>(std::move(keyring));
  }

  mutable Mutex mutex_;
  std::shared_ptr<const Keyring> keyring_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::auth
