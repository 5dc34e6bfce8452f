#include "cli/version.h"

#include <fmt/format.h>

#include "base/version.h"

namespace interlock::cli {
namespace {

// Named as scripts that choose a download know them.
std::string_view Architecture() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#else
  return "other";
#endif
}

std::string_view Compiler() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

}  // namespace

Outcome RunVersion(const Invocation& invocation) {
  if (!invocation.arguments.empty()) {
    return {kExitUsage, "",
            fmt::format("ic: version: unexpected argument '{}'\nusage: ic version [--json]\n",
                        invocation.arguments.front())};
  }
  const Build& build = BuildInfo();
  const std::string_view source = build.commit.empty() ? "archive" : "git";
  if (invocation.json) {
    // Every text is ours and holds nothing to escape.
    return {kExitOk,
            fmt::format("{{\n  \"version\": \"{}\",\n  \"commit\": \"{}\",\n"
                        "  \"commit_time\": \"{}\",\n  \"dirty\": {},\n  \"os\": \"linux\",\n"
                        "  \"arch\": \"{}\",\n  \"source\": \"{}\",\n  \"compiler\": \"{}\"\n}}\n",
                        build.version, build.commit, build.commit_time, build.dirty, Architecture(),
                        source, Compiler()),
            ""};
  }
  const std::string commit =
      build.commit.empty()
          ? "unknown"
          : fmt::format("{}{} ({})", build.commit, build.dirty ? "-dirty" : "", build.commit_time);
  return {
      kExitOk,
      fmt::format("ic {}\ncommit: {}\ntarget: linux/{}\n", build.version, commit, Architecture()),
      ""};
}

}  // namespace interlock::cli
