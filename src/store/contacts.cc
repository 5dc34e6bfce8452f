#include "store/contacts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "json/object_text.h"

namespace interlock::store {
namespace {

// contacts' primary key.
constexpr db::Sql kList = "SELECT contact_id FROM contacts WHERE agent_id = ?1 ORDER BY contact_id";

// contacts' primary key.
constexpr db::Sql kAdd =
    "INSERT INTO contacts (agent_id, contact_id, created_at) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (agent_id, contact_id) DO NOTHING";

// contacts' primary key.
constexpr db::Sql kRemove = "DELETE FROM contacts WHERE agent_id = ?1 AND contact_id = ?2";

// agents' primary key. A list of ids is filled up by repeating the last one, in the shortest form
// that holds it: SQLite sorts them all before it looks.
#define IL_POLICIES                                                                  \
  "id, contact_policy, live_contact_policy, project, name, deregistered_at IS NULL " \
  "FROM agents WHERE id IN "
constexpr std::size_t kIdsPerStatement = 64;
constexpr db::Sql kPoliciesOfOne = "SELECT " IL_POLICIES "(?1)";
constexpr db::Sql kPoliciesOf8 = "SELECT " IL_POLICIES "(?1,?2,?3,?4,?5,?6,?7,?8)";
constexpr db::Sql kPoliciesOf64 =
    "SELECT " IL_POLICIES
    "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,"
    "?26,?27,?28,?29,?30,?31,?32,?33,?34,?35,?36,?37,?38,?39,?40,?41,?42,?43,?44,?45,?46,?47,?48,"
    "?49,?50,?51,?52,?53,?54,?55,?56,?57,?58,?59,?60,?61,?62,?63,?64)";
#undef IL_POLICIES

// The primary keys of agents, contacts and thread_members. ?1 = the recipient, ?2 = the sender, ?5
// = the sender as it was sent.
constexpr db::Sql kRelations =
    "SELECT EXISTS (SELECT 1 FROM contacts WHERE agent_id = id AND contact_id IN (?2, ?5)), "
    "EXISTS (SELECT 1 FROM thread_members "
    "WHERE project = ?3 AND thread_id = ?4 AND agent = id AND posted = 1), "
    "EXISTS (SELECT 1 FROM thread_members WHERE project = ?3 AND thread_id = ?4 AND agent = ?2) "
    "FROM agents WHERE id = ?1";

// agents_living, and contacts' primary key.
constexpr db::Sql kAudienceFacts =
    "SELECT id, contact_policy, live_contact_policy, "
    "EXISTS (SELECT 1 FROM contacts WHERE agent_id = id AND contact_id IN (?2, ?3)) "
    "FROM agents WHERE project = ?1 AND deregistered_at IS NULL AND id <> ?2 "
    "ORDER BY last_seen, id";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kList),        IL_SQL(kAdd),          IL_SQL(kRemove),    IL_SQL(kPoliciesOfOne),
    IL_SQL(kPoliciesOf8), IL_SQL(kPoliciesOf64), IL_SQL(kRelations), IL_SQL(kAudienceFacts),
};

// Of a row whose second and third column they are.
domain::Policies PoliciesFrom(const db::Row& row) {
  const domain::Policies defaults;
  return {.mail = domain::ParseContactPolicy(row.Text(1)).value_or(defaults.mail),
          .live = domain::ParseContactPolicy(row.Text(2)).value_or(defaults.live)};
}

// The statement for a list of that length, and how many ids it takes.
std::pair<db::Sql, std::size_t> PoliciesOf(std::size_t length) {
  if (length == 1) return {kPoliciesOfOne, 1};
  if (length <= 8) return {kPoliciesOf8, 8};
  return {kPoliciesOf64, kIdsPerStatement};
}

// Calls `take` with a row of policies for each of these agents that is registered.
Result<void> ForEachPolicies(db::Connection& connection, std::span<const std::string> agents,
                             const db::Connection::OnRow& take) {
  std::array<db::Value, kIdsPerStatement> values;
  while (!agents.empty()) {
    const auto chunk = agents.first(std::min(agents.size(), kIdsPerStatement));
    const auto [sql, ids] = PoliciesOf(chunk.size());
    for (std::size_t i = 0; i < ids; ++i) {
      values[i] = std::string_view(chunk[std::min(i, chunk.size() - 1)]);
    }
    IL_TRY_VOID(connection.Execute(sql, std::span(values).first(ids), take));
    agents = agents.subspan(chunk.size());
  }
  return {};
}

