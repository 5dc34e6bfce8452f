#pragma once

#include <vector>

#include "base/result.h"
#include "glob/lexer.h"

namespace interlock::glob {

// Every brace-free sequence that `lexemes` stands for, in the order of writing, duplicates
// included; braces and commas that are plain characters come out as literals. What it would
// produce is counted before it is produced: kPatternTooComplex when there are too many sequences or
// too much text.
Result<std::vector<std::vector<Lexeme>>> ExpandBraces(std::vector<Lexeme> lexemes);

}  // namespace interlock::glob
