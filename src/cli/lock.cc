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
using kernel::Holder;

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

// A flag that is a time and not before zero.
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

Error IsHeld(Context& context, const HeldLock& held) {
  const std::string lock = fmt::format("{}/{}", held.name, held.scope);
  if (held.holder == Holder::kUnknown) {
    return Error(Errc::kConflict, fmt::format("{} is held, but by whom is not written", lock))
        .WithDetail("do", "'ic lock clean' removes it when nobody has claimed it for 5s");
  }
  std::string remedy = "wait longer with --timeout=D";
  if (held.holder == Holder::kGone) {
    remedy =
        "its process has ended: it can be taken 5s after it was made, unless there are files of "
        "others in it";
  } else if (held.holder == Holder::kElsewhere) {
    remedy = fmt::format("release it on {}; from here nobody can tell whether it is in use",
                         held.owner->host);
  }
  return Error(Errc::kConflict,
               fmt::format("{} is held by '{}' (pid {}) since {}", lock, held.owner->owner,
                           held.owner->pid, FormatDuration(AgeOf(context, held))))
      .WithDetail("do", std::move(remedy));
}

Result<Outcome> RunAcquire(Context& context, const Arguments& arguments) {
  IL_TRY(const Duration timeout, TimeOf(arguments, "timeout", kTimeoutDefault));
  const kernel::LockName lock = NameOf(arguments);
  IL_TRY(const std::optional<HeldLock> held,
         Locks(context).Acquire(lock, OwnerOf(arguments), timeout));
  if (held) return IsHeld(context, *held);
  if (!context.verbose()) return Outcome{};
  return Answer(context, fmt::format("acquired {}/{}", lock.name, lock.scope),
                json::ObjectText().Add("acquired", true));
}

Result<Outcome> RunRelease(Context& context, const Arguments& arguments) {
  const kernel::LockName lock = NameOf(arguments);
  IL_TRY(const kernel::Released released, Locks(context).Release(lock, OwnerOf(arguments)));
  switch (released) {
    case kernel::Released::kYes:
      break;
    case kernel::Released::kNotHeld:
      return Error(Errc::kNotFound, fmt::format("nobody holds {}/{}", lock.name, lock.scope))
          .WithDetail("do", "'ic lock list' says what is held");
    case kernel::Released::kNotOwner:
      return Error(Errc::kConflict,
                   fmt::format("{}/{} is held by another owner", lock.name, lock.scope))
          .WithDetail("do", "say the --owner that acquired it; 'ic lock list' names it");
  }
  if (!context.verbose()) return Outcome{};
  return Answer(context, fmt::format("released {}/{}", lock.name, lock.scope),
                json::ObjectText().Add("released", true));
}

json::ObjectText RowObject(Context& context, const HeldLock& held) {
  json::ObjectText row;
  if (held.owner) row.Add("age", AgeOf(context, held) / std::chrono::seconds(1));
  if (held.holder == Holder::kHere || held.holder == Holder::kGone) {
    row.Add("alive", held.holder == Holder::kHere);
  }
  if (held.owner) row.Add("created", held.owner->created).Add("host", held.owner->host);
  row.Add("name", held.name);
  if (held.owner) row.Add("owner", held.owner->owner).Add("pid", held.owner->pid);
  row.Add("scope", held.scope);
  return row;
}

Outcome Rows(Context& context, const std::vector<HeldLock>& locks) {
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

Result<Outcome> RunList(Context& context, const Arguments& /*arguments*/) {
  IL_TRY(const std::vector<HeldLock> locks, Locks(context).List());
  return Rows(context, locks);
}

Result<Outcome> RunStale(Context& context, const Arguments& arguments) {
  IL_TRY(const Duration age, TimeOf(arguments, "older-than", kStaleDefault));
  IL_TRY(const std::vector<HeldLock> locks, Locks(context).List(age));
  return Rows(context, locks);
}

Result<Outcome> RunClean(Context& context, const Arguments& arguments) {
  IL_TRY(const Duration age, TimeOf(arguments, "older-than", kStaleDefault));
  IL_TRY(const std::size_t count, Locks(context).Clean(age));
  return Counted(context, static_cast<std::int64_t>(count), "cleaned");
}

constexpr Flag kOwner = {
    "owner", "O", "in whose name: \"$$:$(hostname -s)\" is the calling script; default: ic itself"};

constexpr std::array kAcquireFlags = {
    Flag{"timeout", "D", "how long to wait until it is free (default 1s; 0 = try once)"},
    kOwner,
};
constexpr std::array kReleaseFlags = {kOwner};
constexpr std::array kAgeFlags = {
    Flag{"older-than", "D", "only what was made that long ago (default 5s)"},
};

constexpr std::array kCommands = {
    Command{"lock acquire", "<name> <scope>", 2, 2, kAcquireFlags, "Take a lock, or wait for it",
            "Makes <base>/<name>/<scope>/owner.json, where base is INTERCORE_LOCK_DIR, or\n"
            "/tmp/intercore/locks. Prints nothing (\"acquired <name>/<scope>\" with --verbose).\n"
            "Exits with 1 when somebody else holds it until the time is up. The lock of a process\n"
            "of this machine that has ended is taken over, 5 seconds after it was made at the\n"
            "earliest. Give an --owner that lives as long as the lock: without one the lock is\n"
            "that of ic itself, which ends at once.\n\n"
            "Example:\n"
            "  ic lock acquire build all --owner=\"$$:$(hostname -s)\" --timeout=10s\n",
            RunAcquire},
    Command{"lock release", "<name> <scope>", 2, 2, kReleaseFlags, "Give a lock back",
            "Removes the lock if it was acquired in the name of the same owner; exits with 1 when\n"
            "nobody holds it or somebody else does. Prints nothing (\"released <name>/<scope>\"\n"
            "with --verbose).\n\n"
            "Example:\n  ic lock release build all --owner=\"$$:$(hostname -s)\"\n",
            RunRelease},
    Command{
        "lock list",
        "",
        0,
        0,
        {},
        "Say who holds what",
        "Prints a line for each lock: name, scope, owner and age, with tabs between; owner and\n"
        "age are empty when nobody wrote them down. What holds a control character, or begins\n"
        "with '\"', is printed as a JSON string. With --json also whether the owner's process is\n"
        "alive.\n\n"
        "Example:\n  ic lock list\n",
        RunList},
    Command{"lock stale", "", 0, 0, kAgeFlags, "Say what is held for long",
            "Prints what 'lock list' does, of locks of that age alone.\n\n"
            "Example:\n  ic lock stale --older-than=1h\n",
            RunStale},
    Command{"lock clean", "", 0, 0, kAgeFlags, "Remove locks that nobody holds any more",
            "Removes locks of that age whose process on this machine has ended, and those that\n"
            "name no owner. Prints \"<n> cleaned\".\n\n"
            "Example:\n  ic lock clean --older-than=10m\n",
            RunClean},
};

}  // namespace

std::span<const Command> LockCommands() { return kCommands; }

}  // namespace interlock::cli
