#include "db/sqlite/json_valid.h"

#include <sqlite3.h>

namespace interlock::sqlite {
namespace {

// Asks SQLite's own json_valid() on an empty database in memory, which is opened at the first call.
// Belongs to one connection, and is used by its thread.
class Judge {
 public:
  Judge() = default;
  ~Judge() {
    sqlite3_finalize(question_);
    sqlite3_close(memory_);
  }
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  static void Answer(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
    auto& self = *static_cast<Judge*>(sqlite3_user_data(context));
    if (const int code = self.Prepare(); code != SQLITE_OK) {
      return sqlite3_result_error_code(context, code);
    }
    int code = sqlite3_bind_value(self.question_, 1, values[0]);
    if (code == SQLITE_OK) code = sqlite3_step(self.question_);
    if (code == SQLITE_ROW) {
      sqlite3_result_value(context, sqlite3_column_value(self.question_, 0));
    } else {
      sqlite3_result_error(context, sqlite3_errmsg(self.memory_), -1);
      sqlite3_result_error_code(context, code);
    }
    sqlite3_reset(self.question_);
    sqlite3_clear_bindings(self.question_);
  }

  static void Delete(void* judge) { delete static_cast<Judge*>(judge); }

 private:
  int Prepare() {
    if (question_ != nullptr) return SQLITE_OK;
    if (memory_ == nullptr) {
      const int code = sqlite3_open_v2(":memory:", &memory_,
                                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
      if (code != SQLITE_OK) {
        sqlite3_close(memory_);
        memory_ = nullptr;
        return code;
      }
    }
    return sqlite3_prepare_v3(memory_, "SELECT json_valid(?1)", -1, SQLITE_PREPARE_PERSISTENT,
                              &question_, nullptr);
  }

  sqlite3* memory_ = nullptr;
  sqlite3_stmt* question_ = nullptr;
};

}  // namespace

int AllowJsonValid(sqlite3* db) {
  return sqlite3_create_function_v2(db, "json_valid", 1,
                                    SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                    new Judge, Judge::Answer, nullptr, nullptr, Judge::Delete);
}

}  // namespace interlock::sqlite
