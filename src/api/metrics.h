#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/request.h"
#include "base/clock.h"

namespace interlock::api {

struct Route;
class PrometheusText;

// What the rest of the server tells when somebody asks for the metrics; main() knows where from.
struct ServerNumbers {
  struct Queue {
    std::uint64_t depth = 0;
    std::uint64_t depth_max = 0;
    std::uint64_t refused = 0;
    std::uint64_t cancelled = 0;
  };
  struct Writer {
    std::uint64_t commits = 0;    // successful ones
    std::uint64_t committed = 0;  // writes in them
    std::uint64_t failed = 0;
    std::uint64_t unknown = 0;
    std::uint64_t reopened = 0;
    std::uint64_t batch_size_max = 0;
    Duration commit_time_sum{0};
    Duration commit_time_max{0};
  };
  struct WebSocket {
    std::uint64_t consumers = 0;
    std::uint64_t lagged = 0;  // closed because they could not keep up
  };
  // Of this process; nothing where the system does not say.
  struct Process {
    std::optional<std::uint64_t> resident_bytes;
    std::optional<std::uint64_t> open_files;
    std::optional<double> cpu_seconds;
  };

  std::string_view version;
  std::string_view commit;
  Queue write_queue;
  Queue read_queue;
  Writer writer;
  std::uint64_t breaker_state = 0;  // 0 closed, 1 open, 2 half-open: the worse of the next two
  std::uint64_t breaker_read_state = 0;
  std::uint64_t breaker_write_state = 0;
  std::uint64_t breaker_opened = 0;  // of both
  std::uint64_t connections = 0;
  std::uint64_t event_cursor = 0;
  std::uint64_t reservation_waiters = 0;
  WebSocket websocket;
  Process process;
};

// What only storage knows; nothing when it does not answer.
struct Counted {
  std::optional<std::int64_t> agents_alive = {};
  std::optional<std::int64_t> reservations_active = {};
};

// Counts every request by route and status and how long it took, and writes it all down, with the
// numbers of the rest of the server, as text for Prometheus.
//
// Thread-safe. Recording takes no lock and allocates nothing: a few relaxed additions on cache
// lines that only requests of the same route share. The labels are those of the route table, so
// no request can make the text grow: what fits no route is counted under "none".
class Metrics {
 public:
  using Source = std::function<ServerNumbers()>;

  // `routes` (what the router was built from) and `clock` must outlive it. `source` is asked
  // whenever the text is made, from any thread.
  Metrics(std::span<const Route> routes, Clock& clock, Source source);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Duration Now() const { return clock_.Monotonic(); }

  // One request was answered. A `route` that is none of `routes`, such as null, counts as "none".
  void Record(const Route* route, Method method, int status, Duration took);

  // `agents_alive`: how many agents were seen lately; nothing when that is not known.
  std::string Text(const Counted& counted) const;

  // Upper bounds of the histograms' buckets, in microseconds: from a look into memory to the time
  // after which storage gives up.
  static constexpr std::int64_t kBucketsMicros[] = {
      100,    250,     500,     1'000,   2'500,     5'000,     10'000,    25'000,
      50'000, 100'000, 250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000};

 private:
  struct Slot;
  struct Labels {
    std::string_view method;
    std::string_view route;
  };

  Labels LabelsOf(std::size_t slot) const;
  void AddRequests(PrometheusText& text) const;
  void AddLatencies(PrometheusText& text) const;

  const std::span<const Route> routes_;
  Clock& clock_;
  const Source source_;
  const Duration start_;
  std::vector<Slot> slots_;  // one per route, then one per method for what fits none
};

// GET /metrics
std::span<const Route> MetricsRoutes();

}  // namespace interlock::api
