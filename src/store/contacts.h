#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/contact_policy.h"

// Whom an agent has allowed to write to it (table `contacts`), and what a decision about the
// recipients of a message looks at. A contact is any agent id, registered or not; the permission
// goes one way only.
namespace interlock::store {

// In the order of their bytes.
Result<std::vector<std::string>> ListContacts(db::Connection& connection,
                                              std::string_view agent_id);

// True when it was not a contact before.
Result<bool> AddContact(db::Transaction& tx, std::string_view agent_id, std::string_view contact_id,
                        Timestamp now);
// True when it was one.
Result<bool> RemoveContact(db::Transaction& tx, std::string_view agent_id,
                           std::string_view contact_id);

// {"contact": id}, as the events of a change say.
std::string ContactJson(std::string_view contact_id);

// What is known of one recipient of a message.
struct RecipientFacts {
  std::string agent;
  std::string name = {};           // of a registered one
  std::string project = {};        // of a registered one
  domain::Policies policies = {};  // the defaults when nobody registered it
  bool registered = false;
  bool living = false;  // registered, and not deregistered since
  bool is_id = false;   // of an agent, perhaps of a project that is not to be known
  // Looked up only where a policy asks for it: who is open to everybody has none of these.
  bool sender_is_contact = false;
  bool posted_in_thread = false;     // it has itself sent a message of that thread
  bool sender_is_in_thread = false;  // the sender has sent or received one
  bool holds_overlap = false;        // see service::FindSharedWork(); not looked up here
};

// The message that the facts are asked for.
struct RecipientQuery {
  std::string_view project;
  std::string_view sender;            // its id, if it is registered
  std::string_view sender_text = {};  // as it was sent, which may be its name
  std::string_view thread_id = {};    // empty: it is in no thread
  // Given: an agent of any other project is as one that nobody registered.
  std::optional<std::string_view> agents_of = {};
  bool live = true;  // false: the policies of live contact will not be looked at
};

// One for each of `recipients`, in their order, by one statement per 64 of them and one for each
// that is not open to everybody. A deregistered agent still has the policies it set.
Result<std::vector<RecipientFacts>> FindRecipientFacts(db::Connection& connection,
                                                       const RecipientQuery& query,
                                                       std::span<const std::string> recipients);

// The same for every living agent of the project but the sender: whom a broadcast is meant for. It
// is in no thread.
Result<std::vector<RecipientFacts>> FindAudienceFacts(db::Connection& connection,
                                                      std::string_view project,
                                                      std::string_view sender,
                                                      std::string_view sender_text);

std::span<const db::NamedSql> ContactStatements();

}  // namespace interlock::store
