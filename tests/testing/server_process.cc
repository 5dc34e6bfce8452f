#include "testing/server_process.h"

#include <charconv>
#include <csignal>
#include <utility>

namespace interlock::testing {

std::string ServerProcess::Program(const std::string& name) {
  return std::string(INTERLOCK_BIN_DIR) + "/" + name;
}

ServerProcess::ServerProcess(const std::string& directory, std::vector<std::string> flags,
                             std::vector<std::string> wrapper) {
  ChildProcess::Options options;
  options.directory = directory;
  options.arguments = std::move(wrapper);
  for (const std::string& one : {Program("intermute"), std::string("serve"),
                                 std::string("--port=0"), std::string("--db=test.db")}) {
    options.arguments.push_back(one);
  }
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
