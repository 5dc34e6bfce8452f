#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "db/migrate.h"

namespace interlock::db {

// A schema for the tests of the Migrator: each step leaves something that can be seen.
inline constexpr std::array kTestSteps = {
    MigrationStep{1, "CREATE TABLE a(x INTEGER); INSERT INTO a VALUES (1);"},
    MigrationStep{2, "CREATE TABLE b(x INTEGER); INSERT INTO b SELECT x + 1 FROM a;"},
    MigrationStep{3, "ALTER TABLE a ADD COLUMN y TEXT; UPDATE a SET y = 'new';"},
};

inline Schema TestSchemaUpTo(int version) {
  return {"us", std::span(kTestSteps).first(static_cast<std::size_t>(version))};
}

}  // namespace interlock::db
