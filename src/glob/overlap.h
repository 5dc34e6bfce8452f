#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "glob/budget.h"
#include "glob/pattern.h"

namespace interlock::glob {

// A path that both patterns match (the witness), or nothing when there is none. Exact: no pair of
// patterns is called overlapping, or free of overlap, by approximation. Symmetric: Overlap(b, a)
// gives the same answer, the same witness, and spends the same. kPatternTooComplex when the budget
// is used up before the answer is known; the rest of such a budget is gone.
//
// Two paths compare in tens of nanoseconds, typical patterns in a few microseconds.
Result<std::optional<std::string>> Overlap(const Pattern& a, const Pattern& b, Budget& budget);

// The same, with a budget of its own.
Result<std::optional<std::string>> Overlap(const Pattern& a, const Pattern& b);

}  // namespace interlock::glob
