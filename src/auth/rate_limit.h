#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string_view>

#include "auth/sha256.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace interlock::auth {

// Counts how often each of many keys does something, and refuses what is too often. A window begins
// with a key's first hit; it ends when more than its length has passed, and the next hit begins
// another. Hits that were refused count too.
//
// Bounded: when there is no room for another key, the window that began first is forgotten, and its
// key may hit anew. Keys are kept as digests, so that a long one takes no more room.
//
// Thread-safe.
class RateLimit {
 public:
  struct Options {
    std::int64_t hits_max;  // per key and window
    std::chrono::seconds window{60};
    std::size_t keys_max = 65'536;
  };

  // The clock must outlive it.
  RateLimit(Clock& clock, Options options);

  // Counts one hit. Nothing when it is allowed, else the time until the window ends: at least one
  // second, rounded up. A key made of several texts must be such that no two combinations make the
  // same one.
  std::optional<std::chrono::seconds> Hit(std::string_view key) IL_EXCLUDES(mutex_);

  // Windows that are remembered, also ended ones.
  std::size_t size() const IL_EXCLUDES(mutex_);

 private:
  struct Window {
    Digest key;
    Duration begin;
    std::int64_t hits;
  };

  Clock& clock_;
  const Options options_;
  mutable Mutex mutex_;
  std::list<Window> windows_ IL_GUARDED_BY(mutex_);  // in the order of their begin
  std::map<Digest, std::list<Window>::iterator> by_key_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::auth
