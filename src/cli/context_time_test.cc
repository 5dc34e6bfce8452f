#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "cli/command.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::cli {
namespace {

// Knows of each question for the time whether the write lock of a file was held.
class LockSeeingClock final : public Clock {
 public:
  explicit LockSeeingClock(const testing::TempDb& file) : file_(file) {}

  Timestamp Now() override {
    if (watching_) locked_at_last_ = IsLocked();
    return fake_.Now();
  }
  Duration Monotonic() override { return fake_.Monotonic(); }
  TimerId Schedule(Duration delay, std::function<void()> fn) override {
    return fake_.Schedule(delay, std::move(fn));
  }
  bool Cancel(TimerId id) override { return fake_.Cancel(id); }

  void Watch() { watching_ = true; }
  bool locked_at_last() const { return locked_at_last_; }

 private:
  bool IsLocked() const {
    sqlite::OpenOptions options = file_.options(sqlite::Access::kReadWrite);
    options.busy_timeout = std::chrono::milliseconds(0);
    const auto other = sqlite::Connection::Open(options).value();
    return !other->BeginExclusive().ok();
  }

  const testing::TempDb& file_;
  testing::FakeClock fake_;
  bool watching_ = false;
  bool locked_at_last_ = false;
};

// Who asks for the time and then waits for the lock writes a time that others have passed: a value
// would live too short, and a sentinel that another process fired meanwhile would seem to have
// fired in the future, by a clock that was set back since.
TEST(WriteTimeTest, TheTimeIsTakenWhenTheLockIsHeld) {
  const testing::TempDb file;
  LockSeeingClock clock(file);
  Csprng random;
  const auto run = [&](const std::vector<const char*>& arguments) {
    Context context({.clock = clock,
                     .random = random,
                     .input = -1,
                     .environment = [&](const char* name) -> std::optional<std::string> {
                       if (std::string_view(name) != "INTERCORE_DB") return std::nullopt;
                       return file.path().string();
                     }});
    return cli::Run(context, arguments);
  };
  ASSERT_EQ(run({"init"}).exit_code, 0);
  clock.Watch();
  std::string id = run({"run", "create", "--goal=g"}).out;
  EXPECT_TRUE(clock.locked_at_last());
  id.pop_back();
  const char* const created = id.c_str();
  for (const std::vector<const char*>& write : std::vector<std::vector<const char*>>{
           {"run", "advance", created},
           {"run", "skip", created, "polish", "--reason=r"},
           {"run", "set", created, "--complexity=1"},
           {"run", "agent", "add", created},
           {"run", "artifact", "add", created, "--phase=p", "--path=f"},
           {"run", "action", "add", created, "--phase=p", "--command=c"},
           {"run", "rollback", created, "--to-phase=brainstorm"},
           {"run", "cancel", created},
           {"state", "set", "key", "s", "1", "--ttl=5s"},
           {"state", "incr", "key", "s"},
           {"state", "prune"},
           {"sentinel", "check", "guard", "s", "--interval=60"},
           {"sentinel", "check-many", "guard", "s", "60"},
           {"sentinel", "prune", "--older-than=1h"}}) {
    const CommandResult outcome = run(write);
    EXPECT_LE(outcome.exit_code, 1) << outcome.err;
    EXPECT_TRUE(clock.locked_at_last()) << write[0] << ' ' << write[1];
  }
  EXPECT_EQ(run({"state", "get", "key", "s"}).out, "2\n");
  EXPECT_FALSE(clock.locked_at_last()) << "a reader holds none, so the clock can tell";
}

}  // namespace
}  // namespace interlock::cli
