#include "db/wait.h"

#include <future>
#include <memory>
#include <utility>

namespace interlock::db {
namespace {

// `submit` receives the Done to hand over, and returns what the database answered at once.
template <typename Submit>
Result<void> SubmitAndWait(Submit submit) {
  // Shared: the storage thread may still be inside set_value() when we have the result.
  const auto promise = std::make_shared<std::promise<Result<void>>>();
  std::future<Result<void>> answer = promise->get_future();
  IL_TRY_VOID(submit([promise](Result<void> result) { promise->set_value(std::move(result)); }));
  return answer.get();
}

}  // namespace

Result<void> ReadAndWait(Database& database, Database::ReadFn fn) {
  return SubmitAndWait(
      [&](Database::Done done) { return database.Read(std::move(fn), std::move(done)); });
}

Result<void> WriteAndWait(Database& database, Database::WriteFn fn) {
  return SubmitAndWait(
      [&](Database::Done done) { return database.Write(std::move(fn), std::move(done)); });
}

}  // namespace interlock::db