// Does anything but its policy decide whether mail reaches it?
bool Asks(domain::Policies policies, const RecipientQuery& query) {
  constexpr auto kOpen = domain::ContactPolicy::kOpen;
  return policies.mail != kOpen || (query.live && policies.live != kOpen);
}

Result<void> FindRelations(db::Connection& connection, const RecipientQuery& query,
                           RecipientFacts& facts) {
  std::optional<std::string_view> thread;  // nothing: NULL, which no thread equals
  if (!query.thread_id.empty()) thread = query.thread_id;
  IL_TRY_VOID(connection.ForEach(
      kRelations,
      [&facts](const db::Row& row) {
        facts.sender_is_contact = row.Bool(0);
        facts.posted_in_thread = row.Bool(1);
        facts.sender_is_in_thread = row.Bool(2);
      },
      facts.agent, query.sender, query.project, thread, query.sender_text));
  return {};
}

}  // namespace

Result<std::vector<std::string>> ListContacts(db::Connection& connection,
                                              std::string_view agent_id) {
  std::vector<std::string> contacts;
  IL_TRY_VOID(connection.ForEach(
      kList, [&](const db::Row& row) { contacts.push_back(row.String(0)); }, agent_id));
  return contacts;
}

Result<bool> AddContact(db::Transaction& tx, std::string_view agent_id, std::string_view contact_id,
                        Timestamp now) {
  IL_TRY(const std::int64_t changed, tx->Run(kAdd, agent_id, contact_id, now.micros));
  return changed > 0;
}

Result<bool> RemoveContact(db::Transaction& tx, std::string_view agent_id,
                           std::string_view contact_id) {
  IL_TRY(const std::int64_t changed, tx->Run(kRemove, agent_id, contact_id));
  return changed > 0;
}

std::string ContactJson(std::string_view contact_id) {
  return json::ObjectText().Add("contact", contact_id).Text();
}

Result<std::vector<RecipientFacts>> FindRecipientFacts(db::Connection& connection,
                                                       const RecipientQuery& query,
                                                       std::span<const std::string> recipients) {
  std::vector<RecipientFacts> all;
  all.reserve(recipients.size());
  std::unordered_multimap<std::string_view, std::size_t> places;  // in `all`, by id
  for (const std::string& id : recipients) {
    places.emplace(id, all.size());
    all.push_back({.agent = id});
  }
  const auto take = [&](const db::Row& row) {
    const bool hidden = query.agents_of && row.Text(3) != *query.agents_of;
    const auto [begin, end] = places.equal_range(row.Text(0));
    for (auto place = begin; place != end; ++place) {
      RecipientFacts& facts = all[place->second];
      facts.is_id = true;
      if (hidden) continue;
      facts.project = row.Text(3);
      facts.name = row.Text(4);
      facts.policies = PoliciesFrom(row);
      facts.registered = true;
      facts.living = row.Bool(5);
    }
    return Result<void>();
  };
  IL_TRY_VOID(ForEachPolicies(connection, recipients, take));
  for (RecipientFacts& facts : all) {
    if (facts.registered && Asks(facts.policies, query)) {
      IL_TRY_VOID(FindRelations(connection, query, facts));
    }
  }
  return all;
}

Result<std::vector<RecipientFacts>> FindAudienceFacts(db::Connection& connection,
                                                      std::string_view project,
                                                      std::string_view sender,
                                                      std::string_view sender_text) {
  std::vector<RecipientFacts> all;
  IL_TRY_VOID(connection.ForEach(
      kAudienceFacts,
      [&](const db::Row& row) {
        all.push_back({.agent = row.String(0),
                       .policies = PoliciesFrom(row),
                       .registered = true,
                       .living = true,
                       .is_id = true,
                       .sender_is_contact = row.Bool(3)});
      },
      project, sender, sender_text));
  return all;
}

std::span<const db::NamedSql> ContactStatements() { return kStatements; }

}  // namespace interlock::store
