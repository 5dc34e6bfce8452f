#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sim/history.h"

namespace interlock::sim {

// Is there an order of the operations that explains every answer? Each operation must happen at one
// moment between its begin and its end, and in that order a server that does one thing at a time
// (reservation_model.h) must have answered just so. An operation of which nothing was heard may
// happen in its time or never.
//
// The search goes through begins and ends as they came. It keeps every configuration that is still
// possible: the state of the model, and which of the operations under way have happened already. At
// an end it lets operations under way happen, in every order, until the one that ends has happened,
// and forgets the configurations in which it cannot (of one of which nothing was heard it also
// keeps those in which it has not). Configurations that cannot be told apart are kept once. So the
// work grows with how much happens at the same time, not with the length of the history. (The
// search is Wing and Gong's with Lowe's memory of configurations, done lazily.)
struct Judgement {
  bool linearizable = false;
  // Why not: the operation at whose end nothing was possible any more, with what was under way and
  // what had been possible before it.
  std::string explanation = {};
  std::size_t configurations_max = 0;  // kept at one time
};

// REQUIRES: all of one group.
Judgement CheckGroup(const History& history);

// Each group by itself.
Judgement CheckGroups(const History& history);

// What groups share, fences: each belongs to one grant, and a grant has a higher fence than every
// one that anybody had heard of before it was asked for. Gives what contradicts it.
std::optional<std::string> CheckFences(const History& history);

// More than this and the search gives up with a judgement against the history; no history that a
// test makes comes near it.
inline constexpr std::size_t kConfigurationsMax = 1'000'000;

}  // namespace interlock::sim
