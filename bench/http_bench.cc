// What a request, a start and an idle server cost. The limits are measured in the same run: the
// same answer served from memory by a bare epoll loop, and the start of /bin/true.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "http_load.h"
#include "process_use.h"
#include "report.h"
#include "testing/server_process.h"

namespace interlock::bench {
namespace {

using Clock = std::chrono::steady_clock;
using testing::ServerProcess;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Milliseconds(const std::function<void()>& run) {
  const Clock::time_point begin = Clock::now();
  run();
  return Seconds(Clock::now() - begin) * 1e3;
}

// The three take turns, so that a busy moment of the machine meets all of them.
void ReportStartUp(const std::string& directory) {
  constexpr int kRuns = 25;
  std::vector<double> server_times;
  std::vector<double> ic_times;
  std::vector<double> true_times;
  for (int i = 0; i < kRuns; ++i) {
    std::optional<ServerProcess> server;
    server_times.push_back(Milliseconds([&] {
      server.emplace(directory);
      const auto answer = server->Connect().Get("/health");
      if (!answer || answer->status != 200) std::exit(1);
    }));
    server->Stop();
    ic_times.push_back(Milliseconds(
        [&] { testing::RunProgram({ServerProcess::Program("ic"), "version"}, directory); }));
    true_times.push_back(Milliseconds([&] { testing::RunProgram({"/bin/true"}, directory); }));
  }
  const double start = Median(server_times);
  const double nothing = Median(true_times);
  Report({"start-up, exec to first healthy answer", start, "ms", "promised", 100});
  Report({"start-up, exec to first healthy answer", start, "ms", "/bin/true", nothing});
  Report({"ic version, whole process", Median(ic_times), "ms", "/bin/true", nothing});
}

int Run() {
  std::string directory = std::filesystem::temp_directory_path() / "http_bench.XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return 1;
  {
    ServerProcess server(directory);
    if (!server.ready() || server.Connect().Get("/health")->status != 200) {
      std::fprintf(stderr, "http_bench: %s", server.process().Stderr().c_str());
      return 1;
    }
    Report({"idle resident memory", ResidentMiB(server.process().pid()), "MiB", "promised", 30});
    ReportRate("GET /health, with its database ping", server.port(), "/health");
    ReportRate("GET of a path that is not there", server.port(), "/nowhere");
    server.Stop();
  }
  ReportStartUp(directory);
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace interlock::bench

int main() { return interlock::bench::Run(); }
