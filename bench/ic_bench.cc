// What a hook pays for a call of `ic`, on a file with 10 000 rows of state and 1 000 sentinels:
// held against a start of /bin/true, and where it writes, one fdatasync more. All kinds of calls
// take turns, so that a slow moment slows all of them.
//
// The file lies in the current directory, or in the directory given as the first argument.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "kernel/database.h"
#include "kernel/schema.h"
#include "report.h"

namespace interlock::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kStateRows = 10'000;
constexpr int kSentinelRows = 1'000;
constexpr int kRounds = 300;
constexpr int kLoopCalls = 1'000;
constexpr std::size_t kPageBytes = 4120;  // of the log, with its header

double Micros(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// The one that `part` of the values are below.
double Quantile(std::vector<double> values, double part) {
  const auto place = static_cast<std::size_t>(part * static_cast<double>(values.size()));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(place));
  return values[place];
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

// Where the calls are made.
class Place {
 public:
  explicit Place(const fs::path& parent) : path_(parent / "ic_bench") {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Place() { fs::remove_all(path_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const fs::path& path() const { return path_; }

  // Runs a program to its end; what it prints is thrown away.
  int Call(std::vector<std::string> words) const {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addchdir_np(&actions, path_.c_str());
    pid_t pid = 0;
    const int failed =
        ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    IL_CHECK(failed == 0, arguments[0]);
    int status = 0;
    IL_CHECK(::waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
  }

  // The same, timed.
  double Time(const std::vector<std::string>& words, int expected) const {
    const auto start = std::chrono::steady_clock::now();
    const int code = Call(words);
    const double micros = Micros(std::chrono::steady_clock::now() - start);
    IL_CHECK(code == expected, words.size() > 2 ? words[1] + " " + words[2] : words[0]);
    return micros;
  }

 private:
  fs::path path_;
};

void Fill(const fs::path& path, std::int64_t expires_at) {
  SystemClock clock;
  const kernel::Database::Options options{.path = path};
  IL_CHECK(kernel::Database::Init(options, kernel::KernelSchema(), clock).ok());
  auto database = kernel::Database::Open(options, kernel::Database::OpenMode::kWrite,
                                         kernel::KernelSchema(), clock);
  const Result<void> filled = database->Write([&](kernel::Transaction& tx) -> Result<void> {
    for (int i = 0; i < kStateRows; ++i) {
      const std::string scope = "scope-" + std::to_string(i);
      IL_TRY_VOID(
          tx->Run("INSERT INTO state (key, scope_id, payload, updated_at, expires_at)"
                  " VALUES ('bench', ?1, '{\"phase\":\"executing\",\"n\":7}', 1, ?2)",
                  scope, expires_at == 0 ? std::nullopt : std::optional(expires_at)));
      if (i >= kSentinelRows) continue;
      IL_TRY_VOID(tx->Run("INSERT INTO sentinels VALUES ('bench', ?1, 1, 0)", scope));
    }
    return {};
  });
  IL_CHECK(filled.ok());
  IL_CHECK(database->sqlite().Checkpoint().ok());
}

// One page appended and synced, as a small write to the log is.
class SyncProbe {
 public:
  explicit SyncProbe(const fs::path& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {}
  ~SyncProbe() { ::close(fd_); }
  SyncProbe(const SyncProbe&) = delete;
  SyncProbe& operator=(const SyncProbe&) = delete;

  double Time() const {
    static const std::string kPage(kPageBytes, 'x');
    IL_CHECK(::write(fd_, kPage.data(), kPage.size()) == static_cast<ssize_t>(kPage.size()));
    const auto start = std::chrono::steady_clock::now();
    IL_CHECK(::fdatasync(fd_) == 0);
    return Micros(std::chrono::steady_clock::now() - start);
  }

 private:
  int fd_;
};

void ReportCalls(const Place& place, const std::string& ic) {
  struct Kind {
    std::string name;
    std::vector<std::string> words;
    int expected;
    std::vector<double> micros = {};
  };
  std::array kinds = {
      Kind{"/bin/true", {"/bin/true"}, 0},
      Kind{"ic sentinel check (throttled)",
           {ic, "sentinel", "check", "bench", "scope-500", "--interval=0"},
           1},
      Kind{"ic state get", {ic, "state", "get", "bench", "scope-5000"}, 0},
      Kind{"ic state set", {ic, "state", "set", "bench", "scope-5000", "{\"n\":8}"}, 0},
      Kind{"ic --help", {ic, "--help"}, 0},
  };
  const SyncProbe probe(place.path() / "probe");
  std::vector<double> syncs;
  for (int round = 0; round < kRounds; ++round) {
    for (Kind& kind : kinds) kind.micros.push_back(place.Time(kind.words, kind.expected));
    syncs.push_back(probe.Time());
  }
  const double start = Median(kinds[0].micros);
  const double sync = Median(syncs);
  Report({kinds[0].name, start, "us", "", 0});
  Report({"fdatasync of one page", sync, "us", "", 0});
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    const bool writes = kinds[i].name == "ic state set";
    Report({kinds[i].name, Median(kinds[i].micros), "us",
            writes ? "3 x /bin/true + fdatasync" : "3 x /bin/true",
            writes ? 3 * start + sync : 3 * start});
    Report({kinds[i].name + ", p99", Quantile(kinds[i].micros, 0.99) / 1000, "ms", "50 ms", 50});
  }
}

void ReportPrune(const Place& place, const std::string& ic) {
  const fs::path path = place.path() / "expired.db";
  Fill(path, 2);
  const double micros = place.Time({ic, "--db=expired.db", "state", "prune"}, 0);
  Report({"ic state prune, 10 000 expired rows", micros / 1000, "ms", "100 ms", 100});
}

// Calls per second of one bash loop.
double Loop(const Place& place, const std::string& command) {
  const std::string script =
      "for ((i = 0; i < " + std::to_string(kLoopCalls) + "; i++)); do " + command + " || :; done";
  return kLoopCalls * 1e6 / place.Time({"/bin/bash", "-c", script}, 0);
}

void ReportLoop(const Place& place, const std::string& ic) {
  const double bare = Loop(place, "/bin/true");
  const double ours = Loop(place, "'" + ic + "' sentinel check loop scope --interval=3600");
  Report({"ic sentinel check in a bash loop", ours, "calls/s", "/bin/true in the same loop", bare});
}

void ReportInstructions(const Place& place, const std::string& ic) {
  const std::string log = (place.path() / "callgrind.log").string();
  const std::vector<std::string> words = {"/usr/bin/valgrind",
                                          "--tool=callgrind",
                                          "--callgrind-out-file=/dev/null",
                                          "--log-file=" + log,
                                          ic,
                                          "state",
                                          "get",
                                          "bench",
                                          "scope-5000"};
  if (!fs::exists(words[0])) {
    std::fprintf(stderr, "ic_bench: no valgrind here, so instructions are not counted\n");
    return;
  }
  IL_CHECK(place.Call(words) == 0, "callgrind");
  std::ifstream file(log);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::size_t refs = all.find("refs:");
  IL_CHECK(refs != std::string::npos, all);
  std::string digits;
  for (const char c : all.substr(refs + 5, all.find('\n', refs) - refs - 5)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  Report({"ic state get, instructions", std::stod(digits) / 1e6, "million", "5 million", 5});
}

int Main(int argc, char** argv) {
  const Place place(argc > 1 ? fs::path(argv[1]) : fs::current_path());
  const std::string ic = std::string(INTERLOCK_BIN_DIR) + "/ic";
  Fill(place.path() / ".clavain" / "intercore.db", 0);
  ReportCalls(place, ic);
  ReportInstructions(place, ic);
  ReportPrune(place, ic);
  ReportLoop(place, ic);
  return 0;
}

}  // namespace
}  // namespace interlock::bench

int main(int argc, char** argv) { return interlock::bench::Main(argc, argv); }
