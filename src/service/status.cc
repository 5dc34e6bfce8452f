#include "service/status.h"

#include <chrono>
#include <utility>

#include "service/await.h"
#include "service/feed.h"
#include "service/reservations.h"
#include "service/storage.h"

namespace interlock::service {

boost::asio::awaitable<Result<Status::Report>> Status::Read(std::optional<std::string> project) {
  const Timestamp now = clock_.Now();
  const Timestamp seen_after = now - options_.heartbeat_grace;
  const auto count = [this, project, now, seen_after](Storage::DoneWith<store::StatusCounts> done) {
    return storage_.Peek<store::StatusCounts>(
        options_.budget,
        [this, project, now, seen_after](db::Connection& connection) {
          return store::CountStatus(connection, project, now, seen_after, storage_.signs());
        },
        std::move(done));
  };
  const Result<store::StatusCounts> counts = co_await Await<store::StatusCounts>(count);
  const auto breaker = resilience::ToString(storage_.breaker_state());
  const auto read = resilience::ToString(storage_.breaker_state(Storage::Verb::kRead));
  const auto write = resilience::ToString(storage_.breaker_state(Storage::Verb::kWrite));
  if (!counts.ok()) {
    Error error = counts.error();
    co_return std::move(error)
        .WithDetail("circuit_breaker", std::string(breaker))
        .WithDetail("circuit_breaker_read", std::string(read))
        .WithDetail("circuit_breaker_write", std::string(write));
  }
  const Duration up = clock_.Monotonic() - start_;
  co_return Report{.now = now,
                   .heartbeat_grace = options_.heartbeat_grace,
                   .uptime_seconds = std::chrono::duration_cast<std::chrono::seconds>(up).count(),
                   .circuit_breaker = breaker,
                   .circuit_breaker_read = read,
                   .circuit_breaker_write = write,
                   .counts = *counts,
                   .waiting = static_cast<std::int64_t>(reservations_.CountWaiting(project)),
                   .cursor = feed_.stats().published};
}

}  // namespace interlock::service
