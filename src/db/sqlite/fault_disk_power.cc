// What is durable on a FaultDisk, and what a power cut leaves.

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "db/sqlite/fault_disk.h"
#include "db/sqlite/fault_disk_state.h"

namespace interlock::sqlite {
namespace {

constexpr std::int64_t kSectorSize = 512;  // the smallest unit that a drive writes whole
constexpr std::int64_t kPageSize = 4096;   // the unit in which Linux keeps files in memory

void PutBytes(std::vector<std::byte>& bytes, std::int64_t offset, std::span<const std::byte> data) {
  const auto end = static_cast<std::size_t>(offset) + data.size();
  if (bytes.size() < end) bytes.resize(end);
  std::ranges::copy(data, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

std::string_view DirectoryOf(std::string_view name) {
  return name.substr(0, name.rfind('/') + 1);  // npos + 1 = 0: the empty directory
}

}  // namespace

std::int64_t FaultDisk::steps() {
  MutexLock lock(mutex_);
  return steps_;
}

void FaultDisk::Put(const std::string& name, std::string_view content) {
  MutexLock lock(mutex_);
  const auto node = std::make_shared<Node>();
  const auto bytes = std::as_bytes(std::span(content));
  node->bytes.assign(bytes.begin(), bytes.end());
  node->synced = node->bytes;
  directory_[name] = node;
  durable_directory_[name] = node;
}

bool FaultDisk::Step() {
  ++steps_;
  return cut_at_step_ != 0 && steps_ == cut_at_step_;
}

// Programs see the bytes at once; the disk gets them sector by sector.
void FaultDisk::Record(Node& node, std::span<const std::byte> data, std::int64_t offset) {
  PutBytes(node.bytes, offset, data);
  const std::int64_t first_page = offset / kPageSize;
  const std::int64_t last_page = (offset + static_cast<std::int64_t>(data.size()) - 1) / kPageSize;
  for (Change& change : node.changes) {  // the page is dirty again, with all that is in it
    const std::int64_t page = change.offset / kPageSize;
    if (page >= first_page && page <= last_page) change.forgotten = false;
  }
  while (!data.empty()) {
    const auto room = static_cast<std::size_t>(kSectorSize - offset % kSectorSize);
    const auto part = data.first(std::min(room, data.size()));
    node.changes.push_back({Change::Kind::kBytes, offset, {part.begin(), part.end()}});
    data = data.subspan(part.size());
    offset += static_cast<std::int64_t>(part.size());
  }
}

void FaultDisk::Resize(Node& node, std::int64_t size) {
  if (space_) *space_ += static_cast<std::int64_t>(node.bytes.size()) - size;
  node.bytes.resize(static_cast<std::size_t>(size));
  node.changes.push_back({Change::Kind::kSize, size, {}});
}

void FaultDisk::SyncNode(Node& node) {
  std::vector<Change> kept;
  for (Change& change : node.changes) {
    if (change.forgotten) {
      kept.push_back(std::move(change));
    } else if (change.kind == Change::Kind::kBytes) {
      PutBytes(node.synced, change.offset, change.bytes);
    } else {
      node.synced.resize(static_cast<std::size_t>(change.offset));
      // What was cut off cannot come back.
      std::erase_if(kept, [&](const Change& old) {
        return old.offset + static_cast<std::int64_t>(old.bytes.size()) > change.offset;
      });
    }
  }
  node.changes = std::move(kept);
  node.synced.resize(node.bytes.size());  // the size is in the file system's own log
}

// Each sector reaches the disk with all its changes or with none; the others are forgotten.
void FaultDisk::FailSync(Node& node, Effect effect) {
  std::map<std::int64_t, bool> reaches;
  if (effect == Effect::kPart) {
    for (const Change& change : node.changes) {
      if (change.kind == Change::Kind::kBytes) {
        reaches.try_emplace(change.offset / kSectorSize, Coin());
      }
    }
  }
  for (Change& change : node.changes) {
    if (change.kind == Change::Kind::kSize) continue;
    const auto found = reaches.find(change.offset / kSectorSize);
    if (found == reaches.end() || !found->second) change.forgotten = true;
  }
  if (effect == Effect::kPart) SyncNode(node);
}

void FaultDisk::MakeDurable(const DirectoryChange& change) {
  if (change.node) {
    durable_directory_[change.name] = change.node;
  } else {
    durable_directory_.erase(change.name);
  }
}

void FaultDisk::SyncDirectoryOf(const std::string& name) {
  std::vector<DirectoryChange> elsewhere;
  for (DirectoryChange& change : directory_changes_) {
    if (DirectoryOf(change.name) == DirectoryOf(name)) {
      MakeDurable(change);
    } else {
      elsewhere.push_back(std::move(change));
    }
  }
  directory_changes_ = std::move(elsewhere);
}

void FaultDisk::CutPower(Survival survival) {
  MutexLock lock(mutex_);
  IL_CHECK(powered_);
  Cut(survival);
}

void FaultDisk::CutPowerAtStep(std::int64_t nth, Survival survival) {
  IL_CHECK(nth >= 1);
  MutexLock lock(mutex_);
  IL_CHECK(powered_);
  cut_at_step_ = steps_ + nth;
  cut_survival_ = survival;
}

bool FaultDisk::powered() {
  MutexLock lock(mutex_);
  return powered_;
}

void FaultDisk::PowerOn() {
  MutexLock lock(mutex_);
  IL_CHECK(!powered_);
  powered_ = true;
  faults_.clear();
  space_.reset();
}

void FaultDisk::Cut(Survival survival) {
  powered_ = false;
  cut_at_step_ = 0;
  ++epoch_;
  CutDirectory(survival);
  // New nodes: handles from before keep the old ones, whose locks and memory die with them.
  std::map<const Node*, std::shared_ptr<Node>> renewed;
  for (auto& [name, node] : durable_directory_) {
    std::shared_ptr<Node>& fresh = renewed[node.get()];
    if (!fresh) {
      CutNode(*node, survival);
      fresh = std::make_shared<Node>();
      fresh->bytes = node->synced;
      fresh->synced = node->synced;
    }
    node = fresh;
  }
  directory_ = durable_directory_;
}

// Of the changes of one name a prefix survives, since a file system keeps their order.
void FaultDisk::CutDirectory(Survival survival) {
  std::set<std::string> ended;  // names whose later changes are lost
  for (const DirectoryChange& change : directory_changes_) {
    if (survival == Survival::kNothing) break;
    if (survival == Survival::kSome && !ended.contains(change.name) && Coin()) {
      ended.insert(change.name);
    }
    if (!ended.contains(change.name)) MakeDurable(change);
  }
  directory_changes_.clear();
}

void FaultDisk::CutNode(Node& node, Survival survival) {
  if (survival == Survival::kNothing) return;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  for (const Change& change : node.changes) {
    const bool survives = survival == Survival::kAll || Coin();
    if (change.kind == Change::Kind::kSize) {
      // Bytes written behind a cut that is lost lie in blocks that the file never got.
      if (!survives) end = std::min(end, change.offset);
      if (survives) node.synced.resize(static_cast<std::size_t>(change.offset));
    } else if (survives && change.offset < end) {
      PutBytes(node.synced, change.offset, change.bytes);
    }
  }
}

}  // namespace interlock::sqlite
