#include "keys.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "auth/access.h"
#include "auth/keys_file.h"
#include "base/git_tree.h"

namespace interlock::app {
namespace {

namespace fs = std::filesystem;

void WarnIfExposed(const fs::path& path, const auth::LoadedKeys& loaded, Logger& log) {
  if (loaded.exposure == auth::LoadedKeys::Exposure::kPrivate) return;
  log.Warn("other users may read or write the keys file; make it private (chmod 600)",
           {{"file", path.string()}});
}

void LogKeys(std::string_view message, const fs::path& path, const auth::Keyring& keyring,
             Logger& log) {
  const bool open = keyring.local_policy() == auth::LocalPolicy::kNoKeyNeeded;
  log.Info(message, {{"file", path.string()},
                     {"projects", keyring.project_count()},
                     {"keys", keyring.key_count()},
                     {"local_without_key", open}});
}

// A new key, unless git would add it.
Result<std::optional<Secret>> MakeKeys(const fs::path& path, RandomSource& random, Clock& clock) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path, ignored))) return std::optional<Secret>();
  IL_TRY_VOID(EnsureIgnoredByGit(path, clock));
  return auth::BootstrapKeys(path, random);
}

void Bootstrap(const fs::path& path, RandomSource& random, const Terminal& terminal, Clock& clock,
               Logger& log) {
  const auto made = MakeKeys(path, random, clock);
  if (!made.ok()) {
    log.Warn("cannot make a keys file; only this machine can be served", {{"error", made.error()}});
    return;
  }
  if (!*made) return;
  const bool shown = terminal.Show(
      fmt::format("A key for project dev was made; it is shown this once and kept in {}:\n"
                  "  export INTERMUTE_API_KEY={}\n",
                  path.string(), (*made)->Reveal()));
  log.Info("created keys file for project dev",
           {{"file", path.string()}, {"shown_on_terminal", shown}});
}

// Empty when it cannot be told.
std::string BoundAddress(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  const void* const bytes =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&address)->sin_addr);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(address.ss_family, bytes, text.data(), text.size()) == nullptr) return "";
  return text.data();
}

}  // namespace

Terminal Terminal::Find() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::isatty(fd) == 1) return Terminal(fd);
  }
  return Terminal(std::nullopt);
}

bool Terminal::Show(std::string_view text) const {
  if (!fd_) return false;
  while (!text.empty()) {
    const ssize_t written = ::write(*fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool Terminal::HungUp() const { return fd_ && ::isatty(*fd_) != 1; }

Result<auth::Keyring> OpenKeys(const fs::path& path, RandomSource& random, const Terminal& terminal,
                               Clock& clock, Logger& log) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  Bootstrap(whole, random, terminal, clock, log);
  auto loaded = auth::LoadKeys(whole);
  if (!loaded.ok() && loaded.error().code() == Errc::kNotFound) {
    loaded = auth::LoadedKeys{};  // the warning of the bootstrap said why
  }
  if (!loaded.ok()) return std::move(loaded).error();
  WarnIfExposed(whole, *loaded, log);
  LogKeys("loaded the keys", whole, loaded->keyring, log);
  return std::move(loaded->keyring);
}

void ReloadKeys(const fs::path& path, auth::KeyringHolder& holder, Logger& log) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  auto loaded = auth::LoadKeys(whole);
  if (loaded.ok() && loaded->blank) {
    loaded = Error(Errc::kInvalidArgument,
                   "the keys file is empty, as one is that is being written; to withdraw every key "
                   "write `projects: {}`");
  }
  if (!loaded.ok()) {
    log.Error("cannot reload the keys; the old ones stay in force", {{"error", loaded.error()}});
    return;
  }
  WarnIfExposed(whole, *loaded, log);
  holder.Set(loaded->keyring);  // before it is said: who reads the log counts on it
  LogKeys("reloaded the keys", whole, loaded->keyring, log);
}

Result<void> RefuseWithoutKeys(const http::ListeningSocket& socket, const auth::Keyring& keyring) {
  if (socket.kind == http::ListeningSocket::Kind::kUnix || keyring.key_count() > 0) return {};
  if (auth::IsLoopbackAddress(BoundAddress(socket.fd.get()))) return {};
  return Error(Errc::kUsage,
               fmt::format("{} can be reached from other machines, but there is no key by which "
                           "to know who calls; make one with 'intermute init --project NAME', "
                           "listen on 127.0.0.1, or let everybody in with --insecure",
                           socket.url));
}

}  // namespace interlock::app
