#pragma once

#include <cstddef>
#include <string_view>

namespace interlock {

// How many bytes must be added, removed, changed, or swapped with their neighbour, to make `a` out
// of `b`. Takes time and memory in proportion to the product of their sizes: for short names.
std::size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace interlock
