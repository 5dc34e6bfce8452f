#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "service/storage.h"

namespace interlock::service {

// Is the server fit to serve? The storage must answer a ping in time; an open breaker means that
// it answers now but failed a moment ago, so most requests are still refused.
//
// Thread-safe.
class Health {
 public:
  struct Report {
    enum class Status : std::uint8_t { kOk, kDegraded };
    Status status = Status::kOk;
    // Each "closed", "open" or "half_open"; "unknown" without storage. The first is the worse of
    // the others.
    std::string_view circuit_breaker = "unknown";
    std::string_view circuit_breaker_read = "unknown";
    std::string_view circuit_breaker_write = "unknown";
    std::optional<Error> ping_error;  // the storage did not answer: unfit to serve
    Timestamp started_at;
  };

  // `storage` may be null (nothing to check); it must outlive this.
  Health(Storage* storage, Clock& clock, Duration ping_budget)
      : storage_(storage), ping_budget_(ping_budget), started_at_(clock.Now()) {}

  boost::asio::awaitable<Report> Check();

 private:
  Storage* const storage_;
  const Duration ping_budget_;
  const Timestamp started_at_;
};

}  // namespace interlock::service
