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

using kernel::State;
using kernel::StateId;

// What a payload may have around it that is not kept: white space.
constexpr std::size_t kInputMax = 2 * kernel::kPayloadBytesMax;

// REQUIRES: the command takes a key and a scope first.
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

// The version that must be there; 0 = none, nothing = whatever is there.
Result<std::optional<std::int64_t>> ConditionIn(const Arguments& arguments) {
  IL_TRY(const auto version, arguments.Integer("if-version", 0));
  if (!arguments.IsOn("if-absent")) return version;
  if (version.value_or(0) > 0) {
    return Error(Errc::kUsage, "--if-absent and --if-version cannot both hold");
  }
  return std::optional<std::int64_t>(0);
}

// What a write comes to that found another version than it was to replace: always an error.
Result<std::int64_t> Refused(db::Connection& connection, const StateId& id, std::int64_t if_version,
                             std::int64_t now) {
  IL_TRY(const auto found, kernel::FindState(connection, id, now));
  const std::string there = found ? fmt::format("'{}' has version {}", id.key, found->version)
                                  : fmt::format("there is no '{}'", id.key);
  const std::string wanted =
      if_version == 0 ? std::string("nothing") : fmt::format("version {}", if_version);
  return Error(Errc::kConflict, fmt::format("not written: {}, {} was expected", there, wanted))
      .WithDetail("do", "read it again with 'ic state get --json' and decide anew");
}

Result<Outcome> RunSet(Context& context, const Arguments& arguments) {
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
  if (!context.json()) return Outcome{};
  return Outcome{kExitOk, json::ObjectText().Add("version", version).Text() + '\n'};
}

void AddExpiry(json::ObjectText& text, const State& state) {
  if (state.expires_at) {
    text.Add("expires_at", *state.expires_at);
  } else {
    text.AddNull("expires_at");
  }
}

Result<Outcome> Found(const Context& context, const State& state) {
  if (!context.json()) return Outcome{kExitOk, state.payload + '\n'};
  IL_TRY(const std::string payload, kernel::OneLine(state.payload));
  json::ObjectText text;
  text.Add("key", state.key)
      .Add("scope_id", state.scope_id)
      .Add("version", state.version)
      .Add("updated_at", state.updated_at);
  AddExpiry(text, state);
  return Outcome{kExitOk, text.AddRaw("payload", payload).Text() + '\n'};
}

Result<Outcome> RunGet(Context& context, const Arguments& arguments) {
  IL_TRY(const StateId id, IdIn(arguments));
  IL_TRY(const auto found, context.Read([&](db::Connection& connection) {
    return kernel::FindState(connection, id, context.Now());
  }));
  if (!found) return Outcome{kExitNegative};
  return Found(context, *found);
}

Result<Outcome> RunDelete(Context& context, const Arguments& arguments) {
  IL_TRY(const StateId id, IdIn(arguments));
  IL_TRY(const bool deleted, context.Write([&](kernel::Transaction& tx) {
    return kernel::DeleteState(tx, id, context.Now());
  }));
  return Answer(context, deleted ? "deleted" : "not found",
                json::ObjectText().Add("deleted", deleted));
}

Result<Outcome> RunDeleteAll(Context& context, const Arguments& arguments) {
  IL_TRY_VOID(kernel::CheckKey(arguments[0]));
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::DeleteStateOfKey(tx, arguments[0], context.Now());
  }));
  return Counted(context, count, "deleted");
}

Result<Outcome> RunPrune(Context& context, const Arguments& /*arguments*/) {
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::PruneState(tx, context.Now());
  }));
  return Counted(context, count, "pruned");
}

// REQUIRES: there is a key or a scope.
Result<std::vector<State>> Listed(db::Connection& connection, std::optional<std::string_view> key,
                                  std::optional<std::string_view> scope, std::int64_t now) {
  if (!scope) return kernel::ListStateOfKey(connection, *key, now);
  if (!key) return kernel::ListStateOfScope(connection, *scope, now);
  IL_TRY(auto found, kernel::FindState(connection, {*key, *scope}, now));
  std::vector<State> one;
  if (found) one.push_back(*std::move(found));
  return one;
}

Result<Outcome> RunList(Context& context, const Arguments& arguments) {
  const auto scope = arguments.Text("scope");
  std::optional<std::string_view> key;
  if (arguments.size() > 0) {
    key = arguments[0];
    IL_TRY_VOID(kernel::CheckKey(*key));
  }
  if (!key && !scope) {
    return Error(Errc::kUsage, "a key or --scope=S is missing");
  }
  IL_TRY(const std::vector<State> rows, context.Read([&](db::Connection& connection) {
    return Listed(connection, key, scope, context.Now());
  }));
  if (context.json()) {
    json::ArrayText array;
    for (const State& state : rows) {
      json::ObjectText text;
      AddExpiry(text, state);
      array.Add(text.Add("key", state.key)
                    .Add("scope_id", state.scope_id)
                    .Add("updated_at", state.updated_at)
                    .Add("version", state.version));
    }
    return Outcome{kExitOk, array.Text() + '\n'};
  }
  std::string lines;
  for (const State& state : rows)
    lines.append(Field(key ? state.scope_id : state.key)).append("\n");
  return Outcome{kExitOk, std::move(lines)};
}

