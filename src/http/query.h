#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace interlock::http {

// The parameters of a query in the order sent, names and values decoded: '+' is a space, and "a"
// alone is "a" with an empty value. Refused (kInvalidArgument) with the parameter's name: broken
// escapes, NUL bytes and what is not UTF-8; to guess would be to answer another question.
Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query);

// "12" as a number, all of the text. Nothing when the text is not decimal digits alone, or the
// number is beyond 2^63 - 1.
std::optional<std::int64_t> ParseDecimal(std::string_view text);

// "true" and "1", or "false" and "0". Nothing for any other text.
std::optional<bool> ParseBoolean(std::string_view text);

}  // namespace interlock::http
