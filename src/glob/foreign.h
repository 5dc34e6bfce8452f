#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "glob/lexer.h"

namespace interlock::glob {

// Forms that shells and regular expressions have and our patterns have not. Whoever writes one
// means something by it, so none is taken for plain characters: kInvalidPattern says what to write
// instead.

// `\` before an ordinary character, `[[:alpha:]]` and its like, `{1..3}` and `{a..e..2}`.
Result<void> RefuseForeign(std::string_view text, std::span<const Lexeme> lexemes);

// One of ? * + @ ! directly before `(` with a matching `)`, in a sequence without braces.
Result<void> RefuseExtglobs(std::string_view text, std::span<const Lexeme> sequence);

}  // namespace interlock::glob
