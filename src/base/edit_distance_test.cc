#include "base/edit_distance.h"

#include <gtest/gtest.h>

namespace interlock {
namespace {

TEST(EditDistanceTest, EveryEditCountsOnce) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("exclusive", "exclusive"), 0U);
  EXPECT_EQ(EditDistance("exlusive", "exclusive"), 1U);    // removed
  EXPECT_EQ(EditDistance("excluusive", "exclusive"), 1U);  // added
  EXPECT_EQ(EditDistance("exklusive", "exclusive"), 1U);   // changed
  EXPECT_EQ(EditDistance("excluisve", "exclusive"), 1U);   // swapped
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("abc", ""), 3U);
  EXPECT_EQ(EditDistance("created_at", "updated_at"), 3U);
}

}  // namespace
}  // namespace interlock
