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

// The temporary files in which hooks kept what is now in the database, and their way into it. `ic`
// never writes such a file, and no other command reads one.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct LegacyKey {
  enum class Kind : std::uint8_t { kState, kSentinel };

  std::string_view key;
  Kind kind;
  std::string_view prefix;  // of a file's name; what is between it and the suffix is the scope
  std::string_view suffix;
  std::string_view default_scope = {};  // of a file with nothing between them
};

// Sorted by key.
std::span<const LegacyKey> LegacyKeys();

struct LegacyFile {
  const LegacyKey* key = nullptr;
  std::string scope_id;
  std::filesystem::path path;
  std::int64_t modified_at = 0;          // whole seconds
  std::string content = {};              // of a state file, as it is
  std::optional<Error> unreadable = {};  // why there is none
};

// The files of `directory` that belong to a key and to the user who asks, sorted by name. Others'
// files and symlinks are passed over: anybody may put one into a shared directory. A guard may also
// be a directory, as lib/lib-intercore.sh makes it.
Result<std::vector<LegacyFile>> FindLegacyFiles(const std::filesystem::path& directory);

// What a state file holds as JSON: itself, or a string of its text when it is none and its key may
// hold text. An error says why it may not be stored.
Result<std::string> LegacyPayload(const LegacyFile& file);

enum class Imported : std::uint8_t {
  kNow,    // written
  kKept,   // the database has another value, which stays
  kBefore  // the database has just this
};

// Writes it unless the database has something for that key and scope. REQUIRES for a state file:
// `payload` is LegacyPayload() of it.
Result<Imported> ImportLegacyFile(db::Transaction& tx, const LegacyFile& file,
                                  std::string_view payload, std::int64_t now);

// Whether the database has what the file says: the same value, or a firing not older than it.
Result<bool> HoldsLegacyFile(db::Connection& connection, const LegacyFile& file, std::int64_t now);

// Removes it, unless it changed since it was found: then it stays, and this is false.
Result<bool> RemoveLegacyFile(const LegacyFile& file);

// How many scopes of a key are in the database, as state that lives and as sentinels.
Result<std::int64_t> CountScopes(db::Connection& connection, std::string_view key,
                                 std::int64_t now);

std::span<const db::NamedSql> LegacyStatements();

}  // namespace interlock::kernel
