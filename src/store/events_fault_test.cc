// What the server answers is true on a disk that fails or loses power at any change of it. Each
// step is one write with its event, through the writer that the server uses.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "db/migrate.h"
#include "db/sqlite/gathering_vfs.h"
#include "db/sqlite/group_writer.h"
#include "glob/budget.h"
#include "store/agents.h"
#include "store/messages.h"
#include "store/planning.h"
#include "store/receipts.h"
#include "store/reservations.h"
#include "store/schema.h"
#include "testing/deaf_listener.h"
#include "testing/fake_clock.h"
#include "testing/fault_story.h"
#include "testing/temp_db.h"

namespace interlock::store {
namespace {

using domain::Reservation;
using sqlite::Connection;
using sqlite::DiskOp;
using sqlite::GroupWriter;
using sqlite::Survival;

constexpr Timestamp kNow = {1'767'323'045'000'000};
constexpr std::chrono::minutes kLonger(30);
constexpr int kLogPagesMax = 16;  // so that the log is moved into the file now and then

using Answer = Result<std::string>;
using Step = Answer (*)(db::Transaction& tx);

Answer Register(db::Transaction& tx, std::string id) {
  const std::array hash = {static_cast<std::byte>(id.front())};
  const domain::Agent agent = {.id = id, .project = "p", .session_id = id, .name = id};
  IL_TRY_VOID(InsertAgent(tx, agent, hash));
  IL_TRY_VOID(AppendAgentEvent(tx, "agent.registered", agent, kNow, AgentJson(agent)));
  return id;
}
Answer Send(db::Transaction& tx, std::string id, std::string body) {
  testing::DeafListener listener;
  const Outgoing outgoing = MakeOutgoing({.id = std::move(id),
                                          .project = "p",
                                          .sender = "a",
                                          .thread_id = "thread",
                                          .body = std::move(body),
                                          .addresses = {.to = {"a", "b"}},
                                          .created_at = kNow});
  IL_TRY(const domain::Cursor cursor, InsertMessage(tx, outgoing, listener));
  return std::to_string(cursor);
}
Answer Acknowledge(db::Transaction& tx, std::string agent) {
  IL_TRY(const domain::ReceiptOutcome outcome,
         RecordReceipt(tx, {domain::ReceiptKind::kAck, "p", "m1", std::move(agent), kNow}));
  if (outcome == domain::ReceiptOutcome::kNotARecipient) return Error(Errc::kConflict, "not yours");
  return "acknowledged";
}
Answer Reserve(db::Transaction& tx, std::string agent, std::string path) {
  IL_TRY(const glob::Pattern pattern, ParseClaim(path, false));
  glob::Budget budget;
  IL_TRY(const auto conflicts,
         FindConflicts(tx.connection(), {"p", agent, pattern, domain::Access::kExclusive},
                       {kNow, std::chrono::minutes(5), domain::kNoSightings}, budget));
  if (!conflicts.empty()) return Error(Errc::kConflict, "somebody holds it");
  IL_TRY(const std::int64_t fence, TakeFence(tx, "p"));
  const Reservation reservation = {.id = "of " + agent + std::to_string(fence),
                                   .project = "p",
                                   .agent = agent,
                                   .pattern = path,
                                   .access = domain::Access::kExclusive,
                                   .fence = fence,
                                   .created_at = kNow,
                                   .expires_at = kNow + std::chrono::minutes(30)};
  IL_TRY_VOID(InsertReservation(tx, reservation, pattern));
  IL_TRY_VOID(AppendReservationEvent(tx, "reservation.created", reservation, agent, kNow));
  return "fence " + std::to_string(fence);
}
Answer Change(db::Transaction& tx, std::string_view type, void (*change)(Reservation&)) {
  IL_TRY(std::optional<Reservation> held, FindReservation(tx.connection(), "of a1"));
  if (!held) return "it is gone";
  change(*held);
  IL_TRY_VOID(UpdateReservation(tx, *held));
  IL_TRY_VOID(AppendReservationEvent(tx, type, *held, "a", kNow));
  return "fence " + std::to_string(held->fence);
}
domain::Plan Spec(std::int64_t version) {
  return {.kind = domain::PlanKind::kSpec,
          .project = "p",
          .id = "spec",
          .version = version,
          .created_at = kNow,
          .updated_at = kNow,
          .values = {}};
}

constexpr std::array<Step, 14> kSteps = {
    [](db::Transaction& tx) { return Register(tx, "a"); },
    [](db::Transaction& tx) { return Register(tx, "b"); },
    [](db::Transaction& tx) { return Send(tx, "m1", "short"); },
    [](db::Transaction& tx) { return Acknowledge(tx, "b"); },
    [](db::Transaction& tx) { return Acknowledge(tx, "stranger"); },               // refused
    [](db::Transaction& tx) { return Send(tx, "m2", std::string(15'000, 'x')); },  // some pages
    [](db::Transaction& tx) { return Reserve(tx, "a", "src/**"); },
    [](db::Transaction& tx) { return Reserve(tx, "b", "src/main.cc"); },  // refused
    [](db::Transaction& tx) {
      return Change(tx, "reservation.renewed",
                    [](Reservation& held) { held.expires_at = held.expires_at + kLonger; });
    },
    [](db::Transaction& tx) -> Answer {
      IL_TRY(const bool made, InsertPlan(tx, Spec(1), PlanJson(Spec(1))));
      return made ? "made" : "there already";
    },
    [](db::Transaction& tx) -> Answer {
      IL_TRY(const bool changed, ReplacePlan(tx, Spec(2), PlanJson(Spec(2))));
      return changed ? "changed" : "not there";
    },
    [](db::Transaction& tx) {
      return Change(tx, "reservation.released", [](Reservation& held) { held.released_at = kNow; });
    },
    [](db::Transaction& tx) { return Reserve(tx, "b", "src/main.cc"); },
    [](db::Transaction& tx) { return Send(tx, "m3", "the end"); },
};

struct Settings {
  sqlite::Durability durability = sqlite::Durability::kFull;
  std::string_view synchronous = {};  // instead of what comes with the durability
  int* log_moves = nullptr;           // counts how often the log was moved into the file
};

class ServerLife final : public testing::FaultLife {
 public:
  ServerLife(std::uint64_t seed, const Settings& settings) : FaultLife(seed), settings_(settings) {
    const bool full = settings_.durability == sqlite::Durability::kFull;
    if (full && settings_.synchronous.empty()) gathering_.emplace(vfs().name());
  }
  ~ServerLife() override { writer_.reset(); }

  void Make() override {
    const auto connection = Open();
    IL_CHECK(connection.ok());
    IL_CHECK(db::Migrator(ServerSchema(), {.database = database()}, clock_).Run(**connection).ok());
  }

  Answer Do(std::size_t step) override {
    if (!writer_) {
      IL_TRY(auto connection, Open());
      writer_ = std::make_unique<GroupWriter>(
          std::move(connection), [this] { return Open(); },
          GroupWriter::Options{.log_pages_max = kLogPagesMax, .drive = sqlite::Drive::kByHand},
          clock_);
    }
    std::string text;
    std::optional<Result<void>> told;
    IL_TRY_VOID(writer_->Submit(
        [&](db::Transaction& tx) -> Result<void> {
          IL_TRY(text, kSteps.at(step)(tx));
          return {};
        },
        [&told](const Result<void>& result) { told = result; }));
    while (writer_->StepOnce()) continue;
    IL_CHECK(told.has_value());
    if (told->ok()) return text;
    if (told->error().code() == Errc::kConflict) return "refused";
    return told->error();
  }
  void End() override {
    if (writer_) {
      if (settings_.log_moves != nullptr) {
        *settings_.log_moves += static_cast<int>(writer_->stats().log_moves);
      }
      static_cast<void>(writer_->Close().ok());
    }
    writer_.reset();
  }
  std::filesystem::path database() const override { return place().path(); }

 private:
  // Only the file's name and mode; its content is on the disk that fails.
  static const testing::TempDb& place() {
    static const testing::TempDb kPlace;
    return kPlace;
  }
  Result<std::unique_ptr<Connection>> Open() {
    sqlite::OpenOptions options = place().options();
    options.busy_timeout = std::chrono::milliseconds(0);
    options.durability = settings_.durability;
    options.upkeep = sqlite::LogUpkeep::kByCallerAndClose;
    options.vfs = gathering_ ? gathering_->name() : vfs().name();
    IL_TRY(auto connection, Connection::Open(options));
    if (!settings_.synchronous.empty()) {
      const std::string synchronous(settings_.synchronous);
      IL_TRY_VOID(connection->RunScript("PRAGMA synchronous=" + synchronous));
    }
    return connection;
  }

  const Settings settings_;
  std::optional<sqlite::GatheringVfs> gathering_;  // as the server has it when it syncs
  testing::FakeClock clock_;
  std::unique_ptr<GroupWriter> writer_;
};

testing::FaultStory Story(const Settings& settings) {
  const bool full = settings.durability == sqlite::Durability::kFull;
  return {kSteps.size(), testing::FaultStory::Lives::kLong,
          [=](std::uint64_t seed) { return std::make_unique<ServerLife>(seed, settings); },
          full ? testing::FaultStory::Promise::kAll : testing::FaultStory::Promise::kOldest};
}

std::string First(const std::vector<std::string>& lies) { return lies.empty() ? "" : lies.front(); }

TEST(EventsFaultTest, APowerCutAtAnyChangeOfTheDiskLeavesTheTruth) {
  int log_moves = 0;
  testing::FaultStory story = Story({.log_moves = &log_moves});
  for (const Survival survival : {Survival::kNothing, Survival::kSome}) {
    EXPECT_EQ(First(story.CutPower(survival)), "") << static_cast<int>(survival);
  }
  EXPECT_EQ(First(story.CutPower(Survival::kAll, 3)), "");
  EXPECT_GT(story.counts().happened, 0);
  EXPECT_GT(story.counts().unknown, story.counts().happened);
  EXPECT_GT(log_moves, 0);
}

TEST(EventsFaultTest, AWriteOrASyncThatFailsLeavesTheTruth) {
  int log_moves = 0;
  testing::FaultStory story = Story({.log_moves = &log_moves});
  for (const DiskOp op : {DiskOp::kWrite, DiskOp::kSync, DiskOp::kTruncate}) {
    EXPECT_EQ(First(story.Fail(op)), "") << sqlite::DiskOpName(op);
  }
  EXPECT_GT(story.counts().unknown, 0);
  EXPECT_GT(log_moves, 0);
}

// The tests above would see a server that acknowledges what it has not synced.
TEST(EventsFaultTest, AServerThatDoesNotSyncIsFoundOut) {
  for (const std::string_view synchronous : {"OFF", "NORMAL"}) {
    testing::FaultStory story = Story({.synchronous = synchronous});
    const auto lies = story.CutPower(Survival::kNothing, 20);
    EXPECT_GT(lies.size(), static_cast<std::size_t>(story.counts().lives) / 4) << synchronous;
  }
}

// --durability fast: what a power cut takes are the newest answers, and the file is sound.
TEST(EventsFaultTest, WithFastDurabilityAPowerCutTakesNothingButTheNewest) {
  int log_moves = 0;
  testing::FaultStory story =
      Story({.durability = sqlite::Durability::kFast, .log_moves = &log_moves});
  for (const Survival survival : {Survival::kNothing, Survival::kSome}) {
    EXPECT_EQ(First(story.CutPower(survival)), "") << static_cast<int>(survival);
  }
  EXPECT_EQ(First(story.CutPower(Survival::kAll, 3)), "");
  EXPECT_GT(story.counts().lost, 0);
  EXPECT_GT(log_moves, 0);
}

TEST(EventsFaultTest, WithFastDurabilityAPowerCutAfterAFailedSyncDoesTheSame) {
  testing::FaultStory story = Story({.durability = sqlite::Durability::kFast});
  for (int sync = 1; sync <= 8; ++sync) {
    EXPECT_EQ(First(story.FailSyncAndCutPower(sync)), "");
  }
}

TEST(EventsFaultTest, AFastServerThatNeverSyncsIsFoundOut) {
  testing::FaultStory story =
      Story({.durability = sqlite::Durability::kFast, .synchronous = "OFF"});
  EXPECT_FALSE(story.CutPower(Survival::kSome).empty());
}

}  // namespace
}  // namespace interlock::store
