#include "store/windows.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "store/agents.h"
#include "store/events.h"
#include "store/message_retention.h"
#include "store/messages.h"
#include "store/pokes.h"
#include "store/store_fixture.h"
#include "testing/deaf_listener.h"

namespace interlock::store {
namespace {

using domain::DeliveryState;
using domain::FocusState;
using domain::Window;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Texts = std::vector<std::string>;

class WindowsTest : public StoreTest {
 protected:
  Window Put(Window window) {
    if (window.project.empty()) window.project = "p";
    if (window.agent_id.empty()) window.agent_id = "a";
    window.display_name = window.agent_id;
    window.id = "id" + std::to_string(++made_);
    window.last_active_at = clock_.Now();
    auto put = Write<Window>([&](db::Transaction& tx) { return PutWindow(tx, window); });
    EXPECT_TRUE(put.ok()) << put.error();
    clock_.Advance(std::chrono::seconds(1));
    return *put;
  }
  std::optional<Window> Expire(const std::string& uuid) {
    return *Write<std::optional<Window>>(
        [&](db::Transaction& tx) { return ExpireWindow(tx, "p", uuid, clock_.Now()); });
  }
  Texts List(const std::string& project = "p") {
    Texts uuids;
    EXPECT_TRUE(ListWindows(connection(), project, 100, [&](const Window& window) {
                  uuids.push_back(window.uuid);
                }).ok());
    return uuids;
  }
  void AddAgent(const std::string& id, FocusState focus) {
    const std::string hash = id + std::string(32 - id.size(), 'x');
    const domain::Agent agent = {.id = id,
                                 .project = "p",
                                 .session_id = id,
                                 .name = id,
                                 .focus = focus,
                                 .focus_at = clock_.Now(),
                                 .last_seen = clock_.Now()};
    EXPECT_TRUE(Write<bool>([&](db::Transaction& tx) -> Result<bool> {
                  IL_TRY_VOID(InsertAgent(tx, agent, std::as_bytes(std::span(hash))));
                  return true;
                }).ok());
  }
  Desk DeskOf(const std::string& agent, const std::string& uuid = "") {
    return *FindDesk(connection(), "p", agent, uuid, clock_.Now());
  }
  // "type entity agent", in the order of the log.
  Texts Events() {
    Texts events;
    const auto read = ReadEvents(connection(), {.project = "p"});
    for (const auto& e : read->events) {
      events.push_back(e.type + " " + e.entity_id + " " + e.agent.value_or("-"));
    }
    return events;
  }

