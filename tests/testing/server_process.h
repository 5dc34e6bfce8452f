#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "testing/child_process.h"
#include "testing/http_client.h"

namespace interlock::testing {

// The real `intermute` on a free port, with its database in a directory of the test. Ready means
// that it has said so on standard output.
class ServerProcess {
 public:
  // Where the programs under test lie: build/<preset>/bin.
  static std::string Program(const std::string& name);

  // Starts "intermute serve --port 0 --db <directory>/test.db <flags>" and waits until it is ready.
  // Not ready (it ended, or took too long): ready() is false, and process() tells.
  // `wrapper` is a command that becomes the one after it, such as {"/usr/bin/prlimit", …}.
  explicit ServerProcess(const std::string& directory, std::vector<std::string> flags = {},
                         std::vector<std::string> wrapper = {});

  bool ready() const { return port_ != 0; }
  std::uint16_t port() const { return port_; }
  ChildProcess& process() { return *process_; }
  HttpClient Connect() const { return HttpClient::Tcp(port_); }

  // SIGTERM; the exit code, nothing when it does not end in time.
  std::optional<int> Stop();

  // Longer than the drain limit, and than a sanitizer's start.
  static constexpr std::chrono::milliseconds kPatience{20'000};

 private:
  std::unique_ptr<ChildProcess> process_;
  std::uint16_t port_ = 0;
};

}  // namespace interlock::testing
