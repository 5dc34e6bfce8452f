#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "domain/mailbox.h"
#include "store/store_fixture.h"
#include "testing/mail_rows.h"

namespace interlock::store {

// A sink that keeps everything, as values.
class KeepingSink final : public domain::MessageSink {
 public:
  struct Kept {
    domain::Cursor cursor;
    std::string id;
    std::string to, cc, bcc;
    std::string body;
    std::optional<domain::AddressKind> kind;
    std::optional<Timestamp> read_at;
  };

  explicit KeepingSink(std::size_t enough = std::numeric_limits<std::size_t>::max())
      : enough_(enough) {}

  void Restart() override { kept_.clear(); }
  domain::Flow Add(const domain::MessageView& message) override {
    kept_.push_back({message.cursor, std::string(message.id), std::string(message.to),
                     std::string(message.cc), std::string(message.bcc), std::string(message.body),
                     message.kind, message.read_at});
    return kept_.size() < enough_ ? domain::Flow::kGoOn : domain::Flow::kEnough;
  }

  const std::vector<Kept>& kept() const { return kept_; }
  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    ids.reserve(kept_.size());
    for (const Kept& kept : kept_) ids.push_back(kept.id);
    return ids;
  }

 private:
  const std::size_t enough_;
  std::vector<Kept> kept_;
};

// A test of reading mail.
class MailboxTest : public StoreTest {
 protected:
  // "m1", "m2", … in project p from s to a, unless the test says otherwise.
  domain::Cursor Send(domain::Message message) {
    const domain::Message whole = testing::Filled(std::move(message), ++sent_, clock_.Now());
    const auto cursor = Write<domain::Cursor>(
        [&](db::Transaction& tx) { return testing::InsertMessage(tx, whole); });
    EXPECT_TRUE(cursor.ok()) << cursor.error();
    return cursor.ok() ? *cursor : 0;
  }
  domain::Cursor Send() { return Send({.project = "p"}); }

  std::int64_t Number(const db::Sql& sql) {
    const auto number = connection().One(sql, [](const db::Row& row) { return row.Int(0); });
    EXPECT_TRUE(number.ok()) << number.error();
    return number.ok() ? number->value_or(-1) : -1;
  }

  int sent_ = 0;
};

}  // namespace interlock::store
