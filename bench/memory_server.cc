#include "memory_server.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <csignal>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/app_fixture.h"
#include "http/message.h"
#include "http/route.h"
#include "http/router.h"
#include "http/server.h"
#include "testing/fake_database.h"

namespace interlock::bench {
namespace {

std::string& Body() {
  static std::string body;
  return body;
}

boost::asio::awaitable<Result<http::Response>> Memory(http::App& /*app*/,
                                                      http::Request /*request*/) {
  co_return http::Response::Json(200, Body());
}

constexpr std::array kRoutes = {
    http::Route{http::Method::kGet, "/memory", Memory, "A body from memory.",
                http::Access::kAnyone},
};

[[noreturn]] void Serve(int port_pipe) {
  SystemClock clock;
  testing::CapturedLog unheard;
  Logger log(clock, unheard);
  testing::FakeDatabase database;
  http::TestServices services(database, clock);
  http::App app = services.MakeApp(log);
  const http::Router router(kRoutes);
  http::Server server(router, app, clock, {});
  auto listening = http::ListenTcp("127.0.0.1", 0);
  IL_CHECK(listening.ok());
  const std::uint16_t port = listening->port;
  server.Listen(std::move(*listening));
  server.Start();
  IL_CHECK(::write(port_pipe, &port, sizeof(port)) == sizeof(port));
  while (true) ::pause();
}

}  // namespace

MemoryServer::MemoryServer(std::string body) {
  Body() = std::move(body);
  std::array<int, 2> ends = {};
  IL_CHECK(::pipe(ends.data()) == 0);
  child_ = ::fork();
  IL_CHECK(child_ >= 0);
  if (child_ == 0) Serve(ends[1]);
  ::close(ends[1]);
  IL_CHECK(::read(ends[0], &port_, sizeof(port_)) == sizeof(port_), "no server from memory");
  ::close(ends[0]);
}

MemoryServer::~MemoryServer() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

}  // namespace interlock::bench
