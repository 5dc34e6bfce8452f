#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// The fuzz targets. Each takes any bytes, and checks what must hold whatever they are: a breach is
// a failed IL_CHECK, which ends the program. Equal bytes have the same outcome in every process, so
// that a failure can be repeated. What each checks stands at the head of its file.
//
// One thread.
namespace interlock::fuzz {

void FuzzCanary(std::string_view input);
void FuzzGlob(std::string_view input);
void FuzzHttp(std::string_view input);
void FuzzIc(std::string_view input);
void FuzzJson(std::string_view input);
void FuzzKeys(std::string_view input);
void FuzzTarget(std::string_view input);
void FuzzTime(std::string_view input);
void FuzzWs(std::string_view input);

}  // namespace interlock::fuzz

// Ends the file of a target. Where the program is that target alone, libFuzzer calls it; where it
// holds all of them, replay_test.cc does.
#ifdef INTERLOCK_LIBFUZZER
#define IL_FUZZ_ENTRY(Function)                                                       \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    ::interlock::fuzz::Function({reinterpret_cast<const char*>(data), size});         \
    return 0;                                                                         \
  }                                                                                   \
  static_assert(true)
#else
#define IL_FUZZ_ENTRY(Function) static_assert(true)
#endif
