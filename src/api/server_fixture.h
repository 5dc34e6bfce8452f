#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "api/app_fixture.h"
#include "api/dispatch.h"
#include "api/route.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/server.h"
#include "http/socket.h"
#include "testing/captured_log.h"
#include "testing/fake_database.h"

namespace interlock::api {

using http::ListeningSocket;
using http::ListenTcp;
using http::Server;

// A real server on a free port over a database that does what the test says. Whoever derives from
// it calls Stop() in its destructor.
class RunningServerTest : public ::testing::Test {
 protected:
  // The routes must outlive the server; `more` is listened on besides TCP.
  void Start(std::span<const Route> routes, std::vector<ListeningSocket> more = {}) {
    table_ = std::make_unique<RouteTable>(routes);
    dispatcher_ = std::make_unique<Dispatcher>(*table_, app_);
    server_ = std::make_unique<Server>(*dispatcher_, log_, services_.events, clock_,
                                       Server::Options{.limits = limits_, .io_threads = 2});
    auto tcp = ListenTcp("127.0.0.1", 0);
    port_ = tcp->port;
    server_->Listen(std::move(*tcp));
    for (ListeningSocket& socket : more) server_->Listen(std::move(socket));
    server_->Start();
  }
  // The shutdown order of the program.
  Server::Drained Stop() {
    if (!server_) return Server::Drained::kAll;
    server_->StopAccepting();
    const Server::Drained drained = server_->Drain();
    services_.storage.Stop();
    EXPECT_TRUE(database_.Close().ok());
    server_->Join();
    OnJoined();
    server_.reset();
    return drained;
  }
  // False when the server does not come to have that many within the patience.
  bool AwaitConnections(std::size_t count) {
    const Duration end = clock_.Monotonic() + std::chrono::seconds(20);
    while (server_->connections() != count) {
      if (clock_.Monotonic() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  SystemClock clock_;
  testing::CapturedLog captured_;
  Logger log_{clock_, captured_};
  testing::FakeDatabase database_;
  TestServices services_{database_, clock_, std::chrono::seconds(30)};
  App app_ = services_.MakeApp(log_);
  Limits limits_;
  std::unique_ptr<RouteTable> table_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;

 private:
  // The server's threads are gone, and the server is about to go: what belongs to its executors
  // must be let go now.
  virtual void OnJoined() {}
};

}  // namespace interlock::api
