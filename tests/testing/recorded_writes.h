#pragma once

#include <sqlite3.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace interlock::testing {

// What SQLite writes to files while this is there, indexes of logs left out: they hold no data. One
// at a time, used by one thread.
class RecordedWrites {
 public:
  struct File {
    std::string name;
    std::size_t bytes = 0;
  };

  RecordedWrites() {
    self = this;
    for (const char* name : kNames) {
      if (own_pwrite == nullptr) own_pwrite = vfs_->xGetSystemCall(vfs_, name);
      vfs_->xSetSystemCall(vfs_, name, reinterpret_cast<sqlite3_syscall_ptr>(Write));
    }
  }
  ~RecordedWrites() {
    for (const char* name : kNames) vfs_->xSetSystemCall(vfs_, name, nullptr);
  }
  RecordedWrites(const RecordedWrites&) = delete;
  RecordedWrites& operator=(const RecordedWrites&) = delete;

  // In their order; one that is written to again after another stands there again.
  const std::vector<File>& files() const { return files_; }

 private:
  static ssize_t Write(int fd, const void* bytes, std::size_t size, off_t offset) {
    namespace fs = std::filesystem;
    const std::string name = fs::read_symlink("/proc/self/fd/" + std::to_string(fd)).filename();
    std::vector<File>& files = self->files_;
    if (!name.ends_with("-shm")) {
      if (files.empty() || files.back().name != name) files.push_back({.name = name});
      files.back().bytes += size;
    }
    using Pwrite = ssize_t (*)(int, const void*, std::size_t, off_t);
    return reinterpret_cast<Pwrite>(own_pwrite)(fd, bytes, size, offset);
  }

  static constexpr std::array kNames = {"pwrite", "pwrite64"};
  static inline RecordedWrites* self = nullptr;
  static inline sqlite3_syscall_ptr own_pwrite = nullptr;
  sqlite3_vfs* const vfs_ = sqlite3_vfs_find("unix");
  std::vector<File> files_;
};

}  // namespace interlock::testing
