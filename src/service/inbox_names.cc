#include "service/inbox_names.h"

#include <algorithm>
#include <utility>

#include "service/inbox_key.h"

namespace interlock::service {

std::optional<InboxNames::Boxes> InboxNames::Find(std::string_view project, std::string_view text) {
  const std::string key = InboxKey(project, text);
  MutexLock lock(mutex_);
  const auto found = boxes_.find(key);
  if (found == boxes_.end()) return std::nullopt;
  return found->second;
}

void InboxNames::Learn(std::string_view project, std::string_view text, Boxes boxes,
                       domain::Cursor seen) {
  if (project.size() + text.size() > kInboxKeyBytesMax) return;
  std::string key = InboxKey(project, text);
  MutexLock lock(mutex_);
  if (seen < changed_) return;
  const bool full = boxes_.size() >= texts_max_ || owners_.size() >= texts_max_;
  if (full && !boxes_.contains(key)) {
    boxes_.clear();
    owners_.clear();
  }
  if (!boxes.bare_name.empty()) owners_.insert_or_assign(InboxKey(project, boxes.bare_name), key);
  boxes_.insert_or_assign(std::move(key), std::move(boxes));
}

void InboxNames::Changed(std::string_view project, std::string_view id, std::string_view name,
                         domain::Cursor cursor) {
  const std::string by_id = InboxKey(project, id);
  const std::string by_name = InboxKey(project, name);
  MutexLock lock(mutex_);
  changed_ = std::max(changed_, cursor);
  boxes_.erase(by_id);
  boxes_.erase(by_name);
  const auto owner = owners_.find(by_name);
  if (owner == owners_.end()) return;
  boxes_.erase(owner->second);
  owners_.erase(owner);
}

}  // namespace interlock::service
