#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace interlock::bench {

// What a server from memory answers to one method on one path.
struct MemoryAnswer {
  std::string method;  // "GET"
  std::string path;    // a template of http/route.h: "/api/inbox/{agent...}"
  int status = 200;
  std::vector<std::string> bodies =
      {};  // given in turns; JSON without the newline at its end, or ""
};

// Our own HTTP server, in a process of its own, whose every answer is a body it holds in memory:
// what an answer that needs the database can be held against, since all that remains between the
// two is reading it. It takes any query and any body, without looking at them.
class MemoryServer {
 public:
  // REQUIRES: this process has no other thread yet, since it forks; at most 8 answers.
  explicit MemoryServer(std::vector<MemoryAnswer> answers);
  // Answers GET /memory.
  explicit MemoryServer(std::string body);
  ~MemoryServer();
  MemoryServer(const MemoryServer&) = delete;
  MemoryServer& operator=(const MemoryServer&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return child_; }

 private:
  pid_t child_ = 0;
  std::uint16_t port_ = 0;
};

}  // namespace interlock::bench
