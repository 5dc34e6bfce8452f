#include "kernel/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "kernel/schema.h"
#include "testing/fake_clock.h"
#include "testing/raw_db.h"
#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

using testing::FakeClock;
using ::testing::HasSubstr;
using testing::TempDb;

class HealthTest : public ::testing::Test {
 protected:
  HealthTest() { EXPECT_TRUE(Database::Init(options(), KernelSchema(), clock_).ok()); }
  Database::Options options() const { return {.path = temp_.path()}; }
  Result<void> Check(const HealthLimits& limits = {}) {
    return CheckHealth(options(), KernelSchema(), clock_, limits);
  }

  TempDb temp_;
  FakeClock clock_;
};

TEST_F(HealthTest, ANewFileIsHealthy) { EXPECT_TRUE(Check().ok()); }

TEST_F(HealthTest, ADiskThatIsNearlyFullIsReported) {
  const Result<void> checked =
      Check({.free_bytes_min = std::numeric_limits<std::uintmax_t>::max()});
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code(), Errc::kDiskFull);
  EXPECT_THAT(checked.error().message(), HasSubstr("nearly full"));
}

TEST_F(HealthTest, DamageInsideIsFoundUnlessTheFileIsTooLongForAQuickLook) {
  {
    const testing::RawDb raw(temp_.path());
    raw.Run(
        "INSERT INTO state WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 500) SELECT 'key' || i, 'scope', 'x', 1, NULL, 1 FROM n");
  }
  ASSERT_TRUE(Check().ok());
  const auto size = std::filesystem::file_size(temp_.path());
  {
    std::fstream file(temp_.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size) - 5000);
    file << std::string(4096, 'z');
  }
  const Result<void> checked = Check();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code(), Errc::kCorrupt);
  EXPECT_TRUE(Check({.checked_bytes_max = size - 1}).ok());
}

}  // namespace
}  // namespace interlock::kernel
