#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/sqlite/group_writer.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {

inline constexpr db::Sql kInsertRow = "INSERT INTO t(a) VALUES (?1)";

// A write that inserts one row.
inline GroupWriter::Write Insert(std::int64_t value) {
  return [value](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kInsertRow, value));
    return {};
  };
}

// For tests of this folder: a GroupWriter stepped by hand on a file with one table t(a), and the
// answers of its writes in the order they came.
class WriterTest : public ::testing::Test {
 protected:
  struct Answer {
    std::string name;
    Result<void> result;
  };

  WriterTest() { temp_.Make("CREATE TABLE t(a UNIQUE)"); }

  void MakeWriter(GroupWriter::Options options = {}) {
    options.drive = Drive::kByHand;
    writer_ = std::make_unique<GroupWriter>(
        OpenWriter(), [this] { return reopen_(); }, std::move(options), clock_);
  }

  std::unique_ptr<Connection> OpenWriter() const {
    OpenOptions options = temp_.options();
    options.durability = durability_;
    return Connection::Open(options).value();
  }

  GroupWriter::Ticket Submit(const std::string& name, GroupWriter::Write write) {
    return writer_
        ->Submit(
            std::move(write),
            [this, name](Result<void> result) { answers_.push_back({name, std::move(result)}); })
        .value();
  }

  // "a:ok b:conflict", by slug.
  std::string Answers() {
    std::string all;
    for (const Answer& answer : std::exchange(answers_, {})) {
      if (!all.empty()) all += ' ';
      all += answer.name + ':';
      all += answer.result.ok() ? "ok" : answer.result.error().slug();
    }
    return all;
  }

  // What is committed, as another connection sees it: "1 2 3", in the order of insertion.
  std::string Rows() const {
    std::string all;
    const auto read = temp_.Open(Access::kReadOnly)
                          ->ForEach("SELECT a FROM t ORDER BY rowid", [&](const db::Row& row) {
                            if (!all.empty()) all += ' ';
                            all += std::to_string(row.Int(0));
                          });
    EXPECT_TRUE(read.ok());
    return all;
  }

  testing::TempDb temp_;
  testing::FakeClock clock_;
  Durability durability_ = Durability::kFull;
  GroupWriter::Reopen reopen_ = [this] {
    return Connection::Open(temp_.options(Access::kReadWrite));
  };
  std::vector<Answer> answers_;
  std::unique_ptr<GroupWriter> writer_;
};

}  // namespace interlock::sqlite
