#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Who may write to whom. Pure values and one pure decision.
namespace interlock::domain {

// What an agent says about mail from others.
enum class ContactPolicy : std::uint8_t {
  kOpen,          // from anybody
  kAuto,          // from its contacts, and from whom its work overlaps with
  kContactsOnly,  // from its contacts
  kBlockAll,      // from nobody
};

// "open", "auto", "contacts_only", "block_all"
std::string_view Name(ContactPolicy policy);
// Exactly one of those names; nothing for anything else.
std::optional<ContactPolicy> ParseContactPolicy(std::string_view name);

// An agent's two policies: for mail, and for mail that is put before it at once. These are the ones
// of an agent that has set none, and of a recipient that nobody registered.
struct Policies {
  ContactPolicy mail = ContactPolicy::kOpen;
  ContactPolicy live = ContactPolicy::kContactsOnly;

  bool operator==(const Policies&) const = default;
};

// What the decision about one recipient looks at.
struct ContactFacts {
  ContactPolicy policy = ContactPolicy::kOpen;  // the recipient's
  bool sender_is_contact = false;               // the recipient has the sender among its contacts
  // The recipient has itself posted in the thread of this message, and the sender takes part in it,
  // by a message sent or received. One without the other opens nothing: anybody can post in a
  // thread, and anybody may know its name.
  bool recipient_posted_in_thread = false;
  bool sender_is_in_thread = false;
  bool holds_overlap = false;  // the two hold reservations that overlap
  bool to_itself = false;      // a note to oneself; policies are about mail from others
};

// May this message be delivered to this recipient?
bool MayDeliver(const ContactFacts& facts);

}  // namespace interlock::domain
