#pragma once

#include <sys/vfs.h>

#include <cstdio>
#include <filesystem>

namespace interlock::bench {

// Whether files in `directory` lie on a disk: in memory a sync costs nothing, and what is compared
// with it means nothing. Says on stderr when they do not.
inline bool IsOnDisk(const std::filesystem::path& directory) {
  constexpr long kTmpfs = 0x01021994;  // TMPFS_MAGIC of linux/magic.h
  struct statfs file_system{};
  if (::statfs(directory.c_str(), &file_system) == 0 && file_system.f_type != kTmpfs) return true;
  std::fprintf(stderr, "%s is missing or in memory: name a directory on a disk\n",
               directory.c_str());
  return false;
}

}  // namespace interlock::bench
