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

// The ordered phases of a run: at least two, without duplicates. A run begins in the first phase
// and is completed when it reaches the last. The chain does not know the current phase of a run. A
// value type: threads may share an unchanged one.
class PhaseChain {
 public:
  // The phases of a run that defines none: brainstorm … done.
  static PhaseChain Default();
  // Parses a JSON array of names made of [a-zA-Z0-9_-]. kInvalidArgument or kBadJson on a mistake.
  static Result<PhaseChain> Parse(std::string_view json);

  const std::vector<std::string>& names() const { return names_; }
  std::size_t size() const { return names_.size(); }
  const std::string& operator[](std::size_t i) const { return names_[i]; }
  const std::string& first() const { return names_.front(); }
  const std::string& last() const { return names_.back(); }
  std::optional<std::size_t> Find(std::string_view name) const;

  // Returns the phase after `from`, passing over the phases in `skipped` but never over the last.
  // REQUIRES: from + 1 < size()
  std::size_t Next(std::size_t from, const PhaseNames& skipped) const;
  // Returns the names after `after`, up to and including `up_to`.
  std::vector<std::string> Between(std::size_t after, std::size_t up_to) const;
  // The inverse of Parse().
  std::string Text() const;

 private:
  explicit PhaseChain(std::vector<std::string> names) : names_(std::move(names)) {}

  std::vector<std::string> names_;
};

}  // namespace interlock::kernel
