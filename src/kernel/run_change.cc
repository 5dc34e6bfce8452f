#include "kernel/run_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "json/object_text.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"
#include "kernel/payload.h"

namespace interlock::kernel {
namespace {

// The primary key of runs, and ic_runs_one_per_bead.
constexpr db::Sql kInsertRun =
    "INSERT INTO runs (id, project_dir, goal, status, phase, complexity, force_full, auto_advance, "
    "created_at, updated_at, scope_id, metadata, phases, token_budget, budget_warn_pct, "
    "parent_run_id, goal_id, max_dispatches, budget_enforce, max_agents, gate_rules, bead_id, "
    "session_id) VALUES (?1, ?2, ?3, 'active', ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13, "
    "?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";

// The primary key of runs.
constexpr db::Sql kEndRun =
    "UPDATE runs SET status = ?2, updated_at = ?3, completed_at = ?3 "
    "WHERE id = ?1 AND status = 'active'";

// The primary key of runs.
constexpr db::Sql kSetRun =
    "UPDATE runs SET complexity = coalesce(?2, complexity), "
    "auto_advance = coalesce(?3, auto_advance), force_full = coalesce(?4, force_full), "
    "max_dispatches = coalesce(?5, max_dispatches), metadata = coalesce(?6, metadata), "
    "updated_at = ?7 WHERE id = ?1";

// The primary key of runs.
constexpr db::Sql kTouchRun = "UPDATE runs SET updated_at = max(updated_at, ?2) WHERE id = ?1";

// The primary key of state.
constexpr db::Sql kDelegationLevel =
    "SELECT payload FROM state WHERE key = 'kernel.autonomy.delegation_level' "
    "AND scope_id = 'global' AND (expires_at IS NULL OR expires_at > ?1)";

constexpr std::array kStatements = {IL_SQL(kInsertRun), IL_SQL(kEndRun), IL_SQL(kSetRun),
                                    IL_SQL(kTouchRun), IL_SQL(kDelegationLevel)};

// The level may be stored as 0, "0" or "L0".
Result<bool> AdvancesAutomatically(db::Connection& connection, std::int64_t now) {
  IL_TRY(const std::optional<std::string> level,
         connection.One(kDelegationLevel, [](const db::Row& row) { return row.String(0); }, now));
  if (!level) return true;
  std::string_view digits = *level;
  const std::size_t start = digits.find_first_not_of("\"L");
  digits.remove_prefix(std::min(start, digits.size()));
  digits = digits.substr(0, digits.find('"'));
  return digits != "0" && digits != "1";
}

// Ends one run. Returns false if it was not active.
Result<bool> EndOne(db::Transaction& tx, const Run& run, std::string_view status,
                    const std::optional<std::string>& reason, const Origin& origin) {
  IL_TRY(const std::int64_t count, tx->Run(kEndRun, run.id, status, origin.now));
  if (count == 0) return false;
  const std::string_view type = status == kRunCancelled ? "cancel" : "abandon";
  IL_TRY_VOID(AppendPhaseEvent(tx,
                               {.run_id = run.id,
                                .from_phase = run.phase,
                                .to_phase = run.phase,
                                .type = std::string(type),
                                .reason = reason},
                               origin));
  return true;
}

// Ends an active run and the active children of a portfolio. Returns the number of ended children,
// or nullopt if the run was not active.
Result<std::optional<std::int64_t>> EndAll(db::Transaction& tx, const Run& run,
                                           std::string_view status,
                                           const std::optional<std::string>& reason,
                                           const Origin& origin) {
  IL_TRY(const bool ended, EndOne(tx, run, status, reason, origin));
  if (!ended) return std::nullopt;
  std::int64_t count = 0;
  if (!run.is_portfolio()) return count;
  IL_TRY(const std::vector<Run> children,
         ListRuns(tx.connection(), {.status = std::string(kRunActive), .parent = run.id}));
  for (const Run& child : children) {
    IL_TRY(const bool child_ended, EndOne(tx, child, status, reason, origin));
    count += child_ended ? 1 : 0;
  }
  return count;
}

// Abandons a stale active run of the bead, if there is one. Returns the id of the abandoned run.
Result<std::optional<std::string>> TakeOverBead(db::Transaction& tx, const NewRun& wanted,
                                                const Origin& origin) {
  if (!wanted.run.bead_id) return std::nullopt;
  IL_TRY(const std::optional<Run> holder,
         ActiveRunOf(tx.connection(), wanted.run.project_dir, *wanted.run.bead_id));
  if (!holder) return std::nullopt;
  // Not negative, even if the clock was set back.
  const std::int64_t age_s = std::max<std::int64_t>(0, origin.now - holder->updated_at);
  if (!wanted.takeover_after_s || age_s < *wanted.takeover_after_s) {
    return BeadConflict(*holder);
  }
  const std::string reason = fmt::format("taken over by run {}", wanted.run.id);
  IL_TRY_VOID(EndAll(tx, *holder, kRunAbandoned, reason, origin));
  return holder->id;
}

Result<void> InsertRun(db::Transaction& tx, const Run& run) {
  IL_TRY_VOID(tx->Run(kInsertRun, run.id, run.project_dir, run.goal, run.phase, run.complexity,
                      run.force_full, run.auto_advance, run.created_at, run.scope_id, run.metadata,
                      run.phases, run.token_budget, run.budget_warn_pct, run.parent_run_id,
                      run.goal_id, run.max_dispatches, run.budget_enforce, run.max_agents,
                      run.gate_rules, run.bead_id, run.session_id));
  return {};
}

void Merge(json::Object& base, const json::Object& patch) {
  for (const auto& member : patch) {
    json::Value& place = base[member.key()];
    json::Object* const inside = place.if_object();
    const json::Object* const changes = member.value().if_object();
    if (inside != nullptr && changes != nullptr) {
      Merge(*inside, *changes);  // the parser limits the depth
    } else {
      place = member.value();
    }
  }
}

Result<json::Value> ParseObject(std::string_view text, std::string_view what) {
  Result<json::Value> value = json::Parse(text);
  if (!value) return std::move(value).error().In(what);
  if (!value->is_object()) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} must be a JSON object, not {}", what, json::KindName(*value)));
  }
  return value;
}

