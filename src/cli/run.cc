#include "cli/run.h"

#include <array>

namespace interlock::cli {
namespace {

constexpr Flag kReason{"reason", "TEXT", "why; kept with the event"};
constexpr Flag kPhase{"phase", "P", "only of this phase"};

constexpr std::array kCreateFlags = {
    Flag{"goal", "TEXT", "what the run is for (default: the bead's id)"},
    Flag{"project", "DIR", "where it works (default: the current directory)"},
    Flag{"projects", "P1,P2", "a portfolio: one child for each of two or more projects"},
    Flag{"bead", "ID", "the bead it works on; one active run per project and bead"},
    Flag{"session", "ID", "the session it belongs to"},
    Flag{"takeover-after", "D", "abandon an active run of the bead untouched for this long"},
    Flag{"scope-id", "S", "a name for several runs"},
    Flag{"goal-id", "ID", "the goal it serves"},
    Flag{"complexity", "N", "1 to 5 (default 3)"},
    Flag{"phases", "JSON", "its own phases: [\"draft\",\"done\"]"},
    Flag{"actions", "JSON", "{phase: {command, args?, mode?, type?}}"},
    Flag{"gates", "JSON", "rules for every step: {\"draft→done\":[{\"check\":…}]}"},
    Flag{"gates-file", "FILE", "the same, from a file"},
    Flag{"metadata", "JSON", "an object of your own"},
    Flag{"token-budget", "N", "how many tokens its dispatches may use"},
    Flag{"budget-warn-pct", "N", "warn at this part of it, 1 to 99 (default 80)"},
    Flag{"budget-enforce", "", "let the gates hold it when the budget is used up"},
    Flag{"max-agents", "N", "how many agents at once (0: no limit)"},
    Flag{"max-dispatches", "N", "how many dispatches (0: no limit)"},
};
constexpr std::array kListFlags = {
    Flag{"active", "", "only active ones"},
    Flag{"status", "S", "active, completed, cancelled, failed or abandoned"},
    Flag{"project", "DIR", "only of this project"},
    Flag{"bead", "ID", "only of this bead"},
    Flag{"session", "ID", "only of this session"},
    Flag{"scope", "S", "only of this scope"},
    Flag{"portfolio", "", "only portfolios"},
};
constexpr std::array kCurrentFlags = {
    Flag{"project", "DIR", "of this project (default: the current directory)"},
    Flag{"session", "ID", "only of this session"},
    Flag{"all-projects", "", "of any project"},
};
constexpr std::array kAdvanceFlags = {
    Flag{"priority", "N",
         "how strict gates are: up to 1 hard, 2 and 3 soft, from 4 none (default 1)"},
    Flag{"disable-gates", "", "go on whatever the gates say"},
    Flag{"skip-reason", "TEXT", "advance a run that does not advance by itself, and say why"},
    Flag{"calibration-file", "FILE", "raises the tiers of gates"},
};
constexpr std::array kSkipFlags = {
    kReason,
    Flag{"actor", "NAME", "who decided it"},
};
constexpr std::array kRollbackFlags = {
    Flag{"to-phase", "P", "the phase to go back to"},
    kReason,
    Flag{"dry-run", "", "only say what would be undone"},
    Flag{"layer", "code", "list the files that came out of the phases instead"},
    Flag{"phase", "P", "with --layer: only of this phase"},
    Flag{"format", "json|text", "with --layer: how to list them (default json)"},
};
constexpr std::array kEndFlags = {kReason};
constexpr std::array kSetFlags = {
    Flag{"complexity", "N", "1 to 5"},
    Flag{"auto-advance", "BOOL", "whether it advances without --skip-reason"},
    Flag{"force-full", "BOOL", "whether no phase should be left out"},
    Flag{"max-dispatches", "N", "of a portfolio (0: no limit)"},
    Flag{"metadata-merge", "JSON", "an object to merge into the metadata, at every depth"},
};
constexpr std::array kAgentAddFlags = {
    Flag{"type", "T", "what it is (default claude)"},
    Flag{"name", "N", "what it is called"},
    Flag{"dispatch-id", "D", "the dispatch that runs it"},
};
constexpr std::array kAgentUpdateFlags = {
    Flag{"status", "S", "active, completed or failed"},
};
constexpr std::array kArtifactAddFlags = {
    Flag{"phase", "P", "the phase that it came out of"},
    Flag{"path", "FILE", "the file; it is hashed now"},
    Flag{"type", "T", "what it is (default file)"},
    Flag{"dispatch", "D", "the dispatch that made it"},
};
constexpr std::array kPhaseFlags = {kPhase};
constexpr std::array kActionAddFlags = {
    Flag{"phase", "P", "the phase at whose beginning it is due"},
    Flag{"command", "TEXT", "what is to be done"},
    Flag{"args", "JSON", "its arguments; ${artifact:T}, ${run_id}, ${project_dir} are filled in"},
    Flag{"mode", "M", "how (default interactive)"},
    Flag{"type", "T", "what kind (default command)"},
    Flag{"priority", "N", "smaller comes first (default 0)"},
};
constexpr std::array kActionUpdateFlags = {
    Flag{"phase", "P", "the phase of the action"}, Flag{"command", "TEXT", "its command"},
    Flag{"args", "JSON", "other arguments"},       Flag{"mode", "M", "another mode"},
    Flag{"priority", "N", "another place"},
};
constexpr std::array kActionDeleteFlags = {
    Flag{"phase", "P", "the phase of the action"},
    Flag{"command", "TEXT", "its command"},
};

constexpr std::array kCommands = {
    Command{
        "run create", "", 0, 0, kCreateFlags, "Begin a run",
        "Prints the id of a new run in its first phase; --json: id and phase. With --projects\n"
        "also a line '  child: <id>' for each project; --json: children and id.\n"
        "Only one run of a project and a bead can be active. A second one is refused with exit\n"
        "1, and the message names the first; 'ic run abandon' frees the bead, and\n"
        "--takeover-after does it for a run that nobody has touched for that long. What counts is\n"
        "its last change, not its age: a run that is worked on is not taken, however old it is.\n"
        "Metadata and the arguments of actions are bound as values of 'ic state set' are: to\n"
        "1 MiB, and without what looks like a secret, which is exit code 2. A file of gates may\n"
        "lie anywhere, but must not be a symlink.\n"
        "The phases are brainstorm, brainstorm-reviewed, strategized, planned, executing,\n"
        "review, polish, reflect, done, unless --phases names others.\n\n"
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
        "Exits with 1 when there is no such run.\n\n"
        "Example:\n  ic run status \"$RUN\" --json | jq -r .phase\n",
        run::Status},
    Command{"run phase",
            "<run>",
            1,
            1,
            {},
            "Print the phase of a run",
            "Prints the name of the phase and nothing else. Exits with 1 when there is no such "
            "run.\n\n"
            "Example:\n  ic run phase \"$RUN\"\n",
            run::Phase},
    Command{"run list", "", 0, 0, kListFlags, "List runs, newest first",
            "Prints id, status, phase and goal, separated by tabs; --json: an array of runs. All\n"
            "conditions must hold.\n\n"
            "Example:\n  ic run list --project=. --bead=il-42 --status=active\n",
            run::List},
    Command{
        "run current", "", 0, 0, kCurrentFlags, "Print the active run of a project",
        "Prints the id of the newest active run; --json: found, goal, id and phase. Exits with\n"
        "1 when there is none.\n\n"
        "Example:\n  RUN=$(ic run current --session=\"$SESSION\") || exit 0\n",
        run::Current},
    Command{
        "run events",
        "<run>",
        1,
        1,
        {},
        "List what happened to a run, oldest first",
        "Prints 'from → to', type, gate and reason, separated by tabs; --json: an array. A run\n"
        "that does not exist has no events.\n\n"
        "Example:\n  ic run events \"$RUN\"\n",
        run::Events},
    Command{"run tokens",
            "<run>",
            1,
            1,
            {},
            "Add up the tokens of a run",
            "Prints what the dispatches of the run have used: those whose scope is its id.\n\n"
            "Example:\n  ic run tokens \"$RUN\" --json | jq .total_tokens\n",
            run::Tokens},
    Command{
        "run budget",
        "<run>",
        1,
        1,
        {},
        "Hold the tokens of a run against its budget",
        "Prints OK, WARNING or EXCEEDED, and the numbers. Exits with 1 when the budget is used\n"
        "up, every time. The first time that a limit is reached an event tells of it.\n\n"
        "Example:\n  ic run budget \"$RUN\" >/dev/null || echo 'stop spending'\n",
        run::Budget},
    Command{
        "run advance", "<run>", 1, 1, kAdvanceFlags, "Take a run to its next phase",
        "Prints 'from → to' and the actions of the new phase; --json: one object. In its last\n"
        "phase the run is completed. Phases that were skipped are passed over. Exits with 1\n"
        "when the run has ended, or stays: then it prints 'phase (blocked: pause)'. Gates are not\n"
        "evaluated yet; every advance records the gate none.\n"
        "Afterwards <project>/.clavain/hooks/on-phase-advance is run with the event as JSON on\n"
        "its stdin, for at most 5 s; what becomes of it changes nothing here. What it leaves in\n"
        "the background is not waited for, and its stderr is not ours.\n\n"
        "Example:\n  ic run advance \"$RUN\" --priority=1\n",
        run::Advance},
    Command{"run skip", "<run> <phase>", 2, 2, kSkipFlags, "Let a run pass over a phase",
            "The phase must be ahead, and not the last one. Exits with 1 when it is not.\n\n"
            "Example:\n  ic run skip \"$RUN\" polish --reason='nothing to polish' --actor=me\n",
            run::Skip},
    Command{"run rollback", "<run>", 1, 1, kRollbackFlags, "Take a run back to an earlier phase",
            "Prints what was undone, as JSON. Artifacts of the undone phases are marked, agents\n"
            "fail, dispatches are cancelled, phases that were to be skipped no longer are. A\n"
            "completed run is active again, unless its bead has another active run. Exits with 1\n"
            "when the phase is not behind, or the run has ended otherwise.\n\n"
            "Example:\n  ic run rollback \"$RUN\" --to-phase=planned --reason='plan was wrong'\n"
            "  ic run rollback \"$RUN\" --layer=code --format=text\n",
            run::Rollback},
    Command{"run cancel", "<run>", 1, 1, kEndFlags, "End a run that is not wanted any more",
            "Prints cancelled. The children of a portfolio are cancelled with it. Exits with 1 "
            "when\n"
            "the run has ended already.\n\n"
            "Example:\n  ic run cancel \"$RUN\"\n",
            run::Cancel},
    Command{
        "run abandon", "<run>", 1, 1, kEndFlags, "End a run that nobody works on any more",
        "Prints abandoned. Its bead is free for a new run. Exits with 1 when the run has ended\n"
        "already.\n\n"
        "Example:\n  ic run abandon \"$RUN\" --reason='session crashed'\n",
        run::Abandon},
    Command{"run set", "<run>", 1, 1, kSetFlags, "Change the settings of a run",
            "Prints updated. Many may merge metadata at once, and nothing is lost. What it comes\n"
            "to is bound as in 'ic run create'.\n\n"
            "Example:\n  ic run set \"$RUN\" --metadata-merge='{\"review\":{\"round\":2}}'\n",
            run::Set},
    Command{"run agent add", "<run>", 1, 1, kAgentAddFlags, "Say who works on a run",
            "Prints the id of the new agent. Exits with 1 when there is no such run.\n\n"
            "Example:\n  ic run agent add \"$RUN\" --type=codex --name=reviewer\n",
            run::AgentAdd},
    Command{"run agent list",
            "<run>",
            1,
            1,
            {},
            "List who works on a run",
            "Prints id, type, status and name, separated by tabs; --json: an array.\n\n"
            "Example:\n  ic run agent list \"$RUN\"\n",
            run::AgentList},
    Command{"run agent update", "<agent>", 1, 1, kAgentUpdateFlags, "Say how an agent got on",
            "Prints updated. Exits with 1 when there is no such agent.\n\n"
            "Example:\n  ic run agent update \"$AGENT\" --status=completed\n",
            run::AgentUpdate},
    Command{"run artifact add", "<run>", 1, 1, kArtifactAddFlags, "Note a file that a run made",
            "Prints the id of the artifact. The content is hashed now, if it can be read. Exits\n"
            "with 1 when there is no such run.\n\n"
            "Example:\n  ic run artifact add \"$RUN\" --phase=planned --path=docs/plan.md "
            "--type=plan\n",
            run::ArtifactAdd},
    Command{"run artifact list", "<run>", 1, 1, kPhaseFlags, "List the files that a run made",
            "Prints id, phase, type and path, separated by tabs; --json: an array.\n\n"
            "Example:\n  ic run artifact list \"$RUN\" --phase=planned\n",
            run::ArtifactList},
    Command{"run action add", "<run>", 1, 1, kActionAddFlags, "Name what is due in a phase",
            "Prints the number of the action. 'ic run advance' prints the actions of the phase it\n"
            "comes to. Exits with 1 when the phase has that command already.\n\n"
            "Example:\n  ic run action add \"$RUN\" --phase=executing --command=/work "
            "--args='[\"${artifact:plan}\"]'\n",
            run::ActionAdd},
    Command{
        "run action list", "<run>", 1, 1, kPhaseFlags, "List what is due in the phases",
        "Prints number, phase, type, command, mode, priority and arguments, separated by tabs;\n"
        "--json: an array.\n\n"
        "Example:\n  ic run action list \"$RUN\"\n",
        run::ActionList},
    Command{"run action update", "<run>", 1, 1, kActionUpdateFlags, "Change an action",
            "Exits with 1 when there is no such action.\n\n"
            "Example:\n  ic run action update \"$RUN\" --phase=executing --command=/work "
            "--mode=autonomous\n",
            run::ActionUpdate},
    Command{"run action delete", "<run>", 1, 1, kActionDeleteFlags, "Remove an action",
            "Exits with 1 when there is no such action.\n\n"
            "Example:\n  ic run action delete \"$RUN\" --phase=executing --command=/work\n",
            run::ActionDelete},
};

}  // namespace

std::span<const Command> RunCommands() { return kCommands; }

}  // namespace interlock::cli
