#include "cli/lock.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "base/time_text.h"
#include "cli/output.h"
#include "json/object_text.h"
#include "kernel/file_lock.h"

namespace interlock::cli {
namespace {

using kernel::FileLocks;
using kernel::HeldLock;
using kernel::HolderStatus;

constexpr Duration kTimeoutDefault = std::chrono::seconds(1);
constexpr Duration kStaleDefault = std::chrono::seconds(5);

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

FileLocks Locks(Context& context) {
  FileLocks::Options options;
  if (auto base = context.Environment("INTERCORE_LOCK_DIR")) options.base = *std::move(base);
  return {context.clock(),
          context.random(),
          {.pid = ::getpid(), .host = HostName()},
          std::move(options)};
}

kernel::LockName NameOf(const Arguments& arguments) {
  return {.name = std::string(arguments[0]), .scope = std::string(arguments[1])};
}

std::string_view OwnerOf(const Arguments& arguments) {
  return arguments.Text("owner").value_or("");
}

// Reads a flag with a duration that must not be negative.
Result<Duration> TimeOf(const Arguments& arguments, std::string_view flag, Duration otherwise) {
  IL_TRY(const std::optional<Duration> time, arguments.Time(flag));
  if (time.value_or(otherwise) < Duration(0)) {
    return Error(Errc::kUsage, fmt::format("--{} is negative", flag));
  }
  return time.value_or(otherwise);
}

Duration AgeOf(Context& context, const HeldLock& held) {
  return std::chrono::seconds(std::max<std::int64_t>(0, context.Now() - held.since));
}

Error HeldError(Context& context, const HeldLock& held) {
  const std::string lock = fmt::format("{}/{}", held.name, held.scope);
  if (held.holder == HolderStatus::kUnknown) {
    return Error(Errc::kConflict, fmt::format("{} is held; its owner is unknown", lock))
        .WithDetail("do", "'ic lock clean' removes it if it has no owner for 5s");
  }
  std::string remedy = "wait longer with --timeout=D";
  if (held.holder == HolderStatus::kDead) {
    remedy =
        "its process has ended: the lock can be taken over 5s after its creation, unless it "
        "contains files of another program";
  } else if (held.holder == HolderStatus::kRemote) {
    remedy =
        fmt::format("release it on {}; its state is unknown on this machine", held.owner->host);
  }
  return Error(Errc::kConflict,
               fmt::format("{} is held by '{}' (pid {}) since {}", lock, held.owner->owner,
                           held.owner->pid, FormatDuration(AgeOf(context, held))))
      .WithDetail("do", std::move(remedy));
}

Result<CommandResult> RunAcquire(Context& context, const Arguments& arguments) {
  IL_TRY(const Duration timeout, TimeOf(arguments, "timeout", kTimeoutDefault));
  const kernel::LockName lock = NameOf(arguments);
  IL_TRY(const std::optional<HeldLock> held,
         Locks(context).Acquire(lock, OwnerOf(arguments), timeout));
  if (held) return HeldError(context, *held);
  if (!context.verbose()) return CommandResult{};
  return Answer(context, fmt::format("acquired {}/{}", lock.name, lock.scope),
                json::ObjectText().Add("acquired", true));
}

Result<CommandResult> RunRelease(Context& context, const Arguments& arguments) {
  const kernel::LockName lock = NameOf(arguments);
  IL_TRY(const kernel::ReleaseResult released, Locks(context).Release(lock, OwnerOf(arguments)));
  switch (released) {
    case kernel::ReleaseResult::kYes:
      break;
    case kernel::ReleaseResult::kNotHeld:
      return Error(Errc::kNotFound, fmt::format("nobody holds {}/{}", lock.name, lock.scope))
          .WithDetail("do", "'ic lock list' lists the held locks");
    case kernel::ReleaseResult::kNotOwner:
      return Error(Errc::kConflict,
                   fmt::format("{}/{} is held by another owner", lock.name, lock.scope))
          .WithDetail("do", "give the --owner that acquired it; 'ic lock list' prints it");
  }
  if (!context.verbose()) return CommandResult{};
  return Answer(context, fmt::format("released {}/{}", lock.name, lock.scope),
                json::ObjectText().Add("released", true));
}

json::ObjectText RowObject(Context& context, const HeldLock& held) {
  json::ObjectText row;
  if (held.owner) row.Add("age", AgeOf(context, held) / std::chrono::seconds(1));
  if (held.holder == HolderStatus::kAlive || held.holder == HolderStatus::kDead) {
    row.Add("alive", held.holder == HolderStatus::kAlive);
  }
  if (held.owner) row.Add("created", held.owner->created).Add("host", held.owner->host);
  row.Add("name", held.name);
  if (held.owner) row.Add("owner", held.owner->owner).Add("pid", held.owner->pid);
  row.Add("scope", held.scope);
  return row;
}

CommandResult Rows(Context& context, const std::vector<HeldLock>& locks) {
  if (context.json()) {
    json::ArrayText rows;
    for (const HeldLock& held : locks) rows.Add(RowObject(context, held));
    return {kExitOk, rows.Text() + "\n"};
  }
  std::string text;
  for (const HeldLock& held : locks) {
    text += fmt::format("{}\t{}\t{}\t{}\n", Field(held.name), Field(held.scope),
                        held.owner ? Field(held.owner->owner) : "",
                        held.owner ? FormatDuration(AgeOf(context, held)) : "");
  }
  return {kExitOk, std::move(text)};
}

Result<CommandResult> RunList(Context& context, const Arguments& /*arguments*/) {
  IL_TRY(const std::vector<HeldLock> locks, Locks(context).List());
  return Rows(context, locks);
}

Result<CommandResult> RunStale(Context& context, const Arguments& arguments) {
  IL_TRY(const Duration age, TimeOf(arguments, "older-than", kStaleDefault));
  IL_TRY(const std::vector<HeldLock> locks, Locks(context).List(age));
  return Rows(context, locks);
}

Result<CommandResult> RunClean(Context& context, const Arguments& arguments) {
  IL_TRY(const Duration age, TimeOf(arguments, "older-than", kStaleDefault));
  IL_TRY(const std::size_t count, Locks(context).Clean(age));
  return Counted(context, static_cast<std::int64_t>(count), "cleaned");
}

constexpr Flag kOwner = {
    "owner", "O", "owner of the lock: \"$$:$(hostname -s)\" is the calling script (default: ic)"};

constexpr std::array kAcquireFlags = {
    Flag{"timeout", "D", "how long to wait for the lock (default 1s; 0 = try once)"},
    kOwner,
};
constexpr std::array kReleaseFlags = {kOwner};
constexpr std::array kAgeFlags = {
    Flag{"older-than", "D", "only locks of at least this age (default 5s)"},
};

constexpr std::array kCommands = {
    Command{"lock acquire", "<name> <scope>", 2, 2, kAcquireFlags, "Acquire a lock",
            "Creates <base>/<name>/<scope>/owner.json. The base is INTERCORE_LOCK_DIR, or\n"
            "/tmp/intercore/locks. Prints nothing (\"acquired <name>/<scope>\" with --verbose).\n"
            "Exits with 1 if another owner still holds the lock after the timeout. If the owner\n"
            "was a process of this machine that has ended, its lock is taken over, but not\n"
            "earlier than 5 seconds after its creation. Give an --owner that lives as long as the\n"
            "lock: the default owner is ic itself, which ends at once.\n\n"
            "Example:\n"
            "  ic lock acquire build all --owner=\"$$:$(hostname -s)\" --timeout=10s\n",
            RunAcquire},
    Command{"lock release", "<name> <scope>", 2, 2, kReleaseFlags, "Release a lock",
            "Removes the lock if the same owner acquired it. Exits with 1 if the lock is free or\n"
            "has another owner. Prints nothing (\"released <name>/<scope>\" with --verbose).\n\n"
            "Example:\n  ic lock release build all --owner=\"$$:$(hostname -s)\"\n",
            RunRelease},
    Command{
        "lock list",
        "",
        0,
        0,
        {},
        "List locks and their owners",
        "Prints one line per lock: name, scope, owner and age, separated by tabs. Owner and age\n"
        "are empty if the owner is unknown. A field that contains a control character or begins\n"
        "with '\"' is printed as a JSON string. --json also says whether the owner's process is\n"
        "alive.\n\n"
        "Example:\n  ic lock list\n",
        RunList},
    Command{"lock stale", "", 0, 0, kAgeFlags, "List old locks",
            "Prints the same as 'lock list', but only locks of at least the given age.\n\n"
            "Example:\n  ic lock stale --older-than=1h\n",
            RunStale},
    Command{"lock clean", "", 0, 0, kAgeFlags, "Remove locks that nobody holds any more",
            "Removes locks of at least the given age whose process on this machine has ended, and\n"
            "locks without an owner. Prints \"<n> cleaned\".\n\n"
            "Example:\n  ic lock clean --older-than=10m\n",
            RunClean},
};

}  // namespace

std::span<const Command> LockCommands() { return kCommands; }

}  // namespace interlock::cli
