#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "domain/event.h"

namespace interlock::domain {

// How a recipient is addressed. All three are delivered alike; a bcc address is shown to itself and
// to the sender only.
enum class AddressKind : std::uint8_t { kTo, kCc, kBcc };

// "to", "cc", "bcc"
std::string_view Name(AddressKind kind);

// Agent ids by how they are addressed. Each stands once, under the first of to, cc, bcc that names
// it.
struct Addresses {
  std::vector<std::string> to = {};
  std::vector<std::string> cc = {};
  std::vector<std::string> bcc = {};

  bool empty() const { return to.empty() && cc.empty() && bcc.empty(); }
  std::size_t size() const { return to.size() + cc.size() + bcc.size(); }
  // All of them, in the order to, cc, bcc.
  std::vector<std::string> All() const;

  bool operator==(const Addresses&) const = default;
};

// Leaves each address where it stands first.
Addresses OnceEach(Addresses addresses);

struct Message {
  Cursor cursor = 0;  // of its message.created event
  std::string id = {};
  std::string project = {};
  std::string sender = {};
  std::string thread_id = {};  // empty = in no thread
  std::string topic = {};      // as TopicName() makes it; empty = none
  std::string subject = {};
  std::string body = {};
  std::string importance = {};
  bool ack_required = false;
  Addresses addresses = {};  // who received it; those a policy denied are not among them
  Timestamp created_at = {};

  bool operator==(const Message&) const = default;
};

// Did a sender mean the same by two messages? Project, id, sender and everything a sender writes
// are equal, the addresses of each kind in any order.
bool SaysTheSame(const Message& a, const Message& b);

// The message as `viewer` may see it: the sender sees every bcc address, anybody else only its own.
Message AsSeenBy(Message message, std::string_view viewer);

}  // namespace interlock::domain
