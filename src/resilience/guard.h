#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "resilience/breaker.h"
#include "resilience/retry.h"

namespace interlock::resilience {

// The one choke point around storage: breaker outside, retry inside, so that an operation counts
// once however often it was tried, and an open breaker costs its callers nothing.
//
// What the breaker is told (judged by the last try, not by the caller's patience):
//   infrastructure (IsInfrastructure)          failure; busy only gets here after all retries
//   a full disk, alone or as `cause`           brief failure: space may come back at any moment
//   success, and what a caller did wrong       success: storage answered
//   kCancelled, kUnavailable                   nothing: it was never tried, or nobody cared
//   kInternal, a throw, a try that is lost     abandoned: failure of a probe, otherwise nothing
//
// Thread-safe; breaker and retry must outlive it and its operations.
class Guard {
 public:
  Guard(Breaker& breaker, Retry& retry) : breaker_(breaker), retry_(retry) {}

  // As Retry::Run(). When the breaker refuses, `done` hears kCircuitOpen on the calling thread
  // before this returns, and `begin` is not called.
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
  // By value, so that a permit nobody reports on is abandoned at the end.
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
