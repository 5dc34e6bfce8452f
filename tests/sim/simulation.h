#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sim/crowd.h"
#include "sim/observer.h"
#include "sim/promises.h"
#include "sim/world.h"

namespace interlock::sim {

// A crowd of agents in a world that goes wrong: in each step somebody begins something, or the
// storage does one thing, perhaps on a failing disk, or time passes, or the clock jumps, or
// somebody hangs up or dies, or the server restarts, or the power goes. What comes next is drawn
// from the seed, so the same seed gives the same run, step by step; and after each step the
// promises are checked.
//
// For one thread.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // True: all promises held so far, and the file is sound. Ends early when one is broken.
  bool Run(std::uint64_t steps);

  // Changes the tables behind the server's back, so that a test can show that it is noticed.
  void Tamper(std::string_view script);

  struct Stats {
    std::uint64_t steps = 0;
    std::uint64_t events = 0;  // logged
    std::int64_t faults = 0;   // of the disk
    std::uint64_t restarts = 0;
    std::uint64_t power_cuts = 0;
    std::uint64_t jumps = 0;  // of the wall clock
    std::uint64_t calms = 0;
    std::uint64_t quiet_checks = 0;      // in calms, of those who wait and of those who listen
    std::uint64_t turn_checks = 0;       // of one who waits against a grant, or in a calm
    std::uint64_t renewal_checks = 0;    // of what a heartbeat renewed, each row
    std::uint64_t integrity_checks = 0;  // of the file
    std::uint64_t log_moves = 0;         // into the file, between two batches
  };
  Stats stats() const;
  std::uint64_t trace() const { return trace_.hash(); }
  const std::vector<std::string>& violations() const { return promises_.violations.all(); }
  const Crowd::Counts& counts() const { return crowd_->counts(); }
  // Seed, step, and what is broken, or what went on.
  std::string Describe() const;

 private:
  void Step();
  void PassTime(std::size_t drawn);
  void JumpClock();
  void DriveStorage();
  World::Weather DrawWeather();
  void Restart();
  void CalmDown();
  void CheckFile();
  void AfterWrite();
  void See(Timestamp decided_at);
  void SeeTags(const Observer::Sight& sight);
  std::size_t Below(std::size_t bound) { return static_cast<std::size_t>(rng_() % bound); }

  const std::uint64_t seed_;
  std::mt19937_64 rng_;
  Trace trace_;
  Promises promises_{kGrace};
  Stats stats_;
  bool storm_ = false;  // the disk fails often
  Timestamp power_lost_at_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Crowd> crowd_;
  std::unique_ptr<Observer> observer_;  // none while no server runs
};

}  // namespace interlock::sim
