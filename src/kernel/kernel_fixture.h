#pragma once

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>

#include "db/connection.h"
#include "kernel/database.h"
#include "kernel/schema.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::kernel {

// A test of the kernel's SQL on a real file with the newest schema. One thread.
class KernelTest : public ::testing::Test {
 protected:
  KernelTest() : database_(Made()) {}

  // Runs `fn` in a transaction of its own, which stays only when `fn` succeeds.
  template <typename Fn>
  std::invoke_result_t<Fn&, Transaction&> Write(Fn&& fn) {
    return database_.Write(std::forward<Fn>(fn));
  }

  // Runs `fn` on one state of the file.
  template <typename Fn>
  std::invoke_result_t<Fn&, db::Connection&> Read(Fn&& fn) {
    return database_.Read(std::forward<Fn>(fn));
  }

  // As somebody with the sqlite3 program would.
  void Sql(const std::string& script) {
    const auto result = database_.sqlite().RunScript(script);
    ASSERT_TRUE(result.ok()) << result.error();
  }

  db::Connection& connection() { return database_.sqlite(); }

  testing::FakeClock clock_;
  testing::TempDb temp_;

 private:
  Database Made() {
    const Database::Options options = {.path = temp_.path()};
    EXPECT_TRUE(Database::Init(options, KernelSchema(), clock_).ok());
    return Database::Open(options, Database::OpenMode::kWrite, KernelSchema(), clock_).value();
  }

  Database database_;
};

}  // namespace interlock::kernel
