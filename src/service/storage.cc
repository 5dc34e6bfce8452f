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

Error Overwritten() {
  return Error(Errc::kUnavailable,
               "The database file holds another database than the one that the server opened. Stop "
               "the server, which may spoil that file, then put the right file in its place and "
               "start the server again.")
      .WithSlug("cannot_open");
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
      in_place_(std::move(options.in_place)),
      log_id_(std::move(options.log_id)) {}

Storage::Call Storage::Read(ReadFn fn, Done done) {
  if (overwritten_) {
    done(Overwritten());
    return {};
  }
  return read_guard_.Run(ReadOperation(database_, std::move(fn), budget_), std::move(done));
}

Storage::Call Storage::Write(WriteFn fn, Done done) {
  if (overwritten_) {
    done(Overwritten());
    return {};
  }
  return write_guard_.Run(WriteOperation(database_, std::move(fn), budget_), std::move(done));
}

Storage::Call Storage::Peek(Duration budget, ReadFn fn, Done done) {
  if (overwritten_) {
    done(Overwritten());
    return {};
  }
  return peek_.Run(ReadOperation(database_, std::move(fn), budget), std::move(done));
}

Storage::Call Storage::Ping(Duration budget, Done done) {
  const auto check = [this](db::Connection& connection) { return CheckLogId(connection); };
  return peek_.Run(ReadOperation(database_, check, budget), std::move(done));
}

Result<void> Storage::CheckLogId(db::Connection& connection) {
  IL_TRY(const std::string found, store::Ping(connection));
  if (!log_id_.empty() && found != log_id_) overwritten_ = true;
  if (overwritten_) return Overwritten();
  return {};
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
