#include "db/sqlite/statement.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <new>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "db/sqlite/errors.h"

namespace interlock::sqlite {
namespace {

// Enough to recognise a statement in an error message.
constexpr std::size_t kTextShownMax = 120;

std::string Running(std::string_view text) {
  return fmt::format("running {}{}", text.substr(0, kTextShownMax),
                     text.size() > kTextShownMax ? "…" : "");
}

// Somebody else wrote it: SQLite lets a column hold anything. Never leaves Statement::Run().
struct WrongType {
  int column;
  std::string_view wanted;
};

class StatementRow final : public db::Row {
 public:
  explicit StatementRow(sqlite3_stmt* statement)
      : statement_(statement), columns_(sqlite3_column_count(statement)) {}

  bool IsNull(int column) const override { return Type(column) == SQLITE_NULL; }

  std::int64_t Int(int column) const override {
    sqlite3_value* value = Column(column);
    const int type = sqlite3_value_type(value);
    if (type != SQLITE_INTEGER && type != SQLITE_NULL) throw WrongType{column, "an integer"};
    return sqlite3_value_int64(value);
  }

  double Double(int column) const override {
    const int type = Type(column);
    if (type != SQLITE_FLOAT && type != SQLITE_INTEGER && type != SQLITE_NULL) {
      throw WrongType{column, "a number"};
    }
    return sqlite3_column_double(statement_, column);
  }

  std::string_view Text(int column) const override {
    sqlite3_value* value = Column(column);
    const int type = sqlite3_value_type(value);
    if (type != SQLITE_TEXT && type != SQLITE_NULL) throw WrongType{column, "text"};
    if (type == SQLITE_NULL) return {};
    const unsigned char* text = sqlite3_value_text(value);
    if (text == nullptr) throw std::bad_alloc();
    const int size = sqlite3_value_bytes(value);
    return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};
  }

  db::Blob Bytes(int column) const override {
    const int type = Type(column);
    if (type != SQLITE_BLOB && type != SQLITE_NULL) throw WrongType{column, "a blob"};
    const void* bytes = sqlite3_column_blob(statement_, column);  // null when empty
    const int size = sqlite3_column_bytes(statement_, column);
    return {static_cast<const std::byte*>(bytes), static_cast<std::size_t>(size)};
  }

 private:
  // One look-up for type, content and size. SQLite calls this value unprotected, which it is
  // against other threads on the same connection; ours have one each and no mutex.
  sqlite3_value* Column(int column) const {
    IL_CHECK(column >= 0 && column < columns_, "the row has no such column");
    return sqlite3_column_value(statement_, column);
  }
  int Type(int column) const { return sqlite3_value_type(Column(column)); }

  sqlite3_stmt* statement_;
  int columns_;
};

int BindOne(sqlite3_stmt* statement, int index, const db::Value& value) {
  struct Visitor {
    sqlite3_stmt* statement;
    int index;
    int operator()(db::Null) const { return sqlite3_bind_null(statement, index); }
    int operator()(std::int64_t v) const { return sqlite3_bind_int64(statement, index, v); }
    int operator()(double v) const { return sqlite3_bind_double(statement, index, v); }
    int operator()(std::string_view v) const {  // a null pointer would bind NULL
      return sqlite3_bind_text64(statement, index, v.data() == nullptr ? "" : v.data(), v.size(),
                                 SQLITE_STATIC, SQLITE_UTF8);
    }
    int operator()(db::Blob v) const {
      const void* bytes = v.data() == nullptr ? static_cast<const void*>("") : v.data();
      return sqlite3_bind_blob64(statement, index, bytes, v.size(), SQLITE_STATIC);
    }
  };
  return std::visit(Visitor{statement, index}, value);
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);  // repeats the last failure of the statement, told already
}

Statement::Statement(sqlite3* db, std::string_view text, sqlite3_stmt* statement)
    : db_(db), text_(text), statement_(statement) {}

Result<Statement> Statement::Prepare(sqlite3* db, std::string_view text) {
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v3(db, text.data(), static_cast<int>(text.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, &tail);
  if (code != SQLITE_OK) return ErrorFrom(code, db, Running(text));
  Statement prepared(db, text, statement);
  IL_CHECK(statement != nullptr, "the text holds no statement");
  const std::string_view rest = text.substr(static_cast<std::size_t>(tail - text.data()));
  IL_CHECK(rest.find_first_not_of(" \t\r\n;") == std::string_view::npos,
           "the text holds more than one statement");
  return prepared;
}

Result<std::int64_t> Statement::Run(std::span<const db::Value> values,
                                    const db::Connection::OnRow& on_row) {
  IL_CHECK(!running_, "a statement was run from its own row callback");
  struct Guard {
    Statement& statement;
    explicit Guard(Statement& s) : statement(s) { statement.running_ = true; }
    ~Guard() {
      sqlite3_reset(statement.statement_.get());
      sqlite3_clear_bindings(statement.statement_.get());
      statement.running_ = false;
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
  };

  const Guard guard(*this);
  IL_TRY_VOID(BindAll(values));
  const std::int64_t total = sqlite3_total_changes64(db_);
  IL_TRY_VOID(StepAll(on_row));
  // sqlite3_changes speaks of the last INSERT, UPDATE or DELETE, which this need not have been.
  return sqlite3_total_changes64(db_) == total ? 0 : sqlite3_changes64(db_);
}

Result<void> Statement::BindAll(std::span<const db::Value> values) {
  IL_CHECK(std::cmp_equal(values.size(), sqlite3_bind_parameter_count(statement_.get())),
           "the statement has another number of parameters");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int code = BindOne(statement_.get(), static_cast<int>(i) + 1, values[i]);
    if (code != SQLITE_OK) return Failure(code);
  }
  return {};
}

Result<void> Statement::StepAll(const db::Connection::OnRow& on_row) {
  while (true) {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return Failure(code);
    if (!on_row) continue;
    try {
      IL_TRY_VOID(on_row(StatementRow(statement_.get())));
    } catch (const WrongType& wrong) {
      return Error(Errc::kCorrupt,
                   fmt::format("{}: column {} of a row is not {}, so another program wrote it",
                               Running(sqlite3_sql(statement_.get())), wrong.column, wrong.wanted));
    }
  }
}

Error Statement::Failure(int code) const { return ErrorFrom(code, db_, Running(text_)); }

}  // namespace interlock::sqlite
