#include "api/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "api/app_fixture.h"
#include "api/routes.h"
#include "json/parse.h"
#include "json/value.h"
#include "testing/captured_log.h"
#include "testing/fake_clock.h"
#include "testing/fake_database.h"

namespace interlock::api {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

boost::asio::awaitable<Result<Response>> Throwing(App& /*app*/, Request& /*request*/) {
  throw std::runtime_error("the secret detail");
  co_return Response();
}
boost::asio::awaitable<Result<Response>> ThrowingANumber(App& /*app*/, Request& /*request*/) {
  throw 42;  // NOLINT(hicpp-exception-baseclass): what strangers' code may do
  co_return Response();
}
boost::asio::awaitable<Result<Response>> Failing(App& /*app*/, Request& /*request*/) {
  co_return ErrorResponse(Error(Errc::kInternal, "the other secret"));
}
boost::asio::awaitable<Result<Response>> Refusing(App& /*app*/, Request& /*request*/) {
  co_return Error(Errc::kConflict, "taken").WithSlug("seat_taken");
}
boost::asio::awaitable<Result<Response>> Echo(App& /*app*/, Request& request) {
  co_return Response::Json(200, request.path + "|" + request.query + "|" + request.Param("id"));
}

class DispatchTest : public ::testing::Test {
 public:
  ~DispatchTest() override {
    database_.Answer({});
    services_.storage.Stop();
  }

 protected:
  // The answer, or nothing while it waits.
  std::optional<Response> Begin(const RouteTable& table, App& app, http::Request request) {
    answer_.reset();
    request_ = std::move(request);
    dispatcher_.emplace(table, app);
    boost::asio::co_spawn(boost::asio::make_strand(io_), dispatcher_->Answer(request_),
                          [this](const std::exception_ptr& thrown, Response response) {
                            EXPECT_EQ(thrown, nullptr);
                            answer_ = std::move(response);
                          });
    return Turn();
  }
  std::optional<Response> Turn() {
    io_.restart();
    io_.poll();
    return answer_;
  }
  static http::Request To(Method method, std::string target) {
    http::Request request;
    request.method = method;
    request.target = std::move(target);
    request.peer.address = "127.0.0.1";
    return request;
  }

