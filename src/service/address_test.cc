#include "service/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "db/migrate.h"
#include "db/sqlite/connection.h"
#include "service/signs_of_life.h"
#include "store/schema.h"
#include "testing/counting_connection.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::service {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr Timestamp kNow = {1'767'323'045'000'000};

class AddressBookTest : public ::testing::Test {
 protected:
  AddressBookTest() : connection_(temp_.Open()) {
    db::Migrator migrator(store::ServerSchema(), {.database = temp_.path()}, clock_);
    EXPECT_TRUE(migrator.Run(*connection_).ok());
  }

  void Write(const std::function<Result<void>(db::Transaction&)>& fn) {
    ASSERT_TRUE(connection_->BeginExclusive().ok());
    db::Transaction tx(*connection_);
    ASSERT_TRUE(fn(tx).ok());
    ASSERT_TRUE(connection_->Commit().ok());
  }

  struct Someone {
    std::string id;
    std::string name;
    Duration unseen_for = {};
    std::string project = "p";
  };
  void Register(const Someone& agent) {
    std::array<std::byte, 4> hash = {};
    hash[3] = static_cast<std::byte>(++tokens_);
    Write([&](db::Transaction& tx) {
      return store::InsertAgent(tx,
                                {.id = agent.id,
                                 .project = agent.project,
                                 .session_id = "session of " + agent.id,
                                 .name = agent.name,
                                 .created_at = kNow,
                                 .last_seen = kNow - agent.unseen_for},
                                hash);
    });
  }
  void Deregister(const std::string& id) {
    Write([&](db::Transaction& tx) { return store::SetDeregistered(tx, id, kNow); });
  }

  // The id of the agent; "" when the text means nobody, the slug of an error.
  std::string Find(const std::string& text, AddressBook::Project project = "p") {
    const auto found = book_.Find(*connection_, project, text, kNow);
    if (!found.ok()) return std::string(found.error().slug());
    return *found ? (*found)->id : "";
  }

  testing::TempDb temp_;
  testing::FakeClock clock_;
  std::unique_ptr<sqlite::Connection> connection_;
  SignsOfLife signs_{clock_};
  AddressBook book_{AddressBook::Options{.grace = minutes(5)}, signs_};
  int tokens_ = 0;
};

TEST_F(AddressBookTest, AnIdAndANameMeanTheAgentAndAnotherTextNobody) {
  Register({.id = "1", .name = "ann"});
  EXPECT_EQ(Find("1"), "1");
  EXPECT_EQ(Find("ann"), "1");
  EXPECT_EQ(Find("ANN"), "");
  EXPECT_EQ(Find("bob"), "");
  EXPECT_EQ(Find(""), "");
}

TEST_F(AddressBookTest, AnIdWinsOverANameInEveryProjectAlsoWhenDeregistered) {
  Register({.id = "1", .name = "ann", .project = "q"});
  Register({.id = "2", .name = "1"});
  EXPECT_EQ(Find("1"), "1");
  Deregister("1");
  EXPECT_EQ(Find("1"), "1");
  EXPECT_EQ(book_.IdOf(*connection_, "p", "1", kNow).value(), "1");
}

TEST_F(AddressBookTest, ANameMeansTheOneSeenWithinTheGrace) {
  Register({.id = "1", .name = "ann", .unseen_for = minutes(5)});  // just too long
  Register({.id = "2", .name = "ann", .unseen_for = minutes(5) - seconds(1)});
  EXPECT_EQ(Find("ann"), "2");
}

TEST_F(AddressBookTest, ANameOfInactiveAgentsMeansTheOneSeenLast) {
  Register({.id = "3", .name = "ann", .unseen_for = minutes(30)});
  Register({.id = "1", .name = "ann", .unseen_for = minutes(10)});
  Register({.id = "2", .name = "ann", .unseen_for = minutes(20)});
  EXPECT_EQ(Find("ann"), "1");
}

TEST_F(AddressBookTest, ANameOfTwoActiveAgentsIsAmbiguousAndTheErrorHasBothIds) {
  Register({.id = "1", .name = "ann", .unseen_for = minutes(1)});
  Register({.id = "2", .name = "ann", .unseen_for = minutes(2)});
  Register({.id = "3", .name = "ann", .unseen_for = minutes(20)});
  const auto found = book_.Find(*connection_, "p", "ann", kNow);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().http_status(), 409);
  EXPECT_EQ(found.error().slug(), "ambiguous_recipient");
  EXPECT_THAT(found.error().message(), HasSubstr("1 2"));
  ASSERT_EQ(found.error().details().size(), 1U);
  EXPECT_EQ(found.error().details()[0].first, "agent_ids");
  EXPECT_EQ(found.error().details()[0].second, Error::Value("1 2"));
  EXPECT_EQ(Find("1"), "1") << "its id is not ambiguous";
}

TEST_F(AddressBookTest, ARememberedSignOfLifeCounts) {
  Register({.id = "1", .name = "ann", .unseen_for = minutes(10)});
  Register({.id = "2", .name = "ann", .unseen_for = minutes(20)});
  clock_.JumpWallClock(kNow - minutes(1) - clock_.Now());
  signs_.Seen("2");
  EXPECT_EQ(Find("ann"), "2");
  signs_.Seen("1");
  EXPECT_EQ(Find("ann"), "ambiguous_recipient");
}

