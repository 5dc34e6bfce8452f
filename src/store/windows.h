#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/agent.h"
#include "domain/window.h"

// The terminals that agents work in (table `windows`), and whether somebody can be spoken to there.
namespace interlock::store {

// Makes the window, or gives the one with its project and UUID another agent, name and target; it
// counts again if it was expired, and is the most recently active one. Logs window.updated. Returns
// it as it is now: `id` and `created_at` of one that was there stay.
Result<domain::Window> PutWindow(db::Transaction& tx, const domain::Window& window);

// From `at` on it does not count; logs window.expired. Nothing, and no event, when there is none or
// it did not count before. Returns it as it is now.
Result<std::optional<domain::Window>> ExpireWindow(db::Transaction& tx, std::string_view project,
                                                   std::string_view uuid, Timestamp at);

// Expired or not.
Result<std::optional<domain::Window>> FindWindow(db::Connection& connection,
                                                 std::string_view project, std::string_view uuid);

// Gives those that count to `take`, the most recently active first; at most `limit`.
Result<void> ListWindows(db::Connection& connection, std::string_view project, std::int64_t limit,
                         const std::function<void(const domain::Window&)>& take);

// What is known of a recipient that is to be spoken to at once.
struct Desk {
  domain::FocusState focus = domain::FocusState::kUnknown;  // as far as it still counts
  // Of its most recently active window that has one, or of the window that was asked for, if that
  // one is its own; empty = there is none.
  std::string tmux_target = {};
};
// `window_uuid`: empty = any window will do. A deregistered agent has no focus.
Result<Desk> FindDesk(db::Connection& connection, std::string_view project, std::string_view agent,
                      std::string_view window_uuid, Timestamp now);

// The window object as answers and events show it.
std::string WindowJson(const domain::Window& window);

// May anybody be spoken to at once? A switch of the whole server, on unless somebody turned it off.
Result<bool> IsLiveTransportOn(db::Connection& connection);

std::span<const db::NamedSql> WindowStatements();

}  // namespace interlock::store
