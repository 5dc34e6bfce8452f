#include "http/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "http/port_holder.h"

namespace interlock::http {
namespace {

constexpr int kBacklog = 1024;  // the kernel caps it at net.core.somaxconn

std::string ErrnoText(int error) { return std::generic_category().message(error); }

struct AddressInfoDeleter {
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};

// Host of a URL: IPv6 addresses stand in brackets.
std::string NumericHost(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  if (address->sa_family == AF_INET6) return fmt::format("[{}]", text.data());
  return text.data();
}

Result<UniqueFd> NewSocket(int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) {
    return Error(Errc::kUnavailable, fmt::format("cannot make a socket: {}", ErrnoText(errno)));
  }
  return fd;
}

Result<std::unique_ptr<addrinfo, AddressInfoDeleter>> Resolve(const std::string& host,
                                                              std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  // "999.1.1.1" is a mistaken address, and no name server needs to be asked about it.
  if (host.find_first_not_of("0123456789.") == std::string::npos) hints.ai_flags |= AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  std::unique_ptr<addrinfo, AddressInfoDeleter> list(found);
  if (error != 0 || list == nullptr) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("cannot find the address of host '{}' ({}); give --host an address "
                             "such as 127.0.0.1",
                             host, ::gai_strerror(error)));
  }
  return list;
}

const addrinfo* PreferIpv4(const addrinfo* list) {
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) return one;
  }
  return list;
}

Error PortTaken(const std::string& host, std::uint16_t port) {
  const std::string holder = DescribePortHolder(port);
  return Error(Errc::kUnavailable,
               fmt::format("port {} on {} is in use{}; stop it or choose another with --port", port,
                           host, holder.empty() ? "" : " by " + holder));
}

// Who serves the socket at `address`? Nothing: certainly nobody does.
std::optional<std::string> LiveServer(const sockaddr_un& address) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    // Only these two say that nobody is there; whatever else went wrong proves nothing.
    if (errno == ECONNREFUSED || errno == ENOENT) return std::nullopt;
    if (errno == EAGAIN) return "a busy process";  // its backlog is full, so it lives
    if (errno == EACCES || errno == EPERM) return "a process of another user";
    if (errno == EPROTOTYPE) return "a process that speaks something else there";
    return fmt::format("an unknown process (asking failed: {})", ErrnoText(errno));
  }
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0) {
    return "another process";
  }
  return DescribeProcess(peer.pid);
}

Error SocketTaken(const std::filesystem::path& path, const std::string& by) {
  return Error(Errc::kUnavailable,
               fmt::format("the socket {} is served by {}; stop it or choose another with --socket",
                           path.string(), by));
}

// Takes the dead socket file at `path` away, unless it is anything else. REQUIRES: a StartLock.
Result<void> ClearStale(const std::filesystem::path& path, const sockaddr_un& address) {
  struct stat before{};
  if (::lstat(path.c_str(), &before) != 0) return {};  // gone by itself: bind again
  if (!S_ISSOCK(before.st_mode)) {
    return Error(Errc::kUnavailable, fmt::format("{} exists and is not a socket, so it is left "
                                                 "alone; choose another path with --socket",
                                                 path.string()));
  }
  if (const auto server = LiveServer(address)) return SocketTaken(path, *server);
  // Between bind and listen a program that knows no StartLock refuses connections too; ask once
  // more after a moment.
  ::poll(nullptr, 0, 20);
  if (const auto server = LiveServer(address)) return SocketTaken(path, *server);

  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error(Errc::kUnavailable, fmt::format("cannot replace the stale socket {}: {}",
                                                 path.string(), ErrnoText(errno)));
  }
  return {};
}

// Held from looking at a socket file until it is served: of servers that start on one path only one
// at a time may judge what is there, or one would delete what another has just made. (Comparing
// inodes would not tell: their numbers are used again at once.)
//
// The lock is the file "<path>.lock". Whoever holds it removes it, so a lock counts only while its
// file has a name.
class StartLock {
 public:
  static Result<StartLock> Acquire(const std::filesystem::path& socket) {
    StartLock lock;
    const std::string path = socket.string() + ".lock";
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (attempt > 0) ::poll(nullptr, 0, kPauseMillis);
      UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (fd.get() < 0) {
        return Error(Errc::kUnavailable,
                     fmt::format("cannot make the file {}: {}; check that its directory exists and "
                                 "is writable",
                                 path, ErrnoText(errno)));
      }
      struct stat info{};
      if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || ::fstat(fd.get(), &info) != 0) continue;
      if (info.st_nlink == 0) continue;
      lock.path_ = path;
      lock.fd_ = std::move(fd);
      return lock;
    }
    return SocketTaken(socket, "a process that is starting");
  }
  StartLock(StartLock&& other) noexcept
      : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)) {}
  StartLock& operator=(StartLock&&) = delete;
  ~StartLock() {
    if (!path_.empty()) ::unlink(path_.c_str());  // then fd_ frees the lock
  }

 private:
  static constexpr int kAttempts = 400;
  static constexpr int kPauseMillis = 5;
  StartLock() = default;

  std::string path_;
  UniqueFd fd_;
};

