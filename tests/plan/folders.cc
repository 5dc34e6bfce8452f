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

}  // namespace

std::span<const Folder> Folders() {
  static const std::array kFolders = {
      Folder{"intercore", {"ic", testing::kLocksSteps}, intercore::Statements(), {}},
      Folder{"kernel", kernel::KernelSchema(), kernel::Statements(), {}},
      Folder{"store", store::ServerSchema(), store::Statements(), kStoreFixedTables},
  };
  return kFolders;
}

}  // namespace interlock::plan
