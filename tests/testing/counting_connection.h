#pragma once

#include <cstdint>
#include <span>

#include "db/connection.h"

namespace interlock::testing {

// Counts the statements that reach the database.
class CountingConnection final : public db::Connection {
 public:
  explicit CountingConnection(db::Connection& inner) : inner_(inner) {}
  Result<std::int64_t> Execute(const db::Sql& sql, std::span<const db::Value> values,
                               const OnRow& on_row) override {
    ++count;
    return inner_.Execute(sql, values, on_row);
  }
  std::int64_t last_inserted() const override { return inner_.last_inserted(); }
  int count = 0;

 private:
  db::Connection& inner_;
};

}  // namespace interlock::testing
