#include "service/signs_of_life.h"

#include <algorithm>
#include <iterator>

namespace interlock::service {
void SignsOfLife::Seen(std::string_view agent_id) {
  const Timestamp now = clock_.Now();
  MutexLock lock(mutex_);
  if (entries_.size() >= agents_max_ && !entries_.contains(agent_id)) return;
  Raise(agent_id, now);
}

SignsOfLife::Stream SignsOfLife::Open(std::string_view agent_id) {
  const Timestamp now = clock_.Now();
  MutexLock lock(mutex_);
  Entry& entry = Raise(agent_id, now);
  ++entry.streams;
  return {*this, entry};
}

SignsOfLife::Entry& SignsOfLife::Raise(std::string_view agent_id, Timestamp now) {
  auto found = entries_.find(agent_id);
  if (found == entries_.end()) {
    found = entries_.emplace(std::string(agent_id), Entry{.at = now}).first;
  }
  found->second.at = std::max(found->second.at, now);
  return found->second;
}

void SignsOfLife::Close(Entry& entry) {
  const Timestamp now = clock_.Now();
  MutexLock lock(mutex_);
  entry.at = std::max(entry.at, now);
  --entry.streams;
}

Timestamp SignsOfLife::Newest(std::string_view agent_id, Timestamp stored) const {
  const Timestamp now = clock_.Now();
  MutexLock lock(mutex_);
  const auto found = entries_.find(agent_id);
  if (found == entries_.end()) return stored;
  const Entry& entry = found->second;
  const Timestamp seen = entry.streams > 0 ? std::max(entry.at, now) : entry.at;
  return std::max(stored, seen);
}

std::vector<std::string> SignsOfLife::Remembered() const {
  std::vector<std::string> agents;
  {
    MutexLock lock(mutex_);
    agents.reserve(entries_.size());
    for (const auto& [id, entry] : entries_) agents.push_back(id);
  }
  std::ranges::sort(agents);
  return agents;
}

std::vector<SignsOfLife::Sign> SignsOfLife::TakeUnsaved() {
  const Timestamp now = clock_.Now();
  std::vector<Sign> unsaved;
  MutexLock lock(mutex_);
  for (auto next = entries_.begin(); next != entries_.end();) {
    Entry& entry = next->second;
    const bool is_new = entry.at > entry.saved;
    if (entry.streams > 0 && (is_new || now - entry.saved >= kStreamSavePeriod)) {
      entry.at = std::max(entry.at, now);
    }
    if (entry.at > entry.saved) unsaved.push_back({next->first, entry.at});
    const bool is_done = entry.at <= entry.saved && entry.streams == 0;
    next = is_done ? entries_.erase(next) : std::next(next);
  }
  return unsaved;
}

void SignsOfLife::MarkSaved(std::span<const Sign> signs) {
  MutexLock lock(mutex_);
  for (const Sign& sign : signs) {
    const auto found = entries_.find(sign.agent);
    if (found == entries_.end()) continue;
    found->second.saved = std::max(found->second.saved, sign.at);
  }
}

}  // namespace interlock::service
