#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "db/sql.h"
#include "kernel/database.h"

// CheckHealth() opens a connection, so the process must have no other one to the file. One thread.
namespace interlock::kernel {

struct HealthLimits {
  std::uintmax_t free_bytes_min = std::uintmax_t{10} << 20;  // on the disk of the database
  // Larger files are not checked as a whole, because every hook may call this.
  std::uintmax_t checked_bytes_max = std::uintmax_t{8} << 20;
};

// Checks that the database exists, has our schema version, is undamaged and writable, and that its
// disk has enough free space. The error says what is wrong, its detail "do" gives the remedy.
// Changes nothing.
Result<void> CheckHealth(const Database::Options& options, const db::Schema& schema, Clock& clock,
                         const HealthLimits& limits = {});

std::span<const db::NamedSql> HealthStatements();

}  // namespace interlock::kernel
