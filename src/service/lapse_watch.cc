#include "service/lapse_watch.h"

#include <utility>
#include <vector>

#include "service/rounds.h"
#include "service/storage.h"

namespace interlock::service {
namespace {

constexpr Duration kBudget = std::chrono::seconds(2);

using Agents = std::vector<store::SeenAgent>;

}  // namespace

// Shared with the callbacks that storage and clock hold. At most one look is under way, and the
// fields without a guard belong to it.
class LapseWatch::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Storage& storage, Clock& clock, Options options)
      : storage_(storage),
        clock_(clock),
        options_(std::move(options)),
        after_(clock.Now() - options_.grace),
        rounds_(clock) {}

  void ScheduleLook() {
    rounds_.Schedule(options_.interval, [self = shared_from_this()] { self->Look(); });
  }
  void Stop() { rounds_.Stop(); }

 private:
  void Look() {
    const Timestamp until = clock_.Now() - options_.grace;
    if (until <= after_) return ScheduleLook();  // the clock was set back
    storage_.Peek<Agents>(
        kBudget,
        [after = after_, until, rows_max = options_.agents_max](db::Connection& connection) {
          return store::AgentsSeenBetween(connection, after, until, rows_max);
        },
        [self = shared_from_this(), until](const Result<Agents>& agents) {
          if (agents.ok()) self->Report(*agents, until);
          self->ScheduleLook();
        });
  }

  // An agent whose newest sign is only in memory is alive; once stored, it is found again.
  void Report(const Agents& agents, Timestamp until) {
    for (const store::SeenAgent& agent : agents) {
      if (storage_.signs().Newest(agent.id, agent.last_seen) > until) continue;
      if (options_.on_lapsed) options_.on_lapsed(agent);
    }
    const bool full = std::cmp_equal(agents.size(), options_.agents_max);
    after_ = full ? agents.back().last_seen : until;
  }

  Storage& storage_;
  Clock& clock_;
  const Options options_;
  Timestamp after_;  // agents seen until then are done with
  Rounds rounds_;
};

LapseWatch::LapseWatch(Storage& storage, Clock& clock, Options options)
    : core_(std::make_shared<Core>(storage, clock, std::move(options))) {}

LapseWatch::~LapseWatch() { Stop(); }

void LapseWatch::Start() { core_->ScheduleLook(); }
void LapseWatch::Stop() { core_->Stop(); }

}  // namespace interlock::service
