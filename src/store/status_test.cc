#include "store/status.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "store/agents.h"
#include "store/fake_sightings.h"
#include "store/reservations.h"
#include "store/store_fixture.h"

namespace interlock::store {
namespace {

using std::chrono::minutes;

constexpr db::Sql kAddMailbox =
    "INSERT INTO mailboxes (project, agent, total, unread, home) VALUES (?1, ?2, 9, ?3, 1)";

class StatusTest : public StoreTest {
 protected:
  void Register(const std::string& project, Duration ago) {
    const std::string id = "agent" + std::to_string(++made_);
    const std::array hash = {static_cast<std::byte>(made_)};
    const domain::Agent agent = {.id = id,
                                 .project = project,
                                 .session_id = id,
                                 .name = id,
                                 .last_seen = clock_.Now() - ago};
    ASSERT_TRUE(
        Write<void>([&](db::Transaction& tx) { return InsertAgent(tx, agent, hash); }).ok());
  }
  domain::Reservation Grant(const std::string& project, Duration lease) {
    const std::string id = "r" + std::to_string(++made_);
    const domain::Reservation reservation{.id = id,
                                          .project = project,
                                          .agent = "a",
                                          .pattern = id,
                                          .fence = 1,
                                          .created_at = clock_.Now(),
                                          .expires_at = clock_.Now() + lease};
    EXPECT_TRUE(Write<void>([&](db::Transaction& tx) {
                  return InsertReservation(tx, reservation, ParseClaim(id, false).value());
                }).ok());
    return reservation;
  }
  void Mail(const std::string& project, int unread) {
    const std::string agent = std::to_string(++made_);
    ASSERT_TRUE(connection().Run(kAddMailbox, project, agent, unread).ok());
  }
  StatusCounts Counts(std::optional<std::string_view> project) {
    return CountStatus(connection(), project, clock_.Now(), clock_.Now() - minutes(5), sightings_)
        .value();
  }

  FakeSightings sightings_;

 private:
  int made_ = 0;
};

TEST_F(StatusTest, EachNumberCountsWhatItSaysInOneProjectAndInAll) {
  EXPECT_EQ(Counts("p"), StatusCounts{});
  EXPECT_EQ(Counts(std::nullopt), StatusCounts{});
  Register("p", minutes(1));
  Register("p", minutes(4));
  Register("p", minutes(5));  // just too long ago
  Register("q", minutes(1));
  Grant("p", minutes(1));
  Grant("p", minutes(0));  // over
  domain::Reservation released = Grant("p", minutes(1));
  released.released_at = clock_.Now();
  ASSERT_TRUE(
      Write<void>([&](db::Transaction& tx) { return UpdateReservation(tx, released); }).ok());
  Grant("q", minutes(1));
  Mail("p", 2);
  Mail("p", 1);
  Mail("p", 0);
  Mail("", 1);
  EXPECT_EQ(
      Counts("p"),
      (StatusCounts{
          .agents_alive = 2, .agents_registered = 3, .reservations_active = 1, .mail_unread = 3}));
  EXPECT_EQ(
      Counts(std::nullopt),
      (StatusCounts{
          .agents_alive = 3, .agents_registered = 4, .reservations_active = 2, .mail_unread = 4}));
  EXPECT_EQ(Counts(""), StatusCounts{.mail_unread = 1});
}

TEST_F(StatusTest, AgentSeenLaterThanIsStoredIsAlive) {
  Register("p", minutes(9));
  Register("p", minutes(1));
  Register("q", minutes(9));
  sightings_.seen = {{"agent1", clock_.Now()},
                     {"agent2", clock_.Now()},
                     {"agent3", clock_.Now() - minutes(5)},
                     {"nobody", clock_.Now()}};
  EXPECT_EQ(Counts("p"), (StatusCounts{.agents_alive = 2, .agents_registered = 2}));
  EXPECT_EQ(Counts("q"), (StatusCounts{.agents_alive = 0, .agents_registered = 1}));
  EXPECT_EQ(Counts(std::nullopt), (StatusCounts{.agents_alive = 2, .agents_registered = 3}));
}

TEST_F(StatusTest, WhoDeregisteredIsNotCounted) {
  Register("p", minutes(0));
  ASSERT_TRUE(Write<void>([&](db::Transaction& tx) {
                return SetDeregistered(tx, "agent1", clock_.Now());
              }).ok());
  EXPECT_EQ(Counts("p"), StatusCounts{});
  EXPECT_EQ(Counts(std::nullopt), StatusCounts{});
}

}  // namespace
}  // namespace interlock::store