TEST_F(AddressBookTest, DeregisteredAgentsHaveNoName) {
  Register({.id = "1", .name = "ann"});
  Register({.id = "2", .name = "ann"});
  Deregister("2");
  EXPECT_EQ(Find("ann"), "1");
  Deregister("1");
  EXPECT_EQ(Find("ann"), "");
}

TEST_F(AddressBookTest, ANameIsThatOfTheProjectAndWithoutOneOfAnyProject) {
  Register({.id = "1", .name = "ann"});
  Register({.id = "2", .name = "ann", .project = "q"});
  Register({.id = "3", .name = "bob", .project = "q"});
  EXPECT_EQ(Find("ann", "p"), "1");
  EXPECT_EQ(Find("ann", "q"), "2");
  EXPECT_EQ(Find("bob", "p"), "");
  EXPECT_EQ(Find("bob", std::nullopt), "3");
  EXPECT_EQ(Find("ann", std::nullopt), "ambiguous_recipient");
}

TEST_F(AddressBookTest, OfManyWithOneNameOnlyTheLastSeenAreRead) {
  for (int i = 0; i < 40; ++i) {
    Register({.id = std::to_string(i), .name = "ann", .unseen_for = minutes(100 - i)});
  }
  EXPECT_EQ(Find("ann"), "39");
}

TEST_F(AddressBookTest, ARememberedSignCountsHoweverOldTheStoredTimeIs) {
  for (int i = 0; i < 40; ++i) {
    Register({.id = std::to_string(i), .name = "ann", .unseen_for = minutes(100 - i)});
  }
  clock_.JumpWallClock(kNow - minutes(1) - clock_.Now());
  signs_.Seen("0");
  EXPECT_EQ(Find("ann"), "0");
  signs_.Seen("1");
  EXPECT_EQ(Find("ann"), "ambiguous_recipient");
}

TEST_F(AddressBookTest, AnErrorNamesAtMostSixteenAgents) {
  for (int i = 0; i < 40; ++i) Register({.id = std::to_string(i), .name = "ann"});
  const Error error = book_.Find(*connection_, "p", "ann", kNow).error();
  EXPECT_THAT(error.message(), HasSubstr("40 agents named ann are active"));
  const auto ids = std::get<std::string>(error.details().at(0).second);
  EXPECT_EQ(std::ranges::count(ids, ' '), 15);
}

TEST_F(AddressBookTest, ABareNameBelongsToOneAgent) {
  const auto owner = [this](const std::string& id, AddressBook::Project project = "p") {
    const AddressBook::Owner found = book_.OwnerOf(*connection_, project, id, kNow).value();
    EXPECT_EQ(found.agent, id);
    return found.also ? found.also->project + "/" + found.also->name : std::string();
  };
  Register({.id = "2", .name = "ann", .unseen_for = minutes(10)});
  EXPECT_EQ(owner("2"), "p/ann");
  Register({.id = "3", .name = "ann", .unseen_for = minutes(9)});
  EXPECT_EQ(owner("2"), "") << "nobody is active: it belongs to the one seen last";
  EXPECT_EQ(owner("3"), "p/ann");
  Register({.id = "1", .name = "ann", .unseen_for = minutes(4)});
  EXPECT_EQ(owner("1"), "p/ann") << "the only one that is active";
  EXPECT_EQ(owner("3"), "");
  Register({.id = "4", .name = "ann"});
  Register({.id = "5", .name = "ann", .project = "q"});
  EXPECT_EQ(owner("1"), "p/ann") << "of several that are active, the one that registered first";
  EXPECT_EQ(owner("4"), "");
  EXPECT_EQ(owner("5", "q"), "q/ann") << "in another project it is another one's";
  EXPECT_EQ(owner("5", std::nullopt), "q/ann");
  Deregister("1");
  EXPECT_EQ(owner("1"), "");
  EXPECT_EQ(owner("4"), "p/ann");
}

TEST_F(AddressBookTest, ARememberedIdCostsNoStatement) {
  Register({.id = "1", .name = "ann"});
  EXPECT_EQ(book_.IdOf(*connection_, "p", "1", kNow).value(), "1");
  testing::CountingConnection counting(*connection_);
  EXPECT_EQ(book_.IdOf(counting, "p", "1", kNow).value(), "1");
  EXPECT_EQ(counting.count, 0);
  EXPECT_EQ(book_.IdOf(counting, "p", "nobody", kNow).value(), "nobody");
  EXPECT_EQ(counting.count, 1);
  EXPECT_EQ(book_.IdOf(counting, "p", "ann", kNow).value(), "1");
}

TEST_F(AddressBookTest, RememberedIdsAreBounded) {
  AddressBook book({.ids_max = 2}, signs_);
  for (int i = 0; i < 3; ++i) Register({.id = std::to_string(i), .name = "ann"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(book.IdOf(*connection_, "p", std::to_string(i), kNow).value(), std::to_string(i));
  }
  testing::CountingConnection counting(*connection_);
  EXPECT_EQ(book.IdOf(counting, "p", "0", kNow).value(), "0");
  EXPECT_EQ(counting.count, 1);
}

}  // namespace
}  // namespace interlock::service
