#include "domain/message.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace interlock::domain {
namespace {

// REQUIRES: neither holds anything twice.
bool SameSet(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a == b) return true;
  if (a.size() != b.size()) return false;
  std::vector<std::string_view> left(a.begin(), a.end());
  std::vector<std::string_view> right(b.begin(), b.end());
  std::ranges::sort(left);
  std::ranges::sort(right);
  return left == right;
}

}  // namespace

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

bool SaysTheSame(const Message& a, const Message& b) {
  const auto written = [](const Message& m) {
    return std::tie(m.project, m.id, m.sender, m.thread_id, m.topic, m.subject, m.body,
                    m.importance, m.ack_required);
  };
  return written(a) == written(b) && SameSet(a.addresses.to, b.addresses.to) &&
         SameSet(a.addresses.cc, b.addresses.cc) && SameSet(a.addresses.bcc, b.addresses.bcc);
}

Message AsSeenBy(Message message, std::string_view viewer) {
  if (viewer != message.sender) {
    std::erase_if(message.addresses.bcc,
                  [&](const std::string& address) { return address != viewer; });
  }
  return message;
}

}  // namespace interlock::domain
