#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"

namespace interlock::json {

enum class Presence : std::uint8_t { kAbsent, kNull, kPresent };

// A field of which "not sent", "sent as null" and "sent" mean three things: a PATCH keeps what is
// absent and clears what is null. Reads and writes as such, whatever the options say about null.
//
// A value type, as T is.
template <typename T>
class Field {
 public:
  using value_type = T;

  Field() = default;  // absent
  // Implicit on purpose: `request.title = "x";` is how a field is set.
  Field(T value)  // NOLINT(*-explicit-*)
      : value_(std::move(value)), presence_(Presence::kPresent) {}
  static Field Null() {
    Field field;
    field.presence_ = Presence::kNull;
    return field;
  }

  Presence presence() const { return presence_; }
  bool absent() const { return presence_ == Presence::kAbsent; }
  bool null() const { return presence_ == Presence::kNull; }
  bool present() const { return presence_ == Presence::kPresent; }

  // REQUIRES: present()
  const T& operator*() const {
    IL_CHECK(present());
    return *value_;
  }
  const T* operator->() const { return &**this; }

  // What a stored value becomes: kept when absent, T{} when null, else the one sent.
  T AppliedTo(T stored) const {
    if (absent()) return stored;
    return value_ ? *value_ : T{};
  }

  bool operator==(const Field&) const = default;

 private:
  std::optional<T> value_;
  Presence presence_ = Presence::kAbsent;
};

}  // namespace interlock::json
