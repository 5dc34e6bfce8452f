#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace interlock {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Error(Errc::kInvalidArgument, "odd");
  return n / 2;
}

Result<void> MustBeEven(int n) {
  IL_TRY([[maybe_unused]] const int half, Half(n));
  return {};
}

Result<std::string> Quarter(int n) {
  IL_TRY(const int half, Half(n));
  IL_TRY_VOID(MustBeEven(half));
  IL_TRY(const int quarter, Half(half));
  return std::to_string(quarter);
}

TEST(ResultTest, TryPassesValuesOnAndErrorsUp) {
  EXPECT_EQ(*Quarter(8), "2");
  EXPECT_EQ(Quarter(6).error().message(), "odd");
  EXPECT_EQ(Quarter(7).error().code(), Errc::kInvalidArgument);
  EXPECT_TRUE(MustBeEven(2).ok());
  EXPECT_FALSE(MustBeEven(3));
}

TEST(ResultTest, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  ASSERT_TRUE(result.ok());
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(ResultDeathTest, ReadingTheValueOfAFailureFailsACheck) {
  EXPECT_DEATH((void)*Half(3), "check failed.*odd");
  EXPECT_DEATH((void)Half(4).error(), "check failed");
}

}  // namespace
}  // namespace interlock
