#include "store/contacts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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

// The primary keys of agents, contacts and thread_members. A list of ids is filled up by repeating
// the last one, in the shortest form that holds it: SQLite sorts them all before it looks.
#define IL_RECIPIENT_FACTS                                                    \
  "id, contact_policy, live_contact_policy, "                                 \
  "EXISTS (SELECT 1 FROM contacts WHERE agent_id = id AND contact_id = ?1), " \
  "EXISTS (SELECT 1 FROM thread_members "                                     \
  "WHERE project = ?2 AND thread_id = ?3 AND agent = id AND posted = 1), "    \
  "EXISTS (SELECT 1 FROM thread_members "                                     \
  "WHERE project = ?2 AND thread_id = ?3 AND agent = ?1), "                   \
  "agents.project FROM agents WHERE id IN "
constexpr std::size_t kFixedParameters = 3;
constexpr std::size_t kIdsPerStatement = 64;
constexpr db::Sql kFactsOfOne = "SELECT " IL_RECIPIENT_FACTS "(?4)";
constexpr db::Sql kFactsOf8 = "SELECT " IL_RECIPIENT_FACTS "(?4,?5,?6,?7,?8,?9,?10,?11)";
constexpr db::Sql kFactsOf64 = "SELECT " IL_RECIPIENT_FACTS
                               "(?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,"
                               "?20,?21,?22,?23,?24,?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35,"
                               "?36,?37,?38,?39,?40,?41,?42,?43,?44,?45,?46,?47,?48,?49,?50,?51,"
                               "?52,?53,?54,?55,?56,?57,?58,?59,?60,?61,?62,?63,?64,?65,?66,?67)";
#undef IL_RECIPIENT_FACTS

// agents_living, and contacts' primary key.
constexpr db::Sql kAudienceFacts =
    "SELECT id, contact_policy, live_contact_policy, "
    "EXISTS (SELECT 1 FROM contacts WHERE agent_id = id AND contact_id = ?2), 0, 0 "
    "FROM agents WHERE project = ?1 AND deregistered_at IS NULL AND id <> ?2 "
    "ORDER BY last_seen, id";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kList),     IL_SQL(kAdd),       IL_SQL(kRemove),        IL_SQL(kFactsOfOne),
    IL_SQL(kFactsOf8), IL_SQL(kFactsOf64), IL_SQL(kAudienceFacts),
};

// Of a row of kFactsOfOne and its like, whose agent is known.
RecipientFacts FactsFrom(const db::Row& row, std::string agent) {
  const domain::Policies defaults;
  return {.agent = std::move(agent),
          .policies = {.mail = domain::ParseContactPolicy(row.Text(1)).value_or(defaults.mail),
                       .live = domain::ParseContactPolicy(row.Text(2)).value_or(defaults.live)},
          .sender_is_contact = row.Bool(3),
          .posted_in_thread = row.Bool(4),
          .sender_is_in_thread = row.Bool(5)};
}

// The statement for a list of that length, and how many ids it takes.
std::pair<db::Sql, std::size_t> FactsOf(std::size_t length) {
  if (length == 1) return {kFactsOfOne, 1};
  if (length <= 8) return {kFactsOf8, 8};
  return {kFactsOf64, kIdsPerStatement};
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
    if (query.agents_of && row.Text(6) != *query.agents_of) return Result<void>();
    const auto [begin, end] = places.equal_range(row.Text(0));
    for (auto place = begin; place != end; ++place) {
      RecipientFacts& facts = all[place->second];
      facts = FactsFrom(row, std::move(facts.agent));
    }
    return Result<void>();
  };
  std::array<db::Value, kFixedParameters + kIdsPerStatement> values;
  values[0] = query.sender;
  values[1] = query.project;
  if (!query.thread_id.empty()) values[2] = query.thread_id;  // else NULL, which no thread equals
  while (!recipients.empty()) {
    const auto chunk = recipients.first(std::min(recipients.size(), kIdsPerStatement));
    const auto [sql, ids] = FactsOf(chunk.size());
    for (std::size_t i = 0; i < ids; ++i) {
      values[kFixedParameters + i] = std::string_view(chunk[std::min(i, chunk.size() - 1)]);
    }
    IL_TRY_VOID(connection.Execute(sql, std::span(values).first(kFixedParameters + ids), take));
    recipients = recipients.subspan(chunk.size());
  }
  return all;
}

Result<std::vector<RecipientFacts>> FindAudienceFacts(db::Connection& connection,
                                                      std::string_view project,
                                                      std::string_view sender) {
  std::vector<RecipientFacts> all;
  IL_TRY_VOID(connection.ForEach(
      kAudienceFacts, [&](const db::Row& row) { all.push_back(FactsFrom(row, row.String(0))); },
      project, sender));
  return all;
}

std::span<const db::NamedSql> ContactStatements() { return kStatements; }

}  // namespace interlock::store
