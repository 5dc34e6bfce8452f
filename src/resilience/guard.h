#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "resilience/breaker.h"
#include "resilience/retry.h"

namespace interlock::resilience {

// The single entry point to storage. The breaker is outside and the retry inside, so an operation
// counts once regardless of its number of tries, and an open breaker rejects calls at no cost.
//
// The result of the last try decides the report to the breaker; a timeout of the caller does not:
//   infrastructure (IsInfrastructure)          failure; kBusy only after all retries
//   a full disk, alone or as `cause`           brief failure: space may be freed at any moment
//   success, or a mistake of the caller        success: storage answered
//   kCancelled, kUnavailable                   nothing: the operation did not run
//   kInternal, an exception, a lost try        abandoned: failure if it was a probe, else nothing
//
// Thread-safe; breaker and retry must outlive it and its operations.
class Guard {
 public:
  Guard(Breaker& breaker, Retry& retry) : breaker_(breaker), retry_(retry) {}

  // Same as Retry::Run(). If the breaker rejects the call, `done` receives kCircuitOpen on the
  // calling thread before this returns, and `begin` is not called.
  Call Run(Operation operation, Done done) {
    Result<Breaker::Permit> permit = breaker_.Enter();
    if (!permit.ok()) {
      done(std::move(permit).error());
      return {};
    }
    return retry_.Run(std::move(operation), std::move(done),
                      [permit = std::move(*permit)](const Result<void>& last) mutable {
                        Report(std::move(permit), last);
                      });
  }

 private:
  // By value, so that an unreported permit is abandoned when this returns.
  static void Report(Breaker::Permit permit, const Result<void>& last) {
    if (last.ok()) return std::move(permit).Succeed();
    const Errc code = last.error().code();
    if (IsDiskFull(last.error())) return std::move(permit).FailBriefly();
    if (IsInfrastructure(code)) return std::move(permit).Fail();
    switch (code) {
      case Errc::kCancelled:
      case Errc::kUnavailable:
        return std::move(permit).Withdraw();
      case Errc::kInternal:
        return;
      default:
        return std::move(permit).Succeed();
    }
  }

  static bool IsDiskFull(const Error& error) {
    if (error.code() == Errc::kDiskFull) return true;
    const Error::Value full = std::string(Describe(Errc::kDiskFull).slug);
    return error.code() == Errc::kOutcomeUnknown &&
           std::ranges::any_of(error.details(), [&full](const auto& detail) {
             return detail.first == "cause" && detail.second == full;
           });
  }

  Breaker& breaker_;
  Retry& retry_;
};

}  // namespace interlock::resilience