  int made_ = 0;
};

TEST_F(WindowsTest, APutMakesAWindowAndTheNextOneReplacesWhatMayChange) {
  const Window first = Put({.uuid = "w", .tmux_target = "s:1"});
  EXPECT_EQ(first.created_at, first.last_active_at);
  const Window second = Put({.uuid = "w", .agent_id = "b", .tmux_target = ""});
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(second.created_at, first.created_at);
  EXPECT_GT(second.last_active_at, first.last_active_at);
  EXPECT_EQ(second.agent_id, "b");
  EXPECT_EQ(second.tmux_target, "");
  EXPECT_EQ(*FindWindow(connection(), "p", "w"), second);
  EXPECT_THAT(Events(), ElementsAre("window.updated w a", "window.updated w b"));
}

TEST_F(WindowsTest, AnExpiredWindowIsNotListedUntilItIsPutAgain) {
  Put({.uuid = "w"});
  const auto expired = Expire("w");
  ASSERT_TRUE(expired.has_value());
  EXPECT_EQ(expired->expired_at, clock_.Now());
  EXPECT_THAT(List(), IsEmpty());
  EXPECT_FALSE(Expire("w").has_value()) << "it did not count any more";
  EXPECT_FALSE(Expire("unknown").has_value());
  EXPECT_FALSE(Put({.uuid = "w"}).expired_at.has_value());
  EXPECT_THAT(List(), ElementsAre("w"));
  EXPECT_THAT(Events(),
              ElementsAre("window.updated w a", "window.expired w a", "window.updated w a"));
}

TEST_F(WindowsTest, AProjectListsItsOwnTheMostRecentlyActiveFirst) {
  Put({.uuid = "1"});
  Put({.uuid = "2"});
  Put({.project = "q", .uuid = "1"});
  Put({.uuid = "1"});
  EXPECT_THAT(List(), ElementsAre("1", "2"));
  EXPECT_THAT(List("q"), ElementsAre("1"));
  EXPECT_THAT(List(""), IsEmpty());
}

TEST_F(WindowsTest, ADeskIsFoundInTheMostRecentlyActiveWindowThatHasATarget) {
  Put({.uuid = "old", .tmux_target = "old"});
  Put({.uuid = "new", .tmux_target = "new"});
  Put({.uuid = "bare"});
  Put({.uuid = "other", .agent_id = "b", .tmux_target = "other"});
  Put({.project = "q", .uuid = "far", .tmux_target = "far"});
  EXPECT_EQ(DeskOf("a").tmux_target, "new");
  EXPECT_EQ(DeskOf("a", "old").tmux_target, "old");
  EXPECT_EQ(DeskOf("a", "bare").tmux_target, "");
  EXPECT_EQ(DeskOf("a", "other").tmux_target, "") << "it is not its own";
  EXPECT_EQ(DeskOf("a", "far").tmux_target, "") << "it is of another project";
  Expire("new");
  EXPECT_EQ(DeskOf("a").tmux_target, "old");
  EXPECT_EQ(DeskOf("a", "new").tmux_target, "");
  EXPECT_EQ(DeskOf("nobody").tmux_target, "");
}

TEST_F(WindowsTest, AFocusCountsForTwoSeconds) {
  AddAgent("a", FocusState::kAtPrompt);
  EXPECT_EQ(DeskOf("a").focus, FocusState::kAtPrompt);
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(DeskOf("a").focus, FocusState::kAtPrompt);
  clock_.Advance(Duration(1));
  EXPECT_EQ(DeskOf("a").focus, FocusState::kUnknown);
  EXPECT_EQ(DeskOf("nobody").focus, FocusState::kUnknown);
}

TEST_F(WindowsTest, ADeregisteredAgentHasNoFocus) {
  AddAgent("a", FocusState::kAtPrompt);
  EXPECT_TRUE(Write<bool>([&](db::Transaction& tx) -> Result<bool> {
                IL_TRY_VOID(SetDeregistered(tx, "a", clock_.Now()));
                return true;
              }).ok());
  EXPECT_EQ(DeskOf("a").focus, FocusState::kUnknown);
}

TEST_F(WindowsTest, TheObjectLeavesOutWhatIsNotThere) {
  const Window window = {.id = "1",
                         .project = "p",
                         .uuid = "w",
                         .agent_id = "a",
                         .display_name = "n",
                         .created_at = {1'000'000},
                         .last_active_at = {1'500'000}};
  EXPECT_EQ(WindowJson(window),
            R"({"id":"1","project":"p","window_uuid":"w","agent_id":"a","display_name":"n",)"
            R"("created_at":"1970-01-01T00:00:01Z","last_active_at":"1970-01-01T00:00:01.5Z"})");
  Window whole = window;
  whole.tmux_target = "s:1";
  whole.expired_at = Timestamp{2'000'000};
  EXPECT_THAT(WindowJson(whole), ::testing::HasSubstr(R"("tmux_target":"s:1")"));
  EXPECT_THAT(WindowJson(whole), ::testing::HasSubstr(R"("expires_at":"1970-01-01T00:00:02Z")"));
}

TEST_F(WindowsTest, TheSwitchIsOnUntilItIsTurnedOff) {
  EXPECT_TRUE(*IsLiveTransportOn(connection()));
  ASSERT_TRUE(connection().Run("UPDATE config SET live_transport_enabled = 0").ok());
  EXPECT_FALSE(*IsLiveTransportOn(connection()));
}

class PokesTest : public StoreTest {
 protected:
  domain::Cursor Send(const std::string& id, const std::string& project = "p") {
    const Outgoing outgoing = MakeOutgoing({.id = id,
                                            .project = project,
                                            .sender = "s",
                                            .body = "body of " + id,
                                            .addresses = {.to = {"a", "b"}},
                                            .created_at = clock_.Now()});
    return *Write<domain::Cursor>([&](db::Transaction& tx) -> Result<domain::Cursor> {
      IL_TRY(const domain::Cursor cursor, InsertMessage(tx, outgoing, listener_));
      IL_TRY_VOID(StagePoke(tx, cursor, project, "a"));
      return cursor;
    });
  }
  bool Surface(const std::string& id, const std::string& agent = "a") {
    return *Write<bool>(
        [&](db::Transaction& tx) { return SurfacePoke(tx, "p", agent, id, clock_.Now()); });
  }
  void Stage(domain::Cursor cursor) {
    EXPECT_TRUE(Write<bool>([&](db::Transaction& tx) -> Result<bool> {
                  IL_TRY_VOID(StagePoke(tx, cursor, "p", "a"));
                  return true;
                }).ok());
  }
  void Inject(domain::Cursor cursor) {
    EXPECT_TRUE(Write<bool>([&](db::Transaction& tx) -> Result<bool> {
                  IL_TRY_VOID(MarkInjected(tx, cursor, "a", clock_.Now()));
                  return true;
                }).ok());
  }
  Texts Pending(const std::string& agent = "a", std::int64_t limit = 100) {
    Texts pending;
    EXPECT_TRUE(ListPendingPokes(connection(), "p", agent, limit, [&](const PendingPoke& poke) {
                  pending.push_back(std::string(poke.message_id) + " " + std::string(poke.sender) +
                                    " " + std::string(poke.body));
                }).ok());
    return pending;
  }
  std::int64_t Count(const db::Sql& sql) {
    return connection().One(sql, [](const db::Row& row) { return row.Int(0); })->value_or(-1);
  }

