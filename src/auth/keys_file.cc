#include "auth/keys_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "auth/yaml.h"
#include "base/check.h"
#include "domain/text.h"

namespace interlock::auth {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPrivateMode = 0600;
constexpr mode_t kModeBits = 07777;
constexpr mode_t kOthersReadOrWrite = 0066;
constexpr std::string_view kCannotOpen = "cannot open the keys file";
constexpr const char* kBootstrapProject = "dev";

Error SystemError(int error, std::string_view what, const fs::path& path) {
  Errc errc = Errc::kCantOpen;
  if (error == ENOENT) errc = Errc::kNotFound;
  if (error == ENOSPC || error == EDQUOT) errc = Errc::kDiskFull;
  if (error == EROFS) errc = Errc::kReadOnly;
  return Error(errc, fmt::format("{} {}: {}", what, path.string(), ::strerrordesc_np(error)));
}

// An open file; the destructor closes it.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct OpenedFile {
  File file;
  struct stat info;
};

Result<OpenedFile> OpenToRead(const fs::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd() < 0) return SystemError(errno, kCannotOpen, path);
  struct stat info{};
  if (::fstat(file.fd(), &info) != 0) {
    return SystemError(errno, "cannot inspect the keys file", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return Error(Errc::kCantOpen,
                 fmt::format("the keys file {} is not a regular file", path.string()));
  }
  return OpenedFile{std::move(file), info};
}

