#include "testing/server_process.h"

#include <charconv>
#include <csignal>
#include <utility>

namespace interlock::testing {

std::string ServerProcess::Program(const std::string& name) {
  return std::string(INTERLOCK_BIN_DIR) + "/" + name;
}

ServerProcess::ServerProcess(const std::string& directory, std::vector<std::string> flags) {
  ChildProcess::Options options;
  options.directory = directory;
  options.arguments = {Program("intermute"), "serve", "--port", "0", "--db", "test.db"};
  for (std::string& flag : flags) options.arguments.push_back(std::move(flag));
  process_ = std::make_unique<ChildProcess>(options);
  const auto line = process_->WaitForLine("listening on http://", kPatience);
  if (!line) return;
  const std::size_t colon = line->rfind(':');
  std::from_chars(line->data() + colon + 1, line->data() + line->size(), port_);
}

std::optional<int> ServerProcess::Stop() {
  process_->Signal(SIGTERM);
  return process_->Wait(kPatience);
}

}  // namespace interlock::testing
