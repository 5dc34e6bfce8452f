#include "base/secret.h"

#include <cstring>

namespace interlock {

Secret& Secret::operator=(const Secret& other) {
  if (this == &other) return *this;
  Wipe();
  text_ = other.text_;
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this == &other) return *this;
  Wipe();
  text_ = std::move(other.text_);
  other.Wipe();
  return *this;
}

bool Secret::Matches(std::string_view text) const {
  if (text.size() != text_.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    difference |= static_cast<unsigned char>(text[i] ^ text_[i]);
  }
  return difference == 0;
}

// A short text lives inside the string object, where moving it leaves a copy behind.
void Secret::Wipe() noexcept {
  text_.resize(text_.capacity());
  explicit_bzero(text_.data(), text_.size());
  text_.clear();
}

}  // namespace interlock
