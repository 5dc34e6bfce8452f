#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace interlock::sqlite {

// A disk in memory on which everything goes wrong that may go wrong, when a test says so. SQLite
// uses it through FaultVfs (fault_vfs.h). It remembers per file what a sync has made durable, so
// that a power cut can take the rest away.
//
// Thread-safe. With one thread using it, equal seeds and equal calls give equal faults.
//
// What it does to its users, and nothing else, so that a test that fails on it has found a bug:
// (1) Any open, read, write, truncate, sync, delete, lock or mapping of shared memory may fail,
// once
//     or for as long as the fault lasts. Releasing a lock and closing never fail.
// (2) A failed write may have written nothing, a prefix, or everything. A failed truncate or delete
//     may have been done. A failed read returns no data.
// (3) A failed sync may have made nothing, some or all of the file's unsynced sectors durable. The
//     rest stays readable but, as on Linux, no later sync makes it durable unless the page is
//     written again.
// (4) A full disk takes the bytes that fit and refuses the rest. Overwriting needs no space.
// (5) At a power cut each unsynced 512-byte sector is durable or lost by itself; what lies beyond
//     a lost end of file reads as zeros. Bytes outside the written range never change.
// (6) Creating and deleting a file is durable only when its directory was synced: by the first sync
//     through each handle of a journal or log that was opened to create it, whether it had to or
//     not, as SQLite's own VFS does it, or by a delete that asks for it. Until then, a power cut
//     may undo it. Shared memory and temporary files never survive.
// (7) After a power cut every call fails until PowerOn(), and calls of handles from before fail for
//     ever.
// Never: a synced byte that changes, a read that lies, a lock given to two.

enum class DiskOp : std::uint8_t {
  kOpen,
  kRead,
  kWrite,
  kTruncate,
  kSync,
  kDelete,
  kLock,     // of the database file; acquiring only
  kShmMap,   // of the log's shared index
  kShmLock,  // acquiring only
};
inline constexpr std::array kDiskOps = {DiskOp::kOpen,     DiskOp::kRead,   DiskOp::kWrite,
                                        DiskOp::kTruncate, DiskOp::kSync,   DiskOp::kDelete,
                                        DiskOp::kLock,     DiskOp::kShmMap, DiskOp::kShmLock};
const char* DiskOpName(DiskOp op);

// How much of a failed call happened all the same; see (2) and (3). For other ops it is kNothing.
enum class Effect : std::uint8_t { kNothing, kPart, kWhole };

struct Fault {
  DiskOp op;
  std::int64_t nth = 1;    // which call of `op` fails, counted from now; 1 = the next
  std::int64_t calls = 1;  // how many fail in a row, beginning with that one
  int code = 0;            // the SQLite result code; 0 = the usual one of `op`
  Effect effect = Effect::kNothing;
};

// What a power cut leaves of the unsynced changes; see (5) and (6).
enum class Survival : std::uint8_t {
  kNothing,
  kSome,  // drawn from the seed
  kAll,   // as after a kill of the process
};

class FaultDisk {
 public:
  class File;  // an open file; belongs to the one connection that opened it

  struct OpenMode {
    bool writable = false;
    bool create = false;
    bool exclusive = false;
    bool delete_on_close = false;
    bool syncs_directory = false;  // a journal or log: its first sync covers its creation
  };
  struct Opened {
    std::unique_ptr<File> file;  // none when `code` is not 0
    int code = 0;
  };

  explicit FaultDisk(std::uint64_t seed);
  ~FaultDisk();
  FaultDisk(const FaultDisk&) = delete;
  FaultDisk& operator=(const FaultDisk&) = delete;

  // Several faults may wait at once.
  void Inject(const Fault& fault) IL_EXCLUDES(mutex_);
  // From now on files may grow by `bytes` in all; none = without limit. What a file gives back by
  // shrinking or being deleted can be used again.
  void LimitSpace(std::optional<std::int64_t> bytes) IL_EXCLUDES(mutex_);
  // Forgets waiting faults, the space limit and a power cut that has not come yet.
  void Heal() IL_EXCLUDES(mutex_);

  // How often an injected fault or the space limit made a call fail, and how often `op` was called.
  std::int64_t fired() IL_EXCLUDES(mutex_);
  std::int64_t calls(DiskOp op) IL_EXCLUDES(mutex_);
  // Calls so far that change the disk: creating, writing, truncating, syncing, deleting.
  std::int64_t steps() IL_EXCLUDES(mutex_);

  void CutPower(Survival survival) IL_EXCLUDES(mutex_);
  // The power goes during the nth step from now (1 = the next), which then counts as unsynced.
  void CutPowerAtStep(std::int64_t nth, Survival survival) IL_EXCLUDES(mutex_);
  bool powered() IL_EXCLUDES(mutex_);
  // Also forgets waiting faults and the space limit. REQUIRES: the power is off.
  void PowerOn() IL_EXCLUDES(mutex_);

