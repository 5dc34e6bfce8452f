#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/phase_chain.h"

// The rules that a run may bring along for its steps from phase to phase, and those that hold for
// runs that bring none. Pure.
namespace interlock::kernel {

// Reads {"from→to": [{"check", "phase"?, "tier"?}, …], …}, keys of the rules in any case, and gives
// the text as it is kept: keys Check, Phase and Tier, all of them, steps sorted.
//
// Every step of the chain must be there, with [] when it is free, and no other. kInvalidArgument or
// kBadJson says what is wrong.
Result<std::string> ParseGateRules(std::string_view json, const PhaseChain& chain);

// The names of the checks that hold for this step without rules of its own.
std::vector<std::string> DefaultChecks(std::string_view from, std::string_view to);

}  // namespace interlock::kernel
