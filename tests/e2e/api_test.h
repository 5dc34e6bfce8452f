#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "e2e_test.h"
#include "json/parse.h"
#include "json/value.h"

namespace interlock::e2e {

// One request and what its answer must be.
struct ApiCase {
  std::string method;
  std::string target;
  std::string body;
  int status;
  std::string part = {};     // of the answer
  std::string headers = {};  // "Name: value\r\n"…
};

// A test that talks to one real server over one connection, which every answer must leave open.
class ApiTest : public E2eTest {
 public:
  ~ApiTest() override { EXPECT_EQ(server_->Stop(), 0) << server_->process().Stderr(); }

 protected:
  explicit ApiTest(std::vector<std::string> flags = {})
      : server_(Start(std::move(flags))), client_(server_->Connect()) {}

  HttpAnswer Ask(std::string_view method, std::string_view target, std::string_view body = "",
                 std::string_view headers = "") {
    if (!client_.Request(method, target, body, headers)) return {};
    return client_.Read().value_or(HttpAnswer{});
  }
  // The answer of a request that must succeed, as JSON.
  json::Value Get(std::string_view target) { return Parsed(Ask("GET", target)); }
  json::Value Post(std::string_view target, std::string_view body) {
    return Parsed(Ask("POST", target, body));
  }

  void Check(const std::vector<ApiCase>& cases) {
    for (const ApiCase& c : cases) {
      const HttpAnswer answer = Ask(c.method, c.target, c.body, c.headers);
      const std::string shown = c.method + " " + c.target + " " + c.body.substr(0, 100);
      EXPECT_EQ(answer.status, c.status) << shown << "\n" << answer.body;
      EXPECT_THAT(answer.body, ::testing::HasSubstr(c.part)) << shown;
      if (c.status < 400) continue;
      EXPECT_THAT(answer.body, ::testing::StartsWith(R"({"error":")")) << shown;
      EXPECT_THAT(answer.body, ::testing::HasSubstr(R"("message":")")) << shown;
    }
    EXPECT_EQ(Ask("GET", "/health").status, 200);
  }

  // A string field of an object.
  static std::string Text(const json::Value& object, std::string_view field) {
    const json::Value* value = object.get_object().if_contains(field);
    return value == nullptr ? "" : std::string(json::View(value->get_string()));
  }
  // The id of a new agent.
  std::string Register(const std::string& project, const std::string& name = "") {
    return Text(Post("/api/agents", R"({"project":")" + project + R"(","name":")" + name + R"("})"),
                "agent_id");
  }

  const std::unique_ptr<ServerProcess> server_;
  HttpClient client_;

 private:
  static json::Value Parsed(const HttpAnswer& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    auto value = json::Parse(answer.body);
    EXPECT_TRUE(value.ok()) << answer.body;
    return value.ok() ? *std::move(value) : json::Value(json::Object());
  }
};

}  // namespace interlock::e2e
