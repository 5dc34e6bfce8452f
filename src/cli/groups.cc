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

// In the order in which help lists them.
constexpr std::array kGroups = {
    Group{"help", "Say what a command does", HelpCommands},
    Group{"version", "Say what this program was built from", VersionCommands},
    Group{"init", "Make the database, or bring it to this version", InitCommands},
    Group{"health", "Say whether the database can be used, and what to do if not", HealthCommands},
    Group{"state", "Store JSON values by key and scope", StateCommands},
    Group{"sentinel", "Do something once, or not too often", SentinelCommands},
    Group{"run", "Take pieces of work through their phases", RunCommands},
    Group{"lock", "Exclude other processes, without a database", LockCommands},
    Group{"migrate", "Go back to an earlier version of the database", MigrateCommands},
    Group{"compat", "Move from temporary files into the database", CompatCommands},
    Group{"completion", "Complete command lines in a shell", CompletionCommands},
};

}  // namespace

std::span<const Group> Groups() { return kGroups; }

}  // namespace interlock::cli
