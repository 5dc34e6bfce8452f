#include "cli/sentinel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "json/object_text.h"
#include "kernel/sentinel.h"

namespace interlock::cli {
namespace {

using kernel::ClaimedSentinels;
using kernel::Sentinel;
using kernel::SentinelClaim;
using kernel::SentinelVerdict;

std::string_view Word(SentinelVerdict verdict) {
  return verdict == SentinelVerdict::kAllowed ? "allowed" : "throttled";
}

// An empty name is usually an unset variable and would be shared by all scripts with that mistake.
// A name with control characters would break the lists.
Result<SentinelClaim> Checked(std::string_view name, std::string_view scope,
                              std::int64_t interval_s) {
  if (name.empty()) return Error(Errc::kUsage, "the name is empty");
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F; })) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the name '{}' contains a control character", name))
        .WithDetail("do", "use letters, digits, '_' and '-'; the scope may be any text");
  }
  if (interval_s < 0) {
    return Error(Errc::kUsage, fmt::format("the interval must not be negative: {}", interval_s))
        .WithDetail("do", "give seconds; 0 = once, until reset");
  }
  return SentinelClaim{{name, scope}, interval_s};
}

// Returns only committed verdicts.
Result<ClaimedSentinels> Claim(Context& context, std::span<const SentinelClaim> claims) {
  const auto claim = [&](kernel::StaleRows stale) {
    return context.Write([&](kernel::Transaction& tx) {
      return kernel::ClaimSentinels(tx, claims, context.Now(), stale);
    });
  };
  Result<ClaimedSentinels> first = claim(kernel::StaleRows::kPrune);
  if (!first && first.error().code() == Errc::kCancelled) {
    Error prune_error = std::move(first).error();
    first = claim(kernel::StaleRows::kKeep);
    if (first) first->prune_error = std::move(prune_error);
  }
  IL_TRY(ClaimedSentinels claimed, std::move(first));
  if (claimed.prune_error) {
    context.Warn(fmt::format("cannot remove old sentinels: {}", claimed.prune_error->message()),
                 "the verdict is valid; check the database with 'ic health'");
  }
  return claimed;
}

json::ObjectText Described(const SentinelClaim& claim, SentinelVerdict verdict) {
  json::ObjectText text;
  text.Add("name", claim.id.name).Add("scope_id", claim.id.scope_id).Add("verdict", Word(verdict));
  return text;
}

Result<CommandResult> RunCheck(Context& context, const Arguments& arguments) {
  IL_TRY(const auto interval_s, arguments.Integer("interval"));
  if (!interval_s) {
    return Error(Errc::kUsage, "--interval is missing")
        .WithDetail("do", "give seconds, as --interval=300; 0 = once, until reset");
  }
  IL_TRY(const SentinelClaim claim, Checked(arguments[0], arguments[1], *interval_s));
  IL_TRY(const ClaimedSentinels claimed, Claim(context, {&claim, 1}));
  const SentinelVerdict verdict = claimed.verdicts.front();
  CommandResult outcome = Answer(context, Word(verdict), Described(claim, verdict));
  if (verdict == SentinelVerdict::kThrottled) outcome.exit_code = kExitNegative;
  return outcome;
}

// Checks all arguments before anything is claimed.
Result<std::vector<SentinelClaim>> ClaimsIn(const Arguments& arguments) {
  if (arguments.size() % 3 != 0) {
    return Error(Errc::kUsage,
                 fmt::format("{} arguments do not form groups of <name> <scope> <interval>",
                             arguments.size()));
  }
  std::vector<SentinelClaim> claims;
  claims.reserve(arguments.size() / 3);
  for (std::size_t i = 0; i < arguments.size(); i += 3) {
    IL_TRY(const std::int64_t interval_s,
           ParseInteger(fmt::format("the interval of '{}'", arguments[i]), arguments[i + 2]));
    IL_TRY(const SentinelClaim claim, Checked(arguments[i], arguments[i + 1], interval_s));
    claims.push_back(claim);
  }
  return claims;
}

Result<CommandResult> RunCheckMany(Context& context, const Arguments& arguments) {
  IL_TRY(const std::vector<SentinelClaim> claims, ClaimsIn(arguments));
  IL_TRY(const ClaimedSentinels claimed, Claim(context, claims));
  CommandResult outcome;
  json::ArrayText array;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const SentinelVerdict verdict = claimed.verdicts[i];
    if (verdict == SentinelVerdict::kThrottled) outcome.exit_code = kExitNegative;
    if (context.json()) {
      array.Add(Described(claims[i], verdict));
    } else {
      outcome.out += fmt::format("{}\t{}\t{}\n", Field(claims[i].id.name),
                                 Field(claims[i].id.scope_id), Word(verdict));
    }
  }
  if (context.json()) outcome.out = array.Text() + '\n';
  return outcome;
}

Result<CommandResult> RunReset(Context& context, const Arguments& arguments) {
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::ResetSentinel(tx, {arguments[0], arguments[1]});
  }));
  return context.json() ? Counted(context, count, "reset") : CommandResult{kExitOk, "reset\n"};
}

Result<CommandResult> RunResetAll(Context& context, const Arguments& arguments) {
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::ResetSentinels(tx, arguments[0]);
  }));
  return Counted(context, count, "reset");
}

