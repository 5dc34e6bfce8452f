#include "service/health.h"

#include <utility>

#include "service/await.h"

namespace interlock::service {

boost::asio::awaitable<Health::Report> Health::Check() {
  Report report;
  report.started_at = started_at_;
  if (storage_ == nullptr) co_return report;

  auto ping = [this](Storage::Done done) { return storage_->Ping(ping_budget_, std::move(done)); };
  Result<void> pinged = co_await Await<void>(ping);
  const resilience::Breaker::State breaker = storage_->breaker_state();
  report.circuit_breaker = resilience::ToString(breaker);
  report.circuit_breaker_read = resilience::ToString(storage_->breaker_state(Storage::Verb::kRead));
  report.circuit_breaker_write =
      resilience::ToString(storage_->breaker_state(Storage::Verb::kWrite));
  if (!pinged.ok()) report.ping_error = std::move(pinged).error();
  if (report.ping_error || breaker == resilience::Breaker::State::kOpen) {
    report.status = Report::Status::kDegraded;
  }
  co_return report;
}

}  // namespace interlock::service
