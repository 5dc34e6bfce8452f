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
#include <limits>
#include <memory>
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

// Takes 8 bytes into the sums.
template <ReadWord word>
[[gnu::always_inline]] inline void Step(Sums& sums, const std::uint8_t* bytes) {
  sums[0] += word(bytes) + sums[1];
  sums[1] += word(bytes + 4) + sums[0];
}

// Goes on from `sums`. REQUIRES: the size is a multiple of 8.
template <ReadWord word>
Sums Add(Sums sums, std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 8) Step<word>(sums, &bytes[i]);
  return sums;
}

Sums SumsOf(std::span<const std::uint8_t> bytes, bool big_endian) {
  return big_endian ? Add<BigEndian>({}, bytes) : Add<LittleEndian>({}, bytes);
}

// The frames of a log, side by side in memory.
struct Frames {
  const std::uint8_t* bytes;
  std::size_t size;  // of each, with its header

  const std::uint8_t* operator[](std::size_t i) const { return bytes + i * size; }
  // The sums that a frame says the log has up to its end.
  Sums Stored(std::size_t i) const {
    return {BigEndian((*this)[i] + 16), BigEndian((*this)[i] + 20)};
  }
};

// As many frames are summed up at once, since each step of a sum waits for the one before it. That
// works because each frame says what the one after it begins with.
constexpr std::size_t kAbreast = 4;

// The sums of four frames, the first of which goes on from `before`.
template <ReadWord word>
std::array<Sums, kAbreast> AddFour(const Frames& frames, Sums before) {
  Sums a = before;
  Sums b = frames.Stored(0);
  Sums c = frames.Stored(1);
  Sums d = frames.Stored(2);
  // Of the header of a frame only the first 8 bytes count.
  for (std::size_t i = 0; i < frames.size; i = std::max(i + 8, kFrameHeaderBytes)) {
    Step<word>(a, frames[0] + i);
    Step<word>(b, frames[1] + i);
    Step<word>(c, frames[2] + i);
    Step<word>(d, frames[3] + i);
  }
  return {a, b, c, d};
}

template <ReadWord word>
Sums AddOne(const std::uint8_t* frame, std::size_t size, Sums sums) {
  Step<word>(sums, frame);
  return Add<word>(sums, {frame + kFrameHeaderBytes, size - kFrameHeaderBytes});
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
  std::uint32_t frames = 0;  // committed
  std::uint32_t moved = 0;   // of them, into the database
  Salt salt = {};

  bool operator==(const Claim&) const = default;
};

std::optional<Claim> ReadClaim(const File& index) {
  constexpr std::size_t kCopy = 48;
  std::array<std::uint8_t, 2 * kCopy + 4> bytes = {};  // two copies, then how many were moved
  if (index.ReadAt(0, bytes) != bytes.size()) return std::nullopt;
  const auto header = std::span(bytes).first(kCopy);
  if (!std::ranges::equal(header, std::span(bytes).subspan(kCopy, kCopy))) return std::nullopt;
  const Sums sums = Add<Native>({}, header.first(40));
  const bool valid = Native(&bytes[0]) == kVersion && bytes[12] == 1 &&
                     sums == Sums{Native(&bytes[40]), Native(&bytes[44])};
  if (!valid) return std::nullopt;
  std::uint16_t size = 0;
  std::memcpy(&size, &bytes[14], sizeof(size));
  Claim claim = {.page_size = size == 1 ? 65536U : size,
                 .frames = Native(&bytes[16]),
                 .moved = Native(&bytes[2 * kCopy])};
  std::ranges::copy(header.subspan(32, claim.salt.size()), claim.salt.begin());
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
  const std::uint32_t page_size = BigEndian(&header[8]);
  if (!std::has_single_bit(page_size) || page_size < 512 || page_size > 65536) return true;
  const Sums sums = SumsOf(std::span(header).first(24), (magic & 1U) != 0);
  return sums != Sums{BigEndian(&header[24]), BigEndian(&header[28])};
}

