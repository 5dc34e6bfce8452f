#include <fcntl.h>
#include <fmt/format.h>
#include <nettle/sha2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/unique_fd.h"
#include "kernel/run_artifacts.h"

namespace interlock::kernel {

std::optional<std::string> ContentHash(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat found = {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return std::nullopt;
  }
  sha256_ctx state;
  sha256_init(&state);
  std::array<std::uint8_t, 65536> chunk;
  while (true) {
    const ssize_t size = ::read(file.get(), chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::nullopt;
    if (size == 0) break;
    sha256_update(&state, static_cast<std::size_t>(size), chunk.data());
  }
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest;
  sha256_digest(&state, digest.size(), digest.data());
  return fmt::format("sha256:{:02x}", fmt::join(digest, ""));
}

}  // namespace interlock::kernel
