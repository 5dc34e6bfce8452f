#include "kernel/run_artifacts.h"

#include <array>

#include "kernel/run_change.h"

namespace interlock::kernel {
namespace {

// The primary key of run_artifacts; run_id refers to the primary key of runs.
constexpr db::Sql kAddArtifact =
    "INSERT INTO run_artifacts (id, run_id, phase, path, type, content_hash, dispatch_id, status, "
    "created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

// ic_run_artifacts_run and the primary key of dispatches. One run has few artifacts to sort.
constexpr db::Sql kArtifactsOf =
    "SELECT a.id, a.run_id, a.phase, a.path, a.type, a.content_hash, a.dispatch_id, a.status, "
    "a.created_at, d.name FROM run_artifacts AS a LEFT JOIN dispatches AS d ON d.id = "
    "a.dispatch_id "
    "WHERE a.run_id = ?1 AND (?2 IS NULL OR a.phase = ?2) ORDER BY a.created_at, a.rowid";

// ic_run_artifacts_run. One run has few artifacts, so sorting is cheap.
constexpr db::Sql kNewestPath =
    "SELECT path FROM run_artifacts WHERE run_id = ?1 AND type = ?2 AND status = 'active' "
    "ORDER BY created_at DESC, rowid DESC LIMIT 1";

// ic_run_artifacts_run.
constexpr db::Sql kRollBackArtifacts =
    "UPDATE run_artifacts SET status = 'rolled_back' "
    "WHERE run_id = ?1 AND phase = ?2 AND status = 'active'";

constexpr std::array kStatements = {IL_SQL(kAddArtifact), IL_SQL(kArtifactsOf), IL_SQL(kNewestPath),
                                    IL_SQL(kRollBackArtifacts)};

}  // namespace

Result<void> AddArtifact(db::Transaction& tx, const Artifact& artifact) {
  Result<std::int64_t> added = tx->Run(kAddArtifact, artifact.id, artifact.run_id, artifact.phase,
                                       artifact.path, artifact.type, artifact.content_hash,
                                       artifact.dispatch_id, artifact.status, artifact.created_at);
  return FinishInsert(tx, std::move(added), artifact.run_id, artifact.created_at);
}

Result<std::vector<Artifact>> ListArtifacts(db::Connection& connection, std::string_view run_id,
                                            const std::optional<std::string>& phase) {
  std::vector<Artifact> artifacts;
  IL_TRY_VOID(connection.ForEach(
      kArtifactsOf,
      [&artifacts](const db::Row& row) {
        artifacts.push_back({.id = row.String(0),
                             .run_id = row.String(1),
                             .phase = row.String(2),
                             .path = row.String(3),
                             .type = row.String(4),
                             .content_hash = row.OptionalString(5),
                             .dispatch_id = row.OptionalString(6),
                             .status = row.String(7),
                             .created_at = row.Int(8),
                             .dispatch_name = row.OptionalString(9)});
      },
      run_id, phase));
  return artifacts;
}

Result<std::optional<std::string>> NewestArtifactPath(db::Connection& connection,
                                                      std::string_view run_id,
                                                      std::string_view type) {
  return connection.One(
      kNewestPath, [](const db::Row& row) { return row.String(0); }, run_id, type);
}

Result<std::int64_t> RollBackArtifacts(db::Transaction& tx, std::string_view run_id,
                                       std::string_view phase) {
  return tx->Run(kRollBackArtifacts, run_id, phase);
}

std::span<const db::NamedSql> ArtifactStatements() { return kStatements; }

}  // namespace interlock::kernel
