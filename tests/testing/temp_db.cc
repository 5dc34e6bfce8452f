#include "testing/temp_db.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace interlock::testing {
namespace {

namespace fs = std::filesystem;

void Keep(const fs::path& directory) {
  const char* const records = std::getenv("IL_RECORD_DIR");
  if (records == nullptr) return;
  static std::atomic<int> count{0};
  const fs::path kept =
      fs::path(records) / "written" / (std::to_string(::getpid()) + "-" + std::to_string(++count));
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    if (!fs::is_regular_file(entry.symlink_status())) continue;
    const fs::path target = kept / entry.path().lexically_relative(directory);
    fs::create_directories(target.parent_path());
    fs::copy_file(entry.path(), target);
  }
}

}  // namespace

TempDir::TempDir() {
  std::string name =
      std::filesystem::canonical(std::filesystem::temp_directory_path()) / "interlock-XXXXXX";
  IL_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make a temporary directory");
  path_ = name;
}

TempDir::~TempDir() {
  Keep(path_);  // that it cannot is the end of the test: nobody would know what was not searched
  std::error_code ignored;  // a directory left over in /tmp must not fail a test
  std::filesystem::remove_all(path_, ignored);
}

sqlite::OpenOptions TempDb::options(sqlite::Access access) const {
  sqlite::OpenOptions options;
  options.path = path();
  options.access = access;
  return options;
}

std::unique_ptr<sqlite::Connection> TempDb::Open(sqlite::Access access) const {
  return sqlite::Connection::Open(options(access)).value();
}

void TempDb::Make(std::string_view script) const {
  const Result<void> ran = Open()->RunScript(script);
  IL_CHECK(ran.ok(), ran.ok() ? "" : ran.error().message());
}

}  // namespace interlock::testing
