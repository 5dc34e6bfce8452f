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

// Limits the number of hits per key and time window. A window starts with the first hit of a key
// and ends after its length; the next hit starts a new one. Rejected hits count too.
//
// Bounded: if there is no room for another key, the oldest window is dropped, and its key starts
// again. Keys are stored as digests, so that a long key needs no more memory.
//
// Thread-safe.
class RateLimit {
 public:
  struct Options {
    std::int64_t hits_max;  // per key and window
    std::chrono::seconds window{60};
    std::size_t keys_max = 65'536;
  };

  // The clock must outlive this object.
  RateLimit(Clock& clock, Options options);

  // Counts one hit. Returns nullopt if it is allowed, else the time until the window ends, rounded
  // up to at least one second. A key that combines several texts must be unambiguous.
  std::optional<std::chrono::seconds> Hit(std::string_view key) IL_EXCLUDES(mutex_);

  // The number of stored windows, including ended ones.
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
  std::list<Window> windows_ IL_GUARDED_BY(mutex_);  // sorted by begin
  std::map<Digest, std::list<Window>::iterator> by_key_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::auth
