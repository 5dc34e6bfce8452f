#include <array>

#include "cli/command.h"
#include "cli/compat.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/lock.h"
#include "cli/run.h"
#include "cli/sentinel.h"
#include "cli/setup.h"
#include "cli/state.h"

namespace interlock::cli {
namespace {

// In the order of the help text.
constexpr std::array kGroups = {
    Group{"help", "Print help for a command", HelpCommands},
    Group{"version", "Print version and build information", VersionCommands},
    Group{"init", "Create the database, or migrate it to this version", InitCommands},
    Group{"health", "Check whether the database is usable", HealthCommands},
    Group{"state", "Store JSON values by key and scope", StateCommands},
    Group{"sentinel", "Limit how often something is done", SentinelCommands},
    Group{"run", "Move pieces of work through their phases", RunCommands},
    Group{"lock", "Exclude other processes, without a database", LockCommands},
    Group{"migrate", "Restore an earlier version of the database", MigrateCommands},
    Group{"compat", "Import temporary files into the database", CompatCommands},
    Group{"completion", "Complete command lines in a shell", CompletionCommands},
};

}  // namespace

std::span<const Group> Groups() { return kGroups; }

}  // namespace interlock::cli
