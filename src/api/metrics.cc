#include "api/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "api/app.h"
#include "api/prometheus.h"
#include "api/route.h"
#include "service/agents.h"
#include "service/reservations.h"

namespace interlock::api {
namespace {

using Type = PrometheusText::Type;

// Every status that the server sends. A status besides these would be counted as "other".
constexpr std::array kStatuses = {101, 200, 201, 204, 301, 400, 401, 403, 404, 405,
                                  408, 409, 410, 413, 426, 429, 431, 500, 503};
static_assert(std::same_as<Duration, std::chrono::microseconds>);
constexpr std::size_t kOther = kStatuses.size();

constexpr std::size_t kMethods = static_cast<std::size_t>(Method::kOther) + 1;
constexpr std::size_t kBuckets = std::size(Metrics::kBucketsMicros) + 1;  // and what took longer

std::size_t StatusIndex(int status) {
  return static_cast<std::size_t>(std::ranges::find(kStatuses, status) - kStatuses.begin());
}

std::size_t BucketIndex(Duration took) {
  const auto* const bound = std::ranges::lower_bound(Metrics::kBucketsMicros, took.count());
  return static_cast<std::size_t>(bound - std::begin(Metrics::kBucketsMicros));
}

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

using Counter = std::atomic<std::uint64_t>;

std::uint64_t Load(const Counter& counter) { return counter.load(std::memory_order_relaxed); }

// The counters are independent of each other and of everything else, so no order is needed.
void AddTo(Counter& counter, std::uint64_t amount) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

void AddQueue(PrometheusText& text, std::string_view name, const ServerNumbers::Queue& writer,
              const ServerNumbers::Queue& readers, std::uint64_t ServerNumbers::Queue::* member,
              Type type, std::string_view help) {
  text.Family(name, type, help);
  text.Add(writer.*member, {{"queue", "writer"}});
  text.Add(readers.*member, {{"queue", "readers"}});
}

void AddStorage(PrometheusText& text, const ServerNumbers& numbers) {
  using Queue = ServerNumbers::Queue;
  const auto queue = [&](std::string_view name, std::uint64_t Queue::* member, Type type,
                         std::string_view help) {
    AddQueue(text, name, numbers.write_queue, numbers.read_queue, member, type, help);
  };
  queue("intermute_storage_queue_depth", &Queue::depth, Type::kGauge,
        "Requests that wait for a storage thread.");
  queue("intermute_storage_queue_depth_max", &Queue::depth_max, Type::kGauge,
        "The most that ever waited.");
  queue("intermute_storage_refused_total", &Queue::refused, Type::kCounter,
        "Requests turned away because their queue was full or closing.");
  queue("intermute_storage_cancelled_total", &Queue::cancelled, Type::kCounter,
        "Requests that nobody wanted any more before they began.");

  const ServerNumbers::Writer& writer = numbers.writer;
  text.Family("intermute_storage_writes_total", Type::kCounter, "Writes by how they ended.");
  text.Add(writer.committed, {{"result", "committed"}});
  text.Add(writer.failed, {{"result", "failed"}});
  text.Add(writer.unknown, {{"result", "unknown"}});
  text.Family("intermute_storage_batch_writes", Type::kSummary, "Writes that shared one commit.");
  text.Add(writer.committed, {}, "_sum");
  text.Add(writer.commits, {}, "_count");
  text.Single("intermute_storage_batch_writes_max", Type::kGauge,
              "The most that shared one commit.", writer.batch_size_max);
  text.Family("intermute_storage_commit_duration_seconds", Type::kSummary,
              "Time inside COMMIT, which is mostly the disk's.");
  text.Add(Seconds(writer.commit_time_sum), {}, "_sum");
  text.Add(writer.commits, {}, "_count");
  text.Single("intermute_storage_commit_duration_seconds_max", Type::kGauge, "The longest COMMIT.",
              Seconds(writer.commit_time_max));
  text.Single("intermute_storage_reopened_total", Type::kCounter,
              "How often the writer's connection was opened anew after a failure.",
              writer.reopened);
  text.Single("intermute_circuit_breaker_state", Type::kGauge,
              "0 closed, 1 open, 2 half-open: the worse of reads and writes.",
              numbers.breaker_state);
  text.Single("intermute_circuit_breaker_read_state", Type::kGauge, "The same, of reads.",
              numbers.breaker_read_state);
  text.Single("intermute_circuit_breaker_write_state", Type::kGauge, "The same, of writes.",
              numbers.breaker_write_state);
  text.Single("intermute_circuit_breaker_opened_total", Type::kCounter,
              "How often a circuit breaker opened.", numbers.breaker_opened);
}

void AddEvents(PrometheusText& text, const ServerNumbers& numbers, const Counted& counted) {
  text.Single("intermute_event_cursor", Type::kGauge, "The cursor of the newest event.",
              numbers.event_cursor);
  text.Single("intermute_websocket_consumers", Type::kGauge, "WebSockets that are open.",
              numbers.websocket.consumers);
  text.Single("intermute_websocket_lagged_total", Type::kCounter,
              "WebSockets closed because they could not keep up.", numbers.websocket.lagged);
  text.Single("intermute_reservation_waiters", Type::kGauge,
              "Requests that wait for reserved files.", numbers.reservation_waiters);
  if (counted.agents_alive) {
    text.Single("intermute_agents_alive", Type::kGauge,
                "Agents seen within five minutes; absent when storage does not answer.",
                static_cast<std::uint64_t>(*counted.agents_alive));
  }
  if (counted.reservations_active) {
    text.Single("intermute_reservations_active", Type::kGauge,
                "Reservations that hold; absent when storage does not answer.",
                static_cast<std::uint64_t>(*counted.reservations_active));
  }
}

void AddProcess(PrometheusText& text, const ServerNumbers& numbers, Duration uptime) {
  text.Single("intermute_connections_open", Type::kGauge, "Connections that are served.",
              numbers.connections);
  text.Single("intermute_uptime_seconds", Type::kGauge, "Since the server was built.",
              Seconds(uptime));
  text.Family("intermute_build_info", Type::kGauge, "Always 1; its labels say what runs.");
  text.Add(std::uint64_t{1}, {{"version", numbers.version}, {"commit", numbers.commit}});
  if (numbers.process.resident_bytes) {
    text.Single("process_resident_memory_bytes", Type::kGauge, "Memory that is in use.",
                *numbers.process.resident_bytes);
  }
  if (numbers.process.open_files) {
    text.Single("process_open_fds", Type::kGauge, "File descriptors that are open.",
                *numbers.process.open_files);
  }
  if (numbers.process.cpu_seconds) {
    text.Single("process_cpu_seconds_total", Type::kCounter, "Processor time used.",
                *numbers.process.cpu_seconds);
  }
}

boost::asio::awaitable<Result<Response>> GetMetrics(App& app, Request& /*request*/) {
  Counted counted;
  if (const auto count = co_await app.agents.CountActive(); count.ok()) {
    counted.agents_alive = *count;
  }
  if (const auto count = co_await app.reservations.CountActive(); count.ok()) {
    counted.reservations_active = *count;
  }
  Response response;
  response.headers.Add("Content-Type", std::string(PrometheusText::kContentType));
  response.body = app.metrics.Text(counted);
  co_return response;
}

constexpr std::array kRoutes = {
    Route{.method = Method::kGet,
          .path = "/metrics",
          .handler = GetMetrics,
          .summary = "Numbers about the server, as text for Prometheus.",
          .answer_type = "text/plain"},
};

}  // namespace

// A cache line of its own, so that two routes do not slow each other down.
struct alignas(64) Metrics::Slot {
  std::array<Counter, kStatuses.size() + 1> statuses = {};
  std::array<Counter, kBuckets> buckets = {};
  Counter micros = 0;

