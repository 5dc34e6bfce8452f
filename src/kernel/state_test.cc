#include "kernel/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel_fixture.h"

namespace interlock::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kNow = 1'000'000;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr StateId kId = {"key", "scope"};

class StateTest : public KernelTest {
 protected:
  std::optional<std::int64_t> Set(const StateId& id, const StateWrite& write,
                                  std::int64_t now = kNow) {
    auto version = Write([&](Transaction& tx) { return SetState(tx, id, write, now); });
    EXPECT_TRUE(version.ok()) << version.error();
    return version.value();
  }
  Result<Counter> Increment(const StateIncrement& increment, std::int64_t now = kNow) {
    return Write([&](Transaction& tx) { return IncrementState(tx, kId, increment, now); });
  }
  std::optional<StateEntry> Get(const StateId& id = kId, std::int64_t now = kNow) {
    return FindState(connection(), id, now).value();
  }
  std::string Payload(std::int64_t now = kNow) {
    const auto state = Get(kId, now);
    return state ? state->payload : "(none)";
  }
  std::int64_t Prune(std::int64_t now) {
    return Write([&](Transaction& tx) { return PruneState(tx, now); }).value();
  }
  std::int64_t RowsInFile() {
    constexpr db::Sql kCount = "SELECT count(*) FROM state";
    return connection().One(kCount, [](const db::Row& row) { return row.Int(0); }).value().value();
  }
  std::vector<std::string> Scopes(std::int64_t now = kNow) {
    const std::vector<StateEntry> states = ListStateOfKey(connection(), "key", now).value();
    std::vector<std::string> scopes;
    scopes.reserve(states.size());
    for (const StateEntry& state : states) {
      scopes.push_back(state.scope_id);
    }
    return scopes;
  }
};

TEST_F(StateTest, AWriteReplacesEverythingAndCountsTheVersion) {
  EXPECT_EQ(Get(), std::nullopt);
  EXPECT_EQ(Set(kId, {.payload = "{\"a\" : 1}", .ttl_s = 60}), 1);
  EXPECT_EQ(Get(), (StateEntry{.key = "key",
                               .scope_id = "scope",
                               .version = 1,
                               .updated_at = kNow,
                               .expires_at = kNow + 60,
                               .payload = "{\"a\" : 1}"}));
  EXPECT_EQ(Set(kId, {.payload = "2"}, kNow + 5), 2);
  EXPECT_EQ(Get(), (StateEntry{.key = "key",
                               .scope_id = "scope",
                               .version = 2,
                               .updated_at = kNow + 5,
                               .expires_at = std::nullopt,
                               .payload = "2"}));
  EXPECT_EQ(Set(kId, {.payload = "2"}, kNow + 6), 3) << "the same value is a write too";
}

TEST_F(StateTest, KeyAndScopeTogetherNameARow) {
  Set({"a", "s"}, {.payload = "1"});
  Set({"a", "t"}, {.payload = "2"});
  Set({"b", "s"}, {.payload = "3"});
  Set({"a", ""}, {.payload = "4"});
  Set({"a", "x'; DROP TABLE state; --\n\t"}, {.payload = "5"});
  EXPECT_EQ(Get({"a", "s"})->payload, "1");
  EXPECT_EQ(Get({"a", "t"})->payload, "2");
  EXPECT_EQ(Get({"b", "s"})->payload, "3");
  EXPECT_EQ(Get({"a", ""})->payload, "4");
  EXPECT_EQ(Get({"a", "x'; DROP TABLE state; --\n\t"})->payload, "5");
  EXPECT_EQ(Get({"b", "t"}), std::nullopt);
}

TEST_F(StateTest, WhatExpiresIsAbsentFromThatSecondOn) {
  Set(kId, {.payload = "1", .ttl_s = 10});
  EXPECT_EQ(Payload(kNow + 9), "1");
  EXPECT_EQ(Payload(kNow + 10), "(none)");
  EXPECT_THAT(Scopes(kNow + 9), ElementsAre("scope"));
  EXPECT_THAT(Scopes(kNow + 10), IsEmpty());
  EXPECT_EQ(ListStateOfScope(connection(), "scope", kNow + 9)->size(), 1);
  EXPECT_EQ(ListStateOfScope(connection(), "scope", kNow + 10)->size(), 0);
  EXPECT_EQ(RowsInFile(), 1);
}

