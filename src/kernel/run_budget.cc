#include "kernel/run_budget.h"

#include <fmt/format.h>

#include <array>

#include "kernel/run.h"

namespace interlock::kernel {
namespace {

// ic_dispatches_scope.
constexpr db::Sql kTokens =
    "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), "
    "coalesce(sum(cache_hits), 0) FROM dispatches WHERE scope_id = ?1";

// The primary key of state.
constexpr db::Sql kIsRecorded = "SELECT 1 FROM state WHERE key = ?1 AND scope_id = ?2";

// The primary key of state.
constexpr db::Sql kMarkRecorded =
    "INSERT INTO state (key, scope_id, payload, updated_at) VALUES (?1, ?2, 'true', ?3) "
    "ON CONFLICT (key, scope_id) DO NOTHING";

constexpr std::array kStatements = {IL_SQL(kTokens), IL_SQL(kIsRecorded), IL_SQL(kMarkRecorded)};

constexpr std::string_view kWarning = "budget.warning";
constexpr std::string_view kExceeded = "budget.exceeded";

Result<bool> IsRecorded(db::Connection& connection, std::string_view what,
                        std::string_view run_id) {
  IL_TRY(const auto found,
         connection.One(kIsRecorded, [](const db::Row& row) { return row.Int(0); }, what, run_id));
  return found.has_value();
}

Result<void> RecordOnce(db::Transaction& tx, std::string_view what, std::string_view run_id,
                        const BudgetState& state, const Origin& origin) {
  IL_TRY(const std::int64_t marked, tx->Run(kMarkRecorded, what, run_id, origin.now));
  if (marked == 0) return {};
  IL_TRY_VOID(AppendPhaseEvent(
      tx,
      {.run_id = std::string(run_id),
       .type = std::string(what),
       .reason = fmt::format("{} of {} tokens used", state.used, state.budget.value_or(0))},
      origin));
  return {};
}

}  // namespace

Result<TokenUse> TokensOf(db::Connection& connection, std::string_view run_id) {
  IL_TRY(
      const std::optional<TokenUse> use,
      connection.One(
          kTokens, [](const db::Row& row) { return TokenUse{row.Int(0), row.Int(1), row.Int(2)}; },
          run_id));
  return use.value_or(TokenUse{});
}

BudgetState JudgeBudget(std::optional<std::int64_t> budget, std::int64_t warn_pct,
                        std::int64_t used) {
  constexpr std::int64_t kPercent = 100;
  BudgetState state{.used = used, .warn_pct = warn_pct};
  if (!budget || *budget <= 0) return state;
  state.budget = budget;
  // warn_pct of the budget, rounded up, without a product that could overflow.
  const std::int64_t warn_at =
      *budget / kPercent * warn_pct + (*budget % kPercent * warn_pct + kPercent - 1) / kPercent;
  state.warning = used >= warn_at;
  state.exceeded = used >= *budget;
  return state;
}

Result<BudgetState> BudgetOf(db::Connection& connection, std::string_view run_id) {
  IL_TRY(const Run run, FindRun(connection, run_id));
  IL_TRY(const TokenUse use, TokensOf(connection, run_id));
  return JudgeBudget(run.token_budget, run.budget_warn_pct, use.total());
}

Result<bool> HasUnrecordedBudgetEvent(db::Connection& connection, std::string_view run_id,
                                      const BudgetState& state) {
  if (state.warning) {
    IL_TRY(const bool recorded, IsRecorded(connection, kWarning, run_id));
    if (!recorded) return true;
  }
  if (state.exceeded) {
    IL_TRY(const bool recorded, IsRecorded(connection, kExceeded, run_id));
    if (!recorded) return true;
  }
  return false;
}

Result<BudgetState> RecordBudgetEvents(db::Transaction& tx, std::string_view run_id,
                                       const Origin& origin) {
  IL_TRY(const BudgetState state, BudgetOf(tx.connection(), run_id));
  if (state.warning) IL_TRY_VOID(RecordOnce(tx, kWarning, run_id, state, origin));
  if (state.exceeded) IL_TRY_VOID(RecordOnce(tx, kExceeded, run_id, state, origin));
  return state;
}

std::span<const db::NamedSql> RunBudgetStatements() { return kStatements; }

}  // namespace interlock::kernel
