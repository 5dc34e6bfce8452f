#pragma once

#include <optional>
#include <string>
#include <vector>

namespace interlock::domain {

// An address of a message that meant a registered agent of its project.
struct KnownRecipient {
  std::string to;  // as it was sent: an id or a name
  std::string agent_id;
  std::string name;

  bool operator==(const KnownRecipient&) const = default;
};

// An address that is no registered agent of the project of the message.
struct UnknownRecipient {
  std::string to;
  std::optional<std::string> project = {};  // where it is one, if the sender may know
  bool left = false;                        // it was one, and has deregistered

  bool operator==(const UnknownRecipient&) const = default;
};

// How the texts of a message were understood when it was sent. Each list is in the order to, cc,
// bcc.
struct Resolution {
  std::vector<KnownRecipient> known = {};
  std::vector<UnknownRecipient> elsewhere = {};  // those with a project
  std::vector<std::string> left = {};            // the addresses of those that had deregistered
  std::string from = {};                         // the sender as sent; empty = its id

  bool empty() const { return known.empty() && elsewhere.empty() && left.empty() && from.empty(); }
  bool operator==(const Resolution&) const = default;
};

}  // namespace interlock::domain
