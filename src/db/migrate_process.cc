// migrate_process <database> <version> [<point>]: migrates the file to that version of the test
// schema once standard input ends, and prints "<from> <to> <backup>" or "error <text>". With a
// point (begin, backup, script, version, commit) it prints "at" after reaching it and waits there
// to be killed.

#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "db/migrate.h"
#include "db/migrate_test_schema.h"
#include "db/sqlite/connection.h"

namespace interlock::db {
namespace {

// Passes everything on, and stops for ever behind one of the calls.
class Stopping final : public Migratable {
 public:
  Stopping(sqlite::Connection& inner, std::string_view point) : inner_(inner), point_(point) {}

  Connection& connection() override { return inner_; }
  Result<void> BeginExclusive() override { return Then("begin", inner_.BeginExclusive()); }
  Result<void> Commit() override { return Then("commit", inner_.Commit()); }
  bool in_transaction() const override { return inner_.in_transaction(); }
  void Rollback() override { inner_.Rollback(); }
  Result<int> SchemaVersion() override { return inner_.SchemaVersion(); }
  Result<void> SetSchemaVersion(std::string_view program, int version) override {
    return Then("version", inner_.SetSchemaVersion(program, version));
  }
  Result<void> RunScript(std::string_view script) override {
    return Then("script", inner_.RunScript(script));
  }
  Result<bool> IsForeign(std::string_view program) override { return inner_.IsForeign(program); }
  Result<void> BackUpTo(const std::filesystem::path& target) override {
    return Then("backup", inner_.BackUpTo(target));
  }

 private:
  Result<void> Then(std::string_view point, Result<void> result) const {
    if (point == point_) {
      std::puts("at");
      std::fflush(stdout);
      while (true) ::pause();
    }
    return result;
  }

  sqlite::Connection& inner_;
  std::string_view point_;
};

int Main(const std::string& path, int version, std::string_view point) {
  while (std::getchar() != EOF) continue;
  sqlite::OpenOptions options;
  options.path = path;
  options.access = sqlite::Access::kReadWriteOrCreate;
  options.busy_timeout = std::chrono::seconds(60);  // a crowd of migrators waits for the first
  auto connection = sqlite::Connection::Open(options);
  if (!connection) {
    std::printf("error %s\n", connection.error().message().c_str());
    return 1;
  }
  Stopping target(**connection, point);
  SystemClock clock;
  const auto outcome = Migrator(TestSchemaUpTo(version), {.database = path}, clock).Run(target);
  if (!outcome) {
    std::printf("error %s\n", outcome.error().message().c_str());
    return 1;
  }
  std::printf("%d %d %s\n", outcome->from, outcome->to, outcome->backup.c_str());
  return 0;
}

}  // namespace
}  // namespace interlock::db

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return interlock::db::Main(argv[1], std::stoi(argv[2]), argc > 3 ? argv[3] : "");
}
