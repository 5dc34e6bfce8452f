#include "cli/state.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "json/object_text.h"
#include "kernel/input_file.h"
#include "kernel/payload.h"
#include "kernel/state.h"
#include "kernel/watch.h"

namespace interlock::cli {
namespace {

using kernel::StateEntry;
using kernel::StateId;

// Larger than the payload limit: surrounding white space is not stored.
constexpr std::size_t kInputMax = 2 * kernel::kPayloadBytesMax;

// REQUIRES: the first arguments of the command are a key and a scope.
Result<StateId> IdIn(const Arguments& arguments) {
  IL_TRY_VOID(kernel::CheckKey(arguments[0]));
  return StateId{arguments[0], arguments[1]};
}

// Standard input is read only when no payload is given as an argument.
Result<std::string> PayloadText(Context& context, const Arguments& arguments) {
  if (arguments.size() < 3) return context.Input(kInputMax);
  const std::string_view given = arguments[2];
  if (!given.starts_with('@')) return std::string(given);
  IL_TRY(const auto directory, context.Directory());
  return kernel::ReadFileUnder(directory, given.substr(1), kInputMax);
}

Result<std::optional<std::int64_t>> TtlIn(const Arguments& arguments) {
  IL_TRY(const auto ttl, arguments.Time("ttl"));
  return kernel::TtlSeconds(ttl.value_or(Duration::zero()));
}

// Returns the version that must be stored; 0 = no value, nullopt = no condition.
Result<std::optional<std::int64_t>> ConditionIn(const Arguments& arguments) {
  IL_TRY(const auto version, arguments.Integer("if-version", 0));
  if (!arguments.IsOn("if-absent")) return version;
  if (version.value_or(0) > 0) {
    return Error(Errc::kUsage, "--if-absent and --if-version cannot both hold");
  }
  return std::optional<std::int64_t>(0);
}

// The error of a write whose version condition failed.
Result<std::int64_t> Refused(db::Connection& connection, const StateId& id, std::int64_t if_version,
                             std::int64_t now) {
  IL_TRY(const auto found, kernel::FindState(connection, id, now));
  const std::string there = found ? fmt::format("'{}' has version {}", id.key, found->version)
                                  : fmt::format("there is no '{}'", id.key);
  const std::string wanted =
      if_version == 0 ? std::string("no value") : fmt::format("version {}", if_version);
  return Error(Errc::kConflict, fmt::format("not written: {}; expected {}", there, wanted))
      .WithDetail("do", "read it again with 'ic state get --json' and decide again");
}

Result<CommandResult> RunSet(Context& context, const Arguments& arguments) {
  kernel::StateWrite write;
  IL_TRY(write.ttl_s, TtlIn(arguments));
  IL_TRY(write.if_version, ConditionIn(arguments));
  IL_TRY(const StateId id, IdIn(arguments));
  IL_TRY(const std::string text, PayloadText(context, arguments));
  IL_TRY(write.payload, kernel::CheckPayload(text));
  IL_TRY(const std::int64_t version,
         context.Write([&](kernel::Transaction& tx) -> Result<std::int64_t> {
           const std::int64_t now = context.Now();
           IL_TRY(const auto written, kernel::SetState(tx, id, write, now));
           if (written) return *written;
           return Refused(tx.connection(), id, write.if_version.value_or(0), now);
         }));
  if (!context.json()) return CommandResult{};
  return CommandResult{kExitOk, json::ObjectText().Add("version", version).Text() + '\n'};
}

void AddExpiry(json::ObjectText& text, const StateEntry& state) {
  if (state.expires_at) {
    text.Add("expires_at", *state.expires_at);
  } else {
    text.AddNull("expires_at");
  }
}

Result<CommandResult> Found(const Context& context, const StateEntry& state) {
  if (!context.json()) return CommandResult{kExitOk, state.payload + '\n'};
  IL_TRY(const std::string payload, kernel::OneLine(state.payload));
  json::ObjectText text;
  text.Add("key", state.key)
      .Add("scope_id", state.scope_id)
      .Add("version", state.version)
      .Add("updated_at", state.updated_at);
  AddExpiry(text, state);
  return CommandResult{kExitOk, text.AddRaw("payload", payload).Text() + '\n'};
}

Result<CommandResult> RunGet(Context& context, const Arguments& arguments) {
  IL_TRY(const StateId id, IdIn(arguments));
  IL_TRY(const auto found, context.Read([&](db::Connection& connection) {
    return kernel::FindState(connection, id, context.Now());
  }));
  if (!found) return CommandResult{kExitNegative};
  return Found(context, *found);
}

Result<CommandResult> RunDelete(Context& context, const Arguments& arguments) {
  IL_TRY(const StateId id, IdIn(arguments));
  IL_TRY(const bool deleted, context.Write([&](kernel::Transaction& tx) {
    return kernel::DeleteState(tx, id, context.Now());
  }));
  return Answer(context, deleted ? "deleted" : "not found",
                json::ObjectText().Add("deleted", deleted));
}

Result<CommandResult> RunDeleteAll(Context& context, const Arguments& arguments) {
  IL_TRY_VOID(kernel::CheckKey(arguments[0]));
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::DeleteStateOfKey(tx, arguments[0], context.Now());
  }));
  return Counted(context, count, "deleted");
}

