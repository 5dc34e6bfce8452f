#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernel/database.h"

namespace interlock::kernel {

enum class Depth : std::uint8_t {
  kQuick,      // reads the whole file only when it is small
  kWholeFile,  // always
};

// Whether the database can be used: there, of our version, sound, writable, with room on its disk.
// The error says what is wrong, and its detail "do" what to do. Changes nothing.
Result<void> CheckHealth(const Database::Options& options, const db::Schema& schema, Depth depth);

}  // namespace interlock::kernel
