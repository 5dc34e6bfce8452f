#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"

namespace interlock::db {

// What migrating needs from an engine beyond SQL.
class Migratable {
 public:
  virtual ~Migratable() = default;
  virtual Connection& connection() = 0;
  // BEGIN IMMEDIATE or its like: from here to the end no other process changes the schema.
  virtual Result<void> BeginExclusive() = 0;
  virtual Result<void> Commit() = 0;
  virtual void Rollback() = 0;
  virtual Result<int> SchemaVersion() = 0;  // 0 = never migrated
  virtual Result<void> SetSchemaVersion(int version) = 0;
  // Runs several statements, as a schema file holds them.
  virtual Result<void> RunScript(std::string_view script) = 0;
  // True when the file has tables but no version of ours: another program made it.
  virtual Result<bool> IsForeign() = 0;
  // A consistent copy of everything committed, also what is only in the log. Mode 0600.
  virtual Result<void> BackUpTo(const std::filesystem::path& target) = 0;
};

// One step of a schema's history. Once released its text never changes.
struct MigrationStep {
  int version;  // the file's version after this step
  std::string_view script;
};

struct Schema {
  std::string_view program;              // who understands newer files: "intermute", "ic"
  std::span<const MigrationStep> steps;  // rising versions
};

struct MigrationOutcome {
  int from;
  int to;
  std::filesystem::path backup;  // empty when none was needed: a new or current file
};

// Brings a database to the newest version of `schema`. The version is read inside the lock, so of
// many processes that start at once one migrates and the others find nothing to do. Before a file
// that already holds data is changed it is copied beside itself (the newest `backups_kept` copies
// stay). A file newer than us, or of another program, is refused untouched with what to do.
class Migrator {
 public:
  struct Options {
    std::filesystem::path database;  // backups are made beside it
    int backups_kept = 5;
  };

  Migrator(Schema schema, Options options, Clock& clock)
      : schema_(schema), options_(std::move(options)), clock_(clock) {}

  Result<MigrationOutcome> Run(Migratable& target);

 private:
  Schema schema_;
  Options options_;
  Clock& clock_;
};

}  // namespace interlock::db
