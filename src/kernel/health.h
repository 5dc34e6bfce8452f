#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "db/sql.h"
#include "kernel/database.h"

// Opens a connection of its own: for a process that has none to the file, and one thread.
namespace interlock::kernel {

struct HealthLimits {
  std::uintmax_t free_bytes_min = std::uintmax_t{10} << 20;  // on the disk of the file
  // Of a file that is read and checked as a whole: a check may come with every hook.
  std::uintmax_t checked_bytes_max = std::uintmax_t{8} << 20;
};

// Whether the database can be used: there, of our version, sound, writable, with room on its disk.
// The error says what is wrong, and its detail "do" what to do. Changes nothing.
Result<void> CheckHealth(const Database::Options& options, const db::Schema& schema, Clock& clock,
                         const HealthLimits& limits = {});

std::span<const db::NamedSql> HealthStatements();

}  // namespace interlock::kernel
