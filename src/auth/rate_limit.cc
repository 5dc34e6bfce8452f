#include "auth/rate_limit.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace interlock::auth {

RateLimit::RateLimit(Clock& clock, Options options) : clock_(clock), options_(options) {
  IL_CHECK(options_.keys_max > 0);
  IL_CHECK(options_.window > std::chrono::seconds(0));
}

std::optional<std::chrono::seconds> RateLimit::Hit(std::string_view key) {
  const Digest digest = Sha256(key);
  const MutexLock lock(mutex_);
  const Duration now = clock_.Monotonic();  // under the lock, so that windows_ stays sorted
  const auto ended = [&](const Window& window) { return now - window.begin > options_.window; };
  while (!windows_.empty() && ended(windows_.front())) {
    by_key_.erase(windows_.front().key);
    windows_.pop_front();
  }
  auto found = by_key_.find(digest);
  if (found == by_key_.end()) {
    if (windows_.size() == options_.keys_max) {
      by_key_.erase(windows_.front().key);
      windows_.pop_front();
    }
    windows_.push_back({.key = digest, .begin = now, .hits = 0});
    found = by_key_.emplace(digest, std::prev(windows_.end())).first;
  }
  Window& window = *found->second;
  if (window.hits++ < options_.hits_max) return std::nullopt;
  const Duration rest = window.begin + options_.window - now;
  return std::max(std::chrono::ceil<std::chrono::seconds>(rest), std::chrono::seconds(1));
}

std::size_t RateLimit::size() const {
  const MutexLock lock(mutex_);
  return windows_.size();
}

}  // namespace interlock::auth
