#include "server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include "api/app_fixture.h"
#include "api/dispatch.h"
#include "api/route_table.h"
#include "api/routes.h"
#include "base/check.h"
#include "base/unique_fd.h"
#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "http/session.h"
#include "store/events.h"
#include "store/schema.h"
#include "testing/captured_log.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::fuzz {
namespace {

namespace asio = boost::asio;

// Reads go through; writes run and are undone.
class UndoingDatabase final : public db::Database {
 public:
  explicit UndoingDatabase(sqlite::Database& real) : real_(real) {}

  Result<Ticket> Read(ReadFn fn, Done done) override {
    return real_.Read(std::move(fn), std::move(done));
  }
  Result<Ticket> Write(WriteFn fn, Done done) override {
    return real_.Write(
        [fn = std::move(fn)](db::Transaction& tx) -> Result<void> {
          IL_TRY_VOID(fn(tx));
          return Error(Errc::kConflict, "Nothing is ever stored here.");
        },
        std::move(done));
  }
  bool Cancel(Ticket ticket) override { return real_.Cancel(ticket); }
  Result<void> Close() override { return real_.Close(); }

 private:
  sqlite::Database& real_;
};

// On a disk in memory where there is one: a write that is undone still costs the file a lock.
std::unique_ptr<sqlite::Database> Open(const testing::TempDb& file, Clock& clock) {
  const auto connection = file.Open();
  db::Migrator migrator(store::ServerSchema(), {.database = file.path()}, clock);
  IL_CHECK(migrator.Run(*connection).ok());
  sqlite::DatabaseOptions options;
  options.path = file.path();
  options.drive = sqlite::Drive::kByHand;
  options.readers = 1;
  return sqlite::Database::Open(options, clock).value();
}

}  // namespace

class FuzzServer::Impl {
 public:
  Impl() {
    Fill();
    services_.feed.Stop();
  }

  ~Impl() {
    feed_.Stop();
    services_.storage.Stop();
    IL_CHECK(database_->Close().ok());
  }

  std::string Converse(std::string_view bytes) {
    std::array<int, 2> ends{};
    IL_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) ==
             0);
    const UniqueFd client(ends[0]);
    const auto sent = ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    IL_CHECK(bytes.empty() || sent == std::ssize(bytes), "it fits no socket");
    Begin(ends[1]);
    std::string heard;
    bool said_all = false;
    int rounds = 0;
    while (session_ != nullptr) {
      io_.restart();
      const bool moved = io_.poll() > 0 || database_->StepWriter() || database_->StepReader();
      const bool read = ReadSome(client.get(), heard);
      if (moved || read) continue;
      // Who hangs up while a request waits is not answered, so that comes last.
      if (!std::exchange(said_all, true)) {
        ::shutdown(client.get(), SHUT_WR);
        continue;
      }
      // What the system has to say comes at once, and no timer of ours is that short.
      IL_CHECK(++rounds < 500, "the session waits for something that nobody does");
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(10));
    }
    while (ReadSome(client.get(), heard)) {
    }
    IL_CHECK(unsent_ == 0 && feed_.stats().followers == 0, "something was left behind");
    IL_CHECK(captured_.text().empty(), captured_.text());
    return heard;
  }

 private:
  void Fill() {
    bool stored = false;
    const auto accepted = database_->Write(
        [](db::Transaction& tx) -> Result<void> {
          for (int i = 0; i < kEvents; ++i) {
            IL_TRY_VOID(store::AppendEvent(
                tx, {.type = "t", .project = "p", .entity_id = "e", .data = R"({"a":"b"})"}));
          }
          return {};
        },
        [&stored](Result<void> done) { stored = done.ok(); });
    IL_CHECK(accepted.ok());
    while (database_->StepWriter()) {
    }
    IL_CHECK(stored);
    feed_.Start(kEvents);
  }

  void Begin(int fd) {
    http::Socket socket(asio::make_strand(io_));
    socket.assign(asio::generic::stream_protocol(AF_UNIX, 0), fd);
    http::Peer peer{.kind = http::Peer::Kind::kUnix, .address = ""};
    session_ = std::make_shared<http::Session>(std::move(socket), std::move(peer), context_);
    asio::co_spawn(session_->executor(), session_->Run(),
                   asio::bind_cancellation_slot(session_->cancellation_slot(),
                                                [this](const std::exception_ptr& thrown) {
                                                  IL_CHECK(thrown == nullptr);
                                                  session_.reset();
                                                }));
  }

  static bool ReadSome(int fd, std::string& heard) {
    std::array<char, 16384> chunk;
    const auto size = ::recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (size <= 0) return false;
    heard.append(chunk.data(), static_cast<std::size_t>(size));
    return true;
  }

  testing::FakeClock clock_;
  testing::CapturedLog captured_;
  Logger log_{clock_, captured_, {.level_min = LogLevel::kError}};
  testing::TempDb file_;
  std::unique_ptr<sqlite::Database> database_ = Open(file_, clock_);
  UndoingDatabase undoing_{*database_};
  api::TestServices services_{undoing_, clock_};
  service::CommitSignal commits_;
  service::Feed feed_{services_.storage, commits_, clock_, log_, {.types_max = 4}};
  api::App app_ = services_.MakeApp(log_, services_.health, feed_);
  const api::RouteTable table_{api::Routes()};
  api::Dispatcher dispatcher_{table_, app_};
  const Limits limits_ = SmallLimits();
  std::atomic<std::size_t> unsent_{0};
  http::SessionContext context_{.handler = dispatcher_,
                                .log = log_,
                                .events = services_.events,
                                .clock = clock_,
                                .limits = limits_,
                                .unsent_bytes = unsent_};
  asio::io_context io_;
  std::shared_ptr<http::Session> session_;  // the one under way
};

Limits FuzzServer::SmallLimits() {
  Limits limits;
  limits.header_bytes_max = 1024;
  limits.body_bytes_max = 2048;
  limits.ws_message_bytes_max = 300;
  return limits;
}

FuzzServer::FuzzServer() : impl_(std::make_unique<Impl>()) {}
FuzzServer::~FuzzServer() = default;

std::string FuzzServer::Converse(std::string_view bytes) { return impl_->Converse(bytes); }

}  // namespace interlock::fuzz