Result<std::optional<std::string>> MergedMetadata(const Run& run, const RunSettings& settings) {
  if (!settings.metadata_to_merge) return std::nullopt;
  IL_TRY(json::Value base,
         ParseObject(run.metadata.value_or("{}"), fmt::format("the metadata of run {}", run.id)));
  IL_TRY(const json::Value patch, ParseObject(*settings.metadata_to_merge, "the metadata"));
  Merge(base.get_object(), patch.get_object());
  std::string merged = json::Write(base);
  if (merged.size() > kPayloadBytesMax) {
    return Error(Errc::kPayloadTooLarge,
                 fmt::format("the metadata of run {} would have {} bytes; at most {} are allowed",
                             run.id, merged.size(), kPayloadBytesMax))
        .WithDetail("do", "keep it in a file and store the path of the file");
  }
  return merged;
}

// The changed settings as JSON, for the reason of the event.
std::string SettingsText(const RunSettings& settings) {
  json::ObjectText text;
  if (settings.auto_advance) text.Add("auto_advance", *settings.auto_advance);
  if (settings.complexity) text.Add("complexity", *settings.complexity);
  if (settings.force_full) text.Add("force_full", *settings.force_full);
  if (settings.max_dispatches) text.Add("max_dispatches", *settings.max_dispatches);
  if (settings.metadata_to_merge) text.AddRaw("metadata_merge", *settings.metadata_to_merge);
  return text.Text();
}

}  // namespace

Error BeadConflict(const Run& holder) {
  return Error(Errc::kConflict,
               fmt::format("UNIQUE constraint on (project, bead) of active runs: run {} is active "
                           "for bead '{}' in {}",
                           holder.id, holder.bead_id.value_or(""),
                           holder.project_dir.empty() ? "a portfolio" : holder.project_dir))
      .WithDetail("do", fmt::format("continue that run, end it with 'ic run abandon {}', or use "
                                    "--takeover-after=D to replace a run that nobody touches",
                                    holder.id));
}