// How far a log is whole, and what is behind that.
struct Extent {
  std::uint64_t whole = 0;  // frames
  // Ends of commits of this log after the first broken frame, as many as follow from each other.
  std::uint64_t commits_behind = 0;
};

// Goes through the frames of a log, some at a time.
class Follower {
 public:
  explicit Follower(const LogHeader& header)
      : big_endian_((BigEndian(header.data()) & 1U) != 0),
        size_(kFrameHeaderBytes + BigEndian(&header[8])),
        sums_({BigEndian(&header[24]), BigEndian(&header[28])}) {
    std::ranges::copy(std::span(header).subspan(16, sizeof(Salt)), salt_.begin());
  }

  // Looks at no more than `frames_max` frames.
  Extent Follow(const File& log, std::uint64_t frames_max) {
    constexpr std::uint64_t kAtOnce = 4 * kAbreast;
    const auto chunk = std::make_unique_for_overwrite<std::uint8_t[]>(kAtOnce * size_);
    for (std::uint64_t first = 0; first < frames_max;) {
      const std::size_t wanted = std::min(kAtOnce, frames_max - first) * size_;
      const std::size_t count =
          log.ReadAt(kHeaderBytes + first * size_, {chunk.get(), wanted}) / size_;
      if (count == 0) break;
      for (std::size_t i = 0; i < count; i += kAbreast) {
        Take({chunk.get() + i * size_, size_}, std::min(kAbreast, count - i));
      }
      first += count;
    }
    return extent_;
  }

 private:
  // REQUIRES: count <= kAbreast
  void Take(const Frames& frames, std::size_t count) {
    std::array<Sums, kAbreast> all = {};
    if (count == kAbreast) {
      all = big_endian_ ? AddFour<BigEndian>(frames, sums_) : AddFour<LittleEndian>(frames, sums_);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (count < kAbreast) {
        all.at(i) = big_endian_ ? AddOne<BigEndian>(frames[i], size_, sums_)
                                : AddOne<LittleEndian>(frames[i], size_, sums_);
      }
      sums_ = frames.Stored(i);
      const bool ours = std::equal(salt_.begin(), salt_.end(), frames[i] + 8);
      const bool follows = ours && all.at(i) == sums_;
      whole_ = whole_ && follows;
      if (whole_) {
        ++extent_.whole;
        continue;
      }
      if (!follows) commits_in_a_row_ = 0;
      if (ours && BigEndian(frames[i] + 4) != 0) ++commits_in_a_row_;
      extent_.commits_behind = std::max(extent_.commits_behind, commits_in_a_row_);
    }
  }

  const bool big_endian_;
  const std::size_t size_;  // of a frame
  Salt salt_ = {};
  Sums sums_;  // up to here
  bool whole_ = true;
  std::uint64_t commits_in_a_row_ = 0;
  Extent extent_;
};

bool IsBroken(const std::optional<Claim>& claim, const File& log, const LogHeader& header,
              std::size_t size) {
  if (claim && claim->moved >= claim->frames) return false;  // it holds nothing that is needed
  if (size < kHeaderBytes) return claim.has_value();
  const bool of_this_log =
      claim && std::ranges::equal(std::span(header).subspan(16, sizeof(Salt)), claim->salt);
  if (of_this_log) return Follower(header).Follow(log, claim->frames).whole < claim->frames;
  if (claim) return false;  // it is about an earlier log
  return Follower(header).Follow(log, std::numeric_limits<std::uint64_t>::max()).commits_behind >=
         2;
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
    if (!IsBroken(before, log, header, size)) return {};
    if (ReadClaim(index) != before) continue;
    if (before && !IsOfThisBoot(index, now)) return {};
    return Damaged(database, "is damaged, or has lost its end");
  }
  if (damaged_header) return Damaged(database, "is damaged at its beginning");
  return {};
}

}  // namespace interlock::sqlite
