#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

// Where an agent can be spoken to at once: values and pure decisions.
namespace interlock::domain {

// A terminal that an agent works in. It keeps its UUID when the agent in it, its name or its place
// in tmux change.
struct Window {
  std::string id = {};
  std::string project = {};
  std::string uuid = {};  // unique in its project; whoever opened the terminal chose it
  std::string agent_id = {};
  std::string display_name = {};
  std::string tmux_target = {};  // see ParseTmuxTarget(); empty = nothing can be put before it
  Timestamp created_at = {};
  Timestamp last_active_at = {};
  std::optional<Timestamp> expired_at = {};  // nothing while it counts

  bool operator==(const Window&) const = default;
};

// "session", "session:window", each perhaps with ".pane" behind it. A window is named by its name
// or its number; without one, or without a pane, the active one is meant.
struct TmuxTarget {
  std::string session;
  std::string window = {};
  std::string pane = {};  // digits

  bool operator==(const TmuxTarget&) const = default;
};

// Names are made of letters, digits, '_', '.', '-' and blanks, and are not all blank. Nothing for
// any other text: what cannot be said needs no quoting.
std::optional<TmuxTarget> ParseTmuxTarget(std::string_view text);

// How a message travels: kept in inboxes, put before its recipient at once, or both.
enum class Transport : std::uint8_t { kAsync, kLive, kBoth };

// "", "async", "live", "both"; nothing for anything else.
std::optional<Transport> ParseTransport(std::string_view name);

// What became of a message for one recipient.
enum class DeliveryState : std::uint8_t {
  kAsync,     // it lies in the inbox
  kInjected,  // it was put before the recipient
  kDeferred,  // it lies in the inbox, and waits to be surfaced: the recipient was busy
  kFailed,    // it was not put before the recipient, and lies nowhere
};

// "async", "injected", "deferred", "failed"
std::string_view Name(DeliveryState state);

}  // namespace interlock::domain
