// A second process for tests (lock_holder.h): it takes the write lock of a database when told
// to. Commands come on stdin, one byte each, and each is answered on stdout by the same byte:
//   l  begin an exclusive transaction and insert a row
//   c  commit it
//   f  insert kFightInserts rows, each in a transaction of its own
// It ends when stdin does.

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include "base/result.h"
#include "db/sqlite/connection.h"
#include "testing/lock_holder.h"

namespace interlock {
namespace {

constexpr db::Sql kInsert = "INSERT INTO note (text) VALUES (?1)";

Result<void> Lock(sqlite::Connection& connection) {
  IL_TRY_VOID(connection.BeginExclusive());
  IL_TRY_VOID(connection.Run(kInsert, "from another process"));
  return {};
}

Result<void> Obey(sqlite::Connection& connection, char command) {
  switch (command) {
    case 'l':
      return Lock(connection);
    case 'c':
      return connection.Commit();
    case 'f':
      for (int i = 0; i < testing::kFightInserts; ++i) {
        IL_TRY_VOID(Lock(connection));
        IL_TRY_VOID(connection.Commit());
      }
      return {};
    default:
      return Error(Errc::kUsage, std::string("unknown command ") + command);
  }
}

Result<void> Serve(const char* path) {
  // It waits for its lock as long as a test may take, so that every 'f' ends well.
  IL_TRY(const std::unique_ptr<sqlite::Connection> connection,
         sqlite::Connection::Open({.path = path,
                                   .access = sqlite::Access::kReadWrite,
                                   .durability = sqlite::Durability::kFast,
                                   .busy_timeout = std::chrono::minutes(1),
                                   .vfs = {}}));
  char command = 0;
  while (read(STDIN_FILENO, &command, 1) == 1) {
    IL_TRY_VOID(Obey(*connection, command));
    if (write(STDOUT_FILENO, &command, 1) != 1) break;
  }
  return {};
}

}  // namespace
}  // namespace interlock

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: lock_holder DATABASE\n";
    return 3;
  }
  const interlock::Result<void> result = interlock::Serve(argv[1]);
  if (result.ok()) return 0;
  std::cerr << "lock_holder: " << result.error() << "\n";
  return 2;
}
