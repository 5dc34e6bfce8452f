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
    std::string_view circuit_breaker;  // "closed", "open", "half_open"; "unknown" without storage
    std::optional<Error> ping_error;   // the storage did not answer: unfit to serve
    std::int64_t uptime_seconds = 0;
  };

  // `storage` may be null (nothing to check); it and the clock must outlive this.
  Health(Storage* storage, Clock& clock, Duration ping_budget)
      : storage_(storage), clock_(clock), ping_budget_(ping_budget), start_(clock.Monotonic()) {}

  boost::asio::awaitable<Report> Check();

 private:
  Storage* const storage_;
  Clock& clock_;
  const Duration ping_budget_;
  const Duration start_;
};

}  // namespace interlock::service
