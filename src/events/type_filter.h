#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::events {

// Which types of events a consumer hears. A value.
class TypeFilter {
 public:
  TypeFilter() = default;                                      // every type
  explicit TypeFilter(const std::vector<std::string>& types);  // these; none = every type

  bool Hears(std::string_view type) const { return types_.contains(type) == only_; }
  bool HearsAll() const { return !only_ && types_.empty(); }

  // These types too; only these, if it hears every type so far. None changes nothing.
  void Subscribe(const std::vector<std::string>& types);
  // No longer these types.
  void Unsubscribe(const std::vector<std::string>& types);

  // How many types it remembers.
  std::size_t size() const { return types_.size(); }

 private:
  bool only_ = false;  // types_ are what it hears, or else what it does not
  std::set<std::string, std::less<>> types_;
};

}  // namespace interlock::events
