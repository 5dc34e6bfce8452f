#include "kernel/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"

namespace interlock::kernel {

namespace fs = std::filesystem;

namespace {

Error Refused(std::string_view path, std::string_view why) {
  return Error(Errc::kForbidden, fmt::format("@{}: {}", path, why))
      .WithDetail("do", "name a regular file under the current directory, without symlinks");
}

Error Failed(std::string_view path, int code) {
  if (code == ELOOP) return Refused(path, "a part of the path is a symlink");
  return Error(Errc::kCantOpen, fmt::format("@{}: {}", path, std::generic_category().message(code)))
      .WithDetail("do", "check that the file exists and that you may read it");
}

// Returns the path relative to `directory`, without "." and "..".
Result<fs::path> Below(const fs::path& directory, std::string_view path) {
  const fs::path base = directory.lexically_normal();
  fs::path below = (base / path).lexically_normal().lexically_relative(base);
  if (path.empty() || below.empty() || below == "." || *below.begin() == "..") {
    return Refused(path, "not a file under the current directory");
  }
  return below;
}

// O_NONBLOCK: opening a pipe must not wait for a writer.
Result<UniqueFd> OpenBelow(const fs::path& directory, const fs::path& below,
                           std::string_view path) {
  UniqueFd at(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return Failed(path, errno);
  for (auto part = below.begin(); part != below.end(); ++part) {
    const bool last = std::next(part) == below.end();
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    UniqueFd next(::openat(at.get(), part->c_str(), last ? flags : flags | O_DIRECTORY));
    if (next.get() < 0) {
      const int code = errno;
      struct stat info = {};
      const bool symlink = ::fstatat(at.get(), part->c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISLNK(info.st_mode);  // O_DIRECTORY fails with ENOTDIR
      return Failed(path, symlink ? ELOOP : code);
    }
    at = std::move(next);
  }
  return at;
}

Error TooLarge(std::string_view path, std::size_t most) {
  return Error(Errc::kPayloadTooLarge,
               fmt::format("@{}: the file has more than {} bytes", path, most))
      .WithDetail("do", "store the file's path instead of its content");
}

}  // namespace

Result<std::string> ReadFileUnder(const fs::path& directory, std::string_view path,
                                  std::size_t most) {
  IL_TRY(const fs::path below, Below(directory, path));
  IL_TRY(const UniqueFd file, OpenBelow(directory, below, path));
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return Failed(path, errno);
  if (!S_ISREG(info.st_mode)) return Refused(path, "not a regular file");
  if (std::cmp_greater(info.st_size, most)) return TooLarge(path, most);
  std::string text(most + 1, '\0');  // the file may grow during the read
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed(path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > most) return TooLarge(path, most);
  text.resize(size);
  return text;
}

}  // namespace interlock::kernel
