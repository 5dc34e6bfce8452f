#include "cli/run.h"

#include <array>

namespace interlock::cli {
namespace {

constexpr Flag kReason{"reason", "TEXT", "reason, stored with the event"};
constexpr Flag kPhase{"phase", "P", "only this phase"};

constexpr std::array kCreateFlags = {
    Flag{"goal", "TEXT", "purpose of the run (default: the bead's id)"},
    Flag{"project", "DIR", "project directory (default: the current directory)"},
    Flag{"projects", "P1,P2", "create a portfolio with one child per project, at least two"},
    Flag{"bead", "ID", "bead of the run; one active run per project and bead"},
    Flag{"session", "ID", "session of the run"},
    Flag{"takeover-after", "D", "abandon an active run of the bead untouched for this long"},
    Flag{"scope-id", "S", "name of a group of runs"},
    Flag{"goal-id", "ID", "goal that the run belongs to"},
    Flag{"complexity", "N", "1 to 5 (default 3)"},
    Flag{"phases", "JSON", "phases of this run: [\"draft\",\"done\"]"},
    Flag{"actions", "JSON", "{phase: {command, args?, mode?, type?}}"},
    Flag{"gates", "JSON", "rules for every step: {\"draft→done\":[{\"check\":…}]}"},
    Flag{"gates-file", "FILE", "the same, from a file"},
    Flag{"metadata", "JSON", "an object of your own"},
    Flag{"token-budget", "N", "maximum number of tokens of its dispatches"},
    Flag{"budget-warn-pct", "N", "warn at this percentage of the budget, 1 to 99 (default 80)"},
    Flag{"budget-enforce", "", "let the gates block the run when the budget is used up"},
    Flag{"max-agents", "N", "maximum number of concurrent agents (0: no limit)"},
    Flag{"max-dispatches", "N", "maximum number of dispatches (0: no limit)"},
};
constexpr std::array kListFlags = {
    Flag{"active", "", "only active runs"},
    Flag{"status", "S", "active, completed, cancelled, failed or abandoned"},
    Flag{"project", "DIR", "only this project"},
    Flag{"bead", "ID", "only this bead"},
    Flag{"session", "ID", "only this session"},
    Flag{"scope", "S", "only this scope"},
    Flag{"portfolio", "", "only portfolios"},
};
constexpr std::array kCurrentFlags = {
    Flag{"project", "DIR", "project directory (default: the current directory)"},
    Flag{"session", "ID", "only this session"},
    Flag{"all-projects", "", "any project"},
};
constexpr std::array kAdvanceFlags = {
    Flag{"priority", "N",
         "strictness of gates: up to 1 hard, 2 and 3 soft, 4 and above none (default 1)"},
    Flag{"disable-gates", "", "advance regardless of the gates"},
    Flag{"skip-reason", "TEXT", "advance a run that has auto-advance off, for this reason"},
    Flag{"calibration-file", "FILE", "raises the tiers of gates"},
};
constexpr std::array kSkipFlags = {
    kReason,
    Flag{"actor", "NAME", "author of the decision"},
};
constexpr std::array kRollbackFlags = {
    Flag{"to-phase", "P", "target phase"},
    kReason,
    Flag{"dry-run", "", "only print what would be undone"},
    Flag{"layer", "code", "list the files that the phases produced instead"},
    Flag{"phase", "P", "with --layer: only this phase"},
    Flag{"format", "json|text", "with --layer: output format (default json)"},
};
constexpr std::array kEndFlags = {kReason};
constexpr std::array kSetFlags = {
    Flag{"complexity", "N", "1 to 5"},
    Flag{"auto-advance", "BOOL", "whether the run advances without --skip-reason"},
    Flag{"force-full", "BOOL", "whether no phase should be skipped"},
    Flag{"max-dispatches", "N", "of a portfolio (0: no limit)"},
    Flag{"metadata-merge", "JSON", "an object to merge into the metadata, at every depth"},
};
constexpr std::array kAgentAddFlags = {
    Flag{"type", "T", "kind of agent (default claude)"},
    Flag{"name", "N", "name of the agent"},
    Flag{"dispatch-id", "D", "dispatch that runs the agent"},
};
constexpr std::array kAgentUpdateFlags = {
    Flag{"status", "S", "active, completed or failed"},
};
constexpr std::array kArtifactAddFlags = {
    Flag{"phase", "P", "phase that produced the file"},
    Flag{"path", "FILE", "the file; its content is hashed now"},
    Flag{"type", "T", "kind of artifact (default file)"},
    Flag{"dispatch", "D", "dispatch that produced the file"},
};
constexpr std::array kPhaseFlags = {kPhase};
constexpr std::array kActionAddFlags = {
    Flag{"phase", "P", "phase that the action belongs to"},
    Flag{"command", "TEXT", "command to run"},
    Flag{"args", "JSON", "arguments; ${artifact:T}, ${run_id} and ${project_dir} are substituted"},
    Flag{"mode", "M", "how to run it (default interactive)"},
    Flag{"type", "T", "kind of action (default command)"},
    Flag{"priority", "N", "lower numbers come first (default 0)"},
};
constexpr std::array kActionUpdateFlags = {
    Flag{"phase", "P", "phase of the action"}, Flag{"command", "TEXT", "command of the action"},
    Flag{"args", "JSON", "new arguments"},     Flag{"mode", "M", "new mode"},
    Flag{"priority", "N", "new priority"},
};
constexpr std::array kActionDeleteFlags = {
    Flag{"phase", "P", "phase of the action"},
    Flag{"command", "TEXT", "command of the action"},
};

constexpr std::array kCommands = {
    Command{
        "run create", "", 0, 0, kCreateFlags, "Create a run",
        "Prints the id of a new run in its first phase; --json: id and phase. With --projects\n"
        "also prints a line '  child: <id>' per project; --json: children and id.\n"
        "A project and bead can have only one active run. A second one is refused with exit code\n"
        "1, and the message names the first. 'ic run abandon' ends that run; --takeover-after "
        "does\n"
        "so if nobody has touched it for that long. The time of its last change counts, not its\n"
        "age, so an old run that is still worked on is not taken over.\n"
        "Metadata and arguments of actions have the limits of 'ic state set': at most 1 MiB, and\n"
        "a likely secret is refused with exit code 2. A file of gates may have any path, but must\n"
        "not be a symlink.\n"
        "Without --phases, the phases are brainstorm, brainstorm-reviewed, strategized, planned,\n"
        "executing, review, polish, reflect, done.\n\n"
        "Example:\n  ic run create --goal='Ship the parser'\n"
        "  ic run create --bead=il-42 --session=\"$SESSION\" --takeover-after=60m\n",
        run::Create},
    Command{
        "run status",
        "<run>",
        1,
        1,
        {},
        "Show a run",
        "Prints its fields, one per line, and the children of a portfolio; --json: one object.\n"
        "Exits with 1 if the run does not exist.\n\n"
        "Example:\n  ic run status \"$RUN\" --json | jq -r .phase\n",
        run::Status},
    Command{"run phase",
            "<run>",
            1,
            1,
            {},
            "Print the phase of a run",
            "Prints only the name of the phase. Exits with 1 if the run does not exist.\n\n"
            "Example:\n  ic run phase \"$RUN\"\n",
            run::Phase},
    Command{
        "run list", "", 0, 0, kListFlags, "List runs, newest first",
        "Prints id, status, phase and goal, separated by tabs; --json: an array of runs. A run\n"
        "must match all conditions.\n\n"
        "Example:\n  ic run list --project=. --bead=il-42 --status=active\n",
        run::List},
    Command{
        "run current", "", 0, 0, kCurrentFlags, "Print the active run of a project",
        "Prints the id of the newest active run; --json: found, goal, id and phase. Exits with\n"
        "1 if there is none.\n\n"
        "Example:\n  RUN=$(ic run current --session=\"$SESSION\") || exit 0\n",
        run::Current},
    Command{
        "run events",
        "<run>",
        1,
        1,
        {},
        "List the events of a run, oldest first",
        "Prints 'from → to', type, gate and reason, separated by tabs; --json: an array. A run\n"
        "that does not exist has no events.\n\n"
        "Example:\n  ic run events \"$RUN\"\n",
        run::Events},
    Command{"run tokens",
            "<run>",
            1,
            1,
            {},
            "Print the tokens that a run has used",
            "Prints the token usage of the run's dispatches: those whose scope is its id.\n\n"
            "Example:\n  ic run tokens \"$RUN\" --json | jq .total_tokens\n",
            run::Tokens},
    Command{"run budget",
            "<run>",
            1,
            1,
            {},
            "Compare the tokens of a run with its budget",
            "Prints OK, WARNING or EXCEEDED, and the numbers. Exits with 1 whenever the budget is "
            "used\n"
            "up. Records an event when a limit is reached for the first time.\n\n"
            "Example:\n  ic run budget \"$RUN\" >/dev/null || echo 'stop spending'\n",
            run::Budget},
    Command{
        "run advance", "<run>", 1, 1, kAdvanceFlags, "Advance a run to its next phase",
        "Prints 'from → to' and the actions of the new phase; --json: one object. The last phase\n"
        "completes the run. Skipped phases are passed over. Exits with 1 if the run has ended, or\n"
        "if it stays in its phase; then it prints 'phase (blocked: pause)'. Gates are not\n"
        "evaluated yet; every advance records the gate none.\n"
        "Afterwards ic runs <project>/.clavain/hooks/on-phase-advance with the event as JSON on\n"
        "its stdin, for at most 5 s. The result of the hook does not change the result of this\n"
        "command. ic does not wait for background processes of the hook and drops their stderr.\n\n"
        "Example:\n  ic run advance \"$RUN\" --priority=1\n",
        run::Advance},
    Command{"run skip", "<run> <phase>", 2, 2, kSkipFlags, "Mark a phase to be skipped",
            "The phase must be a later one, and not the last. Exits with 1 otherwise.\n\n"
            "Example:\n  ic run skip \"$RUN\" polish --reason='nothing to polish' --actor=me\n",
            run::Skip},
    Command{"run rollback", "<run>", 1, 1, kRollbackFlags, "Move a run back to an earlier phase",
            "Prints the undone phases as JSON. Marks the artifacts of these phases, fails active\n"
            "agents, cancels dispatches and clears skip marks. A completed run becomes active\n"
            "again, unless its bead has another active run. Exits with 1 if the phase is not an\n"
            "earlier one, or if the run ended without completion.\n\n"
            "Example:\n  ic run rollback \"$RUN\" --to-phase=planned --reason='plan was wrong'\n"
            "  ic run rollback \"$RUN\" --layer=code --format=text\n",
            run::Rollback},
    Command{"run cancel", "<run>", 1, 1, kEndFlags, "Cancel a run that is not wanted any more",
            "Prints cancelled. Also cancels the children of a portfolio. Exits with 1 if the run\n"
            "has already ended.\n\n"
            "Example:\n  ic run cancel \"$RUN\"\n",
            run::Cancel},
    Command{
        "run abandon", "<run>", 1, 1, kEndFlags, "End a run that nobody works on any more",
        "Prints abandoned. The bead can then have a new run. Exits with 1 if the run has already\n"
        "ended.\n\n"
        "Example:\n  ic run abandon \"$RUN\" --reason='session crashed'\n",
        run::Abandon},
    Command{"run set", "<run>", 1, 1, kSetFlags, "Change the settings of a run",
            "Prints updated. Concurrent merges of metadata lose nothing. The merged metadata has\n"
            "the limits of 'ic run create'.\n\n"
            "Example:\n  ic run set \"$RUN\" --metadata-merge='{\"review\":{\"round\":2}}'\n",
            run::Set},
    Command{"run agent add", "<run>", 1, 1, kAgentAddFlags, "Add an agent to a run",
            "Prints the id of the new agent. Exits with 1 if the run does not exist.\n\n"
            "Example:\n  ic run agent add \"$RUN\" --type=codex --name=reviewer\n",
            run::AgentAdd},
    Command{"run agent list",
            "<run>",
            1,
            1,
            {},
            "List the agents of a run",
            "Prints id, type, status and name, separated by tabs; --json: an array.\n\n"
            "Example:\n  ic run agent list \"$RUN\"\n",
            run::AgentList},
    Command{"run agent update", "<agent>", 1, 1, kAgentUpdateFlags, "Set the status of an agent",
            "Prints updated. Exits with 1 if the agent does not exist.\n\n"
            "Example:\n  ic run agent update \"$AGENT\" --status=completed\n",
            run::AgentUpdate},
    Command{"run artifact add", "<run>", 1, 1, kArtifactAddFlags, "Add a file that a run produced",
            "Prints the id of the artifact. Hashes the content now, if it can be read. Exits with\n"
            "1 if the run does not exist.\n\n"
            "Example:\n  ic run artifact add \"$RUN\" --phase=planned --path=docs/plan.md "
            "--type=plan\n",
            run::ArtifactAdd},
    Command{"run artifact list", "<run>", 1, 1, kPhaseFlags, "List the files that a run produced",
            "Prints id, phase, type and path, separated by tabs; --json: an array.\n\n"
            "Example:\n  ic run artifact list \"$RUN\" --phase=planned\n",
            run::ArtifactList},
    Command{"run action add", "<run>", 1, 1, kActionAddFlags, "Add an action to a phase",
            "Prints the number of the action. 'ic run advance' prints the actions of the new\n"
            "phase. Exits with 1 if the phase already has that command.\n\n"
            "Example:\n  ic run action add \"$RUN\" --phase=executing --command=/work "
            "--args='[\"${artifact:plan}\"]'\n",
            run::ActionAdd},
    Command{
        "run action list", "<run>", 1, 1, kPhaseFlags, "List the actions of the phases",
        "Prints number, phase, type, command, mode, priority and arguments, separated by tabs;\n"
        "--json: an array.\n\n"
        "Example:\n  ic run action list \"$RUN\"\n",
        run::ActionList},
    Command{"run action update", "<run>", 1, 1, kActionUpdateFlags, "Change an action",
            "Exits with 1 if the action does not exist.\n\n"
            "Example:\n  ic run action update \"$RUN\" --phase=executing --command=/work "
            "--mode=autonomous\n",
            run::ActionUpdate},
    Command{"run action delete", "<run>", 1, 1, kActionDeleteFlags, "Remove an action",
            "Exits with 1 if the action does not exist.\n\n"
            "Example:\n  ic run action delete \"$RUN\" --phase=executing --command=/work\n",
            run::ActionDelete},
};

}  // namespace

std::span<const Command> RunCommands() { return kCommands; }

}  // namespace interlock::cli