// Reads up to one byte more than the limit, so that the parser can detect a file that is too long.
Result<std::string> ReadAll(const File& file, const fs::path& path) {
  std::string text(kKeysFileBytesMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.fd(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "cannot read the keys file", path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

// ---- Writing ----

// New content in a temporary file beside the target. The destructor removes an unused one.
class Draft {
 public:
  // The new file gets the mode and owner of `like`, the file to be replaced; null = private.
  static Result<Draft> Write(const fs::path& target, std::string_view text,
                             const struct stat* like) {
    std::string name = target.string() + ".new-XXXXXX";
    const File file(::mkostemp(name.data(), O_CLOEXEC));
    if (file.fd() < 0) return SystemError(errno, "cannot write beside the keys file", target);
    Draft draft(std::move(name), target);
    if (!WriteAll(file, text) || !TakeAfter(file, like) || ::fsync(file.fd()) != 0) {
      return SystemError(errno, "cannot write", draft.name_);
    }
    return draft;
  }

  Draft(Draft&& other) noexcept
      : name_(std::exchange(other.name_, {})), target_(std::move(other.target_)) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  // Links the draft to the target name; false if the target exists.
  Result<bool> Create() {
    if (::link(name_.c_str(), target_.c_str()) != 0) {
      if (errno == EEXIST) return false;
      return SystemError(errno, "cannot create the keys file", target_);
    }
    SyncDirectory();
    return true;
  }

  // Renames the draft over the target.
  Result<void> Replace() {
    if (::rename(name_.c_str(), target_.c_str()) != 0) {
      return SystemError(errno, "cannot replace the keys file", target_);
    }
    name_.clear();
    SyncDirectory();
    return {};
  }

 private:
  Draft(std::string name, fs::path target) : name_(std::move(name)), target_(std::move(target)) {}

  static bool WriteAll(const File& file, std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(file.fd(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  // Set the owner first: a change of owner clears some bits of the mode.
  static bool TakeAfter(const File& file, const struct stat* like) {
    if (like == nullptr) return ::fchmod(file.fd(), kPrivateMode) == 0;
    struct stat own{};
    if (::fstat(file.fd(), &own) != 0) return false;
    const bool same = own.st_uid == like->st_uid && own.st_gid == like->st_gid;
    if (!same && ::fchown(file.fd(), like->st_uid, like->st_gid) != 0) return false;
    return ::fchmod(file.fd(), like->st_mode & kModeBits) == 0;
  }

  void SyncDirectory() const {
    const fs::path parent = target_.parent_path();
    const File directory(
        ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.fd() >= 0) ::fsync(directory.fd());
  }

  std::string name_;
  fs::path target_;
};

// ---- Content ----

// Returns the field of that name, ignoring blanks around the name in the file, or a new field.
YAML::Node FieldOf(YAML::Node map, const std::string& name) {
  for (const auto& field : map) {
    if (domain::Trim(field.first.Scalar()) == name) return field.second;
  }
  return map[name];
}

// Adds the key to a document that Keyring::Parse() has accepted.
void AddKey(const YAML::Node& document, const std::string& project, const Secret& key) {
  YAML::Node policy = FieldOf(document, "default_policy");
  YAML::Node allowed = FieldOf(policy, "allow_localhost_without_auth");
  if (!allowed.IsDefined() || allowed.IsNull()) allowed = true;
  FieldOf(FieldOf(FieldOf(document, "projects"), project), "keys").push_back(key.Reveal());
}

// Returns the text with the key added. Parses the new text again and compares: writing must neither
// lose nor change a key, whatever its spelling.
Result<std::string> TextWithKey(std::string_view text, const std::string& project,
                                const Secret& key) {
  IL_TRY(const Keyring before, Keyring::Parse(text));
  IL_TRY(YAML::Node document, ParseYaml(text));
  try {
    if (document.IsNull()) document = YAML::Node(YAML::NodeType::Map);
    AddKey(document, project, key);
  } catch (const std::exception& error) {  // the library's
    return Error(Errc::kInternal, error.what());
  }
  IL_TRY(std::string after_text, WriteYaml(document));
  IL_TRY(const Keyring after, Keyring::Parse(after_text));
  const bool kept = after.Includes(before) && after.key_count() == before.key_count() + 1 &&
                    after.local_policy() == before.local_policy() &&
                    after.Find(key.Reveal()) == project;
  if (!kept) {
    return Error(Errc::kInternal,
                 "its content cannot be written back as it is; add the key by hand");
  }
  return after_text;
}

std::string InFile(const fs::path& path) { return fmt::format("the keys file {}", path.string()); }

// Creates the file with one key; false if it exists.
Result<bool> CreateWithKey(const fs::path& path, const std::string& project, const Secret& key) {
  IL_TRY(const std::string text, TextWithKey("", project, key));
  IL_TRY(Draft draft, Draft::Write(path, text, nullptr));
  return draft.Create();
}

// Adds a key to an existing file; false if another process replaced the file in the meantime. The
// lock is on the file itself, so that only users who may read it can block others.
Result<bool> AddToExisting(const fs::path& path, const std::string& project, const Secret& key) {
  IL_TRY(const OpenedFile opened, OpenToRead(path));
  if (::flock(opened.file.fd(), LOCK_EX) != 0) {
    return SystemError(errno, "cannot lock the keys file", path);
  }
  struct stat now{};
  if (::stat(path.c_str(), &now) != 0 || now.st_dev != opened.info.st_dev ||
      now.st_ino != opened.info.st_ino) {
    return false;
  }
  IL_TRY(const std::string old_text, ReadAll(opened.file, path));
  auto text = TextWithKey(old_text, project, key);
  if (!text.ok()) return std::move(text).error().In(InFile(path));
  IL_TRY(Draft draft, Draft::Write(path, *text, &now));
  IL_TRY_VOID(draft.Replace());
  return true;
}

}  // namespace

Result<LoadedKeys> LoadKeys(const fs::path& path) {
  IL_TRY(const OpenedFile opened, OpenToRead(path));
  IL_TRY(const std::string text, ReadAll(opened.file, path));
  auto keyring = Keyring::Parse(text);
  if (!keyring.ok()) return std::move(keyring).error().In(InFile(path));
  const bool open = (opened.info.st_mode & kOthersReadOrWrite) != 0;
  return LoadedKeys{*std::move(keyring),
                    open ? LoadedKeys::Exposure::kOpenToOthers : LoadedKeys::Exposure::kPrivate,
                    domain::Trim(text).empty()};
}

Result<std::optional<Secret>> BootstrapKeys(const fs::path& path, RandomSource& random) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) return std::optional<Secret>();
  std::optional<Secret> key(Secret(RandomKey(random)));
  IL_TRY(const bool made, CreateWithKey(path, kBootstrapProject, *key));
  if (!made) key.reset();
  return key;
}

Result<Secret> AppendKey(const fs::path& path, std::string_view project, RandomSource& random) {
  IL_CHECK(!project.empty() && domain::ProjectName(project) == project);
  constexpr int kTries = 1000;  // each failed try means that another process succeeded
  Secret key(RandomKey(random));
  for (int i = 0; i < kTries; ++i) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);  // a symlink must keep pointing to the file
    if (!error) {
      IL_TRY(const bool added, AddToExisting(real, std::string(project), key));
      if (added) return key;
      continue;
    }
    if (error.value() != ENOENT) return SystemError(error.value(), kCannotOpen, path);
    if (fs::is_symlink(path, error)) {
      return Error(Errc::kCantOpen, fmt::format("the keys file {} is a dangling symlink; create "
                                                "its target, or remove it",
                                                path.string()));
    }
    IL_TRY(const bool made, CreateWithKey(path, std::string(project), key));
    if (made) return key;
  }
  return Error(Errc::kUnavailable,
               fmt::format("other processes keep replacing the keys file {}", path.string()));
}

}  // namespace interlock::auth