  testing::DeafListener listener_;
};

TEST_F(PokesTest, APendingOneIsListedOldestFirstUntilItWasSeen) {
  Send("m2");
  Send("m1");
  Send("m3");
  Send("far", "q");
  EXPECT_THAT(Pending(), ElementsAre("m2 s body of m2", "m1 s body of m1", "m3 s body of m3"));
  EXPECT_THAT(Pending("a", 1), ElementsAre("m2 s body of m2"));
  EXPECT_THAT(Pending("b"), IsEmpty());
  EXPECT_TRUE(Surface("m2"));
  EXPECT_FALSE(Surface("m2")) << "once";
  EXPECT_FALSE(Surface("m1", "b")) << "for whom it was meant";
  EXPECT_FALSE(Surface("far")) << "in its own project";
  EXPECT_FALSE(Surface("unknown"));
  EXPECT_THAT(Pending(), ElementsAre("m1 s body of m1", "m3 s body of m3"));
  EXPECT_EQ(Count("SELECT count(*) FROM events WHERE type = 'peer.window_poke'"), 1);
}

TEST_F(PokesTest, AnInjectedOneIsNotPendingAndKeepsItsFirstTime) {
  const domain::Cursor cursor = Send("m");
  const Timestamp first = clock_.Now();
  Inject(cursor);
  clock_.Advance(std::chrono::seconds(1));
  Inject(cursor);
  EXPECT_THAT(Pending(), IsEmpty());
  EXPECT_EQ(Count("SELECT injected_at FROM pokes"), first.micros);
  EXPECT_FALSE(Surface("m"));
  EXPECT_THAT(*PokesOf(connection(), cursor), ElementsAre(Pair("a", DeliveryState::kInjected)));
}

TEST_F(PokesTest, ASurfacedOneIsNeverRevived) {
  const domain::Cursor cursor = Send("m");
  EXPECT_TRUE(Surface("m"));
  Stage(cursor);
  EXPECT_THAT(Pending(), IsEmpty());
  EXPECT_THAT(*PokesOf(connection(), cursor), ElementsAre(Pair("a", DeliveryState::kDeferred)));
  EXPECT_THAT(*PokesOf(connection(), cursor + 1), IsEmpty());
}

TEST_F(PokesTest, OneGoesWithItsMessage) {
  const domain::Cursor cursor = Send("m");
  ASSERT_TRUE(connection().Run("UPDATE inbox SET read_at = 1").ok());
  EXPECT_EQ(*Write<std::int64_t>([&](db::Transaction& tx) {
    const std::vector<domain::Cursor> cursors = {cursor};
    return PruneMessages(tx, cursors);
  }),
            1);
  EXPECT_EQ(Count("SELECT count(*) FROM pokes"), 0);
}

TEST_F(PokesTest, AnAttemptIsLoggedWithItsResult) {
  EXPECT_TRUE(Write<bool>([&](db::Transaction& tx) -> Result<bool> {
                IL_TRY_VOID(LogPoke(tx,
                                    {.project = "p",
                                     .message_id = "m",
                                     .sender = "s",
                                     .recipient = "a",
                                     .state = DeliveryState::kDeferred,
                                     .reason = "busy"},
                                    {7}));
                return true;
              }).ok());
  const auto events = ReadEvents(connection(), {.project = "p"});
  ASSERT_EQ(events->events.size(), 1U);
  EXPECT_EQ(
      events->events[0],
      (domain::Event{.cursor = 1,
                     .type = "peer.window_poke",
                     .project = "p",
                     .entity_id = "m",
                     .agent = "s",
                     .created_at = {7},
                     .data = R"({"message_id":"m","from":"s","recipient":"a","result":"deferred",)"
                             R"("reason":"busy"})"}));
}

}  // namespace
}  // namespace interlock::store
