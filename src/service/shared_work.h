#pragma once

#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "glob/budget.h"
#include "store/contacts.h"

namespace interlock::service {

// Sets RecipientFacts::holds_overlap of those whose policy asks for it (`auto`): they and the
// sender hold reservations, shared or not, that have a path in common. One statement per 64 of
// them, and none when nobody's policy asks. What takes too long to compare counts as no; so does
// everybody for whom nothing is left of the budget, which is that of the message.
Result<void> FindSharedWork(db::Connection& connection, const std::string& project,
                            const std::string& sender, Timestamp now,
                            std::span<store::RecipientFacts> facts, glob::Budget& budget);

}  // namespace interlock::service
