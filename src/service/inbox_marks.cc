#include "service/inbox_marks.h"

#include <algorithm>
#include <utility>

#include "service/inbox_key.h"

namespace interlock::service {

bool InboxMarks::EndsBy(std::string_view project, std::string_view agent, domain::Cursor cursor) {
  const std::string key = InboxKey(project, agent);
  MutexLock lock(mutex_);
  const auto mark = marks_.find(key);
  return mark != marks_.end() && mark->second <= cursor && cursor <= seen_;
}

void InboxMarks::Delivered(std::string_view project, std::string_view agent,
                           domain::Cursor cursor) {
  std::string key = InboxKey(project, agent);
  MutexLock lock(mutex_);
  delivered_ = std::max(delivered_, cursor);
  Raise(std::move(key), cursor);
}

void InboxMarks::Learn(std::string_view project, std::string_view agent, domain::InboxEnd end) {
  if (project.size() + agent.size() > kInboxKeyBytesMax) return;
  std::string key = InboxKey(project, agent);
  MutexLock lock(mutex_);
  seen_ = std::max(seen_, end.seen);
  if (end.seen >= forgotten_) Raise(std::move(key), end.last);
}

void InboxMarks::Raise(std::string key, domain::Cursor cursor) {
  if (marks_.size() >= inboxes_max_ && !marks_.contains(key)) {
    marks_.clear();
    forgotten_ = delivered_;
  }
  domain::Cursor& mark = marks_.try_emplace(std::move(key), cursor).first->second;
  mark = std::max(mark, cursor);
}

}  // namespace interlock::service
