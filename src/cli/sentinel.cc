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

using kernel::Claimed;
using kernel::Sentinel;
using kernel::SentinelClaim;
using kernel::Verdict;

std::string_view Word(Verdict verdict) {
  return verdict == Verdict::kAllowed ? "allowed" : "throttled";
}

// A name that is empty is a variable that was not set; it would throttle whoever else forgot. One
// with control characters is a mistake as well: names stand in lists.
Result<SentinelClaim> Checked(std::string_view name, std::string_view scope,
                              std::int64_t interval_s) {
  if (name.empty()) return Error(Errc::kUsage, "the name is empty");
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F; })) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the name '{}' holds a control character", name))
        .WithDetail("do", "name it with letters, digits, '_' and '-'; the scope may be any text");
  }
  if (interval_s < 0) {
    return Error(Errc::kUsage, fmt::format("the interval must not be negative: {}", interval_s))
        .WithDetail("do", "give seconds; 0 = once, until it is reset");
  }
  return SentinelClaim{{name, scope}, interval_s};
}

// Only what has been committed is told.
Result<Claimed> Claim(Context& context, std::span<const SentinelClaim> claims) {
  const auto claim = [&](kernel::Prune prune) {
    return context.Write([&](kernel::Transaction& tx) {
      return kernel::ClaimSentinels(tx, claims, context.Now(), prune);
    });
  };
  Result<Claimed> first = claim(kernel::Prune::kStale);
  if (!first && first.error().code() == Errc::kCancelled) {
    Error not_pruned = std::move(first).error();
    first = claim(kernel::Prune::kNot);
    if (first) first->not_pruned = std::move(not_pruned);
  }
  IL_TRY(Claimed claimed, std::move(first));
  if (claimed.not_pruned) {
    context.Warn(
        fmt::format("old sentinels could not be removed: {}", claimed.not_pruned->message()),
        "the verdict stands; 'ic health' tells whether the database is sound");
  }
  return claimed;
}

json::ObjectText Described(const SentinelClaim& claim, Verdict verdict) {
  json::ObjectText text;
  text.Add("name", claim.id.name).Add("scope_id", claim.id.scope_id).Add("verdict", Word(verdict));
  return text;
}

Result<Outcome> RunCheck(Context& context, const Arguments& arguments) {
  IL_TRY(const auto interval_s, arguments.Integer("interval"));
  if (!interval_s) {
    return Error(Errc::kUsage, "--interval is missing")
        .WithDetail("do", "give seconds, as --interval=300; 0 = once, until it is reset");
  }
  IL_TRY(const SentinelClaim claim, Checked(arguments[0], arguments[1], *interval_s));
  IL_TRY(const Claimed claimed, Claim(context, {&claim, 1}));
  const Verdict verdict = claimed.verdicts.front();
  Outcome outcome = Answer(context, Word(verdict), Described(claim, verdict));
  if (verdict == Verdict::kThrottled) outcome.exit_code = kExitNegative;
  return outcome;
}

