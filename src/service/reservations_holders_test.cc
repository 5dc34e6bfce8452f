// Reservations and the life of those who hold them: heartbeats, sessions, leaving, mail between
// agents that work on the same files, and the sweeper.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "service/agents.h"
#include "service/bent_database.h"
#include "service/grant.h"
#include "service/mail.h"
#include "service/reservations.h"
#include "service/reservations_fixture.h"
#include "service/shared_work.h"
#include "service/sweeper.h"
#include "store/reservations.h"
#include "testing/captured_log.h"
#include "testing/on_threads.h"

namespace interlock::service {
namespace {

using domain::Access;
using domain::Reservation;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Texts = std::vector<std::string>;
using Granted = Reservations::Granted;

constexpr db::Sql kEventTypes =
    "SELECT type FROM events WHERE type LIKE 'reservation.%' ORDER BY cursor";
constexpr db::Sql kRows = "SELECT count(*) FROM reservations";

class HoldersTest : public ReservationsTest {
 public:
  ~HoldersTest() override {
    for (const auto& sweeper : sweepers_) sweeper->Stop();
  }

 protected:
  domain::Agent Register(const std::string& session = "") {
    return Run(agents_.Register({.project = "p", .session_id = session})).value().agent;
  }
  Result<Reservations::Verdict> TryReserve(const std::string& agent, const std::string& pattern,
                                           std::int64_t lease = 30) {
    return Run(reservations_.Reserve({.project = "p",
                                      .agent = agent,
                                      .patterns = {pattern},
                                      .access = Access::kExclusive,
                                      .ttl_minutes = lease}));
  }
  Reservation Grant(const std::string& agent, const std::string& pattern, std::int64_t lease = 30) {
    return std::get<Granted>(TryReserve(agent, pattern, lease).value()).reservations.at(0);
  }
  Asker BeginWait(const std::string& agent, const std::string& pattern,
                  const std::string& project = "p") {
    return Begin(reservations_, {.project = project,
                                 .agent = agent,
                                 .patterns = {pattern},
                                 .access = Access::kExclusive,
                                 .patience = seconds(20),
                                 .reach = WaitQueue::Reach::kEverywhere});
  }
  bool IsThere(const Reservation& reservation) {
    return Run(reservations_.Get({.id = reservation.id})).ok();
  }
  Texts Events() {
    Texts types;
    EXPECT_TRUE(
        file_.Open()
            ->ForEach(kEventTypes, [&](const db::Row& row) { types.push_back(row.String(0)); })
            .ok());
    return types;
  }
  Texts LastEvents(std::size_t count) {
    const Texts all = Events();
    return {all.end() - static_cast<std::ptrdiff_t>(std::min(count, all.size())), all.end()};
  }
  std::int64_t Rows() {
    return *file_.Open()->One(kRows, [](const db::Row& row) { return row.Int(0); }).value();
  }

  Sweeper& NewSweeper(Sweeper::Options options = {}) {
    if (!options.on_expired) {
      options.on_expired = [this](const Sweeper::Expired& expired) {
        swept_ += expired.reservations.size();
        reservations_.TellGone(expired.reservations);
      };
    }
    sweepers_.push_back(std::make_unique<Sweeper>(
        *storage_, clock_, log_, [] { return domain::Cursor(0); }, std::move(options)));
    return *sweepers_.back();
  }
  // The next sweep of the only sweeper, from the moment it is due to its end.
  void Sweep(const Sweeper& sweeper) {
    const std::uint64_t before = sweeper.stats().sweeps;
    while (clock_.timers_waiting() == 0) std::this_thread::yield();
    clock_.AdvanceToNextTimer();
    Await(sweeper, before + 1);
  }
  static void Await(const Sweeper& sweeper, std::uint64_t sweeps) {
    while (sweeper.stats().sweeps < sweeps) std::this_thread::yield();
  }

