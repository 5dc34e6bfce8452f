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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
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

// The reads of a database, which a test can hold back. Thread-safe; a read that is held counts as
// one that has not begun.
class HeldReads final : public db::Database {
 public:
  explicit HeldReads(db::Database& database) : database_(database) {}

  // Lets so many pass from now on and holds the others.
  void HoldAfter(int count) IL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    passing_ = count;
  }
  // Lets all pass, and those that are held.
  void Release() IL_EXCLUDES(mutex_) {
    std::map<Ticket, Held> held;
    {
      const MutexLock lock(mutex_);
      passing_ = std::nullopt;
      held.swap(held_);
    }
    for (auto& [ticket, read] : held) {
      EXPECT_TRUE(database_.Read(std::move(read.fn), std::move(read.done)).ok());
    }
  }
  std::size_t held() IL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return held_.size();
  }

  Result<Ticket> Read(ReadFn fn, Done done) override IL_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (passing_ && (*passing_)-- <= 0) {
        held_[++last_] = {std::move(fn), std::move(done)};
        return last_;
      }
    }
    return database_.Read(std::move(fn), std::move(done));
  }
  Result<Ticket> Write(WriteFn fn, Done done) override {
    return database_.Write(std::move(fn), std::move(done));
  }
  bool Cancel(Ticket ticket) override IL_EXCLUDES(mutex_) {
    Held read;
    {
      const MutexLock lock(mutex_);
      const auto found = held_.find(ticket);
      if (found != held_.end()) {
        read = std::move(found->second);
        held_.erase(found);
      }
    }
    if (!read.done) return database_.Cancel(ticket);
    read.done(Error(Errc::kCancelled, "cancelled"));
    return true;
  }
  Result<void> Close() override { return database_.Close(); }

 private:
  struct Held {
    ReadFn fn;
    Done done;
  };

  db::Database& database_;
  Mutex mutex_;
  std::optional<int> passing_ IL_GUARDED_BY(mutex_);  // nothing = all
  std::map<Ticket, Held> held_ IL_GUARDED_BY(mutex_);
  Ticket last_ IL_GUARDED_BY(mutex_) = Ticket{1} << 62;  // none of the database's own
};

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
    database_ = sqlite::Database::Open(
                    {.path = temp_.path(),
                     .durability = durability_,
                     .on_committed = [this](db::Connection* own) { commits_.Notify(own); },
                     .vfs = vfs},
                    clock_)
                    .value();
    reads_ = std::make_unique<HeldReads>(*database_);
    storage_ = std::make_unique<Storage>(*reads_, clock_);
    feed_ = std::make_unique<Feed>(*storage_, commits_, clock_, log_, options);
    feed_->Start(newest);
    threads_.reserve(2);
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { io_.run(); });
  }

  void Shutdown() {
    if (feed_ == nullptr) return;
    feed_->Stop();
    storage_->Stop();
    reads_->Release();
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
  std::unique_ptr<HeldReads> reads_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Feed> feed_;
  std::vector<std::thread> threads_;
};

}  // namespace interlock::service
