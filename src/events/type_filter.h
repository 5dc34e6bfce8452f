#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::events {

// The event types that a consumer receives. A value type.
class TypeFilter {
 public:
  TypeFilter() = default;                                      // every type
  explicit TypeFilter(const std::vector<std::string>& types);  // these types; empty = every type

  bool Accepts(std::string_view type) const { return types_.contains(type) == only_; }
  bool AcceptsAll() const { return !only_ && types_.empty(); }

  // Adds these types. If the filter accepts every type, it then accepts only these. An empty list
  // changes nothing.
  void Subscribe(const std::vector<std::string>& types);
  // Removes these types.
  void Unsubscribe(const std::vector<std::string>& types);

  // Returns the number of stored types.
  std::size_t size() const { return types_.size(); }

 private:
  bool only_ = false;  // true: types_ are accepted; false: types_ are rejected
  std::set<std::string, std::less<>> types_;
};

}  // namespace interlock::events
