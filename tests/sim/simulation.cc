#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "domain/event.h"

namespace interlock::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// How much of the log is looked at again after a restart.
constexpr Cursor kLookBack = 300;

// The longest wait before something is tried again: retries of storage, and those of the tail.
constexpr Duration kRetryMax = seconds(5);

}  // namespace

Simulation::Simulation(std::uint64_t seed) : seed_(seed), rng_(seed) {
  world_ = std::make_unique<World>(rng_(), World::Hooks{.after_write = [this] { AfterWrite(); },
                                                        .stopped =
                                                            [this] {
                                                              crowd_->Stopped();
                                                              observer_.reset();
                                                            }});
  crowd_ = std::make_unique<Crowd>(*world_, promises_, rng_, trace_);
  observer_ = std::make_unique<Observer>(world_->OpenToRead());
}

// Whoever is still waiting is answered while all of it is there.
Simulation::~Simulation() { world_->Stop(); }

bool Simulation::Run(std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps && promises_.violations.empty(); ++i) Step();
  if (world_->powered()) CheckFile();
  return promises_.violations.empty();
}

void Simulation::Step() {
  ++stats_.steps;
  const std::size_t drawn = Below(1000);
  trace_.Say("step {} ({}) at {}", stats_.steps, drawn, world_->clock().Now().micros);
  if (!world_->powered() || Below(5000) == 0) {
    Restart();
  } else if (Below(400) == 0) {
    CalmDown();
  } else if (drawn < 2) {
    storm_ = !storm_;
  } else if (drawn < 6) {
    JumpClock();
  } else if (drawn < 120) {
    PassTime(drawn);
  } else if (drawn < 124) {
    crowd_->HangUp();
  } else if (drawn < 126) {
    crowd_->Die();
  } else if (drawn < 600) {
    DriveStorage();
  } else {
    crowd_->Act(stats_.steps);
  }
  world_->Poll();
  promises_.holds.Tick(world_->clock().Now());
  if (world_->server().reservations.waiting() == promises_.turns.waiting()) {
    promises_.turns.AllStandInLine(stats_.steps);
  }
  trace_.Add(static_cast<std::uint64_t>(world_->clock().Now().micros));
}

void Simulation::PassTime(std::size_t drawn) {
  testing::FakeClock& clock = world_->clock();
  if (drawn < 7) {
    clock.Advance(seconds(10 + Below(300)));
  } else if (drawn < 30) {
    clock.AdvanceToNextTimer();
  } else {
    clock.Advance(milliseconds(1 + Below(400)));
  }
}

void Simulation::JumpClock() {
  ++stats_.jumps;
  promises_.turns.ClockJumped();
  promises_.holds.ForgetHeard();
  Duration by = seconds(1 + Below(900));
  if (Below(8) == 0) by = hours(25 + Below(10));
  if (Below(2) == 0) by = -by;
  trace_.Say("the clock jumps by {} s", by.count() / 1'000'000);
  world_->clock().JumpWallClock(by);
}

World::Weather Simulation::DrawWeather() {
  if (Below(storm_ ? 60 : 2500) == 0) return World::Weather::kPowerCut;
  if (Below(storm_ ? 40 : 150) == 0) return World::Weather::kSlow;
  if (Below(storm_ ? 2 : 100) == 0) return World::Weather::kFault;
  return World::Weather::kFair;
}

void Simulation::DriveStorage() {
  const bool writes = world_->writes_waiting() > 0;
  const bool reads = world_->reads_waiting() > 0;
  if (!writes && !reads) return crowd_->Act(stats_.steps);
  const World::Weather weather = DrawWeather();
  if (writes && (!reads || Below(2) == 0)) {
    world_->StepWriter(weather);
  } else {
    world_->StepReader(weather);
  }
  if (world_->powered()) return;
  ++stats_.power_cuts;
  power_lost_at_ = world_->write_began_at();
}

void Simulation::Restart() {
  ++stats_.restarts;
  trace_.Say("restart");
  if (world_->powered()) power_lost_at_ = world_->clock().Now();
  world_->Restart();
  promises_.holds.ForgetHeard();
  observer_ = std::make_unique<Observer>(world_->OpenToRead());
  const Cursor known = promises_.log.newest();
  const Observer::Sight end = observer_->Look(std::max<Cursor>(0, known - kLookBack));
  promises_.log.SeeAgain(end.events, end.newest);
  See(power_lost_at_);
  CheckFile();
}

void Simulation::CheckFile() {
  ++stats_.integrity_checks;
  const std::string found = observer_->Integrity();
  if (found != "ok") promises_.violations.Add("file: integrity_check says: " + found);
}

