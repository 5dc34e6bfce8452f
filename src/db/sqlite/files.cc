#include "db/sqlite/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr mode_t kModeBits = 0777;

Error SystemError(int error, std::string_view what, const fs::path& path) {
  Errc errc = Errc::kCantOpen;
  if (error == ENOSPC || error == EDQUOT) errc = Errc::kDiskFull;
  if (error == EROFS) errc = Errc::kReadOnly;
  if (error == EIO) errc = Errc::kIo;
  return Error(errc, fmt::format("{} {}: {}", what, path.string(), ::strerrordesc_np(error)));
}

// Nothing when there is no such file. Does not follow a symlink.
Result<std::optional<struct stat>> Look(const fs::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) == 0) return found;
  if (errno == ENOENT) return std::optional<struct stat>();
  return SystemError(errno, "looking at", path);
}

// The umask may have taken bits that the owner needs.
Result<void> EnsureMode(const fs::path& path, mode_t mode) {
  IL_TRY(const std::optional<struct stat> found, Look(path));
  if (found && (found->st_mode & kModeBits) == mode) return {};
  // A link that somebody puts there meanwhile is refused, not followed.
  if (::fchmodat(AT_FDCWD, path.c_str(), mode, AT_SYMLINK_NOFOLLOW) != 0) {
    return SystemError(errno == EOPNOTSUPP ? ELOOP : errno, "setting the mode of", path);
  }
  return {};
}

// A new directory must survive a power cut like the database in it.
void SyncDirectory(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // not ours to read: its owner's business
  ::fsync(fd);
  ::close(fd);
}

Result<void> CreateDirectories(const fs::path& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return {};
    return SystemError(ENOTDIR, "creating", path);
  }
  if (errno != ENOENT) return SystemError(errno, "looking at", path);
  const fs::path above = path.parent_path();
  if (above != path) IL_TRY_VOID(CreateDirectories(above));
  if (::mkdir(path.c_str(), kDirectoryMode) != 0) {
    if (errno == EEXIST) return {};  // another process was faster
    return SystemError(errno, "creating", path);
  }
  IL_TRY_VOID(EnsureMode(path, kDirectoryMode));
  SyncDirectory(above);
  return {};
}

// Absolute and without "." parts: "link/./file" must not hide that the parent is a link.
Result<fs::path> Absolute(const fs::path& path) {
  if (path.empty() || !path.has_filename() || path.filename() == "." || path.filename() == "..") {
    return Error(Errc::kCantOpen, fmt::format("'{}' does not name a file", path.string()));
  }
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error) return SystemError(error.value(), "finding", path);
  fs::path parts;
  for (const fs::path& part : whole) {
    if (part != "." && !part.empty()) parts /= part;
  }
  return parts;
}

Error Symlink(const fs::path& path) {
  return Error(Errc::kCantOpen,
               fmt::format("{} is a symbolic link: whoever can change it decides which file is "
                           "used; give the path it points to instead",
                           path.string()));
}

// `directory` with every link above it resolved.
Result<fs::path> ResolveDirectory(const fs::path& directory) {
  IL_TRY(const std::optional<struct stat> seen, Look(directory));
  if (!seen) return SystemError(ENOENT, "opening", directory);
  if (S_ISLNK(seen->st_mode)) return Symlink(directory);
  std::error_code error;
  fs::path resolved = fs::canonical(directory, error);
  if (error) return SystemError(error.value(), "resolving", directory);
  IL_TRY(const std::optional<struct stat> reached, Look(resolved));
  // Swapped for a link between the two looks.
  if (!reached || reached->st_dev != seen->st_dev || reached->st_ino != seen->st_ino) {
    return Symlink(directory);
  }
  return resolved;
}

}  // namespace

Result<void> CreatePrivateFile(const std::filesystem::path& path) {
  if (::mknod(path.c_str(), S_IFREG | kFileMode, 0) != 0) {
    if (errno == EEXIST) {
      return Error(Errc::kAlreadyExists, fmt::format("{} exists already", path.string()));
    }
    return SystemError(errno, "creating", path);
  }
  return EnsureMode(path, kFileMode);
}

Result<std::filesystem::path> SafePlace(const std::filesystem::path& path, IfMissing if_missing) {
  IL_TRY(const fs::path whole, Absolute(path));
  const fs::path directory = whole.parent_path();
  if (if_missing == IfMissing::kCreate) IL_TRY_VOID(CreateDirectories(directory));
  IL_TRY(const fs::path resolved, ResolveDirectory(directory));
  return resolved / whole.filename();
}

Result<std::filesystem::path> SafePath(const std::filesystem::path& path, IfMissing if_missing) {
  IL_TRY(fs::path safe, SafePlace(path, if_missing));
  IL_TRY(std::optional<struct stat> found, Look(safe));
  if (!found && if_missing == IfMissing::kCreate) {
    const Result<void> created = CreatePrivateFile(safe);
    if (!created && created.error().code() != Errc::kAlreadyExists) return created.error();
    IL_TRY(found, Look(safe));
  }
  if (!found) return SystemError(ENOENT, "opening", path);
  if (S_ISLNK(found->st_mode)) return Symlink(path);
  if (!S_ISREG(found->st_mode)) {
    return Error(Errc::kCantOpen, fmt::format("{} is not a regular file", path.string()));
  }
  // Its log and its lock go by its name: two programs that know it by different names would each
  // write alone.
  if (found->st_nlink > 1) {
    return Error(
        Errc::kCantOpen,
        fmt::format("{} has other names (hard links): remove them, or use a copy", path.string()));
  }
  return safe;
}

std::optional<FileId> FileAt(const std::filesystem::path& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileId{.device = found.st_dev, .number = found.st_ino};
}

}  // namespace interlock::sqlite