Result<CommandResult> RunList(Context& context, const Arguments& /*arguments*/) {
  IL_TRY(const std::vector<Sentinel> sentinels, context.Read(kernel::ListSentinels));
  if (!context.json()) {
    std::string lines;
    for (const Sentinel& sentinel : sentinels) {
      lines += fmt::format("{}\t{}\t{}\n", Field(sentinel.name), Field(sentinel.scope_id),
                           sentinel.last_fired);
    }
    return CommandResult{kExitOk, std::move(lines)};
  }
  json::ArrayText array;
  for (const Sentinel& sentinel : sentinels) {
    json::ObjectText text;
    if (sentinel.interval_s) {
      text.Add("interval_s", *sentinel.interval_s);
    } else {
      text.AddNull("interval_s");
    }
    array.Add(text.Add("last_fired", sentinel.last_fired)
                  .Add("name", sentinel.name)
                  .Add("scope_id", sentinel.scope_id));
  }
  return CommandResult{kExitOk, array.Text() + '\n'};
}

Result<CommandResult> RunPrune(Context& context, const Arguments& arguments) {
  IL_TRY(const auto age, arguments.Time("older-than"));
  if (!age || *age < Duration::zero()) {
    return Error(Errc::kUsage,
                 age ? "--older-than must not be negative" : "--older-than is missing")
        .WithDetail("do", "give an age, as --older-than=7d");
  }
  const std::int64_t age_s = std::chrono::duration_cast<std::chrono::seconds>(*age).count();
  const auto once_only =
      arguments.IsOn("include-once") ? kernel::OnceOnly::kInclude : kernel::OnceOnly::kKeep;
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::PruneSentinels(tx, context.Now() - age_s, once_only, context.Now());
  }));
  return Counted(context, count, "pruned");
}

constexpr std::array kCheckFlags = {
    Flag{"interval", "S", "minimum seconds between two firings; 0 = once, until reset", 'i'},
};
constexpr std::array kPruneFlags = {
    Flag{"older-than", "D", "only sentinels that last fired longer ago; required"},
    Flag{"include-once", "", "also sentinels of interval 0, which may then fire again"},
};

constexpr std::array kCommands = {
    Command{
        "sentinel check", "<name> <scope>", 2, 2, kCheckFlags, "Claim a sentinel",
        "Prints allowed and exits with 0 for one of several concurrent callers. Prints throttled\n"
        "and exits with 1 for the others, and for every caller until the interval has passed. A\n"
        "sentinel with interval 0 is allowed once; then it is throttled for every interval until\n"
        "it is reset.\n\n"
        "The claim counts even if the caller dies before it does its work. If that matters, "
        "record\n"
        "the end of the work with 'ic state set', and reset the sentinel if the work was not "
        "done.\n"
        "Sentinels with an interval are removed automatically 7 days after they fired. If the\n"
        "clock is set back, they throttle for less than twice the interval.\n\n"
        "Example:\n  ic sentinel check compound repo --interval=300 || exit 0\n"
        "  ic sentinel check stop \"$SESSION\" --interval=0 >/dev/null || exit 0\n",
        RunCheck},
    Command{"sentinel check-many",
            "<name> <scope> <interval> ...",
            3,
            kAnyNumber,
            {},
            "Claim several sentinels",
            "Prints one line per sentinel: name, scope and verdict, separated by tabs, in the\n"
            "format of 'sentinel list'. Each claim is independent. Exits with 0 if all are\n"
            "allowed, with 1 if any is throttled. Claims nothing if an argument is invalid.\n\n"
            "Example:\n  ic sentinel check-many stop \"$SESSION\" 0 compound repo 300\n",
            RunCheckMany},
    Command{"sentinel reset",
            "<name> <scope>",
            2,
            2,
            {},
            "Let a sentinel fire again",
            "Prints reset, even if the sentinel does not exist.\n\n"
            "Example:\n  ic sentinel reset stop \"$SESSION\"\n",
            RunReset},
    Command{"sentinel reset-all",
            "<name>",
            1,
            1,
            {},
            "Reset a name in all scopes",
            "Prints the number of reset sentinels. One atomic step.\n\n"
            "Example:\n  ic sentinel reset-all compound\n",
            RunResetAll},
    Command{
        "sentinel list",
        "",
        0,
        0,
        {},
        "List all sentinels",
        "Prints one line per sentinel: name, scope and time of the last firing (Unix seconds),\n"
        "separated by tabs, sorted. A name or scope that contains a control character or begins\n"
        "with '\"' is printed as a JSON string. --json also prints the interval. It is 0 for a\n"
        "sentinel that is throttled until it is reset, and null if it is unknown (from a file of\n"
        "an older program).\n\n"
        "Example:\n  ic sentinel list | grep '^stop'\n",
        RunList},
    Command{
        "sentinel prune", "", 0, 0, kPruneFlags, "Remove old sentinels",
        "Prints the number of removed sentinels. Keeps sentinels of interval 0, which would be\n"
        "allowed again, unless --include-once is given. Always keeps sentinels whose interval has\n"
        "not passed, so pruning never allows anything early; use 'ic sentinel reset' for that.\n"
        "Keeps sentinels of an unknown interval for 7 days.\n\n"
        "Example:\n  ic sentinel prune --older-than=7d\n",
        RunPrune},
};

}  // namespace

std::span<const Command> SentinelCommands() { return kCommands; }

}  // namespace interlock::cli
