#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing/server_process.h"
#include "testing/temp_db.h"

namespace interlock::e2e {

using testing::ChildProcess;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::ServerProcess;

// A test against the real program in a directory of its own.
class E2eTest : public ::testing::Test {
 protected:
  // Whoever runs the tests may have keys of their own.
  E2eTest() { ::unsetenv("INTERMUTE_KEYS_FILE"); }

  std::string Directory() const { return directory_.path().string(); }
  std::filesystem::path File(const std::string& name) const { return directory_.path() / name; }

  // A server that is ready; a failed start fails the test with what it said.
  std::unique_ptr<ServerProcess> Start(std::vector<std::string> flags = {},
                                       std::vector<std::string> wrapper = {}) const {
    auto server =
        std::make_unique<ServerProcess>(Directory(), std::move(flags), std::move(wrapper));
    EXPECT_TRUE(server->ready()) << server->process().Stderr();
    return server;
  }

  // The program run to its end with these arguments.
  testing::Finished Run(std::vector<std::string> arguments,
                        const std::string& program = "intermute") const {
    arguments.insert(arguments.begin(), ServerProcess::Program(program));
    return testing::RunProgram(arguments, Directory());
  }

  // A server that cannot start next to what is there.
  testing::Finished RunServe(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), "serve");
    return Run(std::move(flags));
  }

 private:
  testing::TempDir directory_;
};

}  // namespace interlock::e2e
