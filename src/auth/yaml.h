#pragma once

#include <yaml-cpp/node/node.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace interlock::auth {

// The room for a keys file, and by far more than any needs.
inline constexpr std::size_t kKeysFileBytesMax = 1 << 20;

// Reads the one YAML document that `text` holds; an empty text is a null node. Fails on what is not
// YAML, with the line and never with a part of the text; and on what only a hostile or a damaged
// file has: aliases (a few lines of them stand for gigabytes), a second document, control
// characters, more than kKeysFileBytesMax bytes. No exception of the library gets out.
Result<YAML::Node> ParseYaml(std::string_view text);

// The text of a document with this content.
Result<std::string> WriteYaml(const YAML::Node& document);

// "line 3: " and what is wrong there.
Error YamlError(const YAML::Mark& mark, std::string_view what);

}  // namespace interlock::auth
