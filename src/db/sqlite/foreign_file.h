#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "db/foreign_file.h"
#include "db/sqlite/connection.h"

namespace interlock::sqlite {

// db::ForeignFile on SQLite. The file's journal mode is left as it is. A file that was moved,
// removed or replaced by another one of its name is noticed at the next Find(): SQLite would go on
// writing to the one it has open.
class ForeignFile final : public db::ForeignFile {
 public:
  // Where the file is; asked whenever it is to be opened, so that one that appears later is found.
  using Locate = std::function<Result<std::filesystem::path>()>;

  struct Options {
    Durability durability = Durability::kFull;
    std::chrono::milliseconds busy_timeout{1000};
    std::string vfs = {};  // as in OpenOptions
  };

  ForeignFile(Locate locate, Options options);
  ~ForeignFile() override;

  Result<Found> Find() override;
  Result<void> Write(const std::function<Result<void>(db::Transaction&)>& fn) override;
  void Close() override { open_.reset(); }

 private:
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    bool operator==(const Identity&) const = default;
  };
  struct Open {
    std::unique_ptr<Connection> connection;
    Identity identity;
  };

  static std::optional<Identity> IdentityOf(const std::filesystem::path& path);
  static Result<void> WriteTo(Connection& connection,
                              const std::function<Result<void>(db::Transaction&)>& fn);

  const Locate locate_;
  const Options options_;
  std::optional<Open> open_;
};

}  // namespace interlock::sqlite
