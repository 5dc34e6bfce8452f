#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "glob/budget.h"
#include "glob/pattern.h"

namespace interlock::glob {

// A path of `pattern` that none of `by` matches, or nothing when they cover it together. Exact. The
// work can grow fast with the number of wildcards: kPatternTooComplex when the budget is used up
// before the answer is known.
Result<std::optional<std::string>> Uncovered(const Pattern& pattern, std::span<const Pattern> by,
                                             Budget& budget);

}  // namespace interlock::glob
