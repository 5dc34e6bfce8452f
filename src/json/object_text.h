#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// JSON answers without a struct and without a value tree:
//
//   ObjectText().Add("error", slug).Add("message", text).Text()
//
// Fields stand in the order of the calls; keys are not checked for duplicates. Strings are repaired
// as json/write.h says. For one thread at a time. This header needs no Boost.
namespace interlock::json {

class ObjectText;

// One JSON array, element by element.
class ArrayText {
 public:
  ArrayText& Add(std::string_view text);
  ArrayText& Add(const char* text) { return Add(std::string_view(text)); }
  ArrayText& Add(const std::string& text) { return Add(std::string_view(text)); }
  ArrayText& Add(const ObjectText& object);
  // REQUIRES: `json` is the text of one JSON value.
  ArrayText& AddRaw(std::string_view json);
  template <std::integral Int>
  ArrayText& Add(Int number);

  std::string Text() const { return text_ + ']'; }

 private:
  std::string text_ = "[";
};

// One JSON object, field by field.
class ObjectText {
 public:
  ObjectText() = default;
  // Makes room for so many bytes at once.
  explicit ObjectText(std::size_t bytes) { text_.reserve(bytes); }

  ObjectText& Add(std::string_view key, std::string_view text);
  // Without these a pointer would become a bool.
  ObjectText& Add(std::string_view key, const char* text) {
    return Add(key, std::string_view(text));
  }
  ObjectText& Add(std::string_view key, const std::string& text) {
    return Add(key, std::string_view(text));
  }
  ObjectText& Add(std::string_view key, double number);
  ObjectText& Add(std::string_view key, const ObjectText& object);
  ObjectText& Add(std::string_view key, const ArrayText& array);
  ObjectText& Add(std::string_view key, std::span<const std::string> texts);
  ObjectText& AddNull(std::string_view key);
  // REQUIRES: `json` is the text of one JSON value.
  ObjectText& AddRaw(std::string_view key, std::string_view json);
  template <std::integral Int>
  ObjectText& Add(std::string_view key, Int number);

  std::string Text() const& { return text_ + '}'; }
  std::string Text() && {
    text_ += '}';
    return std::move(text_);
  }

 private:
  void AddKey(std::string_view key);

  std::string text_ = "{";
};

namespace internal {
std::string IntegerText(std::int64_t number);
std::string IntegerText(std::uint64_t number);
inline std::string IntegerText(bool value) { return value ? "true" : "false"; }

// Characters are neither text nor number: the caller must say which.
template <std::integral Int>
std::string AnyIntegerText(Int number) {
  static_assert(!std::same_as<Int, char> && !std::same_as<Int, char8_t>, "a string or a number?");
  if constexpr (std::same_as<Int, bool>) {
    return IntegerText(number);
  } else if constexpr (std::signed_integral<Int>) {
    return IntegerText(std::int64_t{number});
  } else {
    return IntegerText(std::uint64_t{number});
  }
}
}  // namespace internal

template <std::integral Int>
ArrayText& ArrayText::Add(Int number) {
  return AddRaw(internal::AnyIntegerText(number));
}

template <std::integral Int>
ObjectText& ObjectText::Add(std::string_view key, Int number) {
  return AddRaw(key, internal::AnyIntegerText(number));
}

}  // namespace interlock::json
