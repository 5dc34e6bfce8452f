#include "intercore.h"

#include <fmt/format.h>

#include <system_error>

#include "db/sqlite/foreign_file.h"

namespace interlock::app {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<fs::path> FindIntercoreFile(const fs::path& from) {
  for (fs::path directory = from; !directory.empty(); directory = directory.parent_path()) {
    fs::path candidate = directory / ".clavain" / "intercore.db";
    std::error_code ignored;  // what cannot be looked at is not there for us
    if (fs::exists(candidate, ignored)) return candidate;
    if (directory == directory.parent_path()) break;
  }
  return Error(Errc::kNotFound,
               fmt::format("there is no .clavain/intercore.db in {} or above it: run 'ic init' "
                           "there, or name the file with --intercore-db",
                           from.string()));
}

std::unique_ptr<db::ForeignFile> MirrorFile(const ServeOptions& options) {
  if (!options.intercore_db.empty()) {
    return std::make_unique<sqlite::ForeignFile>(
        [path = options.intercore_db]() -> Result<fs::path> { return path; },
        sqlite::ForeignFile::Options{});
  }
  if (!options.coordination_dual_write) return nullptr;
  return std::make_unique<sqlite::ForeignFile>(
      []() -> Result<fs::path> {
        std::error_code error;
        const fs::path here = fs::current_path(error);
        if (error)
          return Error(Errc::kCantOpen, "finding the working directory: " + error.message());
        return FindIntercoreFile(here);
      },
      sqlite::ForeignFile::Options{});
}

}  // namespace interlock::app
