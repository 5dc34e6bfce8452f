#include "kernel/file_lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace interlock::kernel {
namespace {

// Longest wait between two checks of a lock. No event reports a change on another machine.
constexpr Duration kRecheckLocal = std::chrono::seconds(1);
constexpr Duration kRecheckRemote = std::chrono::milliseconds(100);
// The guard is normally held for microseconds.
constexpr Duration kGuardTimeout = std::chrono::seconds(2);
constexpr Duration kWaitMax = std::chrono::hours(24 * 365);  // prevents an overflow of the sum
constexpr int kMakeTries = 100;
constexpr std::size_t kOwnerBytesMax = 1024;

bool IsPlain(std::string_view text) {
  return IsUtf8(text) &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

Result<void> CheckComponent(std::string_view what, std::string_view word) {
  std::string_view wrong;
  if (word.empty()) {
    wrong = "is empty";
  } else if (!IsPlain(word)) {
    wrong = "contains a control character or invalid UTF-8";
  } else if (word == "." || word.find("..") != std::string_view::npos ||
             word.find_first_of("/\\") != std::string_view::npos) {
    wrong = "must not be '.' or contain '..', '/' or '\\'";
  }
  if (wrong.empty()) return {};
  return Error(Errc::kInvalidArgument,
               fmt::format("the {} '{}' {}", what, IsPlain(word) ? word : "?", wrong))
      .WithDetail("do", "use a name that is valid for a directory: build, web-1, a.b");
}

Result<void> CheckLock(const LockName& lock) {
  IL_TRY_VOID(CheckComponent("name", lock.name));
  return CheckComponent("scope", lock.scope);
}

Result<void> CheckOwner(std::string_view owner) {
  if (IsPlain(owner) && owner.size() <= kOwnerBytesMax) return {};
  return Error(
             Errc::kInvalidArgument,
             fmt::format("the owner must have at most {} bytes of UTF-8 without control characters",
                         kOwnerBytesMax))
      .WithDetail("do", "name the owner by process and host: --owner=\"$$:$(hostname -s)\"");
}

}  // namespace

std::string FileLocks::OwnerName(std::string_view owner) const {
  if (!owner.empty()) return std::string(owner);
  return fmt::format("{}:{}", context_.self.pid, context_.self.host);
}

Result<LockDirectory> FileLocks::Open(const std::string& name) const {
  IL_TRY(const UniqueFd base, OpenLockBase(options_.base, IfMissing::kFail));
  return LockDirectory::Open(context_, base, name, IfMissing::kFail);
}

Result<LockDirectory> FileLocks::Create(const std::string& name) const {
  for (int tries = 0; tries < kMakeTries; ++tries) {
    const auto base = OpenLockBase(options_.base, IfMissing::kCreate);
    auto directory = base.ok() ? LockDirectory::Open(context_, *base, name, IfMissing::kCreate)
                               : Result<LockDirectory>(base.error());
    if (directory.ok() || directory.error().code() != Errc::kNotFound) return directory;
  }
  return Error(Errc::kIo,
               fmt::format("another process keeps removing {} while it is created", options_.base))
      .WithDetail("do", "stop that process, or set INTERCORE_LOCK_DIR to another directory");
}

bool FileLocks::IsOlder(const HeldLock& held, Duration age) const {
  return AgeAt(context_.clock.Now(), held.since) >= age;
}

bool FileLocks::IsAbandoned(const HeldLock& held) const {
  return held.holder == HolderStatus::kDead && IsOlder(held, kGrace);
}

// No event reports the end of a dead holder's grace period, or a change on another machine.
Duration FileLocks::RecheckDelay(const HeldLock& held) const {
  if (held.holder == HolderStatus::kRemote) return kRecheckRemote;
  if (held.holder != HolderStatus::kDead) return kRecheckLocal;
  const Duration end = std::chrono::seconds(held.since) + kGrace;
  return std::clamp(end - Duration(context_.clock.Now().micros), Duration(1000), kRecheckLocal);
}

Result<std::optional<HeldLock>> FileLocks::Acquire(const LockName& lock, std::string_view owner,
                                                   Duration timeout) {
  IL_TRY_VOID(CheckLock(lock));
  IL_TRY_VOID(CheckOwner(owner));
  const Duration end = context_.clock.Monotonic() + std::min(timeout, kWaitMax);
  IL_TRY(LockDirectory directory, Create(lock.name));
  std::optional<LockWatch> watch;
  while (true) {
    const Duration left = end - context_.clock.Monotonic();
    IL_TRY(const auto claimed, directory.Claim(lock.scope, OwnerName(owner)));
    if (claimed == LockDirectory::ClaimResult::kYes) return std::optional<HeldLock>();
    if (claimed == LockDirectory::ClaimResult::kLost) {
      watch.reset();
      IL_TRY(directory, Create(lock.name));
    }
    IL_TRY(std::optional<HeldLock> held, directory.Find(lock.scope));
    Duration look_again = held ? RecheckDelay(*held) : Duration(0);
    if (held && IsAbandoned(*held)) {
      const auto removed =
          directory.RemoveIf(lock.scope, std::max(left, Duration(0)),
                             [this](const HeldLock& now) { return IsAbandoned(now); });
      if (!removed.ok() && removed.error().code() != Errc::kBusy) return removed.error();
      if (removed.ok() && *removed != LockDirectory::RemoveResult::kHasForeignFiles) held.reset();
      look_again = kRecheckRemote;
    }
    if (left <= Duration(0)) {
      if (held) return held;
      IL_TRY(const auto last, directory.Claim(lock.scope, OwnerName(owner)));
      if (last == LockDirectory::ClaimResult::kYes) return std::optional<HeldLock>();
      return std::optional(HeldLock{.name = lock.name, .scope = lock.scope});
    }
    if (!held) continue;
    if (!watch) {  // then check again: the lock may be gone since before the watch existed
      watch.emplace(context_.clock, directory.fd(), lock.scope, options_.wait_method);
      continue;
    }
    const bool here = held->holder == HolderStatus::kAlive;
    watch->Wait(std::min(left, look_again), here ? std::optional(held->owner->pid) : std::nullopt);
  }
}

Result<ReleaseResult> FileLocks::Release(const LockName& lock, std::string_view owner) {
  IL_TRY_VOID(CheckLock(lock));
  IL_TRY_VOID(CheckOwner(owner));
  auto directory = Open(lock.name);
  if (!directory.ok()) {
    if (directory.error().code() == Errc::kNotFound) return ReleaseResult::kNotHeld;
    return directory.error();
  }
  const std::string name = OwnerName(owner);
  bool found = false;
  IL_TRY(const auto removed,
         directory->RemoveIf(lock.scope, kGuardTimeout, [&](const HeldLock& held) {
           found = true;
           return held.owner && held.owner->owner == name;
         }));
  if (removed == LockDirectory::RemoveResult::kYes) return ReleaseResult::kYes;
  if (removed == LockDirectory::RemoveResult::kHasForeignFiles) {
    return Error(Errc::kIo, fmt::format("the lock '{}/{}' contains files of another program",
                                        lock.name, lock.scope))
        .WithDetail(
            "do", fmt::format("remove everything except owner.json from {}/{}/{}, and release the "
                              "lock again",
                              options_.base, lock.name, lock.scope));
  }
  return found ? ReleaseResult::kNotOwner : ReleaseResult::kNotHeld;
}

Result<void> FileLocks::ForEach(
    const std::function<void(LockDirectory&, const std::vector<std::string>&)>& fn) const {
  const auto base = OpenLockBase(options_.base, IfMissing::kFail);
  if (!base.ok()) {
    if (base.error().code() == Errc::kNotFound) return {};
    return base.error();
  }
  IL_TRY(const std::vector<std::string> names, EntriesOf(base->get()));
  for (const std::string& name : names) {
    auto directory = LockDirectory::Open(context_, *base, name, IfMissing::kFail);
    if (!directory.ok()) continue;  // a file, or removed in the meantime: it contains no locks
    IL_TRY(const std::vector<std::string> scopes, directory->Scopes());
    fn(*directory, scopes);
  }
  return {};
}

Result<std::vector<HeldLock>> FileLocks::List(Duration older_than) {
  std::vector<HeldLock> found;
  IL_TRY_VOID(ForEach([&](const LockDirectory& directory, const std::vector<std::string>& scopes) {
    for (const std::string& scope : scopes) {
      auto held = directory.Find(scope);
      if (held.ok() && *held && IsOlder(**held, older_than)) found.push_back(std::move(**held));
    }
  }));
  return found;
}

Result<std::size_t> FileLocks::Clean(Duration older_than) {
  const auto unwanted = [&](const HeldLock& held) {
    return (held.holder == HolderStatus::kDead || held.holder == HolderStatus::kUnknown) &&
           IsOlder(held, older_than);
  };
  std::size_t count = 0;
  std::optional<Error> failed;  // the first error; the loop continues with the other locks
  IL_TRY_VOID(ForEach([&](LockDirectory& directory, const std::vector<std::string>& scopes) {
    for (const std::string& scope : scopes) {
      const auto held = directory.Find(scope);
      if (!held.ok() || !*held || !unwanted(**held)) continue;
      auto removed = directory.RemoveIf(scope, kGuardTimeout, unwanted);
      if (removed.ok() && *removed == LockDirectory::RemoveResult::kYes) ++count;
      if (!removed.ok() && !failed) failed = std::move(removed).error();
    }
    directory.DeleteLeftovers(older_than);
  }));
  if (failed) return *std::move(failed);
  return count;
}

}  // namespace interlock::kernel
