#include "domain/window.h"

#include <array>
#include <utility>

#include "domain/text.h"

namespace interlock::domain {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.- ";
constexpr std::size_t kTargetBytesMax = 256;

bool IsName(std::string_view text) {
  return !Trim(text).empty() && text.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

// Cuts ".digits" off the end of `text`, where something stands before it; the digits.
std::string_view TakePane(std::string_view& text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == text.size()) return {};
  const std::string_view digits = text.substr(dot + 1);
  if (digits.find_first_not_of(kDigits) != std::string_view::npos) return {};
  text = text.substr(0, dot);
  return digits;
}

}  // namespace

std::optional<TmuxTarget> ParseTmuxTarget(std::string_view text) {
  if (text.size() > kTargetBytesMax) return std::nullopt;
  TmuxTarget target;
  target.pane = TakePane(text);
  const std::size_t colon = text.find(':');
  target.session = text.substr(0, colon);
  if (!IsName(target.session)) return std::nullopt;
  if (colon == std::string_view::npos) return target;
  target.window = text.substr(colon + 1);
  if (!IsName(target.window)) return std::nullopt;
  return target;
}

std::optional<Transport> ParseTransport(std::string_view name) {
  if (name.empty() || name == "async") return Transport::kAsync;
  if (name == "live") return Transport::kLive;
  if (name == "both") return Transport::kBoth;
  return std::nullopt;
}

std::string_view Name(DeliveryState state) {
  constexpr std::array<std::string_view, 4> kNames = {"async", "injected", "deferred", "failed"};
  return kNames.at(static_cast<std::size_t>(state));
}

}  // namespace interlock::domain
