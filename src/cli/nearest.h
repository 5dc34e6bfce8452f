#pragma once

#include <span>
#include <string>
#include <string_view>

// Stateless, so safe from any thread.
namespace interlock::cli {

// Returns the name most similar to a mistyped `word`, or "" if none is similar.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> names);

// Returns "did you mean 'status'?", or "" if no name is similar.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> names,
                       std::string_view prefix = {});

}  // namespace interlock::cli
