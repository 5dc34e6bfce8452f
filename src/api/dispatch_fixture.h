#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/app_fixture.h"
#include "api/dispatch.h"
#include "api/routes.h"
#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "store/schema.h"
#include "testing/captured_log.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::api {

// Requests through the dispatcher to a real database, without sockets or threads: whatever a
// request waits for is done by hand, on the test's own thread, until the answer is there.
class RealDispatchTest : public ::testing::Test {
 public:
  ~RealDispatchTest() override {
    services_.storage.Stop();
    EXPECT_TRUE(database_->Close().ok());
  }

 protected:
  using Fields = std::initializer_list<std::pair<std::string, std::string>>;

  // A request from this machine with these header fields.
  static http::Request To(Method method, std::string target, std::string body = "",
                          Fields fields = {}) {
    http::Request request;
    request.method = method;
    request.target = std::move(target);
    request.body = std::move(body);
    request.peer.address = "127.0.0.1";
    for (const auto& [name, value] : fields) request.headers.Add(name, value);
    return request;
  }

  Response Ask(const RouteTable& table, http::Request request) {
    Dispatcher dispatcher(table, app_);
    std::optional<Response> answer;
    boost::asio::co_spawn(boost::asio::make_strand(io_), dispatcher.Answer(request),
                          [&answer](const std::exception_ptr& thrown, Response response) {
                            EXPECT_EQ(thrown, nullptr);
                            answer = std::move(response);
                          });
    while (!answer) {
      io_.restart();
      const bool moved = io_.poll() > 0 || database_->StepWriter() || database_->StepReader();
      IL_CHECK(moved || answer, "the request waits for something that nobody does");
    }
    return *std::move(answer);
  }
  Response Ask(http::Request request) { return Ask(table_, std::move(request)); }

  // Straight into the database, in one transaction.
  void Write(const std::function<Result<void>(db::Transaction&)>& fn) {
    std::optional<Result<void>> done;
    ASSERT_TRUE(database_->Write(fn, [&](Result<void> result) { done = std::move(result); }).ok());
    while (database_->StepWriter()) {
    }
    ASSERT_TRUE(done && done->ok()) << done->error();
  }

  testing::FakeClock clock_;
  testing::CapturedLog captured_;
  Logger log_{clock_, captured_};
  testing::TempDb file_;
  std::unique_ptr<sqlite::Database> database_ = Open();
  TestServices services_{*database_, clock_};
  App app_ = services_.MakeApp(log_);
  const RouteTable table_{Routes()};
  boost::asio::io_context io_;

 private:
  std::unique_ptr<sqlite::Database> Open() {
    const auto connection = file_.Open();
    db::Migrator migrator(store::ServerSchema(), {.database = file_.path()}, clock_);
    IL_CHECK(migrator.Run(*connection).ok());
    sqlite::DatabaseOptions options;
    options.path = file_.path();
    options.drive = sqlite::Drive::kByHand;
    options.readers = 1;
    return sqlite::Database::Open(options, clock_).value();
  }
};

}  // namespace interlock::api
