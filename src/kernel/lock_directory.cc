#include "kernel/lock_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "kernel/process.h"

namespace interlock::kernel {
namespace {

constexpr const char* kOwnerFile = "owner.json";
constexpr std::string_view kPrivate = "..";
constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr std::size_t kOwnerBytesMax = std::size_t{64} * 1024;

std::int64_t Seconds(Timestamp time) { return time.micros / 1'000'000; }

// Returns nullopt on success, else the errno of the failed call.
std::optional<int> WriteNewFile(int directory, const char* name, std::string_view text) {
  const UniqueFd file(
      ::openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (file.get() < 0) return errno;
  while (!text.empty()) {
    const ssize_t size = ::write(file.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return std::nullopt;
}

// Returns nullopt if the entry is not a regular file or cannot be read.
std::optional<std::string> ReadSmallFile(int directory, const char* name) {
  // O_NONBLOCK: opening a pipe of that name must not wait for a writer.
  const UniqueFd file(::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found{};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 4096> chunk;
  while (text.size() <= kOwnerBytesMax) {
    const ssize_t size = ::read(file.get(), chunk.data(), chunk.size());
    if (size < 0) return std::nullopt;
    if (size == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
  return std::nullopt;
}

// The guard of a directory. Released by the destructor, or when the process ends.
class RemovalGuard {
 public:
  explicit RemovalGuard(int directory) : directory_(directory) {}
  ~RemovalGuard() {
    if (held_) ::flock(directory_, LOCK_UN);
  }
  RemovalGuard(const RemovalGuard&) = delete;
  RemovalGuard& operator=(const RemovalGuard&) = delete;

  // A holder needs microseconds, unless its process is stopped.
  bool Take(Clock& clock, Duration timeout) {
    const Duration end = clock.Monotonic() + timeout;
    while (::flock(directory_, LOCK_EX | LOCK_NB) != 0) {
      if (clock.Monotonic() >= end) return false;
      ::poll(nullptr, 0, 1);
    }
    return held_ = true;
  }

 private:
  const int directory_;
  bool held_ = false;
};

}  // namespace

Duration AgeAt(Timestamp now, std::int64_t since) {
  return std::chrono::abs(Duration(now.micros) - Duration(std::chrono::seconds(since)));
}

Result<std::vector<std::string>> EntriesOf(int directory) {
  // Use a separate descriptor, because reading moves its offset.
  const int fd = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (listing == nullptr) return LockSystemError(errno, "listing locks");
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Result<LockDirectory> LockDirectory::Open(const LockContext& context, const UniqueFd& base,
                                          std::string name, IfMissing if_none) {
  IL_TRY(UniqueFd fd, OpenLockDirectory(base.get(), name, if_none));
  return LockDirectory(context, std::move(fd), std::move(name));
}

std::string LockDirectory::PrivateName(std::string_view kind) const {
  return fmt::format("{}{}-{}-{}", kPrivate, kind, context_->self.pid, ShortId(context_->random));
}

std::string LockDirectory::NewOwnerText(const std::string& owner) const {
  HostProcess holder = ProcessOfOwner(owner, context_->self);
  const bool here = IsSameHost(holder.host, context_->self.host);
  return LockOwnerText({.pid = holder.pid,
                        .host = std::move(holder.host),
                        .owner = owner,
                        .created = Seconds(context_->clock.Now()),
                        .start = here ? ProcessStart(holder.pid) : std::nullopt});
}

Result<LockDirectory::ClaimResult> LockDirectory::Claim(const std::string& scope,
                                                        const std::string& owner) {
  struct stat there{};
  if (::fstatat(fd(), scope.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) return ClaimResult::kTaken;
  const std::string made = PrivateName("new");
  const std::optional<int> error = CreateAndRename(made, scope, NewOwnerText(owner));
  if (!error) return ClaimResult::kYes;
  Delete(made);
  if (*error == EEXIST) return ClaimResult::kTaken;
  if (*error == ENOENT) return ClaimResult::kLost;
  if (*error == EINVAL || *error == ENOSYS) {
    return Error(Errc::kIo,
                 "this file system cannot rename without replacing, so locks are not exclusive")
        .WithDetail("do", "set INTERCORE_LOCK_DIR to a directory on a local disk");
  }
  return LockSystemError(*error, fmt::format("taking the lock '{}/{}'", name_, scope));
}

std::optional<int> LockDirectory::CreateAndRename(const std::string& made, const std::string& scope,
                                                  const std::string& owner_text) const {
  if (::mkdirat(fd(), made.c_str(), kDirectoryMode) != 0) return errno;
  const UniqueFd inside(
      ::openat(fd(), made.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (inside.get() < 0) return errno;
  if (const auto error = WriteNewFile(inside.get(), kOwnerFile, owner_text)) return error;
  // Without RENAME_NOREPLACE, this could replace the empty directory that a script just created.
  if (::renameat2(fd(), made.c_str(), fd(), scope.c_str(), RENAME_NOREPLACE) != 0) return errno;
  return std::nullopt;
}

HolderStatus LockDirectory::StatusOf(const LockOwner& owner) const {
  const bool here = owner.host.empty() || IsSameHost(owner.host, context_->self.host);
  if (!here) return HolderStatus::kRemote;
  return IsAlive(owner.pid, owner.start) ? HolderStatus::kAlive : HolderStatus::kDead;
}

Result<std::optional<HeldLock>> LockDirectory::Find(const std::string& scope) const {
  const auto opened = OpenLockDirectory(fd(), scope, IfMissing::kFail);
  if (!opened.ok()) {
    if (opened.error().code() == Errc::kNotFound) return std::optional<HeldLock>();
    return opened.error();
  }
  struct stat found{};
  if (::fstat(opened->get(), &found) != 0) return LockSystemError(errno, "reading a lock");
  HeldLock held{.name = name_, .scope = scope, .since = found.st_mtim.tv_sec};
  const std::optional<std::string> text = ReadSmallFile(opened->get(), kOwnerFile);
  if (!text) {
    // Without links, the lock was removed after it was opened.
    if (::fstat(opened->get(), &found) == 0 && found.st_nlink == 0)
      return std::optional<HeldLock>();
    return held;
  }
  if (auto owner = ParseLockOwner(*text); owner.ok()) {
    held.holder = StatusOf(*owner);
    held.since = owner->created;
    held.owner = std::move(*owner);
  }
  return held;
}

Result<LockDirectory::RemoveResult> LockDirectory::RemoveIf(
    const std::string& scope, Duration timeout,
    const std::function<bool(const HeldLock&)>& unwanted) {
  const std::string gone = PrivateName("gone");
  {
    RemovalGuard guard(fd());
    if (!guard.Take(context_->clock, timeout)) {
      return Error(Errc::kBusy,
                   fmt::format("another process is removing a lock of '{}' and does not finish",
                               name_))
          .WithDetail("do", "find a stopped ic process with ps, continue it, and try again");
    }
    IL_TRY(const std::optional<HeldLock> held, Find(scope));
    if (!held || !unwanted(*held)) return RemoveResult::kNo;
    if (!HasOnlyOwnerFiles(scope)) {
      IL_TRY(const std::optional<HeldLock> still, Find(scope));
      return still ? RemoveResult::kHasForeignFiles : RemoveResult::kNo;
    }
    if (::renameat2(fd(), scope.c_str(), fd(), gone.c_str(), RENAME_NOREPLACE) != 0) {
      if (errno == ENOENT) return RemoveResult::kNo;
      return LockSystemError(errno, fmt::format("removing the lock '{}/{}'", name_, scope));
    }
  }
  Delete(gone);
  return RemoveResult::kYes;
}

bool LockDirectory::HasOnlyOwnerFiles(const std::string& entry) const {
  const UniqueFd inside(
      ::openat(fd(), entry.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const auto entries = EntriesOf(inside.get());
  return entries.ok() && std::ranges::all_of(*entries, [](const std::string& name) {
           return name.starts_with(kOwnerFile);
         });
}

void LockDirectory::Delete(const std::string& entry) const {
  const UniqueFd inside(
      ::openat(fd(), entry.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (inside.get() >= 0) {
    if (const auto entries = EntriesOf(inside.get()); entries.ok()) {
      for (const std::string& name : *entries) ::unlinkat(inside.get(), name.c_str(), 0);
    }
  }
  ::unlinkat(fd(), entry.c_str(), AT_REMOVEDIR);
}

Result<std::vector<std::string>> LockDirectory::Scopes() const {
  IL_TRY(std::vector<std::string> names, EntriesOf(fd()));
  std::erase_if(names, [](const std::string& name) { return name.starts_with(kPrivate); });
  return names;
}

void LockDirectory::DeleteLeftovers(Duration older_than) {
  const auto entries = EntriesOf(fd());
  if (!entries.ok()) return;
  for (const std::string& entry : *entries) {
    struct stat found{};
    if (!entry.starts_with(kPrivate) ||
        ::fstatat(fd(), entry.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0 ||
        AgeAt(context_->clock.Now(), found.st_mtim.tv_sec) < older_than ||
        !HasOnlyOwnerFiles(entry)) {
      continue;
    }
    // Rename first, so that its creator cannot turn a half deleted directory into a lock.
    const std::string gone = PrivateName("gone");
    if (::renameat2(fd(), entry.c_str(), fd(), gone.c_str(), RENAME_NOREPLACE) == 0) Delete(gone);
  }
}

}  // namespace interlock::kernel