  testing::FakeClock clock_;
  testing::CapturedLog captured_;
  Logger log_{clock_, captured_};
  testing::FakeDatabase database_;
  TestServices services_{database_, clock_};
  App app_ = services_.MakeApp(log_);
  std::optional<Dispatcher> dispatcher_;
  http::Request request_;  // that is under way
  boost::asio::io_context io_;
  std::optional<Response> answer_;
};

TEST_F(DispatchTest, TargetsFindTheirHandlerOrTheirRefusal) {
  const std::array routes = {Route{Method::kGet, "/throw", Throwing, ""},
                             Route{Method::kGet, "/throw/number", ThrowingANumber, ""},
                             Route{Method::kGet, "/fail", Failing, ""},
                             Route{Method::kGet, "/refuse", Refusing, ""},
                             Route{.method = Method::kPost,
                                   .path = "/refuse",
                                   .handler = Refusing,
                                   .summary = "",
                                   .body = BodyKind::kJson},
                             Route{Method::kGet, "/echo/{id...}", Echo, ""}};
  const RouteTable table(routes);
  const struct {
    Method method;
    std::string target;
    int status;
    std::string body;  // a part of it
  } kCases[] = {
      {Method::kGet, "/echo/a%2Fb?x=%20", 200, "/echo/a/b|x=%20|a/b\n"},
      {Method::kGet, "/nothing", 404, "\"error\":\"not_found\""},
      {Method::kOther, "/nothing", 404, "\"error\":\"not_found\""},
      {Method::kPost, "/echo/a", 405, "/echo/a does not take POST; use GET, HEAD."},
      {Method::kOther, "/echo/a", 405, "does not take this method"},
      {Method::kHead, "/echo/a", 200, "/echo/a||a\n"},  // the session leaves the body out
      {Method::kHead, "/nothing", 404, "\"error\":\"not_found\""},
      {Method::kGet, "/%zz", 400, "\"error\":\"invalid_request\""},
      {Method::kOptions, "*", 400, "\"error\":\"invalid_request\""},
      {Method::kGet, "/throw", 500, "\"error\":\"internal\""},
      {Method::kGet, "/throw/number", 500, "\"error\":\"internal\""},
      {Method::kGet, "/fail", 500, "\"error\":\"internal\""},
      {Method::kGet, "/echo/", 400, "ends before it names the id; add it."},
      {Method::kGet, "/echo/%20", 400, "\"field\":\"id\""},
      {Method::kGet, "/refuse", 409, "\"error\":\"seat_taken\""},
      {Method::kGet, "/refuse?a=%zz", 400, "query parameter a has a broken escape"},
      {Method::kPost, "/refuse", 400, "\"error\":\"bad_json\""},
  };
  testing::CapturedLog& faults = services_.limited_lines;
  for (const auto& c : kCases) {
    const auto answer = Begin(table, app_, To(c.method, c.target));
    ASSERT_TRUE(answer) << c.target;
    EXPECT_EQ(answer->status, c.status) << c.target;
    EXPECT_THAT(answer->body, HasSubstr(c.body)) << c.target;
    EXPECT_THAT(answer->body, Not(HasSubstr("secret"))) << c.target;
    EXPECT_EQ(answer->headers.Find("Content-Type"), "application/json");
    EXPECT_EQ(answer->headers.Find("Allow").has_value(), c.status == 405);
    EXPECT_EQ(answer->body.find("\"message\":\"") != std::string::npos, c.status >= 400)
        << c.target;
    EXPECT_EQ(faults.Contains("route=" + c.target + " "), c.status == 500) << c.target;
  }
  EXPECT_TRUE(faults.Contains("the secret detail"));
  EXPECT_TRUE(faults.Contains("the other secret"));
}

TEST_F(DispatchTest, TheLogNamesTheRequest) {
  const std::array routes = {Route{Method::kGet, "/fail", Failing, ""},
                             Route{Method::kGet, "/throw", Throwing, ""},
                             Route{Method::kGet, "/echo/{id...}", Echo, ""}};
  const RouteTable table(routes);
  Logger debug(clock_, captured_, {.level_min = LogLevel::kDebug});
  App app = services_.MakeApp(debug);
  for (const char* path : {"/fail", "/throw", "/echo/a"}) {
    http::Request request = To(Method::kGet, path);
    request.id = std::string("id-of-") + (path + 1);
    ASSERT_TRUE(Begin(table, app, std::move(request)));
  }
  testing::CapturedLog& faults = services_.limited_lines;
  EXPECT_TRUE(faults.Contains("a handler failed request_id=id-of-fail")) << faults.text();
  EXPECT_TRUE(faults.Contains("a handler threw request_id=id-of-throw")) << faults.text();
  EXPECT_TRUE(
      captured_.Contains("answered a request request_id=id-of-echo/a method=GET "
                         "path=/echo/a status=200"))
      << captured_.text();
}

TEST_F(DispatchTest, UncleanPathsMoveToTheirCleanForm) {
  const RouteTable table(Routes());
  const struct {
    std::string target, location;
  } kCases[] = {
      {"//health", "/health"},      {"/./health?a=b", "/health?a=b"},
      {"/x/../health", "/health"},  {"/x/%2e%2e/health", "/health"},
      {"/%2Fhealth", "/health"},    {"//evil.example/%0d%0a", "/evil.example/%0D%0A"},
      {"/../../health", "/health"}, {"//health?a=\xC3\xA9%C3", "/health?a=%C3%A9%C3"},
  };
  for (const auto& c : kCases) {
    const auto answer = Begin(table, app_, To(Method::kGet, c.target));
    ASSERT_TRUE(answer) << c.target;
    EXPECT_EQ(answer->status, 301) << c.target;
    EXPECT_EQ(answer->headers.Find("Location"), c.location) << c.target;
    // A Location that begins with "//" would send the client to another host.
    EXPECT_FALSE(answer->headers.Find("Location")->starts_with("//")) << c.target;
  }
}

TEST_F(DispatchTest, CollectionsThatHoldOnlyIdsMoveToTheirSlash) {
  const std::array routes = {Route{Method::kGet, "/api/inbox/{agent...}", Echo, ""}};
  const RouteTable table(routes);
  for (const Method method : {Method::kGet, Method::kPost}) {
    const auto answer = Begin(table, app_, To(method, "/api/inbox?project=a%20b"));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 301);
    EXPECT_EQ(answer->headers.Find("Location"), "/api/inbox/?project=a%20b");
  }
}

// GET /health over a storage whose every state a test can bring about.
class HealthTest : public DispatchTest {
 protected:
  std::optional<Response> Ask() { return Begin(table_, app_, To(Method::kGet, "/health")); }

  void FailReads(int count) {
    database_.Fail(Error(Errc::kIo, "the disk is gone"));
    for (int i = 0; i < count; ++i) {
      services_.storage.Read([](db::Connection&) { return Result<void>(); },
                             [](const Result<void>&) {});
    }
  }

  const RouteTable table_{Routes()};
};

