#include "plan/folders.h"

#include <array>

#include "intercore/locks.h"
#include "kernel/schema.h"
#include "store/schema.h"
#include "testing/locks_table.h"

namespace interlock::plan {
namespace {

constexpr std::array kStoreFixedTables = {
    FixedTable{"meta", "one row per key that the program has a name for"},
};

constexpr std::array kKernelFixedTables = {
    FixedTable{"pragma_table_info", "the columns of one table, from SQLite's own catalogue"},
};

// The columns that files of an older program lack are one list; a statement is made of each.
constexpr std::array<std::string_view, 1> kKernelScripts = {"ALTER TABLE {} ADD COLUMN {} {}"};

}  // namespace

std::span<const Folder> Folders() {
  static const std::array kFolders = {
      Folder{"intercore", {"ic", testing::kLocksSteps}, intercore::Statements(), {}},
      Folder{"kernel", kernel::KernelSchema(), kernel::Statements(), kKernelFixedTables,
             kKernelScripts},
      Folder{"store", store::ServerSchema(), store::Statements(), kStoreFixedTables},
  };
  return kFolders;
}

}  // namespace interlock::plan
