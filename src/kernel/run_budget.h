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

// How many tokens the dispatches of a run have used, and whether that is within its budget.
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
  std::optional<std::int64_t> budget = {};  // none: no limit
  std::int64_t used = 0;
  std::int64_t warn_pct = 80;
  bool warning = false;   // used >= warn_pct of it
  bool exceeded = false;  // used >= budget
};

// The sum over the dispatches whose scope is the run's id; zero when there are none.
Result<TokenUse> TokensOf(db::Connection& connection, std::string_view run_id);

BudgetState JudgeBudget(std::optional<std::int64_t> budget, std::int64_t warn_pct,
                        std::int64_t used);

// How it stands now, however often it is asked.
Result<BudgetState> BudgetOf(db::Connection& connection, std::string_view run_id);

// Whether `state` is to be told by an event that was not written yet.
Result<bool> IsBudgetNews(db::Connection& connection, std::string_view run_id,
                          const BudgetState& state);
// Judges anew and writes the event of each limit that was reached for the first time. The state
// keys budget.warning and budget.exceeded, scope run id, remember it.
Result<BudgetState> TellBudget(db::Transaction& tx, std::string_view run_id, const Origin& origin);

std::span<const db::NamedSql> RunBudgetStatements();

}  // namespace interlock::kernel