  bool used() const {
    return std::ranges::any_of(statuses, [](const Counter& counter) { return Load(counter) > 0; });
  }
};

Metrics::Metrics(std::span<const Route> routes, Clock& clock, Source source)
    : routes_(routes),
      clock_(clock),
      source_(std::move(source)),
      start_(clock.Monotonic()),
      slots_(routes.size() + kMethods) {}

Metrics::~Metrics() = default;

void Metrics::Record(const Route* route, Method method, int status, Duration took) {
  std::size_t index = routes_.size() + static_cast<std::size_t>(method);
  const std::less_equal<> in_order;  // an order even among pointers into different tables
  if (!routes_.empty() && in_order(routes_.data(), route) && in_order(route, &routes_.back())) {
    index = static_cast<std::size_t>(route - routes_.data());
  }
  Slot& slot = slots_[index];
  AddTo(slot.statuses[StatusIndex(status)], 1);
  AddTo(slot.buckets[BucketIndex(took)], 1);
  AddTo(slot.micros, static_cast<std::uint64_t>(std::max(took, Duration::zero()).count()));
}

Metrics::Labels Metrics::LabelsOf(std::size_t slot) const {
  if (slot < routes_.size()) return {MethodName(routes_[slot].method), routes_[slot].path};
  const std::string_view name = MethodName(static_cast<Method>(slot - routes_.size()));
  return {name.empty() ? "other" : name, "none"};
}

void Metrics::AddRequests(PrometheusText& text) const {
  text.Family("intermute_http_requests_total", Type::kCounter,
              "Requests answered, by route and status.");
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Labels labels = LabelsOf(i);
    for (std::size_t s = 0; s <= kOther; ++s) {
      const std::uint64_t count = Load(slots_[i].statuses[s]);
      if (count == 0) continue;
      const std::string status = s == kOther ? "other" : std::to_string(kStatuses[s]);
      text.Add(count, {{"method", labels.method}, {"route", labels.route}, {"status", status}});
    }
  }
}

void Metrics::AddLatencies(PrometheusText& text) const {
  text.Family("intermute_http_request_duration_seconds", Type::kHistogram,
              "From the whole request to its answer, without the network.");
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (!slot.used()) continue;
    const Labels labels = LabelsOf(i);
    std::uint64_t below = 0;
    for (std::size_t b = 0; b < kBuckets; ++b) {
      below += Load(slot.buckets[b]);
      const std::string bound =
          b + 1 == kBuckets ? "+Inf" : fmt::format("{}", double(kBucketsMicros[b]) / 1e6);
      text.Add(below, {{"method", labels.method}, {"route", labels.route}, {"le", bound}},
               "_bucket");
    }
    text.Add(double(Load(slot.micros)) / 1e6, {{"method", labels.method}, {"route", labels.route}},
             "_sum");
    text.Add(below, {{"method", labels.method}, {"route", labels.route}}, "_count");
  }
}

std::string Metrics::Text(const Counted& counted) const {
  const ServerNumbers numbers = source_();
  PrometheusText text;
  AddRequests(text);
  AddLatencies(text);
  AddStorage(text, numbers);
  AddEvents(text, numbers, counted);
  AddProcess(text, numbers, clock_.Monotonic() - start_);
  return std::move(text).Take();
}

std::span<const Route> MetricsRoutes() { return kRoutes; }

}  // namespace interlock::api
