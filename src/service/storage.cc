#include "service/storage.h"

#include <string_view>
#include <utility>

#include "store/ping.h"

namespace interlock::service {
namespace {

// `fn` is shared by the tries of one operation instead of being copied for each.
resilience::Operation ReadOperation(db::Database& database, db::Database::ReadFn fn,
                                    Duration budget) {
  auto shared = std::make_shared<db::Database::ReadFn>(std::move(fn));
  return {.begin =
              [&database, shared](db::Database::Done done) {
                return database.Read(
                    [shared](db::Connection& connection) { return (*shared)(connection); },
                    std::move(done));
              },
          .cancel = [&database](db::Database::Ticket ticket) { return database.Cancel(ticket); },
          .effect = resilience::Effect::kNone,
          .budget = budget};
}

resilience::Operation WriteOperation(db::Database& database, db::Database::WriteFn fn,
                                     Duration budget) {
  auto shared = std::make_shared<db::Database::WriteFn>(std::move(fn));
  return {.begin =
              [&database, shared](db::Database::Done done) {
                return database.Write(
                    [shared](db::Transaction& transaction) { return (*shared)(transaction); },
                    std::move(done));
              },
          .cancel = [&database](db::Database::Ticket ticket) { return database.Cancel(ticket); },
          .effect = resilience::Effect::kChanges,
          .budget = budget};
}

resilience::Breaker::Options BreakerOptions(resilience::Breaker::Options options,
                                            std::string_view calls) {
  options.calls = calls;
  return options;
}

resilience::Breaker::OnChange TellOf(Storage::Verb verb, const Storage::OnBreakerChange& tell) {
  if (!tell) return nullptr;
  return [verb, tell](resilience::Breaker::State from, resilience::Breaker::State to) {
    tell(verb, from, to);
  };
}

}  // namespace

Storage::Storage(db::Database& database, Clock& clock, Options options)
    : database_(database),
      budget_(options.budget),
      read_breaker_(clock, BreakerOptions(options.breaker, "reads"),
                    TellOf(Verb::kRead, options.on_breaker_change)),
      write_breaker_(clock, BreakerOptions(options.breaker, "writes"),
                     TellOf(Verb::kWrite, options.on_breaker_change)),
      retry_(clock, options.retry, options.random),
      peek_(clock, {.retries_max = 0}, options.random),
      read_guard_(read_breaker_, retry_),
      write_guard_(write_breaker_, retry_),
      inboxes_(options.inboxes_max),
      signs_(clock),
      addresses_(options.addresses, signs_),
      in_place_(std::move(options.in_place)) {}

Storage::Call Storage::Read(ReadFn fn, Done done) {
  return read_guard_.Run(ReadOperation(database_, std::move(fn), budget_), std::move(done));
}

Storage::Call Storage::Write(WriteFn fn, Done done) {
  return write_guard_.Run(WriteOperation(database_, std::move(fn), budget_), std::move(done));
}

Storage::Call Storage::Peek(Duration budget, ReadFn fn, Done done) {
  return peek_.Run(ReadOperation(database_, std::move(fn), budget), std::move(done));
}

Storage::Call Storage::Ping(Duration budget, Done done) {
  return Peek(budget, store::Ping, std::move(done));
}

resilience::Breaker::State Storage::breaker_state() const {
  using State = resilience::Breaker::State;
  const State read = breaker_state(Verb::kRead);
  const State write = breaker_state(Verb::kWrite);
  for (const State worst : {State::kOpen, State::kHalfOpen}) {
    if (read == worst || write == worst) return worst;
  }
  return State::kClosed;
}

void Storage::Stop() {
  retry_.Stop();
  peek_.Stop();
}

}  // namespace interlock::service
