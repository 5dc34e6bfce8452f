#include "sim/linearizability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/reservation_model.h"

namespace interlock::sim {
namespace {

// A begin or an end.
struct Moment {
  std::int64_t tick;
  const Operation* operation;
  bool is_end;
};

std::vector<Moment> MomentsOf(const History& history) {
  std::vector<Moment> moments;
  moments.reserve(history.size() * 2);
  for (const Operation& operation : history) {
    moments.push_back({.tick = operation.begin, .operation = &operation, .is_end = false});
    if (operation.end == Operation::kNever) continue;
    moments.push_back({.tick = operation.end, .operation = &operation, .is_end = true});
  }
  std::ranges::sort(moments, {}, &Moment::tick);
  return moments;
}

// A state of the model and its key, made once.
struct State {
  explicit State(Reserved which) : value(std::move(which)), key(value.Key()) {}

  Reserved value;
  std::string key;
};

// One way in which everything so far may have come about.
struct Configuration {
  std::set<const Operation*> happened = {};  // of those under way
  std::shared_ptr<const State> state;

  std::string Key() const {
    std::string key = state->key;
    for (const Operation* operation : happened) key += fmt::format(" {}", fmt::ptr(operation));
    return key;
  }
};

class Search {
 public:
  Judgement Run(const History& history) {
    Add(possible_, {.state = std::make_shared<State>(Reserved{})});
    for (const Moment& moment : MomentsOf(history)) {
      if (!moment.is_end) {
        under_way_.insert(moment.operation);
        continue;
      }
      Configurations after = WithHappened(moment.operation);
      // Of this one it may be that it never happened.
      if (moment.operation->heard == Heard::kNothing)
        after.insert(possible_.begin(), possible_.end());
      if (after.empty()) return Refuse(*moment.operation);
      if (after.size() > kConfigurationsMax) {
        return {.linearizable = false, .explanation = "too many configurations"};
      }
      under_way_.erase(moment.operation);
      possible_ = Without(moment.operation, std::move(after));
    }
    return {.linearizable = true, .configurations_max = size_max_};
  }

 private:
  using Configurations = std::unordered_map<std::string, Configuration>;

  static bool Add(Configurations& to, const Configuration& configuration) {
    return to.try_emplace(configuration.Key(), configuration).second;
  }

  // Lets everything happen that was answered and changes nothing here: whatever explains the rest
  // with it happening later also explains it with that happening now.
  void LetHarmlessHappen(Configuration& configuration) const {
    for (const Operation* next : under_way_) {
      if (next->heard == Heard::kNothing || configuration.happened.contains(next)) continue;
      const std::optional<Reserved> state = Step(configuration.state->value, *next);
      if (state && state->Key() == configuration.state->key) configuration.happened.insert(next);
    }
  }

  // The configurations in which `target` has happened, whatever else happened before it.
  Configurations WithHappened(const Operation* target) {
    Configurations reached;
    Configurations visited;
    std::vector<Configuration> open;
    open.reserve(possible_.size());
    for (const auto& [key, configuration] : possible_) open.push_back(configuration);
    while (!open.empty() && visited.size() <= kConfigurationsMax) {
      Configuration now = std::move(open.back());
      open.pop_back();
      LetHarmlessHappen(now);
      if (now.happened.contains(target)) {
        Add(reached, now);
        continue;
      }
      for (const Operation* next : under_way_) {
        if (now.happened.contains(next)) continue;
        std::optional<Reserved> state = Step(now.state->value, *next);
        if (!state) continue;
        Configuration after{.happened = now.happened,
                            .state = std::make_shared<State>(*std::move(state))};
        after.happened.insert(next);
        if (Add(visited, after)) open.push_back(std::move(after));
      }
    }
    size_max_ = std::max(size_max_, visited.size());
    return reached;
  }