// All of them are looked at before any is claimed.
Result<std::vector<SentinelClaim>> ClaimsIn(const Arguments& arguments) {
  if (arguments.size() % 3 != 0) {
    return Error(Errc::kUsage,
                 fmt::format("{} arguments are no whole number of <name> <scope> <interval>",
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

Result<Outcome> RunCheckMany(Context& context, const Arguments& arguments) {
  IL_TRY(const std::vector<SentinelClaim> claims, ClaimsIn(arguments));
  IL_TRY(const Claimed claimed, Claim(context, claims));
  Outcome outcome;
  json::ArrayText array;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Verdict verdict = claimed.verdicts[i];
    if (verdict == Verdict::kThrottled) outcome.exit_code = kExitNegative;
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

Result<Outcome> RunReset(Context& context, const Arguments& arguments) {
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::ResetSentinel(tx, {arguments[0], arguments[1]});
  }));
  return context.json() ? Counted(context, count, "reset") : Outcome{kExitOk, "reset\n"};
}

Result<Outcome> RunResetAll(Context& context, const Arguments& arguments) {
  IL_TRY(const std::int64_t count, context.Write([&](kernel::Transaction& tx) {
    return kernel::ResetSentinels(tx, arguments[0]);
  }));
  return Counted(context, count, "reset");
}

Result<Outcome> RunList(Context& context, const Arguments& /*arguments*/) {
  IL_TRY(const std::vector<Sentinel> sentinels, context.Read(kernel::ListSentinels));
  if (!context.json()) {
    std::string lines;
    for (const Sentinel& sentinel : sentinels) {
      lines += fmt::format("{}\t{}\t{}\n", Field(sentinel.name), Field(sentinel.scope_id),
                           sentinel.last_fired);
    }
    return Outcome{kExitOk, std::move(lines)};
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
  return Outcome{kExitOk, array.Text() + '\n'};
}

Result<Outcome> RunPrune(Context& context, const Arguments& arguments) {
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
    Flag{"interval", "S", "seconds between two times; 0 = once, until it is reset", 'i'},
};
constexpr std::array kPruneFlags = {
    Flag{"older-than", "D", "that fired longer ago than this; must be given"},
    Flag{"include-once", "", "also those that fired for good: they may fire again"},
};

constexpr std::array kCommands = {
    Command{
        "sentinel check", "<name> <scope>", 2, 2, kCheckFlags, "Ask whether to go ahead",
        "Prints allowed, exit code 0, to one of many who ask at once, and throttled, exit code\n"
        "1, to the others and to all who ask again before the interval has passed. Interval 0\n"
        "is allowed once, and never again for any interval until it is reset.\n\n"
        "Who was allowed and died before it did its work has used it up all the same: it stays\n"
        "throttled. Where that matters, write with 'ic state set' when the work is done, and\n"
        "reset when it was not. Sentinels of an interval are removed by themselves when they\n"
        "fired more than 7 days ago. A clock that is set back throttles for less than twice\n"
        "the interval.\n\n"
        "Example:\n  ic sentinel check compound repo --interval=300 || exit 0\n"
        "  ic sentinel check stop \"$SESSION\" --interval=0 >/dev/null || exit 0\n",
        RunCheck},
    Command{"sentinel check-many",
            "<name> <scope> <interval> ...",
            3,
            kAnyNumber,
            {},
            "Ask for several at once",
            "Prints name, scope and verdict per line, with tabs between them, as 'sentinel list'\n"
            "does. Each is claimed for itself. Exit code 0 when all are allowed, 1 when any is\n"
            "throttled. Nothing is claimed when one of the arguments is wrong.\n\n"
            "Example:\n  ic sentinel check-many stop \"$SESSION\" 0 compound repo 300\n",
            RunCheckMany},
    Command{"sentinel reset",
            "<name> <scope>",
            2,
            2,
            {},
            "Let it be allowed again",
            "Prints reset, also when there was nothing to reset.\n\n"
            "Example:\n  ic sentinel reset stop \"$SESSION\"\n",
            RunReset},
    Command{"sentinel reset-all",
            "<name>",
            1,
            1,
            {},
            "Reset a name in all its scopes",
            "Prints how many there were, in one step.\n\n"
            "Example:\n  ic sentinel reset-all compound\n",
            RunResetAll},
    Command{
        "sentinel list",
        "",
        0,
        0,
        {},
        "List all",
        "Prints name, scope and when it last fired (seconds since 1970) per line, with tabs\n"
        "between them, sorted. A name or scope that holds a tab, a line break or another control\n"
        "character, or begins with '\"', is printed as a JSON string. With --json also the\n"
        "interval: 0 = once, also of one that has been asked for once since it fired; null = not\n"
        "known, from an older file.\n\n"
        "Example:\n  ic sentinel list | grep '^stop'\n",
        RunList},
    Command{
        "sentinel prune", "", 0, 0, kPruneFlags, "Remove old ones",
        "Prints how many were removed. Those that fired for good (interval 0) stay, as they\n"
        "would be allowed again, unless --include-once is given. Those whose interval has not\n"
        "passed yet stay in any case: to clear away lets nobody go ahead before the time.\n"
        "'ic sentinel reset' does. Those of an older file, whose interval is not known, stay for\n"
        "7 days.\n\n"
        "Example:\n  ic sentinel prune --older-than=7d\n",
        RunPrune},
};

}  // namespace

std::span<const Command> SentinelCommands() { return kCommands; }

}  // namespace interlock::cli
