#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <span>
#include <string_view>

#include "cli/command.h"

namespace {

// False when it could not be written for another reason than that nobody reads: callers do
// `ic … | grep -q …` under pipefail, and grep leaves as soon as it has seen enough.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EPIPE;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    const auto outcome =
        interlock::cli::Run(std::span<const char* const>(argv, static_cast<std::size_t>(argc))
                                .subspan(argc > 0 ? 1 : 0));
    WriteAll(STDERR_FILENO, outcome.err);
    if (WriteAll(STDOUT_FILENO, outcome.out)) return outcome.exit_code;
    WriteAll(STDERR_FILENO, "ic: cannot write the result to standard output; is the disk full?\n");
  } catch (const std::exception& e) {
    WriteAll(STDERR_FILENO, "ic: unexpected failure: ");
    WriteAll(STDERR_FILENO, e.what());
    WriteAll(STDERR_FILENO, "\n");
  }
  return interlock::cli::kExitUnexpected;
}
