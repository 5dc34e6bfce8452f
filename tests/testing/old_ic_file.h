#pragma once

#include <filesystem>

namespace interlock::testing {

inline constexpr int kOldIcNewest = 39;

// Makes a database as the older `ic` of that schema version left it, in WAL mode and with content:
// the state dispatch/s1, the sentinel once/s1 that has fired, from version 3 on the active run
// run00001, from 39 on the completed run00002, and a row in every other table.
// REQUIRES: 1 ≤ version ≤ kOldIcNewest; there is no such file yet.
void MakeOldIcFile(const std::filesystem::path& path, int version);

}  // namespace interlock::testing
