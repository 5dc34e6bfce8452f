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

// How runs begin, end early, and get other settings. Each function is one transaction's worth: what
// it changes and the event that tells of it. kConflict and kNotFound say what to do instead.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct NewRun {
  // Id, project, goal and what else was asked for; status, phase and times are filled in, and
  // auto_advance, which the level of delegation decides (state key kernel.autonomy.delegation_level
  // of scope global; 0 and 1 mean that a person advances).
  Run run;
  std::vector<PhaseAction> actions = {};
  // An active run of the same bead that was last touched this long ago is abandoned first.
  std::optional<std::int64_t> takeover_after_s = {};
};

struct CreatedRun {
  Run run;
  std::optional<std::string> abandoned = {};  // the run that was in the way
};

// kConflict: another run is active for the project and bead; the message names it.
Result<CreatedRun> CreateRun(db::Transaction& tx, const NewRun& wanted, const Origin& origin);

// The part of a portfolio in one project.
struct ChildRun {
  std::string id;
  std::string project_dir;
};
// A parent without a project, and its children, which get its goal, complexity, phases and
// metadata. Returns the parent.
Result<CreatedRun> CreatePortfolio(db::Transaction& tx, const NewRun& parent,
                                   std::span<const ChildRun> children, const Origin& origin);

// Ends an active run, and the active children of a portfolio with it; returns how many those were.
// `status` is kRunCancelled or kRunAbandoned. kConflict when it has ended already.
Result<std::int64_t> EndRun(db::Transaction& tx, std::string_view id, std::string_view status,
                            const std::optional<std::string>& reason, const Origin& origin);

struct RunSettings {
  std::optional<std::int64_t> complexity = {};
  std::optional<bool> auto_advance = {};
  std::optional<bool> force_full = {};
  std::optional<std::int64_t> max_dispatches = {};    // of a portfolio only, else kConflict
  std::optional<std::string> metadata_to_merge = {};  // text of a JSON object
};
// Objects in the metadata are merged member by member, at every depth; anything else is replaced.
Result<void> ChangeSettings(db::Transaction& tx, std::string_view id, const RunSettings& settings,
                            const Origin& origin);

// Notes that somebody works on the run, so that it is not taken over.
Result<void> TouchRun(db::Transaction& tx, std::string_view id, std::int64_t now);
// What adding a row that refers to a run came to: kNotFound when there is none, else TouchRun().
Result<void> AfterAdding(db::Transaction& tx, Result<std::int64_t> added, std::string_view run_id,
                         std::int64_t now);
// Why (project, bead) cannot have a second active run.
Error BeadIsTaken(const Run& holder);

std::span<const db::NamedSql> RunChangeStatements();

}  // namespace interlock::kernel
