#pragma once

#include <cstdint>

namespace interlock::glob {

// How much comparing one request may cause, in steps of one machine word; a pure count, so that
// the same request is refused everywhere or nowhere. Share one Budget among all that a request
// parses and compares. Not thread-safe.
class Budget {
 public:
  // Chosen to last at most 10 ms (glob_bench prints how long it does); two typical patterns need
  // about five hundred steps.
  static constexpr std::int64_t kStepsDefault = 2'000'000;

  explicit Budget(std::int64_t steps = kStepsDefault) : left_(steps) {}

  // False once more was asked for than there was; it then stays so.
  bool Spend(std::int64_t steps) {
    left_ -= steps;
    return left_ >= 0;
  }
  std::int64_t left() const { return left_ < 0 ? 0 : left_; }

 private:
  std::int64_t left_;
};

}  // namespace interlock::glob