  // It is past: whether it has happened makes no difference any more.
  static Configurations Without(const Operation* operation, Configurations from) {
    Configurations kept;
    for (auto& [key, configuration] : from) {
      configuration.happened.erase(operation);
      Add(kept, configuration);
    }
    return kept;
  }

  Judgement Refuse(const Operation& operation) const {
    std::string text = fmt::format("nothing explains\n  {}\nunder way:\n", Text(operation));
    for (const Operation* other : under_way_) {
      if (other != &operation) text += fmt::format("  {}\n", Text(*other));
    }
    text += fmt::format("possible before ({}):\n", possible_.size());
    int shown = 0;
    for (const auto& [key, configuration] : possible_) {
      if (++shown > 10) break;
      text += fmt::format("  {}\n", configuration.state->key);
      for (const Operation* happened : configuration.happened) {
        text += fmt::format("    with {}\n", Text(*happened));
      }
    }
    return {.linearizable = false, .explanation = text, .configurations_max = size_max_};
  }

  Configurations possible_;
  std::set<const Operation*> under_way_;
  std::size_t size_max_ = 0;
};

// Granted by this very operation, as far as the ids that others were shown before tell.
bool IsNewGrant(const Operation& operation, const std::set<std::string>& shown) {
  if (operation.heard != Heard::kDone) return false;
  if (operation.call == Call::kTransfer) return true;
  return operation.call == Call::kReserve && !shown.contains(operation.seen.front().id);
}

}  // namespace

Judgement CheckGroup(const History& history) { return Search().Run(history); }

Judgement CheckGroups(const History& history) {
  std::map<std::string, History> groups;
  for (const Operation& operation : history) {
    groups[GroupOf(operation.pattern)].push_back(operation);
  }
  Judgement all{.linearizable = true};
  for (const auto& [name, group] : groups) {
    Judgement one = CheckGroup(group);
    all.configurations_max = std::max(all.configurations_max, one.configurations_max);
    if (one.linearizable) continue;
    all.linearizable = false;
    all.explanation += fmt::format("group {}: {}", name, one.explanation);
  }
  return all;
}

std::optional<std::string> CheckFences(const History& history) {
  std::map<std::int64_t, std::pair<std::string, std::string>> grants;  // id and agent by fence
  for (const Operation& operation : history) {
    for (const Seen& seen : operation.seen) {
      const std::pair grant(seen.id, seen.agent);
      if (grants.try_emplace(seen.fence, grant).first->second == grant) continue;
      return fmt::format("fence {} belongs to two grants; one is in\n  {}\n", seen.fence,
                         Text(operation));
    }
  }
  // Whoever reserves again what it was granted without hearing of it is shown an old fence; so a
  // claim of which nothing was heard proves nothing until an answer shows it.
  std::set<std::tuple<std::string, std::string, bool>> unheard;
  std::set<std::string> shown;  // ids
  std::int64_t heard_of = 0;
  std::map<const Operation*, std::int64_t> heard_before;
  for (const Moment& moment : MomentsOf(history)) {
    const Operation& operation = *moment.operation;
    const auto claim = std::tuple(operation.agent, operation.pattern, operation.exclusive);
    if (!moment.is_end) {
      heard_before[&operation] = heard_of;
      const bool is_claim = operation.call == Call::kReserve;
      if (is_claim && operation.heard == Heard::kNothing) unheard.insert(claim);
      continue;
    }
    if (IsNewGrant(operation, shown) && !unheard.contains(claim) &&
        operation.seen.front().fence <= heard_before[&operation]) {
      return fmt::format("a grant with a fence not above {}, of which somebody had heard:\n  {}\n",
                         heard_before[&operation], Text(operation));
    }
    for (const Seen& seen : operation.seen) {
      shown.insert(seen.id);
      unheard.erase({seen.agent, seen.pattern, seen.exclusive});
      heard_of = std::max(heard_of, seen.fence);
    }
  }
  return std::nullopt;
}

}  // namespace interlock::sim
