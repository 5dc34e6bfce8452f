#include "memory_server.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <csignal>
#include <utility>

#include "api/app_fixture.h"
#include "api/dispatch.h"
#include "api/route.h"
#include "api/route_table.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/message.h"
#include "http/server.h"
#include "testing/fake_database.h"

namespace interlock::bench {
namespace {

constexpr std::size_t kAnswersMax = 8;

std::vector<MemoryAnswer>& Answers() {
  static std::vector<MemoryAnswer> answers;
  return answers;
}

// The handler of the answer of that number: a handler is a plain function, so each has its own.
template <std::size_t number>
boost::asio::awaitable<Result<http::Response>> Memory(api::App& /*app*/,
                                                      api::Request& /*request*/) {
  static std::atomic<std::size_t> turn = 0;
  const MemoryAnswer& answer = Answers()[number];
  const std::string& body = answer.bodies[turn++ % answer.bodies.size()];
  if (!body.empty()) co_return http::Response::Json(answer.status, body);
  http::Response response;
  response.status = answer.status;
  co_return response;
}

template <std::size_t... numbers>
std::vector<api::Route> MakeRoutes(std::index_sequence<numbers...> /*all*/) {
  constexpr std::array<api::Handler, kAnswersMax> kHandlers = {Memory<numbers>...};
  std::vector<api::Route> routes;
  routes.reserve(Answers().size());
  for (const MemoryAnswer& answer : Answers()) {
    routes.push_back({http::ParseMethod(answer.method), answer.path, kHandlers[routes.size()],
                      "A body from memory.", api::Access::kAnyone});
  }
  return routes;
}

[[noreturn]] void Serve(int port_pipe) {
  SystemClock clock;
  testing::CapturedLog unheard;
  Logger log(clock, unheard);
  testing::FakeDatabase database;
  api::TestServices services(database, clock);
  api::App app = services.MakeApp(log);
  const std::vector<api::Route> routes = MakeRoutes(std::make_index_sequence<kAnswersMax>());
  const api::RouteTable table(routes);
  api::Dispatcher dispatcher(table, app);
  http::Server server(dispatcher, log, services.events, clock, {});
  auto listening = http::ListenTcp("127.0.0.1", 0);
  IL_CHECK(listening.ok());
  const std::uint16_t port = listening->port;
  server.Listen(std::move(*listening));
  server.Start();
  IL_CHECK(::write(port_pipe, &port, sizeof(port)) == sizeof(port));
  while (true) ::pause();
}

}  // namespace

MemoryServer::MemoryServer(std::string body)
    : MemoryServer(std::vector<MemoryAnswer>{
          {.method = "GET", .path = "/memory", .bodies = {std::move(body)}}}) {}

MemoryServer::MemoryServer(std::vector<MemoryAnswer> answers) {
  IL_CHECK(answers.size() <= kAnswersMax);
  Answers() = std::move(answers);
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
