#include "init.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "auth/keys_file.h"
#include "base/git_tree.h"

namespace interlock::app {
namespace {

// As a shell takes it for one word.
std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./+,:@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace

Done Init(const InitOptions& options, RandomSource& random, Clock& clock) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(options.keys_file, error);
  if (const auto ignored = EnsureIgnoredByGit(whole, clock); !ignored.ok()) {
    return {1, fmt::format("intermute: no key was made: {}\n", ignored.error().message())};
  }
  const auto made = auth::AppendKey(whole, options.project, random);
  if (!made.ok()) return {1, fmt::format("intermute: {}\n", made.error().message())};
  const std::string& key = made->Reveal();
  return {0,
          fmt::format(
              "project: {}\n"
              "keys file: {}\n"
              "key: {}\n"
              "\n"
              "For clients:\n"
              "  export INTERMUTE_API_KEY={}\n"
              "which send it as\n"
              "  Authorization: Bearer {}\n"
              "Start the server with this file, or tell a running one to read it again (SIGHUP):\n"
              "  INTERMUTE_KEYS_FILE={} intermute serve\n",
              options.project, whole.string(), key, key, key, ShellWord(whole.string()))};
}

}  // namespace interlock::app
