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

// The files that came out of the phases of a run, by path and content as they were when added.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct Artifact {
  std::string id = {};
  std::string run_id = {};
  std::string phase = {};
  std::string path = {};  // as the caller named it
  std::string type = "file";
  std::optional<std::string> content_hash = {};  // "sha256:<hex>"; none: could not be read
  std::optional<std::string> dispatch_id = {};
  std::string status = "active";  // or rolled_back
  std::int64_t created_at = 0;
  std::optional<std::string> dispatch_name = {};  // as ListArtifacts() finds it
};

// kNotFound when there is no such run. Shows that the run is alive.
Result<void> AddArtifact(db::Transaction& tx, const Artifact& artifact);
// Oldest first; of all phases when none is given.
Result<std::vector<Artifact>> ListArtifacts(db::Connection& connection, std::string_view run_id,
                                            const std::optional<std::string>& phase);
// Of the active ones of this type.
Result<std::optional<std::string>> NewestArtifactPath(db::Connection& connection,
                                                      std::string_view run_id,
                                                      std::string_view type);
// Marks the active ones of the phase as rolled back; how many there were.
Result<std::int64_t> RollBackArtifacts(db::Transaction& tx, std::string_view run_id,
                                       std::string_view phase);

// "sha256:<hex>" of a file's content, read in pieces; nothing when it is no regular file or cannot
// be read.
std::optional<std::string> ContentHash(const std::filesystem::path& path);

std::span<const db::NamedSql> ArtifactStatements();

}  // namespace interlock::kernel
