#include "db/sqlite/fault_disk.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "db/sqlite/fault_disk_state.h"

namespace interlock::sqlite {
namespace {

int UsualCode(DiskOp op) {
  switch (op) {
    case DiskOp::kOpen:
      return SQLITE_CANTOPEN;
    case DiskOp::kRead:
      return SQLITE_IOERR_READ;
    case DiskOp::kWrite:
      return SQLITE_IOERR_WRITE;
    case DiskOp::kTruncate:
      return SQLITE_IOERR_TRUNCATE;
    case DiskOp::kSync:
      return SQLITE_IOERR_FSYNC;
    case DiskOp::kDelete:
      return SQLITE_IOERR_DELETE;
    case DiskOp::kLock:
    case DiskOp::kShmLock:
      return SQLITE_BUSY;
    case DiskOp::kShmMap:
      return SQLITE_IOERR_SHMMAP;
  }
  IL_CHECK(false, "unknown DiskOp");
}

std::int64_t SizeOf(const std::vector<std::byte>& bytes) {
  return static_cast<std::int64_t>(bytes.size());
}

}  // namespace

const char* DiskOpName(DiskOp op) {
  constexpr std::array kNames = {"open",   "read", "write",   "truncate", "sync",
                                 "delete", "lock", "shm-map", "shm-lock"};
  static_assert(kNames.size() == kDiskOps.size());
  return kNames.at(static_cast<std::size_t>(op));
}

FaultDisk::FaultDisk(std::uint64_t seed) : random_(seed) {}
FaultDisk::~FaultDisk() = default;

void FaultDisk::Inject(const Fault& fault) {
  IL_CHECK(fault.nth >= 1);
  IL_CHECK(fault.calls >= 1);
  MutexLock lock(mutex_);
  faults_.push_back(fault);
}

void FaultDisk::LimitSpace(std::optional<std::int64_t> bytes) {
  MutexLock lock(mutex_);
  space_ = bytes;
}

void FaultDisk::Heal() {
  MutexLock lock(mutex_);
  faults_.clear();
  space_.reset();
  cut_at_step_ = 0;
}

std::int64_t FaultDisk::fired() {
  MutexLock lock(mutex_);
  return fired_;
}

std::int64_t FaultDisk::calls(DiskOp op) {
  MutexLock lock(mutex_);
  return calls_.at(static_cast<std::size_t>(op));
}

std::vector<std::string> FaultDisk::names() {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, node] : directory_) names.push_back(name);
  return names;
}

std::optional<std::string> FaultDisk::Content(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = directory_.find(name);
  if (found == directory_.end()) return std::nullopt;
  const std::vector<std::byte>& bytes = found->second->bytes;
  std::string text(bytes.size(), '\0');
  if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

bool FaultDisk::Dead(const File& file) const { return !powered_ || file.epoch != epoch_; }

FaultDisk::Verdict FaultDisk::Judge(DiskOp op) {
  ++calls_.at(static_cast<std::size_t>(op));
  Verdict verdict;
  for (Fault& fault : faults_) {
    if (fault.op != op) continue;
    if (fault.nth > 1) {
      --fault.nth;
      continue;
    }
    if (verdict.fails) continue;  // one failure per call; the other keeps waiting
    --fault.calls;
    verdict = {true, fault.code != 0 ? fault.code : UsualCode(op), fault.effect};
  }
  std::erase_if(faults_, [](const Fault& fault) { return fault.calls == 0; });
  if (verdict.fails) ++fired_;
  return verdict;
}

FaultDisk::Opened FaultDisk::Open(const std::string& name, const OpenMode& mode) {
  MutexLock lock(mutex_);
  if (!powered_) return {nullptr, SQLITE_CANTOPEN};
  if (const Verdict verdict = Judge(DiskOp::kOpen); verdict.fails) return {nullptr, verdict.code};
  auto file = std::make_unique<File>();
  file->name = name;
  file->mode = mode;
  file->epoch = epoch_;
  if (name.empty()) {
    file->node = std::make_shared<Node>();
    return {std::move(file), SQLITE_OK};
  }
  const auto found = directory_.find(name);
  if (found != directory_.end()) {
    if (mode.create && mode.exclusive) return {nullptr, SQLITE_CANTOPEN};
    file->node = found->second;
    file->directory_unsynced = mode.create && mode.syncs_directory;
    return {std::move(file), SQLITE_OK};
  }
  if (!mode.create) return {nullptr, SQLITE_CANTOPEN};
  const bool power_goes = Step();
  file->node = std::make_shared<Node>();
  file->directory_unsynced = mode.syncs_directory;
  directory_[name] = file->node;
  directory_changes_.push_back({name, file->node});
  if (power_goes) {
    Cut(cut_survival_);
    return {nullptr, SQLITE_CANTOPEN};
  }
  return {std::move(file), SQLITE_OK};
}

void FaultDisk::Close(File& file) {
  Unlock(file, SQLITE_LOCK_NONE);
  MutexLock lock(mutex_);
  if (Dead(file)) return;
  ReleaseShm(file);
  if (file.name.empty()) {
    if (space_) *space_ += SizeOf(file.node->bytes);
  } else if (file.mode.delete_on_close) {
    Unlink(file.name);
  }
}

int FaultDisk::Read(File& file, std::span<std::byte> into, std::int64_t offset) {
  MutexLock lock(mutex_);
  if (Dead(file)) return SQLITE_IOERR_READ;
  if (const Verdict verdict = Judge(DiskOp::kRead); verdict.fails) return verdict.code;
  const std::vector<std::byte>& bytes = file.node->bytes;
  const auto from = std::min(static_cast<std::size_t>(offset), bytes.size());
  const std::size_t there = std::min(into.size(), bytes.size() - from);
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), there, into.begin());
  std::ranges::fill(into.subspan(there), std::byte{0});  // SQLite relies on the zeros
  return there == into.size() ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

