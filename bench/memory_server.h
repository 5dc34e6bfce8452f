#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace interlock::bench {

// Our own HTTP server, in a process of its own, whose every answer is a body it holds in memory:
// what an answer that needs the database can be held against, since all that remains between the
// two is reading it. It answers GET /memory and takes any query.
class MemoryServer {
 public:
  // REQUIRES: this process has no other thread yet, since it forks.
  explicit MemoryServer(std::string body);
  ~MemoryServer();
  MemoryServer(const MemoryServer&) = delete;
  MemoryServer& operator=(const MemoryServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  pid_t child_ = 0;
  std::uint16_t port_ = 0;
};

}  // namespace interlock::bench
