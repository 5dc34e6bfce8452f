#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel_fixture.h"
#include "kernel/run_change.h"
#include "kernel/run_progress.h"

namespace interlock::kernel {

// A test of runs, at a time that it sets. One thread.
class RunsTest : public KernelTest {
 protected:
  Origin origin() const { return {.now = now_}; }

  // A run of the phases a, b, c, d in /p.
  kernel::Run Abcd(std::string id = "r") {
    return {
        .id = std::move(id), .project_dir = "/p", .goal = "g", .phases = R"(["a","b","c","d"])"};
  }
  Result<CreatedRun> Create(NewRun wanted) {
    return Write([&](Transaction& tx) { return CreateRun(tx, wanted, origin()); });
  }
  Result<AdvanceResult> Advance(const std::optional<std::string>& skip_reason = std::nullopt) {
    return Write([&](Transaction& tx) { return AdvanceRun(tx, "r", skip_reason, origin()); });
  }
  Result<void> Skip(std::string_view phase) {
    return Write([&](Transaction& tx) { return SkipPhase(tx, "r", phase, "why", origin()); });
  }
  Result<RollbackResult> GoBack(std::string_view phase, std::string_view id = "r") {
    return Write([&](Transaction& tx) { return RollBackRun(tx, id, phase, "why", origin()); });
  }
  Result<std::int64_t> End(std::string_view id, std::string_view status) {
    return Write([&](Transaction& tx) { return EndRun(tx, id, status, "why", origin()); });
  }
  Result<void> Set(const RunSettings& settings) {
    return Write([&](Transaction& tx) { return ChangeSettings(tx, "r", settings, origin()); });
  }
  kernel::Run Find(std::string_view id = "r") { return FindRun(connection(), id).value(); }
  // "type from-to" of each.
  std::vector<std::string> Events(std::string_view id = "r") {
    std::vector<std::string> texts;
    const std::vector<PhaseEvent> events = PhaseEventsOf(connection(), id).value();
    texts.reserve(events.size());
    for (const PhaseEvent& event : events) {
      texts.push_back(event.type + " " + event.from_phase + "-" + event.to_phase);
    }
    return texts;
  }

  std::int64_t now_ = 1000;
};

}  // namespace interlock::kernel
