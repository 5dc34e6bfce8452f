#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "glob/budget.h"
#include "glob/pattern.h"

namespace interlock::glob {

// A path of `pattern` that none of `by` matches, or nothing when they cover it together. Exact. Of
// a path without wildcards in `pattern` only the path itself is asked for, not what is below it:
// who holds `src/*.cc` holds the file `src/a.cc`. The work can grow fast with the number of
// wildcards: kPatternTooComplex when the budget is used up before the answer is known.
Result<std::optional<std::string>> Uncovered(const Pattern& pattern, std::span<const Pattern> by,
                                             Budget& budget);

}  // namespace interlock::glob
