#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/id.h"
#include "cli/command.h"
#include "standard_descriptors.h"

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

bool IsClosed(int fd) { return ::fcntl(fd, F_GETFD) < 0 && errno == EBADF; }

std::optional<std::string> Environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

int Main(std::span<const char* const> arguments) {
  using interlock::cli::kExitUnexpected;
  // Before anything is done whose result nobody could hear of.
  if (IsClosed(STDOUT_FILENO)) {
    WriteAll(STDERR_FILENO,
             "ic: standard output is closed, so nothing was done\n"
             "send it to /dev/null if you do not want it\n");
    return kExitUnexpected;
  }
  interlock::FillStandardDescriptors();
  interlock::SystemClock clock;
  interlock::Csprng random;
  interlock::cli::Context context(
      {.clock = clock, .random = random, .input = STDIN_FILENO, .environment = Environment});
  const auto outcome = interlock::cli::Run(context, arguments);
  WriteAll(STDERR_FILENO, outcome.err);
  const bool written = WriteAll(STDOUT_FILENO, outcome.out);
  if (!written) {
    WriteAll(STDERR_FILENO, "ic: cannot write the result to standard output; is the disk full?\n");
  }
  context.Finish();
  const int exit_code = written ? outcome.exit_code : kExitUnexpected;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // All that was done is done. Closing the database and giving back memory piece by piece takes a
  // tenth of a call, and the kernel does both at once.
  ::_exit(exit_code);
#endif
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  ::mallopt(M_TOP_PAD, 1 << 20);  // memory in one piece: each further one is a call of the kernel
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a failure that can be told
  try {
    return Main(std::span<const char* const>(argv, static_cast<std::size_t>(argc))
                    .subspan(argc > 0 ? 1 : 0));
  } catch (const std::exception& e) {
    WriteAll(STDERR_FILENO, "ic: unexpected failure: ");
    WriteAll(STDERR_FILENO, e.what());
    WriteAll(STDERR_FILENO, "\nthis is a bug of ic; the database is as it was\n");
  }
  return interlock::cli::kExitUnexpected;
}
