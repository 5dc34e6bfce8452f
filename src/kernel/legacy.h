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

// Imports the temporary files in which hooks kept their data before `ic` had a database. `ic` never
// writes such files, and only `ic compat` reads them.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct LegacyKey {
  enum class Kind : std::uint8_t { kState, kSentinel };

  std::string_view key;
  Kind kind;
  std::string_view prefix;  // of a file name; the text between prefix and suffix is the scope
  std::string_view suffix;
  std::string_view default_scope = {};  // scope of a file name without text between them
};

// Sorted by key.
std::span<const LegacyKey> LegacyKeys();

struct LegacyFile {
  const LegacyKey* key = nullptr;
  std::string scope_id;
  std::filesystem::path path;
  std::int64_t modified_at = 0;          // whole seconds
  std::string content = {};              // of a state file, unchanged
  std::optional<Error> unreadable = {};  // set if the content could not be read
};

// Returns the files in `directory` that match a key and belong to the current user, sorted by name.
// Files of other users and symlinks are ignored, because anybody may create them in a shared
// directory. A sentinel may also be a directory: lib/lib-intercore.sh creates those.
Result<std::vector<LegacyFile>> FindLegacyFiles(const std::filesystem::path& directory);

// Returns the JSON to store for a state file: the content itself, or the content as a JSON string
// if it is not JSON and its key allows plain text. An error explains why it cannot be stored.
Result<std::string> LegacyPayload(const LegacyFile& file);

enum class ImportResult : std::uint8_t {
  kWritten,   // the value was written
  kDiffers,   // the database has another value and keeps it
  kUnchanged  // the database already has this value
};

// Stores the file's value unless the database already has one for that key and scope. REQUIRES for
// a state file: `payload` is the result of LegacyPayload().
Result<ImportResult> ImportLegacyFile(db::Transaction& tx, const LegacyFile& file,
                                      std::string_view payload, std::int64_t now);

// True if the database has the file's value: the same state, or a sentinel that fired no earlier.
Result<bool> IsLegacyFileStored(db::Connection& connection, const LegacyFile& file,
                                std::int64_t now);

// Removes the file. Returns false and keeps it if it changed after FindLegacyFiles().
Result<bool> RemoveLegacyFile(const LegacyFile& file);

// Counts the scopes of a key in the database, both as unexpired state and as sentinels.
Result<std::int64_t> CountScopes(db::Connection& connection, std::string_view key,
                                 std::int64_t now);

std::span<const db::NamedSql> LegacyStatements();

}  // namespace interlock::kernel