int FaultDisk::Write(File& file, std::span<const std::byte> data, std::int64_t offset) {
  MutexLock lock(mutex_);
  if (Dead(file)) return SQLITE_IOERR_WRITE;
  if (!file.mode.writable) return SQLITE_READONLY;
  int code = SQLITE_OK;
  std::size_t taken = data.size();
  if (const Verdict verdict = Judge(DiskOp::kWrite); verdict.fails) {
    code = verdict.code;
    if (verdict.effect == Effect::kNothing) taken = 0;
    if (verdict.effect == Effect::kPart) taken = Below(data.size());
  }
  const auto growth = [&] {
    return std::max<std::int64_t>(
        0, offset + static_cast<std::int64_t>(taken) - SizeOf(file.node->bytes));
  };
  if (space_ && taken > 0 && growth() > *space_) {
    const std::int64_t missing = growth() - *space_;
    taken -= std::min(taken, static_cast<std::size_t>(missing));
    if (code == SQLITE_OK) ++fired_;
    code = SQLITE_FULL;
  }
  if (taken == 0) return code;
  const bool power_goes = Step();
  if (space_) *space_ -= growth();
  Record(*file.node, data.first(taken), offset);
  if (power_goes) {
    Cut(cut_survival_);
    return SQLITE_IOERR_WRITE;
  }
  return code;
}

int FaultDisk::Truncate(File& file, std::int64_t size) {
  MutexLock lock(mutex_);
  if (Dead(file)) return SQLITE_IOERR_TRUNCATE;
  const Verdict verdict = Judge(DiskOp::kTruncate);
  if (verdict.fails && verdict.effect != Effect::kWhole) return verdict.code;
  const bool power_goes = Step();
  Resize(*file.node, size);
  if (power_goes) {
    Cut(cut_survival_);
    return SQLITE_IOERR_TRUNCATE;
  }
  return verdict.code;
}

int FaultDisk::Sync(File& file) {
  MutexLock lock(mutex_);
  if (Dead(file)) return SQLITE_IOERR_FSYNC;
  const Verdict verdict = Judge(DiskOp::kSync);
  if (Step()) {
    Cut(cut_survival_);
    return SQLITE_IOERR_FSYNC;
  }
  if (verdict.fails && verdict.effect != Effect::kWhole) {
    FailSync(*file.node, verdict.effect);
    return verdict.code;
  }
  SyncNode(*file.node);
  if (file.directory_unsynced) {
    SyncDirectoryOf(file.name);
    file.directory_unsynced = false;
  }
  return verdict.code;
}

std::int64_t FaultDisk::Size(File& file) {
  MutexLock lock(mutex_);
  return Dead(file) ? -1 : SizeOf(file.node->bytes);
}

int FaultDisk::Delete(const std::string& name, SyncDirectory sync) {
  MutexLock lock(mutex_);
  if (!powered_) return SQLITE_IOERR_DELETE;
  const Verdict verdict = Judge(DiskOp::kDelete);
  if (verdict.fails && verdict.effect != Effect::kWhole) return verdict.code;
  if (!directory_.contains(name)) {
    return verdict.fails ? verdict.code : SQLITE_IOERR_DELETE_NOENT;
  }
  const bool power_goes = Step();
  Unlink(name);
  if (power_goes) {
    Cut(cut_survival_);
    return SQLITE_IOERR_DELETE;
  }
  if (sync == SyncDirectory::kYes && !verdict.fails) SyncDirectoryOf(name);
  return verdict.code;
}

bool FaultDisk::Exists(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = directory_.find(name);
  return powered_ && found != directory_.end() && !found->second->bytes.empty();
}

void FaultDisk::Unlink(const std::string& name) {
  const auto found = directory_.find(name);
  if (found == directory_.end()) return;
  if (space_) *space_ += SizeOf(found->second->bytes);
  directory_.erase(found);
  directory_changes_.push_back({name, nullptr});
}

bool FaultDisk::Coin() { return (random_() & 1) != 0; }

std::size_t FaultDisk::Below(std::size_t bound) {
  return bound == 0 ? 0 : static_cast<std::size_t>(random_() % bound);
}

}  // namespace interlock::sqlite
