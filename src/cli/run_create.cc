#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ranges>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/unique_fd.h"
#include "cli/run.h"
#include "cli/run_support.h"
#include "kernel/gate_rules.h"
#include "kernel/run_change.h"

namespace interlock::cli::run {
namespace {

constexpr std::size_t kGatesBytesMax = std::size_t{1} << 20;

// Reads a regular file of limited size.
Result<std::string> ReadFile(const std::string& path) {
  const auto failed = [&path](Errc code, std::string_view why) {
    return Error(code, fmt::format("{}: {}", path, why))
        .WithDetail("do", "name a readable regular file of at most 1 MiB");
  };
  // Do not follow a symlink: anybody who can change it would choose the rules of the run.
  const UniqueFd file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 && errno == ELOOP) return failed(Errc::kForbidden, "it is a symlink");
  if (file.get() < 0) return failed(Errc::kCantOpen, std::generic_category().message(errno));
  struct stat found = {};
  if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return failed(Errc::kCantOpen, "it is not a regular file");
  }
  std::string text(kGatesBytesMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(Errc::kIo, std::generic_category().message(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kGatesBytesMax) return failed(Errc::kPayloadTooLarge, "it is larger than 1 MiB");
  text.resize(size);
  return text;
}

Result<std::optional<std::string>> GatesFlag(const Arguments& arguments,
                                             const kernel::PhaseChain& chain) {
  const std::optional<std::string> file = Optional(arguments, "gates-file");
  const std::optional<std::string> inline_text = Optional(arguments, "gates");
  if (file && inline_text) return UsageError("--gates and --gates-file exclude each other");
  if (!file && !inline_text) return std::nullopt;
  std::string text = inline_text.value_or("");
  if (file) {
    IL_TRY(text, ReadFile(*file));
  }
  Result<std::string> rules = kernel::ParseGateRules(text, chain);
  if (!rules) return BadFlag(file ? "gates-file" : "gates", rules.error());
  return *std::move(rules);
}

Result<std::string> GoalFlag(const Arguments& arguments, const std::optional<std::string>& bead) {
  if (std::optional<std::string> goal = Optional(arguments, "goal")) return *std::move(goal);
  if (bead) return *bead;
  return UsageError("--goal is missing", "give --goal=TEXT or --bead=ID");
}

Result<std::optional<std::int64_t>> TakeoverFlag(const Arguments& arguments,
                                                 const std::optional<std::string>& bead) {
  IL_TRY(const std::optional<Duration> age, arguments.Time("takeover-after"));
  if (!age) return std::nullopt;
  if (*age < Duration::zero()) return UsageError("--takeover-after must not be negative");
  if (!bead) return UsageError("--takeover-after needs --bead", "only runs with a bead conflict");
  return std::chrono::ceil<std::chrono::seconds>(*age).count();
}

// Everything except the id and the project.
Result<kernel::NewRun> WantedRun(const Arguments& arguments) {
  kernel::NewRun wanted;
  kernel::Run& run = wanted.run;
  IL_TRY(run.bead_id, NotEmpty(arguments, "bead"));
  IL_TRY(run.session_id, NotEmpty(arguments, "session"));
  IL_TRY(run.goal, GoalFlag(arguments, run.bead_id));
  run.scope_id = Optional(arguments, "scope-id");
  run.goal_id = Optional(arguments, "goal-id");
  run.phases = Optional(arguments, "phases");
  if (run.phases) {
    const Result<kernel::PhaseChain> own = kernel::PhaseChain::Parse(*run.phases);
    if (!own) return BadFlag("phases", own.error());
    run.phases = own->Text();
  }
  IL_TRY(const kernel::PhaseChain chain, run.Chain());
  IL_TRY(run.gate_rules, GatesFlag(arguments, chain));
  IL_TRY(run.metadata, ObjectFlag(arguments, "metadata"));
  IL_TRY(const auto complexity, arguments.Integer("complexity", 1, 5));
  run.complexity = complexity.value_or(run.complexity);
  IL_TRY(run.token_budget, arguments.Integer("token-budget", 1));
  IL_TRY(const auto warn_pct, arguments.Integer("budget-warn-pct", 1, 99));
  run.budget_warn_pct = warn_pct.value_or(run.budget_warn_pct);
  run.budget_enforce = arguments.IsOn("budget-enforce");
  IL_TRY(const auto max_agents, arguments.Integer("max-agents", 0));
  run.max_agents = max_agents.value_or(0);
  IL_TRY(const auto max_dispatches, arguments.Integer("max-dispatches", 0));
  run.max_dispatches = max_dispatches.value_or(0);
  IL_TRY(wanted.takeover_after_s, TakeoverFlag(arguments, run.bead_id));
  if (const auto actions = Optional(arguments, "actions")) {
    Result<std::vector<kernel::PhaseAction>> parsed = kernel::ParseActions(*actions);
    if (!parsed) {
      return Error(Errc::kBadJson, fmt::format("--actions: {}", parsed.error().message()))
          .WithDetail("do", R"(write --actions='{"planned":{"command":"/work","args":"[]"}}')");
    }
    wanted.actions = std::move(parsed).value();
    for (const kernel::PhaseAction& action : wanted.actions) {
      if (action.args) IL_TRY_VOID(JsonFlag("actions", *action.args));
    }
  }
  return wanted;
}

Result<std::vector<kernel::ChildRun>> Children(Context& context, std::string_view projects) {
  std::vector<kernel::ChildRun> children;
  for (const auto part : std::views::split(projects, ',')) {
    const std::string_view path(part.begin(), part.end());
    if (path.empty()) return UsageError("--projects contains an empty path");
    IL_TRY(std::string project, ProjectPath(context, path));
    if (std::ranges::find(children, project, &kernel::ChildRun::project_dir) != children.end()) {
      return UsageError(fmt::format("--projects names {} twice", project));
    }
    children.push_back({ShortId(context.random()), std::move(project)});
  }
  if (children.size() < 2) return UsageError("--projects needs at least two paths: p1,p2");
  return children;
}

void WarnTakeover(Context& context, const kernel::CreatedRun& created) {
  if (!created.abandoned) return;
  context.Warn(fmt::format("abandoned run {}, which nobody had touched", *created.abandoned));
}

Result<CommandResult> CreateOne(Context& context, const kernel::NewRun& wanted) {
  IL_TRY(const kernel::CreatedRun created, context.Write([&](kernel::Transaction& tx) {
    return kernel::CreateRun(tx, wanted, OriginOf(context));
  }));
  WarnTakeover(context, created);
  if (!context.json()) return Line(created.run.id);
  return Line(json::ObjectText().Add("id", created.run.id).Add("phase", created.run.phase).Text());
}

Result<CommandResult> CreateMany(Context& context, const kernel::NewRun& wanted,
                                 std::span<const kernel::ChildRun> children) {
  IL_TRY(const kernel::CreatedRun created, context.Write([&](kernel::Transaction& tx) {
    return kernel::CreatePortfolio(tx, wanted, children, OriginOf(context));
  }));
  WarnTakeover(context, created);
  if (context.json()) {
    json::ArrayText ids;
    for (const kernel::ChildRun& child : children) ids.Add(child.id);
    return Line(json::ObjectText().Add("children", ids).Add("id", created.run.id).Text());
  }
  std::string text = created.run.id + '\n';
  for (const kernel::ChildRun& child : children) text += fmt::format("  child: {}\n", child.id);
  return CommandResult{kExitOk, std::move(text)};
}

}  // namespace

Result<CommandResult> Create(Context& context, const Arguments& arguments) {
  const std::optional<std::string> projects = Optional(arguments, "projects");
  if (projects && Optional(arguments, "project")) {
    return UsageError("--project and --projects exclude each other");
  }
  IL_TRY(kernel::NewRun wanted, WantedRun(arguments));
  wanted.run.id = ShortId(context.random());
  if (projects) {
    IL_TRY(const std::vector<kernel::ChildRun> children, Children(context, *projects));
    return CreateMany(context, wanted, children);
  }
  IL_TRY(wanted.run.project_dir, ProjectFlag(context, arguments));
  return CreateOne(context, wanted);
}

}  // namespace interlock::cli::run
