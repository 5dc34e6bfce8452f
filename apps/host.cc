#include "host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "db/sqlite/files.h"
#include "http/port_holder.h"

namespace interlock::app {
namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

// f_type of file systems whose files live on another machine. Not all are in <linux/magic.h>.
constexpr std::array<std::pair<std::int64_t, const char*>, 14> kNetworkFileSystems = {{
    {NFS_SUPER_MAGIC, "nfs"},
    {SMB_SUPER_MAGIC, "smb"},
    {CIFS_SUPER_MAGIC, "cifs"},
    {SMB2_SUPER_MAGIC, "smb2"},
    {NCP_SUPER_MAGIC, "ncp"},
    {CODA_SUPER_MAGIC, "coda"},
    {AFS_SUPER_MAGIC, "afs"},
    {AFS_FS_MAGIC, "afs"},
    {CEPH_SUPER_MAGIC, "ceph"},
    {V9FS_MAGIC, "9p"},
    {OCFS2_SUPER_MAGIC, "ocfs2"},
    {0x01161970, "gfs2"},
    {0x0BD00BD0, "lustre"},
    {0x47504653, "gpfs"},
}};

// Every FUSE file system has the same f_type; only the mount table tells sshfs from ntfs-3g.
// A row reads "device mount-point type options …".
std::string FuseNetworkType(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 7> kTypes = {"fuse.sshfs",  "fuse.s3fs",  "fuse.glusterfs",
                                                      "fuse.rclone", "fuse.davfs", "fuse.gcsfuse",
                                                      "fuse.cephfs"};
  std::unique_ptr<FILE, int (*)(FILE*)> table(std::fopen("/proc/self/mounts", "re"), std::fclose);
  if (table == nullptr) return "";
  const std::string wanted = std::filesystem::weakly_canonical(path).string();
  std::string best_point;
  std::string best_type;
  std::array<char, 4096> row;
  while (std::fgets(row.data(), row.size(), table.get()) != nullptr) {
    std::array<char, 4096> point{};
    std::array<char, 256> type{};
    if (std::sscanf(row.data(), "%*s %4095s %255s", point.data(), type.data()) != 2) continue;
    const std::string_view at = point.data();
    const bool holds = at == "/" || wanted == at || wanted.starts_with(std::string(at) + "/");
    if (!holds || at.size() < best_point.size()) continue;
    best_point = at;
    best_type = type.data();
  }
  for (const std::string_view one : kTypes) {
    if (best_type == one) return best_type;
  }
  return "";
}

std::filesystem::path NearestExisting(std::filesystem::path path) {
  std::error_code error;
  path = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

// Refuses a path of which more than the last directory is missing: most likely a typing error, and
// the server would go on with an empty database.
Result<void> RefuseMissingDirectories(const std::filesystem::path& database) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(database, error).lexically_normal();
  const auto directory = whole.parent_path();
  if (std::filesystem::exists(directory.parent_path(), error) || error) return {};
  return Error(
      Errc::kCantOpen,
      fmt::format("the directory {} does not exist, so the database {} cannot be created; "
                  "check --db, or create its directory: mkdir -p {}",
                  directory.parent_path().string(), database.string(), directory.string()));
}

// Who holds the lock. One that has just taken it may not have written its pid yet: then the file is
// empty or names a holder that is gone, and is worth a second look.
std::string LastHolder(int fd) {
  constexpr int kLooks = 20;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) ::poll(nullptr, 0, 5);
    std::array<char, 32> text{};
    const ssize_t size = ::pread(fd, text.data(), text.size() - 1, 0);
    pid_t pid = 0;
    if (size > 0) std::from_chars(text.data(), text.data() + size, pid);
    if (pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM)) return http::DescribeProcess(pid);
  }
  return "another process";
}

}  // namespace

api::ServerNumbers::Process ReadProcessUse() {
  api::ServerNumbers::Process process;
  const std::unique_ptr<FILE, int (*)(FILE*)> memory(std::fopen("/proc/self/statm", "re"),
                                                     std::fclose);
  std::uint64_t pages = 0;
  if (memory != nullptr && std::fscanf(memory.get(), "%*u %" SCNu64, &pages) == 1) {
    process.resident_bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (!error) {  // the one that reads the directory is among them
    process.open_files = static_cast<std::uint64_t>(std::distance(begin(files), end(files))) - 1;
  }
  rusage use{};
  if (::getrusage(RUSAGE_SELF, &use) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    process.cpu_seconds = seconds(use.ru_utime) + seconds(use.ru_stime);
  }
  return process;
}

std::uint64_t RaiseOpenFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return raised.rlim_cur;
  return limit.rlim_cur;
}

