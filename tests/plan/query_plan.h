#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "db/sql.h"
#include "plan/folders.h"

namespace interlock::plan {

// What is wrong with the plan of one statement: a line per complaint, empty when nothing. Wrong is
// whatever costs more the more rows a table has:
// - SCAN of anything but a fixed table, a subquery (whose inside has its own lines) or constants.
//   Plans show aliases, so a fixed table must be scanned under its own name, and no other thing
//   may be given that name, nor the name of a subquery, in a statement that scans it.
// - an AUTOMATIC index: SQLite reads the whole table to build it, at every run.
// - a DELETE of all rows, for which SQLite shows no plan.
std::vector<std::string> Complaints(std::string_view sql, std::span<const std::string> plan,
                                    std::span<const FixedTable> fixed_tables);

}  // namespace interlock::plan