  testing::CapturedLog captured_;
  Logger log_{clock_, captured_};
  UuidMaker uuids_{clock_, random_};
  Reservations reservations_{*storage_, clock_, uuids_, {}, {}};
  Agents agents_{
      *storage_, clock_, random_, uuids_, {}, [this](const auto& agent, const auto& released) {
        reservations_.TellLeft(agent, released);
      }};
  Mail mail_{*storage_, clock_, uuids_, {}};
  std::atomic<std::size_t> swept_ = 0;
  std::vector<std::unique_ptr<Sweeper>> sweepers_;
};

TEST_F(HoldersTest, AHeartbeatKeepsEverythingAtLeastSoLong) {
  const std::string id = Register().id;
  const Reservation held = Grant(id, "x");
  const Reservation longer = Grant(id, "y", 60);
  clock_.Advance(minutes(29));
  ASSERT_TRUE(Run(agents_.Heartbeat({.id = id}, {.renew_minutes = 10})).ok());
  const Reservation now = Run(reservations_.Get({.id = held.id})).value();
  EXPECT_EQ(now.expires_at, clock_.Now() + minutes(10));
  EXPECT_EQ(now.fence, held.fence);
  EXPECT_EQ(Run(reservations_.Get({.id = longer.id})).value().expires_at, longer.expires_at);
  EXPECT_THAT(Events(),
              ElementsAre("reservation.created", "reservation.created", "reservation.renewed"));
  const auto refused = Run(agents_.Heartbeat({.id = id}, {.renew_minutes = -1}));
  EXPECT_EQ(refused.error().http_status(), 400);
}

TEST_F(HoldersTest, AHeartbeatDoesNotReviveWhatRanOut) {
  const std::string id = Register().id;
  const Reservation held = Grant(id, "x");
  clock_.Advance(minutes(31));
  ASSERT_TRUE(Run(agents_.Heartbeat({.id = id}, {.renew_minutes = 10})).ok());
  EXPECT_EQ(Run(reservations_.Get({.id = held.id})).value(), held);
}

TEST_F(HoldersTest, AHeartbeatAfterTheClockWasSetBackKeepsNothingThatAnotherHolds) {
  const std::string id = Register().id;
  const Reservation held = Grant(id, "x");
  const Reservation own = Grant(id, "y");
  clock_.Advance(minutes(31));
  Grant("b", "*x");
  clock_.JumpWallClock(-minutes(10));
  ASSERT_TRUE(Run(agents_.Heartbeat({.id = id}, {.renew_minutes = 60})).ok());
  EXPECT_EQ(Run(reservations_.Get({.id = held.id})).value(), held);
  EXPECT_EQ(Run(reservations_.Get({.id = own.id})).value().expires_at, clock_.Now() + minutes(60));
}

// What is compared for one heartbeat is bounded, and nothing is in a project whose clock was never
// set back, however much is held there.
TEST_F(HoldersTest, AHeartbeatComparesOnlyWhereAClockWasSetBackAndOnlySoMuch) {
  std::vector<Reservation> held;
  for (const char* file : {"x", "y", "z"}) {
    held.push_back(Grant("a", file));
    clock_.Advance(seconds(1));
  }
  Grant("b", "*.b");
  const auto renew = [&](std::int64_t steps) {
    const auto connection = file_.Open();
    EXPECT_TRUE(connection->BeginExclusive().ok());
    db::Transaction tx(*connection);
    glob::Budget budget(steps);
    EXPECT_TRUE(RenewAllHeldBy(tx, std::nullopt, "a", minutes(60), clock_.Now(), budget).ok());
    EXPECT_TRUE(connection->Commit().ok());
  };
  const auto renewed = [&] {
    std::vector<bool> all;
    for (const Reservation& one : held) {
      const Reservation now = Run(reservations_.Get({.id = one.id})).value();
      all.push_back(now.expires_at == clock_.Now() + minutes(60));
      EXPECT_TRUE(all.back() || now == one) << "it is as it was";
    }
    return all;
  };
  renew(0);
  EXPECT_THAT(renewed(), ElementsAre(true, true, true));

  for (Reservation& one : held) one = Run(reservations_.Get({.id = one.id})).value();
  clock_.Advance(minutes(10));
  Grant("b", "elsewhere");
  clock_.JumpWallClock(-minutes(1));  // after the last grant
  renew(0);
  EXPECT_THAT(renewed(), ElementsAre(false, false, false));
  renew(100);  // one row each
  EXPECT_THAT(renewed(), ElementsAre(true, false, false)) << "one budget for all";
  renew(10'000);
  EXPECT_THAT(renewed(), ElementsAre(true, true, true));
}

TEST_F(HoldersTest, WhoLeavesReleasesWhatItHeldAndThoseWhoWaitGoOn) {
  const std::string id = Register().id;
  Grant(id, "x");
  auto waiting = BeginWait("b", "x");
  ASSERT_TRUE(Run(agents_.Deregister({.id = id})).ok());
  EXPECT_TRUE(std::holds_alternative<Granted>(waiting.get().value()));
  EXPECT_THAT(Events(),
              ElementsAre("reservation.created", "reservation.released", "reservation.created"));
}

TEST_F(HoldersTest, WhoLeavesIsGrantedNothingAnyMore) {
  const std::string id = Register().id;
  const Reservation held = Grant("b", "x");
  auto waiting = BeginWait(id, "x");
  ASSERT_TRUE(Run(agents_.Deregister({.id = id})).ok());
  const auto answer = waiting.get();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().http_status(), 404);
  EXPECT_EQ(reservations_.waiting(), 0U);
  ASSERT_TRUE(Run(reservations_.Release({.id = held.id, .agent = "b"})).ok());
  EXPECT_THAT(Events(), ElementsAre("reservation.created", "reservation.released"));
}

// What became of a write may stay unknown, as to whoever asked; those who wait must not stay behind
// what it ended.
TEST_F(HoldersTest, WhatMayHaveEndedIsLookedAtAgain) {
  BentDatabase bent(*database_);
  Storage storage(bent, system_clock_);
  Reservations reservations(storage, clock_, uuids_, {}, {});
  Agents agents(storage, clock_, random_, uuids_, {}, [&](const auto& agent, const auto& released) {
    reservations.TellLeft(agent, released);
  });
  using End = std::function<Errc(const Reservation&)>;
  const auto code = [](const auto& result) {
    return result.ok() ? Errc::kInternal : result.error().code();
  };
  const std::vector<std::pair<std::string, End>> ends = {
      {"release",
       [&](const Reservation& held) {
         return code(Run(reservations.Release({.id = held.id, .agent = held.agent})));
       }},
      {"force",
       [&](const Reservation& held) {
         return code(Run(reservations.ForceRelease({.id = held.id, .agent = held.agent}, "")));
       }},
      {"transfer",
       [&](const Reservation& held) {
         return code(Run(reservations.Transfer({.id = held.id, .agent = held.agent}, "b")));
       }},
      {"deregister",
       [&](const Reservation& held) { return code(Run(agents.Deregister({.id = held.agent}))); }}};
  for (const auto& [path, end] : ends) {
    SCOPED_TRACE(path);
    const Reservation held = Grant(Register().id, path);
    const std::size_t before = bent.writes();
    auto waiting = Begin(reservations, {.project = "p",
                                        .agent = "b",
                                        .patterns = {path},
                                        .access = Access::kExclusive,
                                        .patience = seconds(20)});
    while (bent.writes() < before + 2) std::this_thread::yield();  // before it waits, and then
    bent.BendNextWrite(BentDatabase::Bend::kUnknownAfterwards);
    EXPECT_EQ(end(held), Errc::kOutcomeUnknown);
    EXPECT_TRUE(std::holds_alternative<Granted>(waiting.get().value()));
  }
  storage.Stop();
}

// Whose client hangs up while the write of its grant runs: nobody heard of it, so it is taken back,
// also when that fails at first, and the next one is served.
TEST_F(HoldersTest, WhatIsGrantedToOneThatHasHungUpIsTakenBack) {
  const struct {
    bool waits_first;
    bool fails_once;
  } kCases[] = {{false, false}, {true, false}, {false, true}, {true, true}};
  for (const auto& one : kCases) {
    SCOPED_TRACE(std::to_string(one.waits_first) + std::to_string(one.fails_once));
    const std::string path = "x" + std::to_string(one.waits_first) + std::to_string(one.fails_once);
    BentDatabase bent(*database_);
    Storage storage(bent, system_clock_);
    Reservations reservations(storage, clock_, uuids_, {}, {});
    const Strand strand = MakeStrand();
    boost::asio::cancellation_signal hang_up;
    bool granted = false;  // these are the writer's
    int undone = 0;
    bent.AfterEachWrite([&](db::Transaction& tx) -> Result<void> {
      IL_TRY(const auto held, store::CountHeldBy(tx.connection(), "p", "a", clock_.Now()));
      if (held > 0 && !std::exchange(granted, true)) {
        std::promise<void> emitted;
        boost::asio::post(strand, [&] {
          hang_up.emit(boost::asio::cancellation_type::terminal);
          emitted.set_value();
        });
        emitted.get_future().get();
      } else if (granted && held == 0 && undone++ == 0 && one.fails_once) {
        return Error(Errc::kIo, "the disk is away");
      }
      return {};
    });
    const auto wish = [&](const std::string& agent) {
      return Reservations::Wish{.project = "p",
                                .agent = agent,
                                .patterns = {path},
                                .access = Access::kExclusive,
                                .patience = seconds(20)};
    };
    std::optional<Reservation> before;
    if (one.waits_first) before = Grant("c", path);
    auto gone = Spawn(reservations.Reserve(wish("a")), strand, hang_up);
    if (one.waits_first) {
      while (reservations.waiting() == 0) std::this_thread::yield();
    } else {
      EXPECT_EQ(gone.get().error().code(), Errc::kCancelled);
    }
    auto next = Begin(reservations, wish("b"));
    if (one.waits_first) {
      ASSERT_TRUE(Run(reservations.Release({.id = before->id, .agent = "c"})).ok());
      EXPECT_EQ(gone.get().error().code(), Errc::kCancelled);
    }
    EXPECT_TRUE(std::holds_alternative<Granted>(next.get().value()));
    const auto of_a = Run(reservations.ListOfAgent({.agent = "a", .project = "p"})).value();
    EXPECT_TRUE(of_a.at(0).released_at);
    EXPECT_THAT(LastEvents(3),
                ElementsAre("reservation.created", "reservation.released", "reservation.created"));
    storage.Stop();
  }
}

TEST_F(HoldersTest, WhoLeftIsGrantedNothingUntilItRegistersAgain) {
  const domain::Agent agent = Register();
  ASSERT_TRUE(Run(agents_.Deregister({.id = agent.id})).ok());
  const Reservation held = Grant("b", "x");
  const auto refused = {TryReserve(agent.id, "y"), BeginWait(agent.id, "x").get(),
                        Run(reservations_.Transfer({.id = held.id, .agent = "b"}, agent.id))};
  for (const auto& verdict : refused) {
    ASSERT_FALSE(verdict.ok());
    EXPECT_EQ(verdict.error().code(), Errc::kNotFound);
    EXPECT_THAT(verdict.error().message(),
                AllOf(HasSubstr(agent.id), HasSubstr("register it again with POST /api/agents")));
  }
  EXPECT_EQ(Rows(), 1);
  ASSERT_EQ(Register(agent.session_id).id, agent.id);
  EXPECT_EQ(Grant(agent.id, "y").agent, agent.id);
}

TEST_F(HoldersTest, WhatWasReservedUnderABareNameIsTheAgentsOnceItRegisters) {
  const Reservation held = Grant("ada", "x");
  const auto elsewhere = Run(reservations_.Reserve(
      {.project = "q", .agent = "ada", .patterns = {"x"}, .access = Access::kExclusive}));
  ASSERT_TRUE(elsewhere.ok());
  auto waiting = BeginWait("bob", "x");
  const auto join = [this](const std::string& name) {
    return Run(agents_.Register({.project = "p", .name = name})).value().agent.id;
  };
  const std::string ada = join("ada");
  EXPECT_THAT(LastEvents(1), ElementsAre("reservation.transferred"));
  const Reservation again = Grant(ada, "x");
  EXPECT_EQ(again.id, held.id);
  EXPECT_EQ(again.agent, ada);
  EXPECT_EQ(again.fence, held.fence) << "nothing was granted anew";
  EXPECT_EQ(Run(reservations_.ListOfAgent({.agent = "ada", .project = "p", .named_in = "p"}))
                .value()
                .size(),
            1U);
  const auto conflicts = Run(reservations_.Check({.project = "p", .pattern = "x"})).value();
  EXPECT_EQ(conflicts.at(0).held_by, "ada");
  EXPECT_EQ(conflicts.at(0).holder_state, domain::HolderState::kActive);
  EXPECT_EQ(Run(reservations_.ListOfProject("q")).value().at(0).agent, "ada")
      << "in another project the name is another one's";
  // A second agent of the name takes nothing over, and no name takes what is under an id.
  join("ada");
  join(ada);
  EXPECT_EQ(Run(reservations_.ListOfProject("p")).value().at(0).agent, ada);
  ASSERT_TRUE(Run(reservations_.Release({.id = held.id, .agent = ada})).ok());
  EXPECT_TRUE(std::holds_alternative<Granted>(waiting.get().value()));
}

// Both agents are of project p, and work in q too.
TEST_F(HoldersTest, AgentsThatWaitForEachOtherInTwoProjectsAreFound) {
  const std::string a = Register().id;
  const std::string b = Register().id;
  const Reservation held = Grant(b, "x");
  ASSERT_TRUE(
      Run(reservations_.Reserve(
              {.project = "q", .agent = a, .patterns = {"y"}, .access = Access::kExclusive}))
          .ok());
  auto first = BeginWait(a, "x");
  const auto second = BeginWait(b, "y", "q").get();
  ASSERT_TRUE(second.ok());
  const auto* deadlocked = std::get_if<Reservations::Deadlocked>(&*second);
  ASSERT_NE(deadlocked, nullptr);
  EXPECT_THAT(deadlocked->agents, ElementsAre(b, a));
  ASSERT_TRUE(Run(reservations_.Release({.id = held.id, .agent = b})).ok());
  EXPECT_TRUE(std::holds_alternative<Granted>(first.get().value()));
}

TEST_F(HoldersTest, ForceIsForTheOwnerAndAgainstThoseWhoLeftButNotAgainstTheActive) {
  const std::string id = Register().id;
  const Reservation held = Grant(id, "x");
  const auto force = [&](const Reservation& what, const std::string& agent) {
    return Run(reservations_.ForceRelease({.id = what.id, .agent = agent}, "why"));
  };
  EXPECT_EQ(force(held, "b").error().slug(), "holder_active");
  EXPECT_TRUE(force(held, id).ok());
  const Reservation kept = Grant(id, "x");
  ASSERT_TRUE(Run(agents_.Deregister({.id = id, .holds_in = "q"})).ok());
  EXPECT_TRUE(force(kept, "b").ok());
}

TEST_F(HoldersTest, ASessionThatStillHoldsFilesIsNotTakenOver) {
  const std::string session = "0190a0a0-0000-7000-8000-000000000001";
  const std::string id = Register(session).id;
  for (const char* project : {"p", "q"}) {
    SCOPED_TRACE(project);
    ASSERT_TRUE(Run(reservations_.Reserve(
                        {.project = project, .agent = id, .patterns = {"x"}, .ttl_minutes = 60}))
                    .ok());
    clock_.Advance(minutes(10));
    const auto again = Run(agents_.Register({.project = "p", .session_id = session}));
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().http_status(), 409);
    clock_.Advance(minutes(51));
    EXPECT_EQ(Register(session).id, id) << "what it held has run out";
  }
}

TEST_F(HoldersTest, AutoLetsThoseWriteWhoseWorkOverlaps) {
  const std::string shy = Register().id;
  ASSERT_TRUE(Run(agents_.SetPolicies({.id = shy}, {.mail = "auto"})).ok());
  const auto send = [&](const std::string& from) {
    return Run(mail_.Send(
                   {.project = "p", .from = from, .body = "hello", .addresses = {.to = {shy}}}))
        .value()
        .received;
  };
  EXPECT_THAT(send("near"), IsEmpty());
  ASSERT_TRUE(
      Run(reservations_.Reserve({.project = "p", .agent = shy, .patterns = {"src/**"}})).ok());
  ASSERT_TRUE(
      Run(reservations_.Reserve({.project = "p", .agent = "near", .patterns = {"*/a.cc"}})).ok());
  ASSERT_TRUE(
      Run(reservations_.Reserve({.project = "p", .agent = "far", .patterns = {"docs/*"}})).ok());
  EXPECT_THAT(send("near"), ElementsAre(shy));
  EXPECT_THAT(send("far"), IsEmpty());
  EXPECT_THAT(Run(mail_.Broadcast({.project = "p", .from = "near", .topic = "t", .body = "b"}))
                  .value()
                  .received,
              ElementsAre(shy));
  clock_.Advance(minutes(31));
  EXPECT_THAT(send("near"), IsEmpty()) << "its work is over";
}

TEST_F(HoldersTest, ForAllWhoAreAskedAboutSharedWorkThereIsOneBudget) {
  for (const char* agent : {"sender", "a", "b", "c"}) {
    ASSERT_TRUE(
        Run(reservations_.Reserve({.project = "p", .agent = agent, .patterns = {"src/*"}})).ok());
  }
  const auto asked = [&](std::int64_t steps) {
    std::vector<store::RecipientFacts> facts(3);
    for (std::size_t i = 0; i < facts.size(); ++i) {
      facts[i].agent = std::string(1, static_cast<char>('a' + i));
      facts[i].policies.mail = domain::ContactPolicy::kAuto;
    }
    glob::Budget budget(steps);
    EXPECT_TRUE(FindSharedWork(*file_.Open(), "p", "sender", clock_.Now(), facts, budget).ok());
    std::vector<bool> share;
    for (const store::RecipientFacts& one : facts) share.push_back(one.holds_overlap);
    return share;
  };
  EXPECT_THAT(asked(glob::Budget::kStepsDefault), ElementsAre(true, true, true));
  EXPECT_THAT(asked(0), ElementsAre(false, false, false));
  std::int64_t enough = 0;  // for one of them
  while (!asked(enough)[0]) ++enough;
  EXPECT_THAT(asked(enough), ElementsAre(true, false, false));
}

TEST_F(HoldersTest, TheSweeperTakesFromTheDeadAndNeverFromTheLiving) {
  const std::string alive = Register().id;
  const std::string dead = Register().id;
  const Reservation of_alive = Grant(alive, "a", 1);
  const Reservation of_dead = Grant(dead, "d", 1);
  const Reservation of_nobody = Grant("nobody", "n", 1);
  const Reservation fresh = Grant("nobody", "f", 60);
  const Reservation released = Grant("nobody", "r", 1);
  ASSERT_TRUE(Run(reservations_.Release({.id = released.id, .agent = "nobody"})).ok());
  Sweeper& sweeper = NewSweeper();
  sweeper.Start();
  Sweep(sweeper);
  EXPECT_EQ(swept_, 0U);
  clock_.JumpWallClock(minutes(4));
  ASSERT_TRUE(Run(agents_.Heartbeat({.id = alive}, {})).ok());
  clock_.JumpWallClock(minutes(2));
  Sweep(sweeper);
  EXPECT_TRUE(IsThere(of_alive)) << "it ran out, but its owner lives";
  EXPECT_FALSE(IsThere(of_dead));
  EXPECT_FALSE(IsThere(of_nobody));
  EXPECT_TRUE(IsThere(fresh));
  EXPECT_TRUE(IsThere(released)) << "left to the retention";
  EXPECT_EQ(swept_, 2U);
  EXPECT_EQ(std::ranges::count(Events(), "reservation.expired"), 2);
}

TEST_F(HoldersTest, WhoLeftCountsAsDeadHoweverLatelyItWasHeardOf) {
  const std::string left = Register().id;
  const Reservation of_left = Grant(left, "l", 1);
  ASSERT_TRUE(Run(agents_.Deregister({.id = left, .holds_in = "q"})).ok());
  const Reservation of_alive = Grant(Register().id, "a", 1);
  Sweeper& sweeper = NewSweeper();
  sweeper.Start();
  Sweep(sweeper);
  clock_.JumpWallClock(minutes(2));
  Sweep(sweeper);
  EXPECT_FALSE(IsThere(of_left));
  EXPECT_TRUE(IsThere(of_alive));
}

// Its name may be another agent's by now.
TEST_F(HoldersTest, WhoLeftIsInTheWayUnderItsIdAsOneThatNobodyRegistered) {
  const std::string left = Register().id;
  Grant(left, "l", 1);
  ASSERT_TRUE(Run(agents_.Deregister({.id = left, .holds_in = "q"})).ok());
  const auto conflicts = Run(reservations_.Check({.project = "p", .pattern = "l"}));
  ASSERT_TRUE(conflicts.ok()) << conflicts.error();
  ASSERT_EQ(conflicts->size(), 1U);
  EXPECT_EQ(conflicts->front().held_by, left);
  EXPECT_EQ(conflicts->front().holder_state, domain::HolderState::kUnknown);
  EXPECT_FALSE(conflicts->front().last_seen);
}

TEST_F(HoldersTest, AtItsStartTheSweeperLeavesWhatRanOutJustNow) {
  const Reservation old = Grant("x", "old", 1);
  clock_.Advance(minutes(6));
  const Reservation recent = Grant("x", "recent", 1);
  clock_.Advance(minutes(4));
  Sweeper& sweeper = NewSweeper();
  sweeper.Start();
  Sweep(sweeper);
  EXPECT_FALSE(IsThere(old));
  EXPECT_TRUE(IsThere(recent)) << "nobody could renew while the server was down";
  Sweep(sweeper);
  EXPECT_FALSE(IsThere(recent));
}

TEST_F(HoldersTest, ReleasedReservationsAreForgottenAfterTheRetention) {
  const Reservation released = Grant("x", "r");
  ASSERT_TRUE(Run(reservations_.Release({.id = released.id, .agent = "x"})).ok());
  Sweeper& sweeper = NewSweeper({.interval = hours(24), .retain = std::chrono::days(2)});
  sweeper.Start();
  Sweep(sweeper);
  EXPECT_TRUE(IsThere(released));
  clock_.JumpWallClock(hours(49));
  Sweep(sweeper);
  EXPECT_FALSE(IsThere(released));
}

TEST_F(HoldersTest, WhatRunsOutOrIsAsOldAsTheRetentionThisVeryMomentIsStillThere) {
  Sweeper& sweeper = NewSweeper({.interval = hours(24), .retain = std::chrono::days(1)});
  sweeper.Start();
  Sweep(sweeper);
  const Reservation expiring = Grant("x", "a", 24 * 60);
  const Reservation released = Grant("x", "b");
  ASSERT_TRUE(Run(reservations_.Release({.id = released.id, .agent = "x"})).ok());
  Sweep(sweeper);
  EXPECT_EQ(clock_.Now(), expiring.expires_at);
  EXPECT_TRUE(IsThere(expiring));
  EXPECT_TRUE(IsThere(released));
  Sweep(sweeper);
  EXPECT_FALSE(IsThere(expiring));
  EXPECT_FALSE(IsThere(released));
}

TEST_F(HoldersTest, MoreThanOneStepIsForgottenInOneSweep) {
  for (int i = 0; i < 5; ++i) {
    const Reservation one = Grant("x", "f" + std::to_string(i));
    ASSERT_TRUE(Run(reservations_.Release({.id = one.id, .agent = "x"})).ok());
  }
  clock_.Advance(hours(25));
  Sweeper& sweeper = NewSweeper({.retain = std::chrono::days(1), .rows_max = 2});
  sweeper.Start();
  Sweep(sweeper);
  EXPECT_EQ(Rows(), 0);
}

TEST_F(HoldersTest, MoreThanOneStepIsSweptInOneSweep) {
  for (int i = 0; i < 25; ++i) Grant("x", "f" + std::to_string(i), 1);
  clock_.Advance(minutes(10));
  Sweeper& sweeper = NewSweeper({.rows_max = 10});
  sweeper.Start();
  Sweep(sweeper);
  EXPECT_EQ(swept_, 25U);
  EXPECT_EQ(Rows(), 0);
}

// Five sweepers against ten that reserve: nobody loses what it holds, everything that ran out is
// taken once, and no write fails.
TEST_F(HoldersTest, FiveSweepsMayRaceTenReserves) {
  constexpr int kOld = 40;
  for (int i = 0; i < kOld; ++i) Grant("gone", "old/" + std::to_string(i), 1);
  clock_.Advance(minutes(30));
  for (int i = 0; i < 5; ++i) NewSweeper({.rows_max = 3});
  std::vector<Reservation> granted(10);
  testing::OnThreads(15, [&](int t) {
    if (t < 5) {
      sweepers_[static_cast<std::size_t>(t)]->Start();
      clock_.Advance(std::chrono::microseconds(1));
    } else {
      granted[static_cast<std::size_t>(t - 5)] =
          Grant("r" + std::to_string(t), "old/" + std::to_string(t));
    }
  });
  for (const auto& sweeper : sweepers_) Await(*sweeper, 1);
  for (const Reservation& one : granted) EXPECT_TRUE(IsThere(one));
  EXPECT_EQ(swept_, static_cast<std::size_t>(kOld));
  EXPECT_EQ(std::ranges::count(Events(), "reservation.expired"), kOld);
  EXPECT_EQ(Rows(), 10);
  for (const auto& sweeper : sweepers_) EXPECT_EQ(sweeper->stats().failures, 0U);
}

}  // namespace
}  // namespace interlock::service
