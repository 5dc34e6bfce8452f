#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
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
  // After a failure in_transaction() tells: still open, then surely nothing was committed; else the
  // outcome is unknown.
  virtual Result<void> Commit() = 0;
  virtual bool in_transaction() const = 0;
  virtual void Rollback() = 0;
  virtual Result<int> SchemaVersion() = 0;  // 0 = never migrated
  // Marks the database as `program`'s, of that version; part of the transaction.
  virtual Result<void> SetSchemaVersion(std::string_view program, int version) = 0;
  // Runs several statements, as a schema file holds them.
  virtual Result<void> RunScript(std::string_view script) = 0;
  // True when there are tables but not the mark of `program`: somebody else made them.
  virtual Result<bool> IsForeign(std::string_view program) = 0;
  // A consistent copy of everything committed, also what is only in the log. Mode 0600. The target
  // must not exist; a failed copy leaves none. Works inside BeginExclusive() … Commit().
  virtual Result<void> BackUpTo(const std::filesystem::path& target) = 0;
};

// What a step means to a program that knows only the tables before it.
enum class Change : std::uint8_t {
  kAdditive,  // it goes on working
  kBreaking,  // it does not: only somebody who was asked to may take this step
};

// One step of a schema's history. Once released its text never changes. It holds no BEGIN, COMMIT
// or PRAGMA: all steps of one migration are one transaction.
struct MigrationStep {
  int version;  // the file's version after this step
  std::string_view script;
  Change change = Change::kAdditive;
};

// Another program whose files this one takes over. Both functions run inside the migration's lock.
struct Predecessor {
  int newest;  // its files have the versions 1 to this one
  // False: a stranger's file that happens to count versions too. Changes nothing.
  Result<bool> (*recognise)(Migratable& file);
  // Makes its tables such that the first step can be taken.
  Result<void> (*lift)(Migratable& file);
};

struct Schema {
  std::string_view program;              // whose files these are: "intermute", "ic"
  std::span<const MigrationStep> steps;  // without a gap, from 1 or above the predecessor's newest
  std::optional<Predecessor> predecessor = {};
};

struct MigrationOutcome {
  int from;
  int to;
  std::filesystem::path backup;  // empty when none was needed: a new or current file
};

// The version that Migrator leads to.
int NewestVersion(const Schema& schema);
// The strongest change on the way from `version` there. REQUIRES: a version that steps lead to.
Change ChangeFrom(const Schema& schema, int version);

// Brings a database to the newest version of `schema`, wholly or not at all.
//
// Used by one thread; any number of processes may do the same at once. Invariants:
// (1) The version is read inside the lock, so of many that start at once one migrates, and the
//     others find nothing to do and write nothing.
// (2) All steps and the new version are one transaction: after an error the file has its old
// version
//     and content. Only after kOutcomeUnknown (storage failed in the COMMIT), a kill or a power cut
//     it may also have the new ones, whole; the next run finds out. A step that ends the
//     transaction is refused (kInternal).
// (3) A file that has a version is copied before it is changed, and nothing is committed between
//     the copy and the change, since the copy is made under the same lock. A migration that failed
//     takes its copy away again, unless the outcome is unknown.
// (4) A file newer than us, or of somebody else, is refused untouched, with what to do.
class Migrator {
 public:
  struct Options {
    std::filesystem::path database;  // backups are made beside it, see backups.h
    int backups_kept = 5;
  };

  Migrator(Schema schema, Options options, Clock& clock);

  // An error of BeginExclusive() is passed on: kBusy when another holds the lock longer than the
  // target waits.
  Result<MigrationOutcome> Run(Migratable& target);

 private:
  Result<MigrationOutcome> RunLocked(Migratable& target);
  Result<void> Refuse(Migratable& target, int version) const;
  Result<bool> IsForeign(Migratable& target, int version) const;
  bool IsPredecessors(int version) const;
  Result<void> Apply(Migratable& target, int from) const;
  Result<void> Commit(Migratable& target) const;
  int newest() const { return NewestVersion(schema_); }

  Schema schema_;
  Options options_;
  Clock& clock_;
};

}  // namespace interlock::db
