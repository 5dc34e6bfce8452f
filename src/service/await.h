#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "service/storage.h"

namespace interlock::service {

// The one bridge from storage, which answers by calling back on its own threads, to coroutines:
//
//   auto agent = co_await Await<Agent>([&](Storage::DoneWith<Agent> done) {
//     return storage.Read<Agent>(FindAgent{id}, std::move(done));
//   });
//
// The coroutine resumes on its own executor, never on a storage thread. Cancelling it (the client
// went away, the server stops) cancels the call: one that has not begun ends with kCancelled, one
// that is running tells its own result. A callback that is dropped uncalled, or a start that
// throws, becomes kInternal instead of a coroutine that waits for ever.
//
// REQUIRES: the coroutine runs on a strand, and its cancellation is emitted there. The storage is
// closed before the execution context is destroyed; pending calls keep the context running.
// Start: Call(Storage::DoneWith<T>), where a Call has Cancel(), as Storage::Call does.
template <typename T, typename Start>
boost::asio::awaitable<Result<T>> Await(Start start);

// The same for one function on the database, which is most of what use cases do.
template <typename T>
boost::asio::awaitable<Result<T>> AwaitRead(Storage& storage,
                                            std::function<Result<T>(db::Connection&)> fn);
template <typename T>
boost::asio::awaitable<Result<T>> AwaitWrite(Storage& storage,
                                             std::function<Result<T>(db::Transaction&)> fn);

// What a function that is no coroutine returns when it refuses at once. One that takes a large
// argument apart first is better none: the argument need not be moved into a frame.
template <typename T>
boost::asio::awaitable<Result<T>> Refused(Error error) {
  co_return error;
}

namespace internal {

// The bridge itself, compiled once; a value travels beside it. `start` returns how to cancel.
using Cancel = std::move_only_function<void()>;
boost::asio::awaitable<Result<void>> AwaitDone(
    std::move_only_function<Cancel(Storage::Done)> start);

template <typename Call>
Cancel CancelOf(Call call) {
  return [call = std::move(call)]() mutable { call.Cancel(); };
}

}  // namespace internal

template <typename T, typename Start>
boost::asio::awaitable<Result<T>> Await(Start start) {
  if constexpr (std::is_void_v<T>) {
    auto begin = [&start](Storage::Done done) {
      return internal::CancelOf(std::move(start)(std::move(done)));
    };
    co_return co_await internal::AwaitDone(begin);
  } else {
    auto value = std::make_shared<std::optional<T>>();
    auto begin = [&start, &value](Storage::Done done) {
      auto tell = [value, done = std::move(done)](Result<T> result) mutable {
        if (!result.ok()) return done(std::move(result).error());
        value->emplace(*std::move(result));
        done({});
      };
      return internal::CancelOf(std::move(start)(std::move(tell)));
    };
    IL_CO_TRY_VOID(co_await internal::AwaitDone(begin));
    co_return **std::move(value);
  }
}

template <typename T>
boost::asio::awaitable<Result<T>> AwaitRead(Storage& storage,
                                            std::function<Result<T>(db::Connection&)> fn) {
  auto carrier = std::make_shared<internal::Carrier<T, db::Connection>>(std::move(fn));
  auto start = [&storage, &carrier](Storage::Done done) {
    return internal::CancelOf(
        storage.Read([carrier](db::Connection& connection) { return carrier->Run(connection); },
                     std::move(done)));
  };
  IL_CO_TRY_VOID(co_await internal::AwaitDone(start));
  co_return *std::move(carrier->value);
}

template <typename T>
boost::asio::awaitable<Result<T>> AwaitWrite(Storage& storage,
                                             std::function<Result<T>(db::Transaction&)> fn) {
  auto carrier = std::make_shared<internal::Carrier<T, db::Transaction>>(std::move(fn));
  auto start = [&storage, &carrier](Storage::Done done) {
    return internal::CancelOf(storage.Write(
        [carrier](db::Transaction& tx) { return carrier->Run(tx); }, std::move(done)));
  };
  IL_CO_TRY_VOID(co_await internal::AwaitDone(start));
  co_return *std::move(carrier->value);
}

}  // namespace interlock::service
