#include "db/backups.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace interlock::db {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial";

// "20260102T030405.000000Z": sorts as time does.
std::string CompactTime(Timestamp time) {
  using std::chrono::microseconds;
  const std::chrono::sys_time<microseconds> point{microseconds(time.micros)};
  const auto day = std::chrono::floor<std::chrono::days>(point);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(point - day);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

// Reads a name from left to right; once something is missing, it is never done().
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool done() const { return ok_ && rest_.empty(); }
  bool Sees(std::string_view literal) const { return rest_.starts_with(literal); }
  void Literal(std::string_view literal) {
    ok_ = ok_ && Sees(literal);
    if (ok_) rest_.remove_prefix(literal.size());
  }
  std::string_view Digits(std::size_t min, std::size_t max) {
    const std::size_t run = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    ok_ = ok_ && run >= min && run <= max;
    if (!ok_) return {};
    const std::string_view digits = rest_.substr(0, run);
    rest_.remove_prefix(run);
    return digits;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// A new name survives a power cut only when its directory was synced.
Result<void> SyncDirectory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int failed = fd < 0 || ::fsync(fd) != 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
  if (failed == 0) return {};
  return Error(Errc::kIo,
               fmt::format("syncing {}: {}", directory.string(), ::strerrordesc_np(failed)));
}

}  // namespace

Backups::Backups(const fs::path& database, int kept) : kept_(kept) {
  IL_CHECK(kept >= 1);
  directory_ = database.has_parent_path() ? database.parent_path() : fs::path(".");
  prefix_ = database.filename().string() + ".v";
}

Result<fs::path> Backups::Make(int version, Timestamp now, const Copy& copy) const {
  RemovePartials();
  fs::path target = FreeName(version, now);
  const fs::path partial = target.string() + std::string(kPartial);
  Result<void> done = copy(partial);
  if (done) {
    std::error_code error;
    fs::rename(partial, target, error);
    if (error) {
      done = Error(Errc::kIo, fmt::format("naming {}: {}", target.string(), error.message()));
    }
  }
  if (done) done = SyncDirectory(directory_);
  if (done) return target;
  std::error_code ignored;  // the first failure is the one to tell
  fs::remove(partial, ignored);
  fs::remove(target, ignored);
  return std::move(done).error().In("backup before the migration");
}

void Backups::Prune(const fs::path& newest) const {
  std::vector<fs::path> old = List();
  std::erase(old, newest);
  const auto others_kept = static_cast<std::size_t>(newest.empty() ? kept_ : kept_ - 1);
  if (old.size() <= others_kept) return;
  old.resize(old.size() - others_kept);
  for (const fs::path& path : old) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
}

std::vector<fs::path> Backups::List() const {
  std::vector<std::pair<std::string, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (auto key = SortKey(entry->path().filename().string())) {
      found.emplace_back(*std::move(key), directory_ / entry->path().filename());
    }
  }
  std::ranges::sort(found);
  std::vector<fs::path> paths;
  paths.reserve(found.size());
  for (auto& [key, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::optional<std::string> Backups::SortKey(std::string_view file_name) const {
  Scanner name(file_name);
  name.Literal(prefix_);
  name.Digits(1, 9);  // the version
  name.Literal(".");
  const std::string_view day = name.Digits(8, 8);
  name.Literal("T");
  const std::string_view second = name.Digits(6, 6);
  name.Literal(".");
  const std::string_view micros = name.Digits(6, 6);
  name.Literal("Z");
  std::string_view number;
  if (name.Sees("-")) {
    name.Literal("-");
    number = name.Digits(1, 4);
  }
  name.Literal(".backup");
  if (!name.done()) return std::nullopt;
  return fmt::format("{}{}{}-{:0>4}", day, second, micros, number);
}

fs::path Backups::FreeName(int version, Timestamp now) const {
  const std::string stem = fmt::format("{}{}.{}", prefix_, version, CompactTime(now));
  fs::path path = directory_ / (stem + ".backup");
  std::error_code ignored;
  // The clock may stand or go back: two migrations can meet in one microsecond.
  for (int number = 2; fs::exists(fs::symlink_status(path, ignored)); ++number) {
    path = directory_ / fmt::format("{}-{}.backup", stem, number);
  }
  return path;
}

void Backups::RemovePartials() const {
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with("-journal")) name.resize(name.size() - std::string_view("-journal").size());
    if (!name.ends_with(kPartial)) continue;
    name.resize(name.size() - kPartial.size());
    if (SortKey(name)) left.push_back(entry->path());
  }
  for (const fs::path& path : left) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
}

}  // namespace interlock::db