Result<CreatedRun> CreateRun(db::Transaction& tx, const NewRun& wanted, const Origin& origin) {
  CreatedRun created{.run = wanted.run};
  Run& run = created.run;
  IL_TRY(const PhaseChain chain, run.Chain());
  run.phase = chain.first();
  run.created_at = run.updated_at = origin.now;
  IL_TRY(run.auto_advance, AdvancesAutomatically(tx.connection(), origin.now));
  IL_TRY(created.abandoned, TakeOverBead(tx, wanted, origin));
  IL_TRY_VOID(InsertRun(tx, run));
  for (PhaseAction action : wanted.actions) {
    action.run_id = run.id;
    IL_TRY_VOID(AddAction(tx, action, origin.now));
  }
  return created;
}

Result<CreatedRun> CreatePortfolio(db::Transaction& tx, const NewRun& parent,
                                   std::span<const ChildRun> children, const Origin& origin) {
  IL_TRY(CreatedRun created, CreateRun(tx, parent, origin));
  for (const ChildRun& child : children) {
    IL_TRY_VOID(InsertRun(tx, {.id = child.id,
                               .project_dir = child.project_dir,
                               .goal = created.run.goal,
                               .phase = created.run.phase,
                               .complexity = created.run.complexity,
                               .auto_advance = created.run.auto_advance,
                               .created_at = origin.now,
                               .updated_at = origin.now,
                               .metadata = created.run.metadata,
                               .phases = created.run.phases,
                               .parent_run_id = created.run.id}));
  }
  return created;
}

Result<std::int64_t> EndRun(db::Transaction& tx, std::string_view id, std::string_view status,
                            const std::optional<std::string>& reason, const Origin& origin) {
  IL_TRY(const Run run, FindRun(tx.connection(), id));
  IL_TRY(const std::optional<std::int64_t> children, EndAll(tx, run, status, reason, origin));
  if (children) return *children;
  return Error(Errc::kConflict, fmt::format("run {} is already {}", run.id, run.status))
      .WithDetail("do", "nothing: the run has ended");
}

Result<void> ChangeSettings(db::Transaction& tx, std::string_view id, const RunSettings& settings,
                            const Origin& origin) {
  IL_TRY(const Run run, FindRun(tx.connection(), id));
  if (settings.max_dispatches && !run.is_portfolio()) {
    return Error(
               Errc::kConflict,
               fmt::format("run {} is not a portfolio; only a portfolio has a limit of dispatches",
                           run.id))
        .WithDetail("do", "omit --max-dispatches");
  }
  IL_TRY(const std::optional<std::string> metadata, MergedMetadata(run, settings));
  IL_TRY_VOID(tx->Run(kSetRun, run.id, settings.complexity, settings.auto_advance,
                      settings.force_full, settings.max_dispatches, metadata, origin.now));
  IL_TRY_VOID(AppendPhaseEvent(tx,
                               {.run_id = run.id,
                                .from_phase = run.phase,
                                .to_phase = run.phase,
                                .type = "set",
                                .reason = SettingsText(settings)},
                               origin));
  return {};
}

Result<void> TouchRun(db::Transaction& tx, std::string_view id, std::int64_t now) {
  IL_TRY_VOID(tx->Run(kTouchRun, id, now));
  return {};
}

Result<void> FinishInsert(db::Transaction& tx, Result<std::int64_t> added, std::string_view run_id,
                          std::int64_t now) {
  if (added) return TouchRun(tx, run_id, now);
  if (added.error().code() == Errc::kConstraint) IL_TRY_VOID(FindRun(tx.connection(), run_id));
  return std::move(added).error();
}

std::span<const db::NamedSql> RunChangeStatements() { return kStatements; }

}  // namespace interlock::kernel
