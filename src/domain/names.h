#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// Names for agents that bring none.
namespace interlock::domain {

// How many of them are two words only.
extern const std::uint64_t kPlainNames;

// An adjective and a noun: "Amber Falcon". The first kPlainNames numbers have each their own pair
// of words; further on the pairs come again, with a number behind them ("Amber Falcon 2"), so that
// no two numbers ever share a name.
std::string GeneratedName(std::uint64_t number);

}  // namespace interlock::domain