TEST_F(StateTest, TheLongestTimeToLiveDoesNotWrapAround) {
  const std::int64_t longest = Duration::max().count() / 1'000'000;
  Set(kId, {.payload = "1", .ttl_s = longest});
  EXPECT_EQ(Get()->expires_at, kNow + longest);
  EXPECT_EQ(Payload(kNow + 1'000'000'000), "1");
}

TEST_F(StateTest, PruneRemovesWhatHasExpiredAndNothingElse) {
  Set({"key", "gone"}, {.payload = "1", .ttl_s = 10});
  Set({"key", "later"}, {.payload = "1", .ttl_s = 11});
  Set({"key", "ever"}, {.payload = "1"});
  EXPECT_EQ(Prune(kNow + 9), 0);
  EXPECT_EQ(Prune(kNow + 10), 1);
  EXPECT_EQ(Prune(kNow + 10), 0);
  EXPECT_EQ(RowsInFile(), 2);
  EXPECT_THAT(Scopes(kNow + 10), ElementsAre("ever", "later"));
}

TEST_F(StateTest, IfVersionWritesOverThatVersionOnly) {
  EXPECT_EQ(Set(kId, {.payload = "0", .if_version = 1}), std::nullopt) << "nothing is there";
  EXPECT_EQ(Set(kId, {.payload = "1"}), 1);
  EXPECT_EQ(Set(kId, {.payload = "2", .if_version = 2}), std::nullopt);
  EXPECT_EQ(Set(kId, {.payload = "2", .if_version = -1}), std::nullopt);
  EXPECT_EQ(Payload(), "1");
  EXPECT_EQ(Set(kId, {.payload = "2", .if_version = 1}), 2);
  EXPECT_EQ(Set(kId, {.payload = "3", .if_version = 1}), std::nullopt);
  EXPECT_EQ(Payload(), "2");
}

TEST_F(StateTest, IfVersionZeroWritesOnlyWhereNothingIs) {
  EXPECT_EQ(Set(kId, {.payload = "1", .ttl_s = 10, .if_version = 0}), 1);
  EXPECT_EQ(Set(kId, {.payload = "2", .if_version = 0}), std::nullopt);
  EXPECT_EQ(Set(kId, {.payload = "2", .if_version = 0}, kNow + 9), std::nullopt);
  EXPECT_EQ(Payload(), "1");
  EXPECT_EQ(Set(kId, {.payload = "2", .if_version = 0}, kNow + 10), 1) << "expired is absent";
  EXPECT_EQ(Set(kId, {.payload = "3", .if_version = 0}, kNow + 1'000), std::nullopt)
      << "what never expires is there";
}

TEST_F(StateTest, AnExpiredValueIsNotWrittenByItsVersionAndBeginsAnewPrunedOrNot) {
  for (const bool pruned : {false, true}) {
    SCOPED_TRACE(pruned);
    const StateId id = {"key", pruned ? "pruned" : "not pruned"};
    Set(id, {.payload = "1", .ttl_s = 10});
    EXPECT_EQ(Set(id, {.payload = "2", .ttl_s = 10}), 2);
    if (pruned) {
      EXPECT_EQ(Write([](Transaction& tx) { return PruneState(tx, kNow + 10); }).value(), 1);
    }
    EXPECT_EQ(Set(id, {.payload = "x", .if_version = 2}, kNow + 10), std::nullopt);
    EXPECT_EQ(Set(id, {.payload = "3"}, kNow + 10), 1);
    EXPECT_EQ(Set(id, {.payload = "4"}, kNow + 10), 2);
  }
}

TEST_F(StateTest, IncrementAddsToAWholeNumber) {
  EXPECT_EQ(Increment({})->value, 1);
  EXPECT_EQ(Increment({.by = 41})->value, 42);
  EXPECT_EQ(Increment({.by = -50})->value, -8);
  const Counter counter = Increment({.by = 0}).value();
  EXPECT_EQ(counter.value, -8);
  EXPECT_EQ(counter.version, 4);
  EXPECT_EQ(Payload(), "-8");
}

TEST_F(StateTest, IncrementRefusesWhatIsNoWholeNumberAndWhatWouldOverflow) {
  for (const std::string payload : {"\"1\"", "1.0", "null", "[1]", "9223372036854775808"}) {
    Set(kId, {.payload = payload});
    const auto result = Increment({});
    ASSERT_FALSE(result.ok()) << payload;
    EXPECT_EQ(result.error().exit_code(), 2);
    EXPECT_EQ(Payload(), payload);
  }
  Set(kId, {.payload = std::to_string(kMost)});
  EXPECT_THAT(Increment({}).error().message(), HasSubstr("exceeds 64 bits"));
  EXPECT_EQ(Increment({.by = -1})->value, kMost - 1);
  Set(kId, {.payload = "-2"});
  EXPECT_EQ(Increment({.by = std::numeric_limits<std::int64_t>::min()}).ok(), false);
  EXPECT_EQ(Payload(), "-2");
}

TEST_F(StateTest, IncrementKeepsTheEndUnlessOneIsGiven) {
  using enum StateIncrement::Expiry;
  Set(kId, {.payload = "5", .ttl_s = 10});
  ASSERT_TRUE(Increment({}, kNow + 9).ok());
  EXPECT_EQ(Get(kId, kNow + 9)->expires_at, kNow + 10);
  const Counter again = Increment({}, kNow + 10).value();
  EXPECT_EQ(again.value, 1) << "expired counts as 0";
  EXPECT_EQ(again.version, 1);
  EXPECT_EQ(Get(kId, kNow + 10)->expires_at, std::nullopt) << "and its end is gone";
  ASSERT_TRUE(Increment({.expiry = kSet, .ttl_s = 7}, kNow + 10).ok());
  EXPECT_EQ(Get(kId, kNow + 10)->expires_at, kNow + 17);
  ASSERT_TRUE(Increment({.expiry = kSet}, kNow + 10).ok());
  EXPECT_EQ(Get(kId, kNow + 10)->expires_at, std::nullopt);
}

TEST_F(StateTest, ListsAreSortedAndSayEverythingButThePayload) {
  for (const std::string_view scope : {"b", "a", "B", ""}) Set({"key", scope}, {.payload = "1"});
  Set({"other", "a"}, {.payload = "1", .ttl_s = 5});
  EXPECT_THAT(Scopes(), ElementsAre("", "B", "a", "b"));
  const auto keys = ListStateOfScope(connection(), "a", kNow).value();
  ASSERT_EQ(keys.size(), 2);
  EXPECT_EQ(keys[0].key, "key");
  EXPECT_EQ(keys[1], (StateEntry{.key = "other",
                                 .scope_id = "a",
                                 .version = 1,
                                 .updated_at = kNow,
                                 .expires_at = kNow + 5,
                                 .payload = ""}));
}

TEST_F(StateTest, DeletingBeginsVersionsAnew) {
  const auto remove = [](Transaction& tx) { return DeleteState(tx, kId, kNow); };
  for (const std::optional<std::int64_t> ttl_s : {std::optional<std::int64_t>(1), {}}) {
    Set(kId, {.payload = "1", .ttl_s = ttl_s});
    EXPECT_TRUE(Write(remove).value());
  }
  EXPECT_FALSE(Write(remove).value());
  EXPECT_EQ(Set(kId, {.payload = "1"}), 1);
  Set({"key", "other"}, {.payload = "1", .ttl_s = 1});
  Set({"keys", "scope"}, {.payload = "1"});
  const auto remove_all = [](Transaction& tx) { return DeleteStateOfKey(tx, "key", kNow); };
  EXPECT_EQ(Write(remove_all).value(), 2);
  EXPECT_EQ(Write(remove_all).value(), 0);
  EXPECT_EQ(RowsInFile(), 1);
}

TEST_F(StateTest, DeletingTakesExpiredRowsTooAndDoesNotCountThem) {
  Set(kId, {.payload = "1", .ttl_s = 1});
  const auto remove = [](Transaction& tx) { return DeleteState(tx, kId, kNow + 1); };
  EXPECT_FALSE(Write(remove).value());
  EXPECT_EQ(RowsInFile(), 0);
  Set({"key", "a"}, {.payload = "1", .ttl_s = 1});
  Set({"key", "b"}, {.payload = "1", .ttl_s = 2});
  Set({"key", "c"}, {.payload = "1"});
  const auto remove_all = [](Transaction& tx) { return DeleteStateOfKey(tx, "key", kNow + 1); };
  EXPECT_EQ(Write(remove_all).value(), 2);
  EXPECT_EQ(RowsInFile(), 0);
}

}  // namespace
}  // namespace interlock::kernel
