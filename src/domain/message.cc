#include "domain/message.h"

#include <array>
#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace interlock::domain {

std::string_view Name(AddressKind kind) {
  switch (kind) {
    case AddressKind::kTo:
      return "to";
    case AddressKind::kCc:
      return "cc";
    case AddressKind::kBcc:
      return "bcc";
  }
  IL_CHECK(false);
}

std::vector<std::string> Addresses::All() const {
  std::vector<std::string> all;
  all.reserve(size());
  for (const auto* list : {&to, &cc, &bcc}) all.insert(all.end(), list->begin(), list->end());
  return all;
}

Addresses OnceEach(Addresses addresses) {
  if (addresses.size() < 2) return addresses;
  Addresses once;
  std::unordered_set<std::string_view> seen;  // of strings that stay where they are
  seen.reserve(addresses.size());
  const std::array<std::pair<const std::vector<std::string>*, std::vector<std::string>*>, 3> kinds =
      {{{&addresses.to, &once.to}, {&addresses.cc, &once.cc}, {&addresses.bcc, &once.bcc}}};
  for (const auto& [from, into] : kinds) {
    for (const std::string& address : *from) {
      if (seen.insert(address).second) into->push_back(address);
    }
  }
  return once;
}

Message AsSeenBy(Message message, std::string_view viewer) {
  if (viewer != message.sender) {
    std::erase_if(message.addresses.bcc,
                  [&](const std::string& address) { return address != viewer; });
  }
  return message;
}

}  // namespace interlock::domain
