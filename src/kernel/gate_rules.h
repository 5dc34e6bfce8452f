#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/phase_chain.h"

// Gate rules: the checks that a run must pass to step from one phase to the next. A run may define
// its own rules; otherwise the default rules apply. Pure functions.
namespace interlock::kernel {

// Parses {"from→to": [{"check", "phase"?, "tier"?}, …], …}; rule keys may have any letter case.
// Returns the normalised text to store: keys Check, Phase and Tier, all present, steps sorted.
//
// The object must have exactly one entry per step of the chain; [] means no check. kInvalidArgument
// or kBadJson describes the mistake.
Result<std::string> ParseGateRules(std::string_view json, const PhaseChain& chain);

// Returns the names of the checks that the default rules require for this step.
std::vector<std::string> DefaultChecks(std::string_view from, std::string_view to);

}  // namespace interlock::kernel