Result<void> RefuseTooFewFiles(std::uint64_t files_max, std::uint64_t files_open, int io_threads) {
  // The database with its log, its shared memory, its lock and a connection for each reader;
  // listeners, the keys file, a program that is called, and one client. Then three for each thread:
  // its event queue, its timer, and what wakes it.
  const std::uint64_t needed = 32 + 3 * static_cast<std::uint64_t>(io_threads);
  if (files_max >= files_open + needed) return {};
  return Error(
      Errc::kUnavailable,
      fmt::format("the limit of open files is {}, of which {} are open already, and the "
                  "server needs {} more; raise the hard limit (ulimit -Hn, or LimitNOFILE= "
                  "of systemd)",
                  files_max, files_open, needed));
}

Limits FitToOpenFiles(Limits limits, std::uint64_t files_max) {
  // Standard streams, listeners, event queues, the lock, and for each database connection the
  // file, its log and its shared memory; a connection being accepted, a file of /proc now and then.
  constexpr std::uint64_t kOwn = 40;
  const std::uint64_t usable = files_max > kOwn ? files_max - kOwn : 0;
  const auto refusals = std::max<std::uint64_t>(1, usable / 4);
  limits.refusals_max = std::min<std::uint64_t>(limits.refusals_max, refusals);
  const std::uint64_t leaving = 2 * limits.refusals_max;  // refused, or giving their place away
  const auto served = std::max<std::uint64_t>(1, usable > leaving ? usable - leaving : 0);
  limits.connections_max = std::min<std::uint64_t>(limits.connections_max, served);
  return limits;
}

std::string NetworkFileSystemName(std::int64_t magic) {
  // f_type is signed and sign-extended on some kernels; the magic numbers have 32 bits.
  for (const auto& [number, name] : kNetworkFileSystems) {
    if (static_cast<std::uint32_t>(number) == static_cast<std::uint32_t>(magic)) return name;
  }
  return "";
}

Result<void> RefuseNetworkFileSystem(const std::filesystem::path& path) {
  const std::filesystem::path existing = NearestExisting(path);
  struct statfs info{};
  if (::statfs(existing.c_str(), &info) != 0) return {};  // opening will say what is wrong
  std::string name = NetworkFileSystemName(info.f_type);
  if (info.f_type == FUSE_SUPER_MAGIC) name = FuseNetworkType(existing);
  if (name.empty()) return {};
  return Error(Errc::kCantOpen,
               fmt::format("the database {} lies on a network file system ({}), where locks may "
                           "fail and data be lost; put it on a local disk with --db, or insist "
                           "with --allow-network-fs",
                           path.string(), name));
}

bool OthersMayUse(const std::filesystem::path& file) {
  struct stat info{};
  return ::stat(file.c_str(), &info) == 0 && (info.st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

bool OthersMayReplace(const std::filesystem::path& file) {
  struct stat info{};
  const std::filesystem::path directory = std::filesystem::absolute(file).parent_path();
  if (::stat(directory.c_str(), &info) != 0) return false;
  return (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0;
}

Result<DatabaseLock> DatabaseLock::Acquire(const std::filesystem::path& database) {
  IL_TRY_VOID(RefuseMissingDirectories(database));
  IL_TRY(const std::filesystem::path place,
         sqlite::SafePlace(database, sqlite::IfMissing::kCreate));
  const std::string path = place.string() + ".lock";
  if (const auto made = sqlite::CreatePrivateFile(path);
      !made.ok() && made.error().code() != Errc::kAlreadyExists) {
    return made.error();
  }
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0) {
    return Error(Errc::kCantOpen,
                 fmt::format("cannot open the lock file {}: {}", path, ErrnoText(errno)));
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return Error(Errc::kCantOpen, fmt::format("cannot lock {}: {}", path, ErrnoText(errno)));
    }
    return Error(Errc::kUnavailable,
                 fmt::format("the database {} is in use by {}; stop it or choose another with --db",
                             database.string(), LastHolder(fd.get())));
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return Error(Errc::kDiskFull,
                 fmt::format("cannot write {}: {}; is the disk full?", path, ErrnoText(errno)));
  }
  return DatabaseLock(std::move(fd));
}

}  // namespace interlock::app
