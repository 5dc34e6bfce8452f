#pragma once

#include <yaml-cpp/node/node.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace interlock::auth {

// The size limit of a keys file, far more than any needs.
inline constexpr std::size_t kKeysFileBytesMax = 1 << 20;

// Parses the one YAML document in `text`; an empty text is a null node. An error names the line and
// never shows a part of the text. Rejects invalid YAML, and content of hostile or damaged files:
// aliases (a few lines can expand to gigabytes), a second document, control characters, more than
// kKeysFileBytesMax bytes. No exception of the library escapes.
Result<YAML::Node> ParseYaml(std::string_view text);

// Returns a document with this content.
Result<std::string> WriteYaml(const YAML::Node& document);

// "line 3: " and the mistake.
Error YamlError(const YAML::Mark& mark, std::string_view what);

}  // namespace interlock::auth
