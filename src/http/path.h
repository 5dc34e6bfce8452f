#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace interlock::http {

// What a request target says. Escapes are decoded before the path is split, so "%2F" separates
// segments like "/" does.
struct Target {
  std::string path;   // decoded, begins with '/'; not yet clean
  std::string query;  // without the '?', still encoded
};

// Takes "/path?query" and "http://host/path?query". Refused (kInvalidArgument): other forms, broken
// escapes, NUL bytes, and paths that are not UTF-8.
Result<Target> ParseTarget(std::string_view target);

// Every "%41" becomes its byte. Refused (nothing): a '%' without two hexadecimal digits.
std::optional<std::string> DecodePercent(std::string_view text);

// The path without empty, "." and ".." segments; ".." never leads above "/". A trailing slash
// stays.
std::string CleanPath(std::string_view path);
// False: CleanPath() surely gives `path` itself. Quick, for almost every path is clean.
bool MayBeUnclean(std::string_view path);

// Escapes what may not stand in the path of a Location header.
std::string EncodePath(std::string_view path);

}  // namespace interlock::http
