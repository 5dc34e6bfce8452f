#include "sim/history.h"

#include <fmt/format.h>

namespace interlock::sim {
namespace {

const char* Name(Call call) {
  switch (call) {
    case Call::kReserve:
      return "reserve";
    case Call::kRenew:
      return "renew";
    case Call::kRelease:
      return "release";
    case Call::kTransfer:
      return "transfer";
    case Call::kLook:
      return "look";
  }
  return "?";
}

const char* Name(Heard heard) {
  switch (heard) {
    case Heard::kNothing:
      return "nothing";
    case Heard::kDone:
      return "done";
    case Heard::kConflict:
      return "conflict";
    case Heard::kForbidden:
      return "forbidden";
    case Heard::kGone:
      return "gone";
    case Heard::kGaveUp:
      return "gave up";
  }
  return "?";
}

const char* Name(bool exclusive) { return exclusive ? "exclusive" : "shared"; }

}  // namespace

std::string Text(const Operation& operation) {
  std::string text =
      fmt::format("[{}, {}] client {}: {} {} by {}", operation.begin,
                  operation.end == Operation::kNever ? "never" : std::to_string(operation.end),
                  operation.client, Name(operation.call), operation.pattern, operation.agent);
  if (operation.call == Call::kReserve) text += fmt::format(" {}", Name(operation.exclusive));
  if (!operation.id.empty()) text += fmt::format(" id={}", operation.id);
  if (!operation.to_agent.empty()) text += fmt::format(" to {}", operation.to_agent);
  if (operation.wait_seconds > 0) text += fmt::format(" waiting {} s", operation.wait_seconds);
  text += fmt::format(" -> {}", Name(operation.heard));
  if (operation.waiters > 0) text += fmt::format(" {} waiters", operation.waiters);
  for (const Seen& one : operation.seen) {
    text += fmt::format(" {{id={} agent={} {} {} fence={} until {}}}", one.id, one.agent,
                        one.pattern, Name(one.exclusive), one.fence, one.expires_at);
  }
  return text;
}

std::string GroupOf(const std::string& pattern) { return pattern.substr(0, pattern.find('/')); }

}  // namespace interlock::sim
