#include "testing/old_ic_file.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "base/check.h"
#include "testing/raw_db.h"

namespace interlock::testing {

void MakeOldIcFile(const std::filesystem::path& path, int version) {
  IL_CHECK(version >= 1 && version <= kOldIcNewest);
  IL_CHECK(!std::filesystem::exists(path));
  constexpr std::string_view kMark = "-- version ";
  std::ifstream steps(INTERLOCK_OLD_IC_FILE);
  IL_CHECK(steps.good(), INTERLOCK_OLD_IC_FILE);
  std::string script = "PRAGMA journal_mode=WAL; BEGIN;\n";
  for (std::string line; std::getline(steps, line);) {
    if (line.starts_with(kMark) && std::stoi(line.substr(kMark.size())) > version) break;
    script += line + '\n';
  }
  RawDb(path).Run(script + fmt::format("PRAGMA user_version={}; COMMIT", version));
}

}  // namespace interlock::testing