Result<Outcome> RunIncrement(Context& context, const Arguments& arguments) {
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

Result<Outcome> RunWait(Context& context, const Arguments& arguments) {
  IL_TRY(const auto since, arguments.Integer("since-version", 0));
  IL_TRY(const auto limit, arguments.Time("timeout"));
  if (!limit || *limit < Duration::zero()) {
    return Error(Errc::kUsage, limit ? "--timeout must not be negative" : "--timeout is missing")
        .WithDetail("do", "say how long to wait, as --timeout=30s");
  }
  IL_TRY(const StateId id, IdIn(arguments));
  IL_TRY(const kernel::Database* const database, context.Open(kernel::Database::Access::kRead));
  const std::filesystem::path path = database->path();
  std::optional<State> state;
  IL_TRY(const bool found, kernel::LookUntil(path, context.clock(), *limit, [&]() -> Result<bool> {
           // By the name, each time: the file may be replaced while we wait.
           IL_TRY(state, context.Read([&](db::Connection& connection) {
             return kernel::FindState(connection, id, context.Now());
           }));
           return state && state->version > since.value_or(0);
         }));
  if (!found) return Outcome{kExitNegative};
  return Found(context, *state);
}

constexpr Flag kTtl = {"ttl", "D", "how long it lives, in whole seconds (default: no end)"};

constexpr std::array kSetFlags = {
    kTtl,
    Flag{"if-absent", "", "only when nothing is there"},
    Flag{"if-version", "N", "only over version N; 0 = only when nothing is there"},
};
constexpr std::array kListFlags = {
    Flag{"scope", "S", "of this scope: its keys, or of one key whether it is there"},
};
constexpr std::array kPruneFlags = {
    Flag{"expired", "", "what it does anyway"},
};
constexpr std::array kIncrementFlags = {
    Flag{"by", "N", "how much to add (default 1)"},
    Flag{"ttl", "D", "how long it lives from now (default: its end stays)"},
};
constexpr std::array kWaitFlags = {
    Flag{"since-version", "N", "wait for a version above N (default 0: any)"},
    Flag{"timeout", "D", "how long to wait; must be given"},
};

constexpr std::array kCommands = {
    Command{
        "state set", "<key> <scope> [json | @file]", 2, 3, kSetFlags, "Store a JSON value",
        "Stores the value that is given as an argument, in a file under the current directory,\n"
        "or on standard input. The last writer wins, unless a version is asked for: then who\n"
        "comes too late gets exit code 1, and nothing is written. Versions begin at 1 and grow by\n"
        "1 with each write. A value that has expired or was deleted is no more: the next one\n"
        "begins at 1, so who swaps values that come and go compares more than the version.\n"
        "Prints nothing; with --json the new version.\n\n"
        "A key begins with a-z and goes on with a-z, 0-9, '_' and '-', behind a first '.' also\n"
        "with '.' and ':'; a scope is any text. The value may have 1 MiB, nested 20 deep, with\n"
        "strings of 100 KiB, keys of 1000 bytes and arrays of 10000 elements. One that looks\n"
        "like it holds a secret is refused.\n\n"
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
            "Prints the value as it was stored. Exit code 1, and no output, when there is none or\n"
            "it has expired. With --json also its version, and when it was written and expires.\n\n"
            "Example:\n  phase=$(ic state get phase \"$SESSION\") || phase='{}'\n",
            RunGet},
    Command{"state delete",
            "<key> <scope>",
            2,
            2,
            {},
            "Remove a value",
            "Prints deleted, or not found, also of what has expired; both are exit code 0.\n\n"
            "Example:\n  ic state delete dispatch \"$SESSION\"\n",
            RunDelete},
    Command{"state delete-all",
            "<key>",
            1,
            1,
            {},
            "Remove a key in all its scopes",
            "Prints how many there were, in one step: no other process sees a part of them. What\n"
            "has expired is removed and not counted.\n\n"
            "Example:\n  ic state delete-all discovery_brief\n",
            RunDeleteAll},
    Command{
        "state list", "[key]", 0, 1, kListFlags, "List scopes of a key, or keys of a scope",
        "Prints one per line, sorted, without what has expired. One that holds a line break,\n"
        "a tab or another control character, or begins with '\"', is printed as a JSON string.\n"
        "With --json an array of objects.\n\n"
        "Example:\n  ic state list dispatch\n  ic state list --scope=\"$SESSION\" --json\n",
        RunList},
    Command{"state prune", "", 0, 0, kPruneFlags, "Give back the space of what has expired",
            "Prints how many rows were removed. Nothing depends on it: what has expired is not\n"
            "seen by any command, pruned or not.\n\n"
            "Example:\n  ic state prune\n",
            RunPrune},
    Command{"state incr", "<key> <scope>", 2, 2, kIncrementFlags, "Count",
            "Adds to a whole number, or to 0 when there is none, and prints the sum. Of many at\n"
            "once none is lost. What is no whole number of 64 bits is exit code 2, and stays.\n\n"
            "Example:\n  turns=$(ic state incr turns \"$SESSION\")\n"
            "  ic state incr tokens \"$RUN\" --by=1200 --ttl=24h\n",
            RunIncrement},
    Command{"state wait", "<key> <scope>", 2, 2, kWaitFlags, "Wait until a value is there",
            "Prints the value as soon as there is one with a version above N, as 'state get'\n"
            "does. Exit code 1, and no output, when the time is up. It sleeps until the file\n"
            "changes. When another file takes its place it goes on with that one; when the file\n"
            "is removed, that is exit code 2.\n\n"
            "Example:\n  ic state wait approved \"$RUN\" --timeout=10m\n"
            "  ic state wait plan \"$RUN\" --since-version=3 --timeout=1h --json\n",
            RunWait},
};

}  // namespace

std::span<const Command> StateCommands() { return kCommands; }

}  // namespace interlock::cli
