#include "plan/folders.h"

#include <array>

#include "store/schema.h"

namespace interlock::plan {
namespace {

constexpr std::array kStoreFixedTables = {
    FixedTable{"meta", "one row per key that the program has a name for"},
};

}  // namespace

std::span<const Folder> Folders() {
  static const std::array kFolders = {
      Folder{"store", store::ServerSchema(), store::Statements(), kStoreFixedTables},
  };
  return kFolders;
}

}  // namespace interlock::plan
