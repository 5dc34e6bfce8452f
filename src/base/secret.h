#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace interlock {

// A text that must not be shown: a key, a token. It prints as "[secret]" wherever it is printed,
// compares in a time that does not depend on where the texts differ, and is wiped from memory when
// it dies or is moved from. Whoever needs the text asks for it by name, which a reviewer can find.
//
// A value type, as std::string is.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  ~Secret() { Wipe(); }
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept : text_(std::move(other.text_)) { other.Wipe(); }
  Secret& operator=(const Secret& other);
  Secret& operator=(Secret&& other) noexcept;

  const std::string& Reveal() const { return text_; }
  bool empty() const { return text_.empty(); }

  // True when `text` is the secret. The time depends on the lengths only.
  bool Matches(std::string_view text) const;

 private:
  void Wipe() noexcept;

  std::string text_;
};

inline constexpr std::string_view kSecretShown = "[secret]";

inline std::ostream& operator<<(std::ostream& out, const Secret& /*secret*/) {
  return out << kSecretShown;
}

}  // namespace interlock
