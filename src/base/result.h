#pragma once

#include <expected>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace interlock {

// A value of T, or the Error that says why there is none. Dropping one is a compiler warning, and
// reading the value of a failed one fails a check instead of being undefined.
//
//   Result<int> Parse(std::string_view text);
//   IL_TRY(const int n, Parse(text));   // returns the error to our own caller
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // Implicit on purpose: `return value;` and `return Error(…);` are how results are made.
  template <typename U = T>
    requires(std::is_constructible_v<T, U> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error>)
  Result(U&& value) : state_(std::in_place, std::forward<U>(value)) {}  // NOLINT(*-explicit-*)
  Result(Error error) : state_(std::unexpect, std::move(error)) {}      // NOLINT(*-explicit-*)

  bool ok() const { return state_.has_value(); }
  explicit operator bool() const { return ok(); }

  T& value() & { return Checked(state_); }
  const T& value() const& { return Checked(state_); }
  T&& value() && { return std::move(Checked(state_)); }
  T& operator*() & { return Checked(state_); }
  const T& operator*() const& { return Checked(state_); }
  T&& operator*() && { return std::move(Checked(state_)); }
  T* operator->() { return &Checked(state_); }
  const T* operator->() const { return &Checked(state_); }

  // REQUIRES: !ok()
  const Error& error() const& {
    IL_CHECK(!ok());
    return state_.error();
  }
  Error&& error() && {
    IL_CHECK(!ok());
    return std::move(state_.error());
  }

 private:
  template <typename S>
  static auto& Checked(S& state) {
    if (!state.has_value()) [[unlikely]] {
      CheckFailed(__FILE__, __LINE__, "result has a value", state.error().message());
    }
    return *state;
  }

  std::expected<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : state_(std::unexpect, std::move(error)) {}  // NOLINT(*-explicit-*)

  bool ok() const { return state_.has_value(); }
  explicit operator bool() const { return ok(); }

  // REQUIRES: !ok()
  const Error& error() const& {
    IL_CHECK(!ok());
    return state_.error();
  }
  Error&& error() && {
    IL_CHECK(!ok());
    return std::move(state_.error());
  }

 private:
  std::expected<void, Error> state_;
};

}  // namespace interlock

#define IL_CONCAT_INNER(a, b) a##b
#define IL_CONCAT(a, b) IL_CONCAT_INNER(a, b)

// IL_TRY(auto x, F());  declares x from F()'s value, or returns F()'s error.
// IL_TRY_VOID(G());     the same for Result<void>.
// The IL_CO_ forms are for coroutines. A statement expression would read better but crashes
// g++ 12 when it holds a co_await.
#define IL_TRY_IMPL(return_word, result, declaration, ...) \
  auto result = (__VA_ARGS__);                             \
  if (!(result).ok()) [[unlikely]]                         \
    return_word std::move(result).error();                 \
  declaration = std::move(result).value()
#define IL_TRY(declaration, ...) \
  IL_TRY_IMPL(return, IL_CONCAT(il_result_, __LINE__), declaration, __VA_ARGS__)
#define IL_CO_TRY(declaration, ...) \
  IL_TRY_IMPL(co_return, IL_CONCAT(il_result_, __LINE__), declaration, __VA_ARGS__)

#define IL_TRY_VOID_IMPL(return_word, result, ...)              \
  do {                                                          \
    if (auto result = (__VA_ARGS__); !result.ok()) [[unlikely]] \
      return_word std::move(result).error();                    \
  } while (false)
#define IL_TRY_VOID(...) IL_TRY_VOID_IMPL(return, IL_CONCAT(il_result_, __LINE__), __VA_ARGS__)
#define IL_CO_TRY_VOID(...) \
  IL_TRY_VOID_IMPL(co_return, IL_CONCAT(il_result_, __LINE__), __VA_ARGS__)