  // What programs see now.
  std::vector<std::string> names() IL_EXCLUDES(mutex_);
  std::optional<std::string> Content(const std::string& name) IL_EXCLUDES(mutex_);
  // Makes a file, or another one of that name, whose content is durable.
  void Put(const std::string& name, std::string_view content) IL_EXCLUDES(mutex_);

  // For the VFS. All return SQLite result codes. An empty name is a temporary file.
  Opened Open(const std::string& name, const OpenMode& mode) IL_EXCLUDES(mutex_);
  void Close(File& file) IL_EXCLUDES(mutex_);
  int Read(File& file, std::span<std::byte> into, std::int64_t offset) IL_EXCLUDES(mutex_);
  int Write(File& file, std::span<const std::byte> data, std::int64_t offset) IL_EXCLUDES(mutex_);
  int Truncate(File& file, std::int64_t size) IL_EXCLUDES(mutex_);
  int Sync(File& file) IL_EXCLUDES(mutex_);
  // Negative: the handle is dead.
  std::int64_t Size(File& file) IL_EXCLUDES(mutex_);
  enum class SyncDirectory : std::uint8_t { kNo, kYes };
  int Delete(const std::string& name, SyncDirectory sync) IL_EXCLUDES(mutex_);
  // As SQLite's unix VFS: an empty file does not count as existing.
  bool Exists(const std::string& name) IL_EXCLUDES(mutex_);
  int Lock(File& file, int level) IL_EXCLUDES(mutex_);
  int Unlock(File& file, int level) IL_EXCLUDES(mutex_);
  bool IsReserved(File& file) IL_EXCLUDES(mutex_);
  struct Region {
    void* memory = nullptr;  // null with code 0: not there, and extending was not asked for
    int code = 0;
  };
  enum class Extend : std::uint8_t { kNo, kYes };
  Region ShmMap(File& file, std::size_t index, std::size_t size, Extend extend) IL_EXCLUDES(mutex_);
  int ShmLock(File& file, int first, int count, int flags) IL_EXCLUDES(mutex_);
  void ShmBarrier() IL_EXCLUDES(mutex_);
  void ShmUnmap(File& file) IL_EXCLUDES(mutex_);

 private:
  struct Node;
  struct Shm;
  struct Change;
  struct DirectoryChange;
  struct Verdict {
    bool fails = false;
    int code = 0;
    Effect effect = Effect::kNothing;
  };
  using Directory = std::map<std::string, std::shared_ptr<Node>>;

  bool Dead(const File& file) const IL_REQUIRES(mutex_);
  Verdict Judge(DiskOp op) IL_REQUIRES(mutex_);
  // Counts a step; true when the power goes during it. The caller records its change as unsynced,
  // then calls Cut().
  bool Step() IL_REQUIRES(mutex_);
  void Cut(Survival survival) IL_REQUIRES(mutex_);
  bool Coin() IL_REQUIRES(mutex_);
  std::size_t Below(std::size_t bound) IL_REQUIRES(mutex_);

  void Record(Node& node, std::span<const std::byte> data, std::int64_t offset) IL_REQUIRES(mutex_);
  void Resize(Node& node, std::int64_t size) IL_REQUIRES(mutex_);
  void SyncNode(Node& node) IL_REQUIRES(mutex_);
  void FailSync(Node& node, Effect effect) IL_REQUIRES(mutex_);
  void MakeDurable(const DirectoryChange& change) IL_REQUIRES(mutex_);
  void SyncDirectoryOf(const std::string& name) IL_REQUIRES(mutex_);
  void Unlink(const std::string& name) IL_REQUIRES(mutex_);
  void ReleaseShm(File& file) IL_REQUIRES(mutex_);
  void CutNode(Node& node, Survival survival) IL_REQUIRES(mutex_);
  void CutDirectory(Survival survival) IL_REQUIRES(mutex_);

  Mutex mutex_;
  std::mt19937_64 random_ IL_GUARDED_BY(mutex_);
  Directory directory_ IL_GUARDED_BY(mutex_);          // what programs see
  Directory durable_directory_ IL_GUARDED_BY(mutex_);  // what a power cut leaves
  std::vector<DirectoryChange> directory_changes_ IL_GUARDED_BY(mutex_);
  std::vector<Fault> faults_ IL_GUARDED_BY(mutex_);  // `nth` counts down
  std::optional<std::int64_t> space_ IL_GUARDED_BY(mutex_);
  std::array<std::int64_t, kDiskOps.size()> calls_ IL_GUARDED_BY(mutex_){};
  std::int64_t fired_ IL_GUARDED_BY(mutex_) = 0;
  std::int64_t steps_ IL_GUARDED_BY(mutex_) = 0;
  std::int64_t cut_at_step_ IL_GUARDED_BY(mutex_) = 0;  // 0 = no cut waits
  Survival cut_survival_ IL_GUARDED_BY(mutex_) = Survival::kNothing;
  bool powered_ IL_GUARDED_BY(mutex_) = true;
  std::int64_t epoch_ IL_GUARDED_BY(mutex_) = 0;  // power cuts so far; older handles are dead
};

}  // namespace interlock::sqlite
