#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "glob/lexer.h"

namespace interlock::glob {

// Forms that shells, regular expressions, Windows and .gitignore have and our patterns have not. A
// pattern with one of them would hold no path of a work tree, so none is taken for plain
// characters: kInvalidPattern names the form to write instead.

// Blanks around the text, `C:\x`, `\` before an ordinary character, `[[:alpha:]]` and its like, a
// brace without a partner, `{1..3}`, `{a, b}`.
Result<void> RefuseForeign(std::string_view text, std::span<const Lexeme> lexemes);

// In a sequence without braces: one of ? * + @ ! directly before `(` with a matching `)`; `\*` and
// `\?` inside a name; as the first name `C:`, `~`, `~user`, `$NAME`, `${…}`, `$(…)`; a leading `!`.
Result<void> RefuseForeignExpansion(std::string_view text, std::span<const Lexeme> sequence);

}  // namespace interlock::glob
