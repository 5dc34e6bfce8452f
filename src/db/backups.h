#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace interlock::db {

// The copies of one database that migrations leave beside it, named
//
//   <database>.v<version>.<UTC time>.backup      e.g.
//   intermute.db.v3.20260102T030405.000000Z.backup
//
// by the version they hold, so that a person who goes back finds the right one. A copy has this
// name only when it is whole and synced; before, it is called the same with ".partial". Files with
// other names are never touched.
//
// Used by one thread, and by one process at a time: under the lock of the migration.
class Backups {
 public:
  using Copy = std::function<Result<void>(const std::filesystem::path& target)>;

  // REQUIRES: kept >= 1.
  Backups(const std::filesystem::path& database, int kept);

  // Has `copy` write a new backup and gives it its name. What a killed process left half-written
  // is removed first.
  Result<std::filesystem::path> Make(int version, Timestamp now, const Copy& copy) const;

  // Removes the oldest backups beyond the number to keep; never `newest`. What cannot be removed
  // stays: a backup too many is no reason to fail.
  void Prune(const std::filesystem::path& newest) const;

  // Oldest first.
  std::vector<std::filesystem::path> List() const;

 private:
  // What distinguishes one of our names; nothing when it is none of ours.
  std::optional<std::string> SortKey(std::string_view file_name) const;
  std::filesystem::path FreeName(int version, Timestamp now) const;
  void RemovePartials() const;

  std::filesystem::path directory_;
  std::string prefix_;  // "<database>.v"
  int kept_;
};

}  // namespace interlock::db
