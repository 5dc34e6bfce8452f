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

// Shared by the commands of `ic run`: reading flags, and runs as text. Stateless except for the
// Context, so for one thread at a time.
namespace interlock::cli::run {

Error UsageError(std::string message, std::string what_to_do = {});
// Converts a kernel error about the value of `flag` to a usage error.
Error BadFlag(std::string_view flag, const Error& error);

// Returns the flag's value; kUsage if it is missing or empty.
Result<std::string> Required(const Arguments& arguments, std::string_view flag);
// Returns nullopt if the flag is missing. kUsage if its value is empty: that is usually an unset
// variable of the caller's script, and ignoring it could do the wrong thing.
Result<std::optional<std::string>> NotEmpty(const Arguments& arguments, std::string_view flag);
// An empty value counts as missing.
std::optional<std::string> Optional(const Arguments& arguments, std::string_view flag);
// Checks JSON against the limits of kernel/payload.h. kUsage names the flag; a likely secret is
// kInvalidArgument, as for state.
Result<void> JsonFlag(std::string_view flag, std::string_view text);
// Returns a JSON object that JsonFlag() accepts; an empty value counts as missing.
Result<std::optional<std::string>> ObjectFlag(const Arguments& arguments, std::string_view flag);

// Returns an absolute path without ".", ".." and a trailing slash; symlinks stay. A relative path
// starts at the current directory as the shell names it (PWD).
Result<std::string> ProjectPath(const Context& context, std::string_view path);
// The value of --project, or the current directory.
Result<std::string> ProjectFlag(const Context& context, const Arguments& arguments);

// Call this while the write lock is held; before the wait for the lock, the time would be too old.
kernel::Origin OriginOf(Context& context);

// Formats `text` as one column of a line: control characters become spaces.
std::string Column(std::string_view text);
// Adds stored JSON, or a JSON string if another program stored something else.
void AddJson(json::ObjectText& object, std::string_view key, const std::string& stored);
// One line with sorted keys. `children` is the text of an array, or empty.
json::ObjectText RunObject(const kernel::Run& run, std::string_view children = {});
json::ObjectText ActionObject(const kernel::PhaseAction& action);
json::ObjectText EventObject(const kernel::PhaseEvent& event);

inline CommandResult Line(std::string text) { return {kExitOk, std::move(text) + '\n'}; }

}  // namespace interlock::cli::run
