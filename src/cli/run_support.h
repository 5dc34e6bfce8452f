#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/context.h"
#include "json/object_text.h"
#include "kernel/phase_actions.h"
#include "kernel/phase_event.h"
#include "kernel/run.h"

// What the commands of `ic run` share: reading flags, and runs as text. Stateless, but for the
// Context that they are given: for one thread at a time.
namespace interlock::cli::run {

Error UsageError(std::string message, std::string what_to_do = {});
// A value that was given for `flag` and is wrong: what the kernel says of it, as a usage error.
Error BadFlag(std::string_view flag, const Error& error);

// The flag's value; kUsage when it is not given, or empty.
Result<std::string> Required(const Arguments& arguments, std::string_view flag);
// Nothing when it is not given; kUsage when it is given and empty, since that is an unset variable
// in the caller's script, and to go on without it would do something else than was meant.
Result<std::optional<std::string>> NotEmpty(const Arguments& arguments, std::string_view flag);
// Empty counts as not given.
std::optional<std::string> Optional(const Arguments& arguments, std::string_view flag);
// JSON that is to be stored, within the limits of kernel/payload.h. kUsage names the flag; what
// looks like a secret is kInvalidArgument, as it is for state.
Result<void> JsonFlag(std::string_view flag, std::string_view text);
// The text of a JSON object, as JsonFlag() lets it through; empty counts as not given.
Result<std::optional<std::string>> ObjectFlag(const Arguments& arguments, std::string_view flag);

// Absolute, without "." and ".." and a slash at its end; symlinks stay as they are. A relative one
// is taken from the current directory as the shell names it (PWD).
Result<std::string> ProjectPath(const Context& context, std::string_view path);
// --project, else the current directory.
Result<std::string> ProjectFlag(const Context& context, const Arguments& arguments);

// To be asked when the write lock is held: who waits for it must not write a time long past.
kernel::Origin OriginOf(Context& context);

// `text` as one column of one line, for people: control characters become spaces.
std::string Column(std::string_view text);
// Stored JSON; as a string when another program stored something else.
void AddJson(json::ObjectText& object, std::string_view key, const std::string& stored);
// One line, keys sorted. `children`: text of an array, or empty.
json::ObjectText RunObject(const kernel::Run& run, std::string_view children = {});
json::ObjectText ActionObject(const kernel::PhaseAction& action);
json::ObjectText EventObject(const kernel::PhaseEvent& event);

inline Outcome Line(std::string text) { return {kExitOk, std::move(text) + '\n'}; }

}  // namespace interlock::cli::run
