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

// The event log of runs. Each change writes one row in its own transaction; rows are never changed.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

// Time and trace ids of a change. The trace ids come from the caller's tracing.
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
  // advance, skip, pause, cancel, abandon, set, rollback, budget.warning, budget.exceeded. Files of
  // the older program may contain other types.
  std::string type = {};
  std::optional<std::string> gate_result = {};
  std::optional<std::string> gate_tier = {};
  std::optional<std::string> reason = {};
  std::optional<std::string> envelope = {};  // JSON: caller, trace ids, input and output phases
  std::int64_t created_at = 0;
};

// Writes the event and returns it as stored. Fills in id, envelope and time.
Result<PhaseEvent> AppendPhaseEvent(db::Transaction& tx, PhaseEvent event, const Origin& origin);

// Oldest first. Empty if the run does not exist.
Result<std::vector<PhaseEvent>> PhaseEventsOf(db::Connection& connection, std::string_view run_id);

// Returns the phases that are marked to be skipped. A rollback clears the marks of the phases that
// it undoes.
Result<PhaseNames> SkippedPhases(db::Connection& connection, std::string_view run_id,
                                 const PhaseChain& chain);

std::span<const db::NamedSql> PhaseEventStatements();

}  // namespace interlock::kernel
