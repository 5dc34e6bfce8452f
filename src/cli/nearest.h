#pragma once

#include <span>
#include <string>
#include <string_view>

// Stateless, so safe from any thread.
namespace interlock::cli {

// The one of `names` that was probably meant by a mistyped `word`; "" when none is near.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> names);

// "; did you mean 'status'?", or "" when nothing is near.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> names,
                       std::string_view prefix = {});

}  // namespace interlock::cli
