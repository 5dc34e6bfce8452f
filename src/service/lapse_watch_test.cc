#include "service/lapse_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "service/storage.h"
#include "store/schema.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::service {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr db::Sql kAddAgent =
    "INSERT INTO agents (id, project, session_id, name, token_hash, status, contact_policy, "
    "live_contact_policy, focus_state, focus_at, created_at, last_seen) "
    "VALUES (?1, 'p', ?1, 'name of ' || ?1, CAST(?1 AS BLOB), '', 'open', 'open', 'unknown', 0, 0, "
    "?2)";
constexpr db::Sql kSee = "UPDATE agents SET last_seen = ?2 WHERE id = ?1";
constexpr db::Sql kLeave = "UPDATE agents SET deregistered_at = 1 WHERE id = ?1";

class LapseWatchTest : public ::testing::Test {
 public:
  ~LapseWatchTest() override {
    watch_.Stop();
    storage_.Stop();
    EXPECT_TRUE(database_->Close().ok());
  }

 protected:
  static std::unique_ptr<sqlite::Database> OpenByHand(const testing::TempDb& temp, Clock& clock) {
    const auto connection = temp.Open();
    EXPECT_TRUE(db::Migrator(store::ServerSchema(), {.database = temp.path()}, clock)
                    .Run(*connection)
                    .ok());
    return sqlite::Database::Open({.path = temp.path(), .drive = sqlite::Drive::kByHand}, clock)
        .value();
  }
  template <typename... Args>
  void Change(const db::Sql& sql, const Args&... args) {
    const auto changed = temp_.Open(sqlite::Access::kReadWrite)->Run(sql, args...);
    EXPECT_TRUE(changed.ok()) << changed.error();
  }
  void Add(const std::string& id) { Change(kAddAgent, id, clock_.Now().micros); }
  // Names of the agents that are reported while so much time passes, one look a minute.
  std::vector<std::string> After(minutes time) {
    lapsed_.clear();
    for (minutes past{0}; past < time; past += minutes(1)) {
      clock_.Advance(minutes(1));
      while (database_->StepReader()) {
      }
    }
    return lapsed_;
  }

  testing::TempDb temp_;
  testing::FakeClock clock_;
  std::unique_ptr<sqlite::Database> database_ = OpenByHand(temp_, clock_);
  Storage storage_{*database_, clock_, {}};
  std::vector<std::string> lapsed_;
  LapseWatch watch_{storage_,
                    clock_,
                    {.grace = minutes(5),
                     .interval = minutes(1),
                     .agents_max = 2,
                     .on_lapsed = [this](const auto& agent) { lapsed_.push_back(agent.name); }}};
};

TEST_F(LapseWatchTest, AnAgentIsReportedOnceAfterItsGrace) {
  watch_.Start();
  Add("a");
  EXPECT_THAT(After(minutes(4)), IsEmpty());
  EXPECT_THAT(After(minutes(2)), ElementsAre("name of a"));
  EXPECT_THAT(After(minutes(20)), IsEmpty());
  Change(kSee, std::string("a"), clock_.Now().micros);
  EXPECT_THAT(After(minutes(7)), ElementsAre("name of a")) << "it came back, and lapsed again";
}

TEST_F(LapseWatchTest, AnAgentWhoseSignIsOnlyInMemoryIsAlive) {
  watch_.Start();
  Add("a");
  EXPECT_THAT(After(minutes(4)), IsEmpty());
  storage_.signs().Seen("a");
  EXPECT_THAT(After(minutes(3)), IsEmpty());
}

TEST_F(LapseWatchTest, AnAgentThatLeftAndOneFromBeforeTheStartAreNotReported) {
  Add("old");
  clock_.Advance(minutes(6));
  LapseWatch later(storage_, clock_,
                   {.grace = minutes(5),
                    .interval = minutes(1),
                    .on_lapsed = [this](const auto& a) { lapsed_.push_back(a.name); }});
  later.Start();
  Add("a");
  Change(kLeave, std::string("a"));
  EXPECT_THAT(After(minutes(10)), IsEmpty());
}

TEST_F(LapseWatchTest, ManyAtOnceAreReportedInSeveralLooks) {
  watch_.Start();
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    Add(id);
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(After(minutes(6)).size(), 4U) << "two looks, of two agents each, are past the grace";
  EXPECT_THAT(After(minutes(1)), ElementsAre("name of e"));
}

}  // namespace
}  // namespace interlock::service
