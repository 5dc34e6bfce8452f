#pragma once

#include <gtest/gtest.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <charconv>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "service/commit_signal.h"
#include "service/feed.h"
#include "service/storage.h"
#include "store/events.h"
#include "store/schema.h"
#include "testing/captured_log.h"
#include "testing/temp_db.h"

namespace interlock::service {

// For tests of the feed: a real database with the server's schema, a feed on it, and two I/O
// threads for those who follow.
class FeedTest : public ::testing::Test {
 public:
  ~FeedTest() override { Shutdown(); }

 protected:
  // Opens what is there, at the given place of SQLite's file system, and starts.
  void Open(Feed::Options options = {}, const std::string& vfs = {}) {
    domain::Cursor newest = 0;
    {
      sqlite::OpenOptions opening = temp_.options();
      opening.vfs = vfs;
      const auto connection = sqlite::Connection::Open(opening).value();
      ASSERT_TRUE(db::Migrator(store::ServerSchema(), {.database = temp_.path()}, clock_)
                      .Run(*connection)
                      .ok());
      newest = store::NewestCursor(*connection).value();
    }
    database_ = sqlite::Database::Open({.path = temp_.path(),
                                        .durability = durability_,
                                        .on_committed = [this] { commits_.Notify(); },
                                        .vfs = vfs},
                                       clock_)
                    .value();
    storage_ = std::make_unique<Storage>(*database_, clock_);
    feed_ = std::make_unique<Feed>(*storage_, commits_, clock_, log_, options);
    feed_->Start(newest);
    threads_.reserve(2);
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { io_.run(); });
  }

  void Shutdown() {
    if (feed_ == nullptr) return;
    feed_->Stop();
    storage_->Stop();
    (void)database_->Close();
    work_.reset();
    for (std::thread& thread : threads_) thread.join();
    feed_.reset();
  }

  // Ready for another Open().
  void Reset() {
    Shutdown();
    threads_.clear();
    io_.restart();
    work_.emplace(io_.get_executor());
  }

  // The cursor of one more event.
  Result<domain::Cursor> Append(const std::string& project, const std::string& type = "t") {
    auto told = std::make_shared<std::promise<Result<domain::Cursor>>>();
    storage_->Write<domain::Cursor>(
        [project, type](db::Transaction& tx) {
          return store::AppendEvent(tx, {.type = type, .project = project, .entity_id = "e"});
        },
        [told](Result<domain::Cursor> result) { told->set_value(std::move(result)); });
    return told->get_future().get();
  }
  void AppendMany(int count, const std::string& project) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(Append(project).ok());
  }
  Result<void> Write(Storage::WriteFn fn) {
    auto told = std::make_shared<std::promise<Result<void>>>();
    storage_->Write(std::move(fn), [told](Result<void> r) { told->set_value(std::move(r)); });
    return told->get_future().get();
  }

  // A coroutine, begun on `executor`.
  template <typename T>
  static std::future<T> Spawn(const boost::asio::any_io_executor& executor,
                              boost::asio::awaitable<T> body) {
    auto told = std::make_shared<std::promise<T>>();
    boost::asio::co_spawn(executor, Tell(std::move(body), told), boost::asio::detached);
    return told->get_future();
  }
  template <typename T>
  static boost::asio::awaitable<void> Tell(boost::asio::awaitable<T> body,
                                           std::shared_ptr<std::promise<T>> told) {
    try {
      told->set_value(co_await std::move(body));
    } catch (...) {
      told->set_exception(std::current_exception());
    }
  }
  // A coroutine, run on a strand of its own; the test waits for its value.
  template <typename T>
  T Run(boost::asio::awaitable<T> body) {
    return Spawn(boost::asio::make_strand(io_), std::move(body)).get();
  }
  std::unique_ptr<Follower> Follow(FollowRequest request) {
    return Run(feed_->Follow(std::move(request))).value();
  }

  static domain::Cursor CursorOf(const Frame& frame) {
    domain::Cursor cursor = 0;
    const std::string_view text = std::string_view(*frame).substr(10);  // {"cursor":
    std::from_chars(text.data(), text.data() + text.size(), cursor);
    return cursor;
  }
  // The cursors of the next frames, until there are `count`. Fewer: it came to an end.
  std::vector<domain::Cursor> Take(Follower& follower, std::size_t count) {
    std::vector<domain::Cursor> cursors;
    while (cursors.size() < count) {
      const auto frames = Run(follower.Next());
      if (!frames.ok()) break;
      for (const Frame& frame : *frames) cursors.push_back(CursorOf(frame));
    }
    return cursors;
  }

  // The cursors of the next frames, up to one that is not before `last`.
  std::vector<domain::Cursor> TakeThrough(Follower& follower, domain::Cursor last) {
    std::vector<domain::Cursor> cursors;
    while (cursors.empty() || cursors.back() < last) {
      const std::vector<domain::Cursor> more = Take(follower, 1);
      if (more.empty()) break;
      cursors.insert(cursors.end(), more.begin(), more.end());
    }
    return cursors;
  }

  testing::TempDb temp_;
  SystemClock clock_;
  testing::CapturedLog lines_;
  Logger log_{clock_, lines_};
  CommitSignal commits_;
  boost::asio::io_context io_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_{
      io_.get_executor()};
  sqlite::Durability durability_ = sqlite::Durability::kFull;
  std::unique_ptr<sqlite::Database> database_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Feed> feed_;
  std::vector<std::thread> threads_;
};

}  // namespace interlock::service
