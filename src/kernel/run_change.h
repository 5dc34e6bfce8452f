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
#include "kernel/phase_actions.h"
#include "kernel/phase_event.h"
#include "kernel/run.h"

// Creates runs, ends them early, and changes their settings. Each function makes its change and
// records the event of it in the caller's transaction. kConflict and kNotFound have a remedy.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct NewRun {
  // Id, project, goal and optional fields from the caller. CreateRun() sets status, phase, times
  // and auto_advance. auto_advance is false if the state key kernel.autonomy.delegation_level of
  // scope global is 0 or 1: a person then advances the run.
  Run run;
  std::vector<PhaseAction> actions = {};
  // An active run of the same bead that was untouched for this long is abandoned first.
  std::optional<std::int64_t> takeover_after_s = {};
};

struct CreatedRun {
  Run run;
  std::optional<std::string> abandoned = {};  // id of the run that was taken over
};

// kConflict: another run is active for the project and bead. The message contains its id.
Result<CreatedRun> CreateRun(db::Transaction& tx, const NewRun& wanted, const Origin& origin);

// One project of a portfolio.
struct ChildRun {
  std::string id;
  std::string project_dir;
};
// Creates a parent run without a project, and its children, which inherit goal, complexity, phases
// and metadata. Returns the parent.
Result<CreatedRun> CreatePortfolio(db::Transaction& tx, const NewRun& parent,
                                   std::span<const ChildRun> children, const Origin& origin);

// Ends an active run and the active children of a portfolio; returns the number of ended children.
// `status` is kRunCancelled or kRunAbandoned. kConflict: the run has already ended.
Result<std::int64_t> EndRun(db::Transaction& tx, std::string_view id, std::string_view status,
                            const std::optional<std::string>& reason, const Origin& origin);

struct RunSettings {
  std::optional<std::int64_t> complexity = {};
  std::optional<bool> auto_advance = {};
  std::optional<bool> force_full = {};
  std::optional<std::int64_t> max_dispatches = {};    // kConflict if the run is not a portfolio
  std::optional<std::string> metadata_to_merge = {};  // a JSON object
};
// Metadata objects are merged member by member at every depth; all other values are replaced.
Result<void> ChangeSettings(db::Transaction& tx, std::string_view id, const RunSettings& settings,
                            const Origin& origin);

// Updates the run's last change, so that the run is not taken over.
Result<void> TouchRun(db::Transaction& tx, std::string_view id, std::int64_t now);
// Completes the insertion of a row that refers to a run: touches the run if the insertion
// succeeded, else returns kNotFound if the run does not exist.
Result<void> FinishInsert(db::Transaction& tx, Result<std::int64_t> added, std::string_view run_id,
                          std::int64_t now);
// The error for a second active run of a project and bead.
Error BeadConflict(const Run& holder);

std::span<const db::NamedSql> RunChangeStatements();

}  // namespace interlock::kernel
