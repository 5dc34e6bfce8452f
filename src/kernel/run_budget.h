#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "kernel/phase_event.h"

// Token usage of a run and its token budget.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct TokenUse {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t cache_hits = 0;

  std::int64_t total() const { return input + output; }
};

struct BudgetState {
  std::optional<std::int64_t> budget = {};  // nullopt: no limit
  std::int64_t used = 0;
  std::int64_t warn_pct = 80;
  bool warning = false;   // used >= warn_pct of the budget
  bool exceeded = false;  // used >= budget
};

// Sums over the dispatches whose scope is the run's id; zero if there are none.
Result<TokenUse> TokensOf(db::Connection& connection, std::string_view run_id);

BudgetState JudgeBudget(std::optional<std::int64_t> budget, std::int64_t warn_pct,
                        std::int64_t used);

// Reads the current budget state. Writes nothing.
Result<BudgetState> BudgetOf(db::Connection& connection, std::string_view run_id);

// True if `state` reached a limit whose event is not recorded yet.
Result<bool> HasUnrecordedBudgetEvent(db::Connection& connection, std::string_view run_id,
                                      const BudgetState& state);
// Reads the budget state again and records an event for each limit that is reached for the first
// time. The state keys budget.warning and budget.exceeded (scope: run id) mark recorded events.
Result<BudgetState> RecordBudgetEvents(db::Transaction& tx, std::string_view run_id,
                                       const Origin& origin);

std::span<const db::NamedSql> RunBudgetStatements();

}  // namespace interlock::kernel
