#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "base/result.h"
#include "db/connection.h"
#include "db/migrate.h"
#include "store/schema.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::store {

// A test of the server's SQL on a real file with the newest schema.
class StoreTest : public ::testing::Test {
 protected:
  StoreTest() : connection_(temp_.Open()) {
    EXPECT_TRUE(
        db::Migrator(ServerSchema(), {.database = temp_.path()}, clock_).Run(*connection_).ok());
  }

  // Runs `fn` in a transaction of its own, which stays only when `fn` succeeds.
  template <typename T>
  Result<T> Write(const std::function<Result<T>(db::Transaction&)>& fn) {
    IL_TRY_VOID(connection_->BeginExclusive());
    db::Transaction tx(*connection_);
    Result<T> result = fn(tx);
    if (result.ok()) {
      IL_TRY_VOID(connection_->Commit());
    } else {
      connection_->Rollback();
    }
    return result;
  }

  db::Connection& connection() { return *connection_; }

  testing::TempDb temp_;
  testing::FakeClock clock_;
  std::unique_ptr<sqlite::Connection> connection_;
};

}  // namespace interlock::store
