#include "service/signs_of_life.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace interlock::service {
namespace {

// No agent has a longer id, and no key a longer project.
constexpr std::size_t kNameBytesMax = 256;

bool IsTooLong(const SignsOfLife::Name& name) {
  return name.agent.size() > kNameBytesMax || name.project.value_or("").size() > kNameBytesMax;
}

std::optional<std::string> Owned(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  return std::string(*text);
}

}  // namespace

std::size_t SignsOfLife::Hash::operator()(const Name& name) const {
  constexpr std::size_t kOdd = 0x9E37'79B9'7F4A'7C15U;
  const std::hash<std::string_view> hash;
  return hash(name.agent) + (name.project ? kOdd * (hash(*name.project) | 1U) : 0);
}

void SignsOfLife::Seen(Name name) {
  if (IsTooLong(name)) return;
  const Timestamp now = clock_.Now();
  MutexLock lock(mutex_);
  if (entries_.size() >= agents_max_ && !entries_.contains(name)) return;
  Raise(name, now);
}

SignsOfLife::Stream SignsOfLife::Open(Name name) {
  if (IsTooLong(name)) return {};
  const Timestamp now = clock_.Now();
  MutexLock lock(mutex_);
  Entry& entry = Raise(name, now);
  ++entry.streams;
  return {*this, entry};
}

SignsOfLife::Entry& SignsOfLife::Raise(const Name& name, Timestamp now) {
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    const Key key{std::string(name.agent), Owned(name.project)};
    found = entries_.emplace(key, Entry{.at = now}).first;
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

Timestamp SignsOfLife::Newest(std::string_view agent_id, std::string_view project,
                              Timestamp stored) const {
  const Timestamp now = clock_.Now();
  Timestamp newest = stored;
  MutexLock lock(mutex_);
  for (const Name& name : {Name{agent_id}, Name{agent_id, project}}) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) continue;
    newest = std::max(newest, found->second.at);
    if (found->second.streams > 0) newest = std::max(newest, now);
  }
  return newest;
}

std::vector<std::string> SignsOfLife::Remembered() const {
  std::vector<std::string> agents;
  {
    MutexLock lock(mutex_);
    agents.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) agents.push_back(key.agent);
  }
  std::ranges::sort(agents);
  agents.erase(std::ranges::unique(agents).begin(), agents.end());
  return agents;
}

std::vector<SignsOfLife::Sign> SignsOfLife::TakeUnsaved() {
  const Timestamp now = clock_.Now();
  std::vector<Sign> unsaved;
  MutexLock lock(mutex_);
  for (auto next = entries_.begin(); next != entries_.end();) {
    const Key& key = next->first;
    Entry& entry = next->second;
    const bool is_new = entry.at > entry.saved;
    if (entry.streams > 0 && (is_new || now - entry.saved >= kStreamSavePeriod)) {
      entry.at = std::max(entry.at, now);
    }
    if (entry.at > entry.saved) unsaved.push_back({key.agent, key.project, entry.at});
    const bool is_done = entry.at <= entry.saved && entry.streams == 0;
    next = is_done ? entries_.erase(next) : std::next(next);
  }
  return unsaved;
}

void SignsOfLife::MarkSaved(std::span<const Sign> signs) {
  MutexLock lock(mutex_);
  for (const Sign& sign : signs) {
    const auto found = entries_.find(Name{sign.agent, sign.project});
    if (found == entries_.end()) continue;
    found->second.saved = std::max(found->second.saved, sign.at);
  }
}

}  // namespace interlock::service
