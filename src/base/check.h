#pragma once

#include <string_view>

namespace interlock {

// Writes "file:line: check failed: expression (note)" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression,
                              std::string_view note = {});

}  // namespace interlock

// Holds in every build, also in production: a broken invariant must not become a wrong answer.
// For our own mistakes only; what a caller or the disk can do wrong is an Error.
// An optional second argument, convertible to string_view, says more.
#define IL_CHECK(condition, ...)                                                           \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::interlock::CheckFailed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
