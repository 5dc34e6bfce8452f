#include "base/git_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "base/program.h"
#include "base/unique_fd.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLinkBytesMax = 8192;
constexpr std::size_t kExcludeBytesMax = std::size_t{1} << 20;

Error SystemError(int error, std::string_view what, const fs::path& path) {
  return {error == EROFS ? Errc::kReadOnly : Errc::kCantOpen,
          fmt::format("{} {}: {}", what, path.string(), ::strerrordesc_np(error))};
}

// A regular file, whole; nothing when there is none.
Result<std::optional<std::string>> ReadSmall(const fs::path& path, std::size_t bytes_max) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.get() < 0 && errno == ENOENT) return std::optional<std::string>();
  if (fd.get() < 0) return SystemError(errno, "opening", path);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return SystemError(errno, "looking at", path);
  if (!S_ISREG(info.st_mode)) {
    return Error(Errc::kCantOpen, fmt::format("{} is not a regular file", path.string()));
  }
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t size = 0; (size = ::read(fd.get(), piece.data(), piece.size())) != 0;) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return SystemError(errno, "reading", path);
    text.append(piece.data(), static_cast<std::size_t>(size));
    if (text.size() > bytes_max) {
      return Error(Errc::kCantOpen,
                   fmt::format("{} is larger than {} bytes", path.string(), bytes_max));
    }
  }
  return std::optional<std::string>(std::move(text));
}

std::string_view WithoutLineEnd(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// The directory that all work trees of the repository share, where info/exclude is.
Result<fs::path> CommonDirectory(const fs::path& root) {
  constexpr std::string_view kLink = "gitdir: ";
  const fs::path dot_git = root / ".git";
  std::error_code ignored;
  fs::path directory = dot_git;
  if (!fs::is_directory(dot_git, ignored)) {
    IL_TRY(const auto link, ReadSmall(dot_git, kLinkBytesMax));
    const std::string_view text = WithoutLineEnd(link ? std::string_view(*link) : "");
    if (!text.starts_with(kLink) || text.size() == kLink.size()) {
      return Error(Errc::kCantOpen, fmt::format("{} names no git directory", dot_git.string()));
    }
    directory = root / text.substr(kLink.size());
  }
  IL_TRY(const auto common, ReadSmall(directory / "commondir", kLinkBytesMax));
  return common ? directory / WithoutLineEnd(*common) : directory;
}

// The line of info/exclude for `file` and for names that begin with its name.
std::string PatternOf(const fs::path& file, const fs::path& root) {
  std::string pattern = "/";
  for (const char c : file.lexically_relative(root).string()) {
    if (c == '\n' || c == '\r') {
      pattern += '?';  // a line cannot hold it, and "?" stands for any character
      continue;
    }
    if (std::string_view("\\*?[").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "*";
}

bool HasLine(std::string_view text, std::string_view line) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (WithoutLineEnd(text.substr(0, end)) == line) return true;
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  return false;
}

// One write at the end, so that several processes at once do not mix their lines.
Result<void> Append(const fs::path& path, std::string_view text) {
  if (::mkdir(path.parent_path().c_str(), 0777) != 0 && errno != EEXIST) {
    return SystemError(errno, "creating", path.parent_path());
  }
  const UniqueFd fd(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (fd.get() < 0) return SystemError(errno, "opening", path);
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  if (written < 0) return SystemError(errno, "writing", path);
  if (written != static_cast<ssize_t>(text.size())) return SystemError(ENOSPC, "writing", path);
  return {};
}

Result<Hidden> HideFile(const fs::path& file) {
  const auto root = FindGitRoot(file.parent_path());
  if (!root) return Hidden::kAlready;
  IL_TRY(const fs::path common, CommonDirectory(*root));
  const fs::path exclude = common / "info" / "exclude";
  struct stat info{};
  if (::stat(common.c_str(), &info) != 0) return SystemError(errno, "looking at", common);
  if (info.st_uid != ::geteuid()) {  // it could lead our writes anywhere
    return Error(Errc::kForbidden, fmt::format("{} belongs to another user", common.string()));
  }
  IL_TRY(const auto text, ReadSmall(exclude, kExcludeBytesMax));
  const std::string line = PatternOf(file, *root);
  if (text && HasLine(*text, line)) return Hidden::kAlready;
  const bool open_line = text && !text->empty() && !text->ends_with('\n');
  IL_TRY_VOID(Append(exclude, (open_line ? "\n" : "") + line + "\n"));
  return Hidden::kNow;
}

// The absolute paths that a file has; of a symbolic link: the link, and the file behind it.
Result<std::set<fs::path>> PlacesOf(const fs::path& file) {
  std::error_code error;
  const fs::path whole = fs::absolute(file, error);
  std::set<fs::path> places = {fs::weakly_canonical(whole.parent_path(), error) / whole.filename(),
                               fs::weakly_canonical(whole, error)};
  if (error) return SystemError(error.value(), "finding", file);
  return places;
}

// Whether git ignores the file; nothing without a git program. Fails when git cannot tell.
Result<std::optional<bool>> AskGit(const fs::path& root, const fs::path& file, Clock& clock) {
  ProgramRunner runner(clock);
  const auto asked =
      runner.Run({.argv = {"git", "-C", root.string(), "-c", "core.fsmonitor=false", "check-ignore",
                           "--quiet", "--", file.lexically_relative(root).string()}});
  if (!asked.ok() && asked.error().code() == Errc::kNotFound) return std::optional<bool>();
  if (!asked.ok()) return asked.error();
  if (asked->exit_code == 0 || asked->exit_code == 1) return std::optional(asked->exit_code == 0);
  const std::string_view reason = asked->err;
  return Error(Errc::kForbidden, std::string(reason.substr(0, reason.find('\n'))));
}

}  // namespace

std::optional<fs::path> FindGitRoot(const fs::path& directory) {
  for (fs::path at = directory; !at.empty(); at = at.parent_path()) {
    std::error_code ignored;  // a place that cannot be read is no work tree for us
    if (fs::exists(at / ".git", ignored)) return at;
    if (at == at.parent_path()) break;
  }
  return std::nullopt;
}

Result<Hidden> HideFromGit(const std::vector<fs::path>& files) {
  std::set<fs::path> places;
  for (const fs::path& file : files) {
    IL_TRY(std::set<fs::path> more, PlacesOf(file));
    places.merge(more);
  }
  Hidden hidden = Hidden::kAlready;
  for (const fs::path& place : places) {
    IL_TRY(const Hidden one, HideFile(place));
    if (one == Hidden::kNow) hidden = Hidden::kNow;
  }
  return hidden;
}

Result<void> EnsureIgnoredByGit(const fs::path& file, Clock& clock) {
  const Result<Hidden> hidden = HideFromGit({file});
  const auto would_add = [](const fs::path& place, std::string_view reason) {
    return Error(
        Errc::kForbidden,
        fmt::format("git would add {} ({}); choose a place outside the work tree, or let a "
                    ".gitignore exclude it",
                    place.string(), reason));
  };
  IL_TRY(const std::set<fs::path> places, PlacesOf(file));
  for (const fs::path& place : places) {
    const auto root = FindGitRoot(place.parent_path());
    if (!root) continue;
    const Result<std::optional<bool>> ignored = AskGit(*root, place, clock);
    if (!ignored.ok()) return would_add(place, ignored.error().message());
    if (ignored->value_or(hidden.ok())) continue;
    return would_add(place, hidden.ok() ? "it is tracked, or a .gitignore includes it"
                                        : std::string_view(hidden.error().message()));
  }
  return {};
}

}  // namespace interlock
