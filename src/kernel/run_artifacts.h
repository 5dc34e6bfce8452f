#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"

// Artifacts: files that a phase of a run produced, with their path and content hash when added.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct Artifact {
  std::string id = {};
  std::string run_id = {};
  std::string phase = {};
  std::string path = {};  // as given by the caller
  std::string type = "file";
  std::optional<std::string> content_hash = {};  // "sha256:<hex>"; nullopt: unreadable
  std::optional<std::string> dispatch_id = {};
  std::string status = "active";  // or rolled_back
  std::int64_t created_at = 0;
  std::optional<std::string> dispatch_name = {};  // filled in by ListArtifacts()
};

// kNotFound if the run does not exist. Touches the run.
Result<void> AddArtifact(db::Transaction& tx, const Artifact& artifact);
// Oldest first. Without a phase: the artifacts of all phases.
Result<std::vector<Artifact>> ListArtifacts(db::Connection& connection, std::string_view run_id,
                                            const std::optional<std::string>& phase);
// Considers only active artifacts of this type.
Result<std::optional<std::string>> NewestArtifactPath(db::Connection& connection,
                                                      std::string_view run_id,
                                                      std::string_view type);
// Marks the active artifacts of the phase as rolled back and returns their number.
Result<std::int64_t> RollBackArtifacts(db::Transaction& tx, std::string_view run_id,
                                       std::string_view phase);

// Returns "sha256:<hex>" of a file's content. Returns nullopt if the path is not a regular file or
// cannot be read.
std::optional<std::string> ContentHash(const std::filesystem::path& path);

std::span<const db::NamedSql> ArtifactStatements();

}  // namespace interlock::kernel
