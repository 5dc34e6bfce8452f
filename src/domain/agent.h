#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "domain/contact_policy.h"

// What an agent is, and the decisions about one that need nothing but their arguments.
namespace interlock::domain {

// What an agent does right now, as its last heartbeat said.
enum class FocusState : std::uint8_t { kUnknown, kAtPrompt, kToolUse, kThinking };

// "unknown", "at-prompt", "tool-use", "thinking"
std::string_view Name(FocusState focus);
// Exactly one of those names; nothing for anything else.
std::optional<FocusState> ParseFocusState(std::string_view name);

// What was told at `told_at`, as far as it still counts: it changes by the second, so what is older
// than 2 s, or from a clock that has since been put back, is unknown.
FocusState CurrentFocus(FocusState told, Timestamp told_at, Timestamp now);

using Capabilities = std::vector<std::string>;
using Metadata = std::map<std::string, std::string>;

// Somebody who works in a project. Its token is not part of it: only the store knows its hash.
struct Agent {
  std::string id;
  std::string project;
  std::string session_id;  // unique in its project
  std::string name;
  // Nothing was sent, or something empty was: clients see the difference.
  std::optional<Capabilities> capabilities = {};
  std::optional<Metadata> metadata = {};
  std::string status = {};
  Policies policies = {};
  FocusState focus = FocusState::kUnknown;
  Timestamp focus_at = {};
  Timestamp created_at = {};
  Timestamp last_seen = {};
  std::optional<Timestamp> deregistered_at = {};  // nothing while it lives

  bool operator==(const Agent&) const = default;
};

// Takes the agents of a list, one after the other, on the thread that reads them.
class AgentSink {
 public:
  virtual ~AgentSink() = default;

  // The list begins, or begins again: a read that failed may be repeated.
  virtual void Restart() = 0;
  virtual void Add(const Agent& agent) = 0;
};

// The status of an agent that is gone.
inline constexpr std::string_view kDeregistered = "deregistered";

// An agent not seen for this long is stale: another process may take its session over.
inline constexpr Duration kStaleAfter = std::chrono::minutes(5);

// A UUID in one of four forms, in either case: 8-4-4-4-12, the same in braces or after "urn:uuid:",
// or 32 digits.
bool IsSessionId(std::string_view text);

// What it takes to have a session of another process: time alone, or the agent's token
// (--require-agent-token).
enum class SessionProof : std::uint8_t { kAge, kToken };

// What is known of the agent that has a session which somebody registers with again.
struct SessionFacts {
  Timestamp last_seen = {};
  bool deregistered = false;
  bool holds_files = false;  // by reservations that still hold
  bool token_shown = false;  // by whoever registers: it is that agent itself
  SessionProof proof = SessionProof::kAge;
};

// May that agent's session, and with it its id, go to whoever asks?
bool MayTakeOver(const SessionFacts& session, Timestamp now);

// True when the agent has one of them, letter for letter.
// REQUIRES: `wanted` is sorted.
bool HasAnyCapability(const Agent& agent, std::span<const std::string> wanted);

// The value of a metadata key, trimmed; empty when there is none.
std::string_view MetadataText(const Agent& agent, const std::string& key);

}  // namespace interlock::domain
