#include "kernel/locate.h"

#include <fmt/format.h>

#include <string_view>
#include <system_error>

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;

Error PathError(std::string_view path, std::string_view rule, std::string what_to_do) {
  return Error(Errc::kInvalidArgument,
               fmt::format("path validation: the database path '{}' {}", path, rule))
      .WithDetail("do", std::move(what_to_do));
}

// Returns the path relative to the directory, or an empty path if it is not below the directory.
fs::path RelativeTo(const fs::path& path, const fs::path& directory) {
  fs::path below = path.lexically_relative(directory);
  return below == "." || (!below.empty() && *below.begin() == "..") ? fs::path() : below;
}

// Resolves symlinks. Returns the path unchanged if that fails.
fs::path ResolveSymlinks(const fs::path& directory) {
  std::error_code failure;
  fs::path real = fs::weakly_canonical(directory, failure);
  return failure ? directory : real;
}

Result<fs::path> ValidateFlag(const std::string& text, const fs::path& directory) {
  if (text.empty())
    return PathError(text, "is empty", "name a file, as --db=.clavain/intercore.db");
  if (text.find('\0') != std::string::npos) {
    return PathError(text, "contains a NUL byte", "name a file, as --db=.clavain/intercore.db");
  }
  const fs::path clean = fs::path(text).lexically_normal();
  if (clean.extension() != ".db") {
    return PathError(text, "does not end in .db", "name a file that ends in .db, as --db=my.db");
  }
  if (clean.string().find("..") != std::string::npos) {
    return PathError(text, "contains '..'", "change to the directory of the file and run ic there");
  }
  const fs::path real = ResolveSymlinks(directory);
  const fs::path absolute = (directory / clean).lexically_normal();
  fs::path below = RelativeTo(absolute, directory);
  if (below.empty()) below = RelativeTo(absolute, real);
  if (below.empty()) {
    return PathError(text, fmt::format("is not under the current directory {}", directory.string()),
                     "run ic from a directory above it, or set INTERCORE_DB to that path");
  }
  fs::path path = real / below;
  const fs::path place = ResolveSymlinks(path.parent_path());
  if (place != real && RelativeTo(place, real).empty()) {
    return PathError(text,
                     fmt::format("leaves the current directory {} through a symlink to {}",
                                 directory.string(), place.string()),
                     "set INTERCORE_DB to the real path");
  }
  return path;
}

}  // namespace

Result<fs::path> LocateDatabase(const DatabasePathInputs& inputs) {
  const fs::path directory = inputs.directory.lexically_normal();
  if (inputs.flag) return ValidateFlag(*inputs.flag, directory);
  if (inputs.environment && !inputs.environment->empty()) {
    const fs::path named = *inputs.environment;
    return ((named.is_absolute() ? directory : ResolveSymlinks(directory)) / named)
        .lexically_normal();
  }
  const fs::path name = fs::path(".clavain") / "intercore.db";
  for (fs::path level = directory;; level = level.parent_path()) {
    std::error_code ignored;  // an unreadable directory counts as one without a database
    if (fs::exists(level / name, ignored)) return level / name;
    if (level == level.root_path() || level.empty()) break;
  }
  return directory / name;
}

}  // namespace interlock::kernel
