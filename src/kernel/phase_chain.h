#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace interlock::kernel {

using PhaseNames = std::set<std::string, std::less<>>;

// The phases that a run goes through, in order: at least two, no name twice. It begins in the first
// and is completed when it reaches the last. A value; knows nothing of where a run stands. Threads
// may share one that nobody changes.
class PhaseChain {
 public:
  // brainstorm … done: what a run has unless it names its own.
  static PhaseChain Default();
  // A JSON array of names of [a-zA-Z0-9_-]. kInvalidArgument or kBadJson says what is wrong.
  static Result<PhaseChain> Parse(std::string_view json);

  const std::vector<std::string>& names() const { return names_; }
  std::size_t size() const { return names_.size(); }
  const std::string& operator[](std::size_t i) const { return names_[i]; }
  const std::string& first() const { return names_.front(); }
  const std::string& last() const { return names_.back(); }
  std::optional<std::size_t> Find(std::string_view name) const;

  // Where the step from `from` leads: over the phases in `skipped`, but never over the last.
  // REQUIRES: from + 1 < size()
  std::size_t Next(std::size_t from, const PhaseNames& skipped) const;
  // The names of those behind `after`, `up_to` included.
  std::vector<std::string> Between(std::size_t after, std::size_t up_to) const;
  // As Parse() reads it.
  std::string Text() const;

 private:
  explicit PhaseChain(std::vector<std::string> names) : names_(std::move(names)) {}

  std::vector<std::string> names_;
};

}  // namespace interlock::kernel
