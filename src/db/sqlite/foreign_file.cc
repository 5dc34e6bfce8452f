#include "db/sqlite/foreign_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "base/check.h"

namespace interlock::sqlite {

ForeignFile::ForeignFile(Locate locate, Options options)
    : locate_(std::move(locate)), options_(std::move(options)) {}
ForeignFile::~ForeignFile() = default;

std::optional<ForeignFile::Identity> ForeignFile::IdentityOf(const std::filesystem::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  return Identity{.device = found.st_dev, .number = found.st_ino};
}

Result<db::ForeignFile::Found> ForeignFile::Find() {
  if (open_ && IdentityOf(open_->connection->path()) == open_->identity) return Found::kStill;
  open_.reset();
  IL_TRY(const std::filesystem::path path, locate_());
  const std::optional<Identity> before = IdentityOf(path);
  IL_TRY(std::unique_ptr<Connection> connection,
         Connection::Open({.path = path,
                           .access = Access::kReadWrite,
                           .durability = options_.durability,
                           .busy_timeout = options_.busy_timeout,
                           .journal = Journal::kAsFound,
                           .vfs = options_.vfs}));
  const std::optional<Identity> after = IdentityOf(connection->path());
  if (!after || before != after) {
    return Error(
        Errc::kCantOpen,
        fmt::format("{} was replaced while it was opened; it is tried again", path.string()));
  }
  open_.emplace(Open{.connection = std::move(connection), .identity = *after});
  return Found::kAnew;
}

Result<void> ForeignFile::WriteTo(Connection& connection,
                                  const std::function<Result<void>(db::Transaction&)>& fn) {
  IL_TRY_VOID(connection.BeginExclusive());
  db::Transaction transaction(connection);
  Result<void> done = fn(transaction);
  if (!done.ok()) {
    connection.Rollback();
    return done;
  }
  done = connection.Commit();
  if (done.ok()) return done;
  if (connection.in_transaction()) {
    connection.Rollback();
    return done;
  }
  return Error(Errc::kOutcomeUnknown, done.error().message());
}

Result<void> ForeignFile::Write(const std::function<Result<void>(db::Transaction&)>& fn) {
  IL_CHECK(open_.has_value(), "a foreign file was written before it was found");
  Result<void> written = WriteTo(*open_->connection, fn);
  if (!written.ok()) open_.reset();
  return written;
}

}  // namespace interlock::sqlite
