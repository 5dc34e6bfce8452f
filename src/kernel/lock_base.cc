#include "kernel/lock_base.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace interlock::kernel {
namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr uid_t kAdministrator = 0;
constexpr std::string_view kRemedy = "set INTERCORE_LOCK_DIR to a directory of your own";

Error WrongOwnerError(const std::string& path, uid_t owner) {
  return Error(Errc::kForbidden,
               fmt::format("the lock directory {} belongs to user {}", path, owner))
      .WithDetail("do", std::string(kRemedy));
}

Error SymlinkError(const std::string& path) {
  return Error(Errc::kForbidden,
               fmt::format("{} is a symlink; the path of a lock must not contain symlinks", path))
      .WithDetail("do", "set INTERCORE_LOCK_DIR to a path without symlinks");
}

// Reads errno. ENOENT means that another process removed an entry that existed a moment ago.
Error Failed(std::string_view doing, const std::string& path) {
  if (errno == ENOENT) return Error(Errc::kNotFound, fmt::format("{} was just removed", path));
  return LockSystemError(errno, fmt::format("{} {}", doing, path));
}

// Returns the owner of the symlink, or nullopt if the entry is not a symlink.
std::optional<uid_t> SymlinkOwner(int parent, const std::string& name) {
  struct stat found{};
  if (::fstatat(parent, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (!S_ISLNK(found.st_mode)) return std::nullopt;
  return found.st_uid;
}

// Opens the base directory component by component. Any user may have created an entry of a
// world-writable directory, so the checks are stricter below one.
class BasePathWalk {
 public:
  BasePathWalk(const std::string& base, IfMissing if_none) : base_(base), if_none_(if_none) {}

  Result<UniqueFd> Go() {
    at_ = UniqueFd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (at_.get() < 0) return LockSystemError(errno, "opening /");
    std::size_t begin = 1;
    while (begin < base_.size()) {
      const std::size_t end = std::min(base_.find('/', begin), base_.size());
      const std::string name = base_.substr(begin, end - begin);
      const bool last = base_.find_first_not_of('/', end) == std::string::npos;
      begin = end + 1;
      if (!name.empty()) IL_TRY_VOID(Step(name, last, base_.substr(0, end)));
    }
    const int readable = ::openat(at_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (readable < 0) return Failed("opening", base_);
    return UniqueFd(readable);
  }

 private:
  Result<void> Step(const std::string& name, bool last, const std::string& path) {
    constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    UniqueFd next(::openat(at_.get(), name.c_str(), kFlags | O_NOFOLLOW));
    if (next.get() < 0 && errno == ENOENT) {
      if (if_none_ == IfMissing::kFail) return Error(Errc::kNotFound, path + " does not exist");
      if (::mkdirat(at_.get(), name.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
        return Failed("creating", path);
      }
      next = UniqueFd(::openat(at_.get(), name.c_str(), kFlags | O_NOFOLLOW));
    }
    if (next.get() < 0 && errno == ENOTDIR) {
      const std::optional<uid_t> link_owner = SymlinkOwner(at_.get(), name);
      if (!link_owner) {
        return Error(Errc::kCantOpen, fmt::format("{} is not a directory", path))
            .WithDetail("do", std::string(kRemedy));
      }
      if (exposed_ || last || *link_owner != kAdministrator) return SymlinkError(path);
      next = UniqueFd(::openat(at_.get(), name.c_str(), kFlags));
    }
    if (next.get() < 0) return Failed("opening", path);
    at_ = std::move(next);
    return Judge(last, path);
  }

  Result<void> Judge(bool last, const std::string& path) {
    struct stat found{};
    if (::fstat(at_.get(), &found) != 0) {
      return LockSystemError(errno, fmt::format("checking {}", path));
    }
    const bool ours = found.st_uid == ::geteuid();
    if (last && !ours) return WrongOwnerError(path, found.st_uid);
    if (exposed_ && !ours && found.st_uid != kAdministrator)
      return WrongOwnerError(path, found.st_uid);
    if ((found.st_mode & S_IWOTH) != 0) exposed_ = true;
    return {};
  }

  const std::string& base_;
  const IfMissing if_none_;
  UniqueFd at_;
  bool exposed_ = false;
};

}  // namespace

Error LockSystemError(int error, std::string_view what) {
  Errc errc = Errc::kIo;
  std::string remedy(kRemedy);
  if (error == ENOSPC || error == EDQUOT) {
    errc = Errc::kDiskFull;
    remedy = "free some space, or set INTERCORE_LOCK_DIR to a directory on another disk";
  } else if (error == EROFS) {
    errc = Errc::kReadOnly;
  } else if (error == EACCES || error == EPERM) {
    errc = Errc::kForbidden;
  } else if (error == ENAMETOOLONG) {
    errc = Errc::kInvalidArgument;
    remedy = "use at most 255 bytes: names and scopes are directory names";
  }
  return Error(errc, fmt::format("{}: {}", what, ::strerrordesc_np(error)))
      .WithDetail("do", std::move(remedy));
}

Result<UniqueFd> OpenLockBase(const std::string& base, IfMissing if_none) {
  if (!base.starts_with('/')) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the lock directory '{}' is not an absolute path", base))
        .WithDetail("do",
                    "set INTERCORE_LOCK_DIR to an absolute path, so that all processes agree");
  }
  return BasePathWalk(base, if_none).Go();
}

Result<UniqueFd> OpenLockDirectory(int parent, const std::string& name, IfMissing if_none) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  while (true) {
    UniqueFd fd(::openat(parent, name.c_str(), kFlags));
    if (fd.get() >= 0) return fd;
    const int error = errno;
    if (error == ENOTDIR || error == ELOOP) {
      if (SymlinkOwner(parent, name)) return SymlinkError(name);
      return Error(Errc::kCorrupt, fmt::format("'{}' among the locks is not a directory", name))
          .WithDetail("do", "remove it: the lock directory must contain only directories");
    }
    if (error != ENOENT) return LockSystemError(error, fmt::format("opening the lock '{}'", name));
    if (if_none == IfMissing::kFail) {
      return Error(Errc::kNotFound, fmt::format("'{}' does not exist", name));
    }
    if (::mkdirat(parent, name.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
      return Failed("creating", name);
    }
  }
}

}  // namespace interlock::kernel
