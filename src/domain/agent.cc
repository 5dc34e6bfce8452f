#include "domain/agent.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/id.h"
#include "domain/text.h"

namespace interlock::domain {
namespace {

constexpr std::array<std::pair<FocusState, std::string_view>, 4> kFocusNames = {{
    {FocusState::kUnknown, "unknown"},
    {FocusState::kAtPrompt, "at-prompt"},
    {FocusState::kToolUse, "tool-use"},
    {FocusState::kThinking, "thinking"},
}};
constexpr Duration kFocusCounts = std::chrono::seconds(2);

constexpr std::string_view kUrn = "urn:uuid:";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";

bool StartsWithUrn(std::string_view text) {
  return text.size() > kUrn.size() &&
         std::ranges::equal(text.substr(0, kUrn.size()), kUrn, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

}  // namespace

std::string_view Name(FocusState focus) {
  return kFocusNames[static_cast<std::size_t>(focus)].second;
}

std::optional<FocusState> ParseFocusState(std::string_view name) {
  for (const auto& [focus, known] : kFocusNames) {
    if (name == known) return focus;
  }
  return std::nullopt;
}

FocusState CurrentFocus(FocusState told, Timestamp told_at, Timestamp now) {
  const Duration age = now - told_at;
  return age < Duration::zero() || age > kFocusCounts ? FocusState::kUnknown : told;
}

bool IsSessionId(std::string_view text) {
  constexpr std::size_t kPlainDigits = 32;
  if (text.size() == kPlainDigits) {
    return text.find_first_not_of(kHexDigits) == std::string_view::npos;
  }
  if (StartsWithUrn(text)) {
    text.remove_prefix(kUrn.size());
  } else if (text.starts_with('{') && text.ends_with('}') && text.size() > 1) {
    text = text.substr(1, text.size() - 2);
  }
  return Uuid::Parse(text).ok();
}

bool MayTakeOver(const SessionFacts& session, Timestamp now) {
  if (session.token_shown) return true;
  if (session.proof == SessionProof::kToken) return false;
  if (session.deregistered) return true;
  return !session.holds_files && now - session.last_seen >= kStaleAfter;
}

bool HasAnyCapability(const Agent& agent, std::span<const std::string> wanted) {
  if (!agent.capabilities) return false;
  return std::ranges::any_of(*agent.capabilities, [&](const std::string& capability) {
    return std::ranges::binary_search(wanted, capability);
  });
}

std::string_view MetadataText(const Agent& agent, const std::string& key) {
  if (!agent.metadata) return {};
  const auto found = agent.metadata->find(key);
  return found == agent.metadata->end() ? std::string_view() : Trim(found->second);
}

}  // namespace interlock::domain
