// Real processes that open one file at the same moment.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <vector>

#include "db/sqlite/connection.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 2;
#else
constexpr int kRounds = 10;
#endif
constexpr int kProcesses = 24;

// Runs `body` in `count` processes, all let go at once; the number that returned true.
int RunTogether(int count, const std::function<bool()>& body) {
  std::array<int, 2> gate{};
  EXPECT_EQ(::pipe(gate.data()), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(gate[1]);
      char ignored = 0;
      [[maybe_unused]] const ssize_t end = ::read(gate[0], &ignored, 1);  // ends when it is closed
      ::_exit(body() ? 0 : 1);
    }
    EXPECT_GT(child, 0);
    children.push_back(child);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  int succeeded = 0;
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) ++succeeded;
  }
  return succeeded;
}

bool Opens(const OpenOptions& options) {
  const auto opened = Connection::Open(options);
  if (!opened) std::fprintf(stderr, "%s\n", opened.error().message().c_str());
  return opened.ok();
}

TEST(OpenRaceTest, ManyProcessesOpenAFreshFileAndNoneFails) {
  for (int round = 0; round < kRounds; ++round) {
    const testing::TempDb temp;
    OpenOptions options = temp.options();
    options.path = temp.directory() / "new" / "deep" / "x.db";
    // Without patience in SQLite itself: only the opener's own retry is left.
    options.busy_timeout = std::chrono::milliseconds(round % 2 == 0 ? 0 : 250);
    EXPECT_EQ(RunTogether(kProcesses, [&] { return Opens(options); }), kProcesses);
  }
}

TEST(OpenRaceTest, ManyProcessesOpenAndWriteAFreshFileAndNoWriteIsLost) {
  const testing::TempDb temp;
  OpenOptions options = temp.options();
  options.busy_timeout = std::chrono::milliseconds(60'000);
  const auto body = [&] {
    auto opened = Connection::Open(options);
    if (!opened) return false;
    return (*opened)
        ->RunScript(
            "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS t(a); "
            "INSERT INTO t VALUES (1); COMMIT")
        .ok();
  };
  EXPECT_EQ(RunTogether(kProcesses, body), kProcesses);
  const auto count =
      temp.Open()->One("SELECT count(*) FROM t", [](const db::Row& row) { return row.Int(0); });
  EXPECT_EQ(count.value(), kProcesses);
}

TEST(OpenRaceTest, ReadersOpenWhileWritersComeAndGo) {
  const testing::TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  const auto writer = [&] { return Opens(temp.options(Access::kReadWrite)); };
  const auto reader = [&] { return Opens(temp.options(Access::kReadOnly)); };
  const auto both = [&] {
    for (int i = 0; i < 20; ++i) {
      if (!(::getpid() % 2 == 0 ? writer() : reader())) return false;
    }
    return true;
  };
  EXPECT_EQ(RunTogether(kProcesses, both), kProcesses);
}

}  // namespace
}  // namespace interlock::sqlite
