#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "domain/event.h"
#include "store/status.h"

namespace interlock::service {

class Feed;
class Reservations;
class Storage;

// What goes on right now, in numbers, for people who look after a server.
//
// Thread-safe. It looks past the breaker, so that it also tells how things are while the breaker is
// open.
class Status {
 public:
  struct Options {
    Duration heartbeat_grace = std::chrono::minutes(5);  // an agent seen since then is alive
    Duration budget = std::chrono::seconds(2);           // for the database
  };

  // All must outlive it.
  Status(Storage& storage, Reservations& reservations, Feed& feed, Clock& clock, Options options)
      : storage_(storage),
        reservations_(reservations),
        feed_(feed),
        clock_(clock),
        options_(options),
        start_(clock.Monotonic()) {}

  struct Report {
    Timestamp now = {};
    Duration heartbeat_grace = {};
    std::int64_t uptime_seconds = 0;
    std::string_view circuit_breaker;  // "closed", "open", "half_open": the worse of the others
    std::string_view circuit_breaker_read;
    std::string_view circuit_breaker_write;
    store::StatusCounts counts;
    std::int64_t waiting = 0;   // requests that wait for a reservation
    domain::Cursor cursor = 0;  // of the newest event, in all projects
  };

  // The numbers of one project, or (nothing) of all. When the database does not answer: why, with
  // the states of the breakers as details of the names above.
  boost::asio::awaitable<Result<Report>> Read(std::optional<std::string> project);

 private:
  Storage& storage_;
  Reservations& reservations_;
  Feed& feed_;
  Clock& clock_;
  const Options options_;
  const Duration start_;
};

}  // namespace interlock::service