TEST_F(HealthTest, AnswersOkWithBreakerVersionAndStartInText) {
  clock_.Advance(std::chrono::milliseconds(61'900));
  const auto answer = Ask();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body,
            "{\"status\":\"ok\",\"circuit_breaker\":\"closed\","
            "\"circuit_breaker_read\":\"closed\",\"circuit_breaker_write\":\"closed\","
            "\"version\":\"9.8.7\","
            "\"started_at\":\"2026-01-02T03:04:05Z\","
            "\"log_id\":\"0123456789abcdef0123456789abcdef\"}\n");
  EXPECT_EQ(answer->headers.Find("Content-Type"), "application/json");
}

TEST_F(HealthTest, AWallClockThatJumpsDoesNotChangeTheStart) {
  clock_.JumpWallClock(std::chrono::hours(-1000));
  EXPECT_THAT(Ask()->body, HasSubstr("\"started_at\":\"2026-01-02T03:04:05Z\""));
}

// Clients decode the answer into a map of strings.
TEST_F(HealthTest, EveryValueIsTextAlsoWhenThePingFails) {
  for (const int status : {200, 503}) {
    if (status == 503) database_.Fail(Error(Errc::kIo, "the disk is gone"));
    const auto answer = Ask();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, status);
    const json::Value body = json::Parse(answer->body).value();
    for (const auto& [name, value] : body.get_object()) {
      EXPECT_TRUE(value.is_string()) << name << " in " << answer->body;
    }
  }
}

TEST_F(HealthTest, AnOpenBreakerIsDegradedButStill200WhenThePingIsFine) {
  FailReads(5);
  database_.Succeed();
  const auto answer = Ask();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body,
              MatchesRegex(".\"status\":\"degraded\",\"circuit_breaker\":\"open\".*"));
  EXPECT_THAT(answer->body, Not(HasSubstr("error")));
}

TEST_F(HealthTest, TheWorseBreakerIsReportedBesideBoth) {
  database_.Fail(Error(Errc::kIo, "the disk is gone"));
  for (int i = 0; i < 5; ++i) {
    services_.storage.Write([](db::Transaction&) { return Result<void>(); },
                            [](const Result<void>&) {});
  }
  database_.Succeed();
  EXPECT_THAT(Ask()->body, HasSubstr(R"({"status":"degraded","circuit_breaker":"open",)"
                                     R"("circuit_breaker_read":"closed",)"
                                     R"("circuit_breaker_write":"open",)"));
}

TEST_F(HealthTest, FourFailuresLeaveTheBreakerClosed) {
  FailReads(4);
  database_.Succeed();
  EXPECT_THAT(Ask()->body, MatchesRegex(".\"status\":\"ok\",\"circuit_breaker\":\"closed\".*"));
}

TEST_F(HealthTest, AHalfOpenBreakerCountsAsOk) {
  FailReads(5);
  clock_.Advance(std::chrono::seconds(30));
  database_.Hold();  // the probe is out and has not come back
  services_.storage.Read([](db::Connection&) { return Result<void>(); },
                         [](const Result<void>&) {});
  database_.Succeed();
  const auto answer = Ask();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, MatchesRegex(".\"status\":\"ok\",\"circuit_breaker\":\"half_open\".*"));
}

TEST_F(HealthTest, AFailingPingIs503WithTheError) {
  database_.Fail(Error(Errc::kIo, "the disk is gone"));
  const auto answer = Ask();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_THAT(answer->body, HasSubstr("\"status\":\"degraded\",\"circuit_breaker\":\"closed\""));
  EXPECT_THAT(answer->body, HasSubstr("\"error\":\"storage_io_error\""));
  EXPECT_THAT(answer->body, HasSubstr("the disk is gone"));
  EXPECT_EQ(answer->headers.Find("Retry-After"), "1");
}

TEST_F(HealthTest, PingsNeitherOpenNorCloseTheBreaker) {
  database_.Fail(Error(Errc::kIo, "the disk is gone"));
  for (int i = 0; i < 10; ++i) Ask();
  EXPECT_THAT(Ask()->body, HasSubstr("\"circuit_breaker\":\"closed\""));
  FailReads(5);
  database_.Succeed();
  Ask();
  EXPECT_THAT(Ask()->body, HasSubstr("\"circuit_breaker\":\"open\""));
}

TEST_F(HealthTest, AStorageThatHangsIs503AfterThePingBudget) {
  database_.Hold();
  EXPECT_FALSE(Ask());
  clock_.Advance(std::chrono::milliseconds(499));
  EXPECT_FALSE(Turn());
  clock_.Advance(std::chrono::milliseconds(1));
  const auto answer = Turn();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_THAT(answer->body, HasSubstr("\"error\":\"storage_timeout\""));
}

TEST_F(DispatchTest, WithoutAStorageTheBreakerIsUnknown) {
  const RouteTable table(Routes());
  service::Health health(nullptr, clock_, std::chrono::seconds(1));
  App app = services_.MakeApp(log_, health);
  const auto answer = Begin(table, app, To(Method::kGet, "/health"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, MatchesRegex(".\"status\":\"ok\",\"circuit_breaker\":\"unknown\","
                                         "\"circuit_breaker_read\":\"unknown\".*"));
}

}  // namespace
}  // namespace interlock::api
