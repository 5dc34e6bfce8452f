#include "kernel/locate.h"

#include <fmt/format.h>

#include <string_view>
#include <system_error>

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;

Error Refusal(std::string_view path, std::string_view rule, std::string what_to_do) {
  return Error(Errc::kInvalidArgument,
               fmt::format("path validation: the database path '{}' {}", path, rule))
      .WithDetail("do", std::move(what_to_do));
}

// The way from the directory to what lies below it; empty when it does not.
fs::path Below(const fs::path& path, const fs::path& directory) {
  fs::path below = path.lexically_relative(directory);
  return below == "." || (!below.empty() && *below.begin() == "..") ? fs::path() : below;
}

// Without symlinks; as it is when it cannot be looked at.
fs::path Real(const fs::path& directory) {
  std::error_code failure;
  fs::path real = fs::weakly_canonical(directory, failure);
  return failure ? directory : real;
}

Result<fs::path> Validated(const std::string& text, const fs::path& directory) {
  if (text.empty()) return Refusal(text, "is empty", "name a file, as --db=.clavain/intercore.db");
  if (text.find('\0') != std::string::npos) {
    return Refusal(text, "holds a NUL byte", "name a file, as --db=.clavain/intercore.db");
  }
  const fs::path clean = fs::path(text).lexically_normal();
  if (clean.extension() != ".db") {
    return Refusal(text, "does not end in .db", "name a file that does, as --db=my.db");
  }
  if (clean.string().find("..") != std::string::npos) {
    return Refusal(text, "holds '..'", "go to the directory that holds it, and name it from there");
  }
  const fs::path real = Real(directory);
  const fs::path absolute = (directory / clean).lexically_normal();
  fs::path below = Below(absolute, directory);
  if (below.empty()) below = Below(absolute, real);
  if (below.empty()) {
    return Refusal(text, fmt::format("is not under the current directory {}", directory.string()),
                   "run ic from a directory above it, or set INTERCORE_DB to that path");
  }
  fs::path path = real / below;
  const fs::path place = Real(path.parent_path());
  if (place != real && Below(place, real).empty()) {
    return Refusal(text,
                   fmt::format("leads out of the current directory {} through a symlink, to {}",
                               directory.string(), place.string()),
                   "set INTERCORE_DB to the path that is meant");
  }
  return path;
}

}  // namespace

Result<fs::path> Locate(const Wish& wish) {
  const fs::path directory = wish.directory.lexically_normal();
  if (wish.flag) return Validated(*wish.flag, directory);
  if (wish.environment && !wish.environment->empty()) {
    const fs::path named = *wish.environment;
    return ((named.is_absolute() ? directory : Real(directory)) / named).lexically_normal();
  }
  const fs::path name = fs::path(".clavain") / "intercore.db";
  for (fs::path level = directory;; level = level.parent_path()) {
    std::error_code ignored;  // what cannot be looked at is not found
    if (fs::exists(level / name, ignored)) return level / name;
    if (level == level.root_path() || level.empty()) break;
  }
  return directory / name;
}

}  // namespace interlock::kernel