Result<sockaddr_un> UnixAddress(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof(address.sun_path)) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the socket path '{}' has {} bytes, but 1 to {} are possible; choose "
                             "another with --socket",
                             text, text.size(), sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

Result<void> BindUnix(int fd, const std::filesystem::path& path, const sockaddr_un& address) {
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return {};
    if (errno != EADDRINUSE) {
      return Error(Errc::kUnavailable, fmt::format("cannot make the socket {}: {}; check that its "
                                                   "directory exists and is writable",
                                                   path.string(), ErrnoText(errno)));
    }
    IL_TRY_VOID(ClearStale(path, address));
  }
  return SocketTaken(path, "processes that start again and again");
}

}  // namespace

SocketFile& SocketFile::operator=(SocketFile&& other) noexcept {
  if (this != &other) {
    Remove();
    path_ = std::exchange(other.path_, {});
    device_ = other.device_;
    inode_ = other.inode_;
  }
  return *this;
}

void SocketFile::Remove() {
  const std::filesystem::path path = std::exchange(path_, {});
  if (path.empty()) return;
  struct stat now{};
  if (::lstat(path.c_str(), &now) != 0) return;
  if (now.st_dev != device_ || now.st_ino != inode_) return;
  ::unlink(path.c_str());
}

Result<void> CheckTcpHost(const std::string& host) {
  IL_TRY(const auto list, Resolve(host, 0));
  const addrinfo& address = *PreferIpv4(list.get());
  IL_TRY(const UniqueFd fd, NewSocket(address.ai_family));
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return {};
  return Error(Errc::kUnavailable, fmt::format("cannot listen on {}: {}; give --host an address of "
                                               "this machine, such as 127.0.0.1",
                                               host, ErrnoText(errno)));
}

Result<ListeningSocket> ListenTcp(const std::string& host, std::uint16_t port) {
  IL_TRY(const auto list, Resolve(host, port));
  const addrinfo& address = *PreferIpv4(list.get());
  IL_TRY(UniqueFd fd, NewSocket(address.ai_family));
  // Lets a restarted server bind while connections of the old one linger in TIME_WAIT.
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // Accepted sockets inherit it: an answer is one write, so there is nothing to wait for.
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) return PortTaken(host, port);
    return Error(Errc::kUnavailable,
                 fmt::format("cannot listen on {} port {}: {}", host, port, ErrnoText(errno)));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  const in_port_t bound_port = bound.ss_family == AF_INET6
                                   ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                   : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port;
  ListeningSocket socket;
  socket.kind = ListeningSocket::Kind::kTcp;
  socket.fd = std::move(fd);
  socket.port = ntohs(bound_port);
  socket.url = fmt::format(
      "http://{}:{}", NumericHost(reinterpret_cast<const sockaddr*>(&bound), length), socket.port);
  return socket;
}

Result<ListeningSocket> ListenUnix(const std::filesystem::path& path) {
  IL_TRY(const sockaddr_un address, UnixAddress(path));
  IL_TRY(UniqueFd fd, NewSocket(AF_UNIX));
  // The file gets the socket's own mode minus the umask: never more than 0660, then exactly that.
  if (::fchmod(fd.get(), 0660) != 0) {
    return Error(Errc::kUnavailable,
                 fmt::format("cannot set the mode of a socket: {}", ErrnoText(errno)));
  }
  IL_TRY(const StartLock lock, StartLock::Acquire(path));
  IL_TRY_VOID(BindUnix(fd.get(), path, address));
  struct stat made{};
  if (::lstat(path.c_str(), &made) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return Error(Errc::kUnavailable, fmt::format("the socket {} vanished while it was made: {}",
                                                 path.string(), ErrnoText(error)));
  }
  SocketFile file(path, made.st_dev, made.st_ino);
  if (::listen(fd.get(), kBacklog) != 0 || ::chmod(path.c_str(), 0660) != 0) {
    return Error(Errc::kUnavailable,
                 fmt::format("cannot listen on {}: {}", path.string(), ErrnoText(errno)));
  }
  ListeningSocket socket;
  socket.kind = ListeningSocket::Kind::kUnix;
  socket.fd = std::move(fd);
  socket.url = "unix:" + path.string();
  socket.file = std::move(file);
  return socket;
}

}  // namespace interlock::http
