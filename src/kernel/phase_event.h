#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "kernel/phase_chain.h"

// What happened to runs: one row for each change, written in the transaction of the change and
// never changed afterwards.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

// When something is done, and on whose behalf: what a caller's tracing passes on.
struct Origin {
  std::int64_t now = 0;  // whole Unix seconds
  std::optional<std::string> trace_id = {};
  std::optional<std::string> span_id = {};
  std::optional<std::string> parent_span_id = {};
};

struct PhaseEvent {
  std::int64_t id = 0;
  std::string run_id = {};
  std::string from_phase = {};
  std::string to_phase = {};
  // advance, skip, pause, cancel, abandon, set, rollback, budget.warning, budget.exceeded, and what
  // older files hold.
  std::string type = {};
  std::optional<std::string> gate_result = {};
  std::optional<std::string> gate_tier = {};
  std::optional<std::string> reason = {};
  std::optional<std::string> envelope = {};  // JSON: who, in which trace, what went in and came out
  std::int64_t created_at = 0;
};

// Writes it; `event` needs no id, envelope and time. Returns it as it was written.
Result<PhaseEvent> AppendPhaseEvent(db::Transaction& tx, PhaseEvent event, const Origin& origin);

// Oldest first; none when there is no such run.
Result<std::vector<PhaseEvent>> PhaseEventsOf(db::Connection& connection, std::string_view run_id);

// The phases that are to be passed over. A rollback takes the marks off the phases that it undoes.
Result<PhaseNames> SkippedPhases(db::Connection& connection, std::string_view run_id,
                                 const PhaseChain& chain);

std::span<const db::NamedSql> PhaseEventStatements();

}  // namespace interlock::kernel