Result<CommandResult> RunPrune(Context& context, const Arguments& /*arguments*/) {
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::PruneState(tx, context.Now());
  }));
  return Counted(context, count, "pruned");
}

// REQUIRES: key or scope is given.
Result<std::vector<StateEntry>> Listed(db::Connection& connection,
                                       std::optional<std::string_view> key,
                                       std::optional<std::string_view> scope, std::int64_t now) {
  if (!scope) return kernel::ListStateOfKey(connection, *key, now);
  if (!key) return kernel::ListStateOfScope(connection, *scope, now);
  IL_TRY(auto found, kernel::FindState(connection, {*key, *scope}, now));
  std::vector<StateEntry> one;
  if (found) one.push_back(*std::move(found));
  return one;
}

Result<CommandResult> RunList(Context& context, const Arguments& arguments) {
  const auto scope = arguments.Text("scope");
  std::optional<std::string_view> key;
  if (arguments.size() > 0) {
    key = arguments[0];
    IL_TRY_VOID(kernel::CheckKey(*key));
  }
  if (!key && !scope) {
    return Error(Errc::kUsage, "a key or --scope=S is missing");
  }
  IL_TRY(const std::vector<StateEntry> rows, context.Read([&](db::Connection& connection) {
    return Listed(connection, key, scope, context.Now());
  }));
  if (context.json()) {
    json::ArrayText array;
    for (const StateEntry& state : rows) {
      json::ObjectText text;
      AddExpiry(text, state);
      array.Add(text.Add("key", state.key)
                    .Add("scope_id", state.scope_id)
                    .Add("updated_at", state.updated_at)
                    .Add("version", state.version));
    }
    return CommandResult{kExitOk, array.Text() + '\n'};
  }
  std::string lines;
  for (const StateEntry& state : rows)
    lines.append(Field(key ? state.scope_id : state.key)).append("\n");
  return CommandResult{kExitOk, std::move(lines)};
}

Result<CommandResult> RunIncrement(Context& context, const Arguments& arguments) {
  kernel::StateIncrement increment;
  IL_TRY(const auto by, arguments.Integer("by"));
  increment.by = by.value_or(1);
  if (arguments.Has("ttl")) increment.expiry = kernel::StateIncrement::Expiry::kSet;
  IL_TRY(increment.ttl_s, TtlIn(arguments));
  IL_TRY(const StateId id, IdIn(arguments));
  IL_TRY(const kernel::Counter counter, context.Write([&](kernel::Transaction& tx) {
    return kernel::IncrementState(tx, id, increment, context.Now());
  }));
  return Answer(context, std::to_string(counter.value),
                json::ObjectText().Add("value", counter.value).Add("version", counter.version));
}

Result<CommandResult> RunWait(Context& context, const Arguments& arguments) {
  IL_TRY(const auto since, arguments.Integer("since-version", 0));
  IL_TRY(const auto limit, arguments.Time("timeout"));
  if (!limit || *limit < Duration::zero()) {
    return Error(Errc::kUsage, limit ? "--timeout must not be negative" : "--timeout is missing")
        .WithDetail("do", "give a time limit, as --timeout=30s");
  }
  IL_TRY(const StateId id, IdIn(arguments));
  IL_TRY(const kernel::Database* const database, context.Open(kernel::Database::OpenMode::kRead));
  const std::filesystem::path path = database->path();
  std::optional<StateEntry> state;
  IL_TRY(const bool found, kernel::PollUntil(path, context.clock(), *limit, [&]() -> Result<bool> {
           // Opens the path each time: the file may be replaced during the wait.
           IL_TRY(state, context.Read([&](db::Connection& connection) {
             return kernel::FindState(connection, id, context.Now());
           }));
           return state && state->version > since.value_or(0);
         }));
  if (!found) return CommandResult{kExitNegative};
  return Found(context, *state);
}

constexpr Flag kTtl = {"ttl", "D", "lifetime, in whole seconds (default: no expiry)"};

