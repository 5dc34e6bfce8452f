#include "db/sqlite/log_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;

// The formats of both files are documented at https://sqlite.org/walformat.html.
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kVersion = 3'007'000;

using LogHeader = std::array<std::uint8_t, kHeaderBytes>;
using Salt = std::array<std::uint8_t, 8>;

std::uint32_t BigEndian(const std::uint8_t* bytes) {
  return (std::uint32_t{bytes[0]} << 24) | (std::uint32_t{bytes[1]} << 16) |
         (std::uint32_t{bytes[2]} << 8) | bytes[3];
}
std::uint32_t LittleEndian(const std::uint8_t* bytes) {
  return (std::uint32_t{bytes[3]} << 24) | (std::uint32_t{bytes[2]} << 16) |
         (std::uint32_t{bytes[1]} << 8) | bytes[0];
}
std::uint32_t Native(const std::uint8_t* bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

using ReadWord = std::uint32_t (*)(const std::uint8_t*);
using Sums = std::array<std::uint32_t, 2>;

// REQUIRES: the size is a multiple of 8.
Sums SumsOf(std::span<const std::uint8_t> bytes, ReadWord word) {
  Sums sums = {};
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    sums[0] += word(&bytes[i]) + sums[1];
    sums[1] += word(&bytes[i + 4]) + sums[0];
  }
  return sums;
}

class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return fd_ >= 0; }
  // Of a file that is not there: zeros.
  struct stat Info() const {
    struct stat info = {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) info = {};
    return info;
  }
  // How much was read.
  std::size_t ReadAt(std::uint64_t offset, std::span<std::uint8_t> into) const {
    if (fd_ < 0) return 0;
    const ssize_t size = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
    return size < 0 ? 0 : static_cast<std::size_t>(size);
  }

 private:
  int fd_;
};

// What the index says of the log, when it says something.
struct Claim {
  std::uint32_t page_size = 0;
  std::uint32_t frames = 0;  // committed, and not all of them moved into the database yet
  Sums last_sums = {};       // of the last of them
  Salt salt = {};

  bool operator==(const Claim&) const = default;
};

std::optional<Claim> ReadClaim(const File& index) {
  constexpr std::size_t kCopy = 48;
  std::array<std::uint8_t, 2 * kCopy + 4> bytes = {};  // two copies, then how many were moved
  if (index.ReadAt(0, bytes) != bytes.size()) return std::nullopt;
  const auto header = std::span(bytes).first(kCopy);
  if (!std::ranges::equal(header, std::span(bytes).subspan(kCopy, kCopy))) return std::nullopt;
  const Sums sums = SumsOf(header.first(40), Native);
  const bool valid = Native(&bytes[0]) == kVersion && bytes[12] == 1 &&
                     sums == Sums{Native(&bytes[40]), Native(&bytes[44])};
  if (!valid) return std::nullopt;
  std::uint16_t size = 0;
  std::memcpy(&size, &bytes[14], sizeof(size));
  Claim claim = {.page_size = size == 1 ? 65536U : size,
                 .frames = Native(&bytes[16]),
                 .last_sums = {Native(&bytes[24]), Native(&bytes[28])}};
  std::ranges::copy(header.subspan(32, claim.salt.size()), claim.salt.begin());
  const std::uint32_t moved = Native(&bytes[2 * kCopy]);
  if (claim.frames == 0 || moved >= claim.frames) return std::nullopt;
  return claim;
}

// An empty log, and zeros, are what is left when the machine died before the first commit.
bool IsDamagedHeader(const LogHeader& header, std::size_t size) {
  if (std::ranges::all_of(std::span(header).first(size), [](std::uint8_t b) { return b == 0; })) {
    return false;
  }
  if (size < kHeaderBytes) return true;
  const std::uint32_t magic = BigEndian(header.data());
  if ((magic & ~1U) != 0x377f0682U || BigEndian(&header[4]) != kVersion) return true;
  const Sums sums =
      SumsOf(std::span(header).first(24), (magic & 1U) != 0 ? BigEndian : LittleEndian);
  return sums != Sums{BigEndian(&header[24]), BigEndian(&header[28])};
}

bool IsBroken(const Claim& claim, const File& log, const LogHeader& header, std::size_t size) {
  if (size < kHeaderBytes) return true;
  if (!std::ranges::equal(std::span(header).subspan(16, claim.salt.size()), claim.salt)) {
    return false;  // it is about an earlier log
  }
  const std::uint64_t frame_bytes = kFrameHeaderBytes + claim.page_size;
  const std::uint64_t end = kHeaderBytes + claim.frames * frame_bytes;
  if (std::cmp_less(log.Info().st_size, end)) return true;
  std::array<std::uint8_t, kFrameHeaderBytes> last = {};
  if (log.ReadAt(end - frame_bytes, last) != last.size()) return true;
  return !std::ranges::equal(std::span(last).subspan(8, claim.salt.size()), claim.salt) ||
         Sums{BigEndian(&last[16]), BigEndian(&last[20])} != claim.last_sums;
}

// Its first opener since the machine started has written to it.
bool IsOfThisBoot(const File& index, Timestamp now) {
  struct sysinfo machine = {};
  if (::sysinfo(&machine) != 0) return false;
  return index.Info().st_mtim.tv_sec > now.micros / 1'000'000 - machine.uptime;
}

Error Damaged(const fs::path& database, std::string_view what) {
  return Error(Errc::kCorrupt,
               fmt::format("{}-wal, the log of the database, {}", database.string(), what))
      .WithDetail("do", fmt::format("what was written last is lost; to go on without it, remove "
                                    "{0}-wal and {0}-shm while nothing uses them",
                                    database.string()));
}

}  // namespace

Result<void> CheckLog(const fs::path& database, Timestamp now) {
  const File index(database.string() + "-shm");
  const File log(database.string() + "-wal");
  if (!log.is_open() && ::access((database.string() + "-wal").c_str(), F_OK) == 0) {
    return {};  // not ours to read: SQLite says it better
  }
  constexpr int kTries = 3;  // a writer may be at the very place we read
  bool damaged_header = false;
  for (int i = 0; i < kTries; ++i) {
    const auto before = ReadClaim(index);
    LogHeader header = {};
    const std::size_t size = log.ReadAt(0, header);
    damaged_header = IsDamagedHeader(header, size);
    if (damaged_header) continue;
    if (!before || !IsBroken(*before, log, header, size)) return {};
    if (ReadClaim(index) != before) continue;
    if (!IsOfThisBoot(index, now)) return {};
    return Damaged(database, "has lost its end");
  }
  if (damaged_header) return Damaged(database, "is damaged at its beginning");
  return {};
}

}  // namespace interlock::sqlite
