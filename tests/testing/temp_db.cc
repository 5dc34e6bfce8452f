#include "testing/temp_db.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX

#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace interlock::testing {

TempDir::TempDir() {
  std::string name =
      std::filesystem::canonical(std::filesystem::temp_directory_path()) / "interlock-XXXXXX";
  IL_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make a temporary directory");
  path_ = name;
}

TempDir::~TempDir() {
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