constexpr std::array kSetFlags = {
    kTtl,
    Flag{"if-absent", "", "write only if there is no value"},
    Flag{"if-version", "N", "write only over version N; 0 = only if there is no value"},
};
constexpr std::array kListFlags = {
    Flag{"scope", "S", "list the keys of this scope; with a key: whether the scope has it"},
};
constexpr std::array kPruneFlags = {
    Flag{"expired", "", "accepted and ignored: this is the default"},
};
constexpr std::array kIncrementFlags = {
    Flag{"by", "N", "amount to add (default 1)"},
    Flag{"ttl", "D", "new lifetime from now (default: the expiry stays)"},
};
constexpr std::array kWaitFlags = {
    Flag{"since-version", "N", "wait for a version above N (default 0: any)"},
    Flag{"timeout", "D", "time limit; required"},
};

constexpr std::array kCommands = {
    Command{
        "state set", "<key> <scope> [json | @file]", 2, 3, kSetFlags, "Store a JSON value",
        "Stores the given JSON value: an argument, a file under the current directory, or "
        "standard\n"
        "input. Without a condition the last writer wins. If a version condition fails, the exit\n"
        "code is 1 and nothing is written. The first version is 1, and each write adds 1. A value\n"
        "that has expired or was deleted starts again at version 1, so the version alone does not\n"
        "detect that a value was deleted and written again. Prints nothing; --json: the new\n"
        "version.\n\n"
        "A key starts with a-z, followed by a-z, 0-9, '_' and '-'. After the first '.', '.' and "
        "':'\n"
        "are allowed too. A scope is any text. The limits are 1 MiB, 20 levels of nesting, "
        "strings\n"
        "of 100 KiB, object keys of 1000 bytes and arrays of 10000 elements. A value that seems "
        "to\n"
        "contain a secret is refused.\n\n"
        "Example:\n  ic state set phase \"$SESSION\" '{\"phase\":\"plan\"}' --ttl=24h\n"
        "  echo '{\"pid\":4711}' | ic state set dispatch \"$SESSION\"\n"
        "  ic state set leader repo '\"me\"' --if-absent --ttl=5m || echo 'there is one'\n",
        RunSet},
    Command{"state get",
            "<key> <scope>",
            2,
            2,
            {},
            "Print a stored value",
            "Prints the stored value. Exits with 1 and prints nothing if there is no value, or if\n"
            "it has expired. --json also prints its version, last change and expiry.\n\n"
            "Example:\n  phase=$(ic state get phase \"$SESSION\") || phase='{}'\n",
            RunGet},
    Command{"state delete",
            "<key> <scope>",
            2,
            2,
            {},
            "Delete a value",
            "Prints deleted, or not found if there is no value or it has expired. Exits with 0 in\n"
            "both cases.\n\n"
            "Example:\n  ic state delete dispatch \"$SESSION\"\n",
            RunDelete},
    Command{
        "state delete-all",
        "<key>",
        1,
        1,
        {},
        "Delete a key in all scopes",
        "Prints the number of deleted values. One atomic step: no other process sees a part of\n"
        "it. Expired values are removed but not counted.\n\n"
        "Example:\n  ic state delete-all discovery_brief\n",
        RunDeleteAll},
    Command{"state list", "[key]", 0, 1, kListFlags,
            "List the scopes of a key, or the keys of a scope",
            "Prints one per line, sorted, without expired values. A name that contains a control\n"
            "character or begins with '\"' is printed as a JSON string. --json: an array of "
            "objects.\n\n"
            "Example:\n  ic state list dispatch\n  ic state list --scope=\"$SESSION\" --json\n",
            RunList},
    Command{"state prune", "", 0, 0, kPruneFlags, "Free the space of expired values",
            "Prints the number of removed values. This is optional: no command returns an expired\n"
            "value, pruned or not.\n\n"
            "Example:\n  ic state prune\n",
            RunPrune},
    Command{
        "state incr", "<key> <scope>", 2, 2, kIncrementFlags, "Increment a counter",
        "Adds to an integer, or to 0 if there is no value, and prints the sum. Concurrent calls\n"
        "lose nothing. If the value is not a 64-bit integer, exits with 2 and changes nothing.\n\n"
        "Example:\n  turns=$(ic state incr turns \"$SESSION\")\n"
        "  ic state incr tokens \"$RUN\" --by=1200 --ttl=24h\n",
        RunIncrement},
    Command{
        "state wait", "<key> <scope>", 2, 2, kWaitFlags, "Wait for a value",
        "Prints the value, in the format of 'state get', as soon as its version is above N.\n"
        "Exits with 1 and prints nothing if the time limit is reached. It sleeps until the file\n"
        "changes. If the file is replaced, it continues with the new file. If the file is\n"
        "removed, it exits with 2.\n\n"
        "Example:\n  ic state wait approved \"$RUN\" --timeout=10m\n"
        "  ic state wait plan \"$RUN\" --since-version=3 --timeout=1h --json\n",
        RunWait},
};

}  // namespace

std::span<const Command> StateCommands() { return kCommands; }

}  // namespace interlock::cli
