#include "base/error.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <sstream>
#include <string>

namespace interlock {
namespace {

TEST(ErrorTest, EveryRowOfTheTableHasItsOwnSlugAndSaneCodes) {
  std::set<std::string_view> slugs;
  for (const ErrcInfo& info : AllErrcs()) {
    SCOPED_TRACE(info.slug);
    EXPECT_TRUE(slugs.insert(info.slug).second) << "two Errcs share a slug";
    EXPECT_FALSE(info.slug.empty());
    for (const char c : info.slug) EXPECT_TRUE(std::islower(c) != 0 || c == '_') << c;
    EXPECT_GE(info.http_status, 400);
    EXPECT_LE(info.http_status, 599);
    EXPECT_GE(info.exit_code, 1);
    EXPECT_LE(info.exit_code, 3);
    EXPECT_EQ(&Describe(info.code), &info);
  }
}

TEST(ErrorTest, AServerSideFailureIsNeverAnExpectedNegativeForAShell) {
  for (const ErrcInfo& info : AllErrcs()) {
    if (info.http_status >= 500) {
      EXPECT_EQ(info.exit_code, 2) << info.slug;
    }
    if (info.exit_code == 3) {
      EXPECT_EQ(info.code, Errc::kUsage);
    }
  }
}

TEST(ErrorTest, OnlyServerSideFailuresCountForTheBreaker) {
  for (const ErrcInfo& info : AllErrcs()) {
    if (IsInfrastructure(info.code)) {
      EXPECT_EQ(info.http_status, 503) << info.slug;
    }
  }
  for (const Errc domain : {Errc::kNotFound, Errc::kConflict, Errc::kInvalidArgument,
                            Errc::kCancelled, Errc::kConstraint, Errc::kRateLimited,
                            Errc::kUnavailable, Errc::kCircuitOpen, Errc::kInternal}) {
    EXPECT_FALSE(IsInfrastructure(domain)) << Describe(domain).slug;
  }
}

TEST(ErrorTest, CarriesSlugDetailsAndContext) {
  const Error error = Error(Errc::kNotFound, "no agent a1")
                          .WithSlug("unknown_agent")
                          .WithDetail("agent", std::string("a1"))
                          .WithDetail("retry_after", std::int64_t{3})
                          .In("heartbeat");
  EXPECT_EQ(error.code(), Errc::kNotFound);
  EXPECT_EQ(error.slug(), "unknown_agent");
  EXPECT_EQ(error.http_status(), 404);
  EXPECT_EQ(error.exit_code(), 1);
  EXPECT_EQ(error.message(), "heartbeat: no agent a1");
  ASSERT_EQ(error.details().size(), 2u);
  EXPECT_EQ(error.details()[0].first, "agent");
  EXPECT_EQ(std::get<std::int64_t>(error.details()[1].second), 3);
  std::ostringstream text;
  text << error;
  EXPECT_EQ(text.str(), "unknown_agent: heartbeat: no agent a1");
}

}  // namespace
}  // namespace interlock