// All comes to rest on a disk that is well. Then nobody may be left waiting for nothing, and
// whoever listens has heard everything.
void Simulation::CalmDown() {
  ++stats_.calms;
  trace_.Say("calm");
  storm_ = false;
  world_->Settle();
  world_->clock().Advance(kRetryMax);
  world_->Settle();
  if (!world_->server().healthy()) return;
  if (world_->server().reservations.waiting() == promises_.turns.waiting()) {
    std::vector<HoldRow> active;
    for (const auto& [id, row] : promises_.holds.rows()) {
      if (row.expires_at > world_->clock().Now()) active.push_back(row);
    }
    promises_.turns.CheckAllBlocked(active);
    promises_.turns.CheckNoCircle(active);
  }
  while (crowd_->ListenAll() && world_->server().healthy()) world_->Settle();
  crowd_->CheckAllHeard();
  ++stats_.quiet_checks;
}

void Simulation::Tamper(std::string_view script) {
  world_->Settle();
  const Result<void> ran = world_->OpenToWrite()->RunScript(script);
  IL_CHECK(ran.ok(), ran.ok() ? "" : ran.error().message());
}

// A power cut may come after the commit, and so after answers of which the crowd is about to hear.
void Simulation::AfterWrite() {
  if (!observer_) return;
  if (world_->powered()) return See(world_->write_began_at());
  world_->LookAtWhatIsLeft([this] {
    observer_ = std::make_unique<Observer>(world_->OpenToRead());
    See(world_->write_began_at());
  });
}

void Simulation::See(Timestamp decided_at) {
  const Cursor known = promises_.log.newest();
  Observer::Sight sight = observer_->Look(std::max<Cursor>(0, known - 1));
  // Nothing has taken the place of the last one that was seen.
  promises_.log.SeeAgain(sight.events, sight.newest);
  std::erase_if(sight.events, [&](const LoggedEvent& event) { return event.cursor <= known; });
  for (const LoggedEvent& event : sight.events) {
    trace_.Add(event.type);
    trace_.Add(event.entity_id);
  }
  for (const LoggedEvent& event : sight.events) {
    trace_.Say("  {} {} {} by {} at {}", event.cursor, event.type, event.entity_id, event.agent,
               event.created_at.micros);
  }
  // A batch whose slow commit failed was run again, at a later time than it began.
  for (const LoggedEvent& event : sight.events) {
    if (event.type.starts_with("reservation.")) decided_at = std::max(decided_at, event.created_at);
  }
  promises_.log.See(sight.events, sight.pruned_through, world_->server().feed.stats().published);
  promises_.holds.See(sight.holds, sight.events, decided_at);
  promises_.holds.SeeAgents(sight.living);
  SeeTags(sight);
}

void Simulation::SeeTags(const Observer::Sight& sight) {
  for (const HoldRow& row : sight.holds) {
    const auto before = promises_.holds.rows_before().find(row.id);
    const bool changed =
        before == promises_.holds.rows_before().end() || before->second.reason != row.reason;
    if (changed) promises_.tags.Seen(row.reason);
  }
  for (const LoggedEvent& event : sight.events) {
    if (event.type != domain::event_type::kMessageCreated) continue;
    promises_.mail.See(event, sight.pruned_through);
    if (event.subject.starts_with('m')) promises_.tags.Seen(event.subject);
    if (event.subject.starts_with('b')) promises_.tags.SeenOnce(event.subject);
  }
}

Simulation::Stats Simulation::stats() const {
  Stats stats = stats_;
  stats.events = static_cast<std::uint64_t>(promises_.log.newest());
  stats.faults = world_->faults();
  stats.log_moves = world_->log_moves();
  stats.turn_checks = promises_.turns.checks();
  stats.renewal_checks = promises_.holds.renewals_checked();
  return stats;
}

std::string Simulation::Describe() const {
  const Stats now = stats();
  std::string text = fmt::format(
      "seed {} step {} trace {:016x}: {} events, {} faults, {} restarts ({} power cuts), {} clock "
      "jumps, {} calms, {} of them quiet, {} checks of turns, {} of renewals, {} of the file, "
      "{} moves of the log\n",
      seed_, now.steps, trace_.hash(), now.events, now.faults, now.restarts, now.power_cuts,
      now.jumps, now.calms, now.quiet_checks, now.turn_checks, now.renewal_checks,
      now.integrity_checks, now.log_moves);
  for (const std::string& violation : violations()) text += "BROKEN " + violation + "\n";
  return text;
}

}  // namespace interlock::sim
