#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace interlock::http {

// The file of a Unix socket that we bound, removed with this object. Other programs may replace it
// while we run, so it is removed only while it is still the one we made.
class SocketFile {
 public:
  SocketFile() = default;  // none
  SocketFile(std::filesystem::path path, dev_t device, ino_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}
  SocketFile(SocketFile&& other) noexcept
      : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}
  SocketFile& operator=(SocketFile&& other) noexcept;
  ~SocketFile() { Remove(); }

  void Remove();

 private:
  std::filesystem::path path_;  // empty = none, or removed
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// A socket that listens, non-blocking and close-on-exec.
struct ListeningSocket {
  enum class Kind : std::uint8_t { kTcp, kUnix };
  Kind kind = Kind::kTcp;
  UniqueFd fd;
  std::string url;         // "http://127.0.0.1:7338", "unix:/run/intermute.sock"
  std::uint16_t port = 0;  // TCP: the bound one, also when asked for 0
  SocketFile file;         // Unix only
};

// Says whether `host` can be listened on, before anything is created for a server that cannot.
Result<void> CheckTcpHost(const std::string& host);

// `host` is an address or a name; of a name the first IPv4 address counts, else the first IPv6 one.
// Port 0 takes a free one. When the port is taken the error says by whom, as far as we may know.
Result<ListeningSocket> ListenTcp(const std::string& host, std::uint16_t port);

// The file has mode 0660 and is at no moment open to more. A socket file that nobody serves any
// more is replaced; one that somebody serves, in whatever way, is refused with the pid if we may
// know it, and any other file is never touched. Of several that start on one path one wins: while
// they look, "<path>.lock" exists.
Result<ListeningSocket> ListenUnix(const std::filesystem::path& path);

}  // namespace interlock::http
