#include <array>
#include <vector>

#include "kernel/health.h"
#include "kernel/legacy.h"
#include "kernel/lift.h"
#include "kernel/phase_actions.h"
#include "kernel/phase_event.h"
#include "kernel/run.h"
#include "kernel/run_agents.h"
#include "kernel/run_artifacts.h"
#include "kernel/run_budget.h"
#include "kernel/run_change.h"
#include "kernel/run_progress.h"
#include "kernel/schema.h"
#include "kernel/sentinel.h"
#include "kernel/state.h"

namespace interlock::kernel {

std::span<const db::NamedSql> Statements() {
  static const std::vector<db::NamedSql> kAll = [] {
    std::vector<db::NamedSql> all;
    for (const std::span<const db::NamedSql> noun : std::array{
             HealthStatements(), LegacyStatements(), LiftStatements(), PhaseActionStatements(),
             PhaseEventStatements(), RunAgentStatements(), ArtifactStatements(),
             RunBudgetStatements(), RunChangeStatements(), RunProgressStatements(), RunStatements(),
             SentinelStatements(), StateStatements()}) {
      all.insert(all.end(), noun.begin(), noun.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace interlock::kernel
