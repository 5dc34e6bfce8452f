#include "service/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <utility>
#include <vector>

#include "domain/reservation.h"

namespace interlock::service {
namespace {

// Agents of one name that are looked at, those with the newest stored times. The time that counts
// may be a remembered one, so there are more than can matter at once.
constexpr std::int64_t kSameNameMax = 1024;
constexpr std::size_t kIdsInErrorMax = 16;

Error Ambiguous(std::string_view name, const std::vector<store::AgentCard>& active) {
  std::string ids;
  for (const store::AgentCard& card : active | std::views::take(kIdsInErrorMax)) {
    if (!ids.empty()) ids += ' ';
    ids += card.id;
  }
  std::string message =
      fmt::format("{} agents named {} are active; use the id of the one you mean: {}.",
                  active.size(), name, ids);
  return Error(Errc::kConflict, std::move(message))
      .WithSlug("ambiguous_recipient")
      .WithDetail("agent_ids", std::move(ids));
}

}  // namespace

Result<AddressBook::Found> AddressBook::Find(db::Connection& connection, Project project,
                                             std::string_view text, Timestamp now) {
  IL_TRY(Found by_id, store::FindCard(connection, text));
  if (by_id) {
    Remember(by_id->id, by_id->project);
    return by_id;
  }
  return FindNamed(connection, project, text, now);
}

Result<AddressBook::Found> AddressBook::FindNamed(db::Connection& connection, Project project,
                                                  std::string_view name, Timestamp now) {
  IL_TRY(Named named, FindAll(connection, project, name, now));
  if (named.active.size() > 1) return Ambiguous(name, named.active);
  return named.active.empty() ? std::move(named.newest) : Found(std::move(named.active.front()));
}

Result<AddressBook::Found> AddressBook::FindKeeper(db::Connection& connection,
                                                   std::string_view project, std::string_view text,
                                                   Timestamp now) {
  IL_TRY(Found by_id, store::FindCard(connection, text));
  if (by_id) return by_id;
  IL_TRY(const Named named, FindAll(connection, project, text, now));
  return KeeperAmong(named);
}

AddressBook::Found AddressBook::KeeperAmong(const Named& named) {
  if (named.active.empty()) return named.newest;
  return *std::ranges::min_element(named.active, {}, &store::AgentCard::id);
}

Result<AddressBook::Named> AddressBook::FindAll(db::Connection& connection, Project project,
                                                std::string_view name, Timestamp now) {
  IL_TRY(auto cards, store::FindByName(connection, project, name, kSameNameMax));
  Named named = {.active = {}, .newest = {}, .count = cards.size()};
  for (store::AgentCard& card : cards) {
    card.last_seen = sightings_.Newest(card.id, card.last_seen);
    if (domain::StateOf(card.last_seen, now, options_.grace) == domain::HolderState::kActive) {
      named.active.push_back(card);
    }
  }
  const auto newest = std::ranges::max_element(cards, {}, &store::AgentCard::last_seen);
  if (newest != cards.end()) named.newest = std::move(*newest);
  return named;
}

Result<std::string> AddressBook::IdOf(db::Connection& connection, Project project,
                                      const std::string& text, Timestamp now) {
  IL_TRY(const bool is_name, IsName(connection, text));
  if (!is_name) return text;
  IL_TRY(Found found, FindNamed(connection, project, text, now));
  if (!found) return text;
  return std::move(found->id);
}

Result<bool> AddressBook::IsName(db::Connection& connection, const std::string& text) {
  if (text.empty() || Remembers(text)) return false;
  IL_TRY(const store::TextUse use, store::FindTextUse(connection, text));
  if (use.is_id) Remember(text, use.project);
  return !use.is_id && use.is_name;
}

Result<AddressBook::Owner> AddressBook::OwnerOf(db::Connection& connection, Project project,
                                                const std::string& text, Timestamp now) {
  IL_TRY(Found found, Find(connection, project, text, now));
  if (!found) return Owner{.agent = text};
  Owner owner = {.agent = std::move(found->id)};
  owner.may_change = owner.agent != text;
  const bool here = !project || *project == found->project;
  if (!here || !found->living || found->name.empty()) return owner;
  // Mail under a text that is an id is that agent's, whoever else uses the text as a name.
  IL_TRY(const store::TextUse use, store::FindTextUse(connection, found->name));
  if (use.is_id) return owner;
  IL_TRY(const Named named, FindAll(connection, found->project, found->name, now));
  if (named.count > 1) owner.may_change = true;
  const Found keeper = KeeperAmong(named);
  const bool keeps = keeper && keeper->id == owner.agent;
  if (keeps) owner.also = {std::move(found->project), std::move(found->name)};
  return owner;
}

bool AddressBook::Remembers(const std::string& id) {
  MutexLock lock(mutex_);
  return ids_.contains(id);
}

std::optional<std::string> AddressBook::ProjectIfRemembered(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = ids_.find(id);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

void AddressBook::Remember(const std::string& id, const std::string& project) {
  MutexLock lock(mutex_);
  if (ids_.size() >= options_.ids_max) ids_.clear();
  ids_.try_emplace(id, project);
}

}  // namespace interlock::service
