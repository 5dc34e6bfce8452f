#include "db/migrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "db/backups.h"

namespace interlock::db {

int NewestVersion(const Schema& schema) { return schema.steps.back().version; }

Change ChangeFrom(const Schema& schema, int version) {
  const bool breaking = std::ranges::any_of(schema.steps, [version](const MigrationStep& step) {
    return step.version > version && step.change == Change::kBreaking;
  });
  return breaking ? Change::kBreaking : Change::kAdditive;
}

Migrator::Migrator(Schema schema, Options options, Clock& clock)
    : schema_(schema), options_(std::move(options)), clock_(clock) {
  IL_CHECK(!schema_.program.empty());
  IL_CHECK(!schema_.steps.empty());
  const int first = schema_.steps.front().version;
  IL_CHECK(schema_.predecessor ? first > schema_.predecessor->newest : first == 1);
  int version = first;
  for (const MigrationStep& step : schema_.steps) IL_CHECK(step.version == version++);
}

Result<MigrationOutcome> Migrator::Run(Migratable& target) {
  IL_TRY_VOID(target.BeginExclusive());
  Result<MigrationOutcome> outcome = RunLocked(target);
  target.Rollback();  // ends what was not committed
  return outcome;
}

Result<MigrationOutcome> Migrator::RunLocked(Migratable& target) {
  IL_TRY(const int from, target.SchemaVersion());
  IL_TRY_VOID(Refuse(target, from));
  if (from == newest()) return MigrationOutcome{from, from, {}};

  const Backups backups(options_.database, options_.backups_kept);
  std::filesystem::path backup;
  if (from > 0) {
    // Pruned before as well, or a server that is killed in every migration would fill the disk.
    backups.Prune({});
    IL_TRY(backup, backups.Make(from, clock_.Now(), [&target](const std::filesystem::path& path) {
      return target.BackUpTo(path);
    }));
  }
  Result<void> done = Apply(target, from);
  if (done) done = Commit(target);
  if (!done) {
    std::error_code ignored;  // the first failure is the one to tell
    const bool surely_old = done.error().code() != Errc::kOutcomeUnknown;
    if (surely_old && !backup.empty()) std::filesystem::remove(backup, ignored);
    return std::move(done).error();
  }
  if (!backup.empty()) backups.Prune(backup);
  return MigrationOutcome{from, newest(), std::move(backup)};
}

bool Migrator::IsPredecessors(int version) const {
  return schema_.predecessor && version > 0 && version <= schema_.predecessor->newest;
}

Result<bool> Migrator::IsForeign(Migratable& target, int version) const {
  if (!IsPredecessors(version)) return target.IsForeign(schema_.program);
  IL_TRY(const bool recognised, schema_.predecessor->recognise(target));
  return !recognised;
}

Result<void> Migrator::Refuse(Migratable& target, int version) const {
  IL_TRY(const bool foreign, IsForeign(target, version));
  if (foreign || version < 0) {
    return Error(Errc::kForeignSchema,
                 fmt::format("{} holds the tables of another program (it has no schema version of "
                             "{}{}) and was left as it is: move it away or name another file, and "
                             "{} starts a new one",
                             options_.database.string(), schema_.program,
                             schema_.predecessor ? "" : "; the Go server's files are of this kind",
                             schema_.program));
  }
  if (version > newest()) {
    return Error(Errc::kSchemaTooNew,
                 fmt::format("{} has schema version {}, written by a newer {}; this one knows "
                             "versions up to {}: run the newer {}, or put back a backup "
                             "({}.v{}.*.backup or older) to go on with this one",
                             options_.database.string(), version, schema_.program, newest(),
                             schema_.program, options_.database.string(), newest()));
  }
  return {};
}

Result<void> Migrator::Apply(Migratable& target, int from) const {
  if (IsPredecessors(from)) {
    if (Result<void> lifted = schema_.predecessor->lift(target); !lifted) {
      return std::move(lifted).error().In(
          fmt::format("{}: taking over version {}", options_.database.string(), from));
    }
  }
  for (const MigrationStep& step : schema_.steps) {
    if (step.version <= from) continue;
    if (Result<void> ran = target.RunScript(step.script); !ran) {
      return std::move(ran).error().In(
          fmt::format("{}: migrating to version {}", options_.database.string(), step.version));
    }
    if (!target.in_transaction()) {
      return Error(Errc::kInternal,
                   fmt::format("{}: the step to version {} ended the transaction of the migration",
                               options_.database.string(), step.version));
    }
  }
  return target.SetSchemaVersion(schema_.program, newest());
}

Result<void> Migrator::Commit(Migratable& target) const {
  Result<void> committed = target.Commit();
  if (committed) return {};
  const std::string doing =
      fmt::format("{}: committing version {}", options_.database.string(), newest());
  if (target.in_transaction()) return std::move(committed).error().In(doing);
  return Error(Errc::kOutcomeUnknown,
               fmt::format("{}: the file has its old version or the new one, whole; starting again "
                           "finds out. {}",
                           doing, committed.error().message()));
}

}  // namespace interlock::db
