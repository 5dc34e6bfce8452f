#include "events/type_filter.h"

namespace interlock::events {

TypeFilter::TypeFilter(const std::vector<std::string>& types) { Subscribe(types); }

void TypeFilter::Subscribe(const std::vector<std::string>& types) {
  if (types.empty()) return;
  if (AcceptsAll()) only_ = true;
  for (const std::string& type : types) {
    if (only_) {
      types_.insert(type);
    } else {
      types_.erase(type);
    }
  }
}

void TypeFilter::Unsubscribe(const std::vector<std::string>& types) {
  for (const std::string& type : types) {
    if (only_) {
      types_.erase(type);
    } else {
      types_.insert(type);
    }
  }
}

}  // namespace interlock::events
