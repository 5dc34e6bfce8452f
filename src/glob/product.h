#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "glob/budget.h"
#include "glob/columns.h"
#include "glob/program.h"

namespace interlock::glob {

// Runs a Program over Columns: which of the columns' patterns share a path with the program's? A
// row says for each column whether some text was read by both up to here. The work is one pass of
// words() machine words per operation; memory is three rows, plus all rows of one pair of
// expansions when a witness is made.

// The index of an expansion of `columns` that shares a path with the program, if there is one.
Result<std::optional<std::size_t>> FindCommon(std::span<const Op> program, ProgramClasses& classes,
                                              Columns& columns, Budget& budget);

// A path that both read. REQUIRES: FindCommon() found one; `columns` has one expansion.
Result<std::string> MakeWitness(std::span<const Op> program, ProgramClasses& classes,
                                Columns& columns, Budget& budget);

// What every operation that ran out of its budget returns.
Error TooComplex();

}  // namespace interlock::glob
