#include "kernel/file_lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace interlock::kernel {
namespace {

// How long a wait may last without a look: a change on another machine is told by no event.
constexpr Duration kLookHere = std::chrono::seconds(1);
constexpr Duration kLookElsewhere = std::chrono::milliseconds(100);
// For the guard, which is held for microseconds.
constexpr Duration kGuardTimeout = std::chrono::seconds(2);
constexpr Duration kWaitMax = std::chrono::hours(24 * 365);  // so that the sum cannot overflow
constexpr int kMakeTries = 100;
constexpr std::size_t kOwnerBytesMax = 1024;

bool IsPlain(std::string_view text) {
  return IsUtf8(text) &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

Result<void> CheckWord(std::string_view what, std::string_view word) {
  std::string_view wrong;
  if (word.empty()) {
    wrong = "is empty";
  } else if (!IsPlain(word)) {
    wrong = "holds a control character, or bytes that are not UTF-8";
  } else if (word == "." || word.find("..") != std::string_view::npos ||
             word.find_first_of("/\\") != std::string_view::npos) {
    wrong = "must not be '.' nor hold '..', '/' or '\\'";
  }
  if (wrong.empty()) return {};
  return Error(Errc::kInvalidArgument,
               fmt::format("the {} '{}' {}", what, IsPlain(word) ? word : "?", wrong))
      .WithDetail("do", "give it as the name of a directory could be: build, web-1, a.b");
}

Result<void> CheckLock(const LockName& lock) {
  IL_TRY_VOID(CheckWord("name", lock.name));
  return CheckWord("scope", lock.scope);
}

Result<void> CheckOwner(std::string_view owner) {
  if (IsPlain(owner) && owner.size() <= kOwnerBytesMax) return {};
  return Error(Errc::kInvalidArgument,
               fmt::format("the owner is no text of at most {} bytes without control characters",
                           kOwnerBytesMax))
      .WithDetail("do", "name it by process and host: --owner=\"$$:$(hostname -s)\"");
}

}  // namespace

std::string FileLocks::OwnerName(std::string_view owner) const {
  if (!owner.empty()) return std::string(owner);
  return fmt::format("{}:{}", world_.self.pid, world_.self.host);
}

Result<LockDirectory> FileLocks::Open(const std::string& name) const {
  IL_TRY(const UniqueFd base, OpenLockBase(options_.base, IfNoBase::kFail));
  return LockDirectory::Open(world_, base, name, IfNoBase::kFail);
}

Result<LockDirectory> FileLocks::Make(const std::string& name) const {
  for (int tries = 0; tries < kMakeTries; ++tries) {
    const auto base = OpenLockBase(options_.base, IfNoBase::kMake);
    auto directory = base.ok() ? LockDirectory::Open(world_, *base, name, IfNoBase::kMake)
                               : Result<LockDirectory>(base.error());
    if (directory.ok() || directory.error().code() != Errc::kNotFound) return directory;
  }
  return Error(Errc::kIo,
               fmt::format("{} is removed again and again while it is made", options_.base))
      .WithDetail("do", "find out by whom, or set INTERCORE_LOCK_DIR to another directory");
}

bool FileLocks::IsOlder(const HeldLock& held, Duration age) const {
  return AgeAt(world_.clock.Now(), held.since) >= age;
}

bool FileLocks::IsAbandoned(const HeldLock& held) const {
  return held.holder == Holder::kGone && IsOlder(held, kGrace);
}

// Nobody tells when the grace of a dead holder ends, nor what happens on another machine.
Duration FileLocks::UntilWorthALook(const HeldLock& held) const {
  if (held.holder == Holder::kElsewhere) return kLookElsewhere;
  if (held.holder != Holder::kGone) return kLookHere;
  const Duration end = std::chrono::seconds(held.since) + kGrace;
  return std::clamp(end - Duration(world_.clock.Now().micros), Duration(1000), kLookHere);
}

Result<std::optional<HeldLock>> FileLocks::Acquire(const LockName& lock, std::string_view owner,
                                                   Duration timeout) {
  IL_TRY_VOID(CheckLock(lock));
  IL_TRY_VOID(CheckOwner(owner));
  const Duration end = world_.clock.Monotonic() + std::min(timeout, kWaitMax);
  IL_TRY(LockDirectory directory, Make(lock.name));
  std::optional<LockWatch> watch;
  while (true) {
    const Duration left = end - world_.clock.Monotonic();
    IL_TRY(const auto claimed, directory.Claim(lock.scope, OwnerName(owner)));
    if (claimed == LockDirectory::Claimed::kYes) return std::optional<HeldLock>();
    if (claimed == LockDirectory::Claimed::kLost) {
      watch.reset();
      IL_TRY(directory, Make(lock.name));
    }
    IL_TRY(std::optional<HeldLock> held, directory.Look(lock.scope));
    Duration look_again = held ? UntilWorthALook(*held) : Duration(0);
    if (held && IsAbandoned(*held)) {
      const auto removed =
          directory.RemoveIf(lock.scope, std::max(left, Duration(0)),
                             [this](const HeldLock& now) { return IsAbandoned(now); });
      if (!removed.ok() && removed.error().code() != Errc::kBusy) return removed.error();
      if (removed.ok() && *removed != LockDirectory::Removed::kHasForeignFiles) held.reset();
      look_again = kLookElsewhere;
    }
    if (left <= Duration(0)) {
      if (held) return held;
      IL_TRY(const auto last, directory.Claim(lock.scope, OwnerName(owner)));
      if (last == LockDirectory::Claimed::kYes) return std::optional<HeldLock>();
      return std::optional(HeldLock{.name = lock.name, .scope = lock.scope});
    }
    if (!held) continue;
    if (!watch) {  // and look again: it may have gone before the watch was set
      watch.emplace(world_.clock, directory.fd(), lock.scope, options_.wait_by);
      continue;
    }
    const bool here = held->holder == Holder::kHere;
    watch->Wait(std::min(left, look_again), here ? std::optional(held->owner->pid) : std::nullopt);
  }
}

Result<Released> FileLocks::Release(const LockName& lock, std::string_view owner) {
  IL_TRY_VOID(CheckLock(lock));
  IL_TRY_VOID(CheckOwner(owner));
  auto directory = Open(lock.name);
  if (!directory.ok()) {
    if (directory.error().code() == Errc::kNotFound) return Released::kNotHeld;
    return directory.error();
  }
  const std::string name = OwnerName(owner);
  bool found = false;
  IL_TRY(const auto removed,
         directory->RemoveIf(lock.scope, kGuardTimeout, [&](const HeldLock& held) {
           found = true;
           return held.owner && held.owner->owner == name;
         }));
  if (removed == LockDirectory::Removed::kYes) return Released::kYes;
  if (removed == LockDirectory::Removed::kHasForeignFiles) {
    return Error(Errc::kIo, fmt::format("the lock '{}/{}' has files in it that are no part of it",
                                        lock.name, lock.scope))
        .WithDetail("do",
                    fmt::format("look into {}/{}/{}, remove what is not named owner.json, and "
                                "release it again",
                                options_.base, lock.name, lock.scope));
  }
  return found ? Released::kNotOwner : Released::kNotHeld;
}

Result<void> FileLocks::ForEach(
    const std::function<void(LockDirectory&, const std::vector<std::string>&)>& fn) const {
  const auto base = OpenLockBase(options_.base, IfNoBase::kFail);
  if (!base.ok()) {
    if (base.error().code() == Errc::kNotFound) return {};
    return base.error();
  }
  IL_TRY(const std::vector<std::string> names, EntriesOf(base->get()));
  for (const std::string& name : names) {
    auto directory = LockDirectory::Open(world_, *base, name, IfNoBase::kFail);
    if (!directory.ok()) continue;  // a file, or gone meanwhile: nothing that holds locks
    IL_TRY(const std::vector<std::string> scopes, directory->Scopes());
    fn(*directory, scopes);
  }
  return {};
}

Result<std::vector<HeldLock>> FileLocks::List(Duration older_than) {
  std::vector<HeldLock> found;
  IL_TRY_VOID(ForEach([&](const LockDirectory& directory, const std::vector<std::string>& scopes) {
    for (const std::string& scope : scopes) {
      auto held = directory.Look(scope);
      if (held.ok() && *held && IsOlder(**held, older_than)) found.push_back(std::move(**held));
    }
  }));
  return found;
}

Result<std::size_t> FileLocks::Clean(Duration older_than) {
  const auto unwanted = [&](const HeldLock& held) {
    return (held.holder == Holder::kGone || held.holder == Holder::kUnknown) &&
           IsOlder(held, older_than);
  };
  std::size_t count = 0;
  std::optional<Error> failed;  // the first; the others are cleaned all the same
  IL_TRY_VOID(ForEach([&](LockDirectory& directory, const std::vector<std::string>& scopes) {
    for (const std::string& scope : scopes) {
      const auto held = directory.Look(scope);
      if (!held.ok() || !*held || !unwanted(**held)) continue;
      auto removed = directory.RemoveIf(scope, kGuardTimeout, unwanted);
      if (removed.ok() && *removed == LockDirectory::Removed::kYes) ++count;
      if (!removed.ok() && !failed) failed = std::move(removed).error();
    }
    directory.ClearRemains(older_than);
  }));
  if (failed) return *std::move(failed);
  return count;
}

}  // namespace interlock::kernel
