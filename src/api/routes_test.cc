#include "api/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "api/dispatch_fixture.h"
#include "api/prepare.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"

// What must hold for every row of the table, the rows still to come included.
namespace interlock::api {
namespace {

using ::testing::HasSubstr;

// "GET /api/topics/{project}/{topic...}"
std::string Named(const Route& route) {
  return std::string(MethodName(route.method)) + " " + std::string(route.path);
}

// A path of the route: every parameter is its own name, but a project is `project`.
std::string Filled(const Route& route, const std::string& project) {
  std::string path;
  std::string_view rest = route.path;
  while (!rest.empty()) {
    const std::size_t open = std::min(rest.find('{'), rest.size());
    path += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const std::size_t close = rest.find('}');
    std::string_view name = rest.substr(1, close - 1);
    if (name.ends_with("...")) name.remove_suffix(3);
    path += name == "project" ? project : std::string(name);
    rest.remove_prefix(close + 1);
  }
  return path;
}

// What is about the server and not about a project. A new row belongs here only if nothing that it
// shows or changes is a project's.
constexpr std::array<std::string_view, 4> kOfNoProject = {
    "/health", "/metrics", "/openapi.json",
    "/api/inbox/pokes/{id...}"};  // always 400, whatever it names

class RoutesTest : public RealDispatchTest {
 protected:
  RoutesTest() {
    services_.keys.Set(*auth::Keyring::Parse("projects: {foreign: {keys: [k-foreign]}}"));
  }

  // Names the project `mine` wherever a row could look for it.
  static http::Request Naming(const Route& route, const std::string& project) {
    http::Request request = To(route.method, Filled(route, project) + "?project=" + project,
                               R"({"from":"a","agent":"a","project":")" + project + "\"}");
    request.peer.address = "203.0.113.9";
    return request;
  }
};

TEST_F(RoutesTest, NobodyIsLetInWithoutAKeyFromAnotherMachine) {
  for (const Route& route : Routes()) {
    const Response response = Ask(Naming(route, "mine"));
    if (route.access == Access::kAnyone) {
      EXPECT_EQ(response.status, route.success) << Named(route);
    } else {
      EXPECT_EQ(response.status, 401) << Named(route);
      EXPECT_THAT(response.body, HasSubstr("\"error\":\"unauthorized\"")) << Named(route);
    }
  }
}

TEST_F(RoutesTest, NoKeyReachesTheProjectOfAnother) {
  for (const Route& route : Routes()) {
    if (route.project == ProjectFrom::kNone) {
      EXPECT_NE(std::ranges::find(kOfNoProject, route.path), kOfNoProject.end()) << Named(route);
      continue;
    }
    http::Request request = Naming(route, "mine");
    Request prepared(request);
    prepared.query = "project=mine";
    prepared.params = table_.router().Find(route.method, Filled(route, "mine")).params;
    prepared.caller = {.mode = auth::Caller::Mode::kKey, .project = "foreign"};
    const Result<void> may = Prepare(route, prepared, {});
    if (may.ok()) {
      EXPECT_EQ(prepared.project, "foreign") << Named(route);
    } else {
      EXPECT_EQ(may.error().slug(), "project_mismatch") << Named(route);
      request.headers.Add("Authorization", "Bearer k-foreign");
      EXPECT_EQ(Ask(std::move(request)).status, 403) << Named(route);
    }
  }
}

TEST_F(RoutesTest, EveryRowSaysWhatItIs) {
  for (const Route& route : Routes()) {
    EXPECT_NE(route.handler, nullptr) << Named(route);
    EXPECT_FALSE(route.summary.empty()) << Named(route);
    EXPECT_NE(http::ReasonPhrase(route.success), "") << Named(route);
    EXPECT_EQ(route.body_schema != nullptr, route.body != BodyKind::kNone) << Named(route);
    EXPECT_FALSE(route.success == 204 && route.answer_schema != nullptr) << Named(route);
    for (const Failure& failure : route.failures) {
      EXPECT_NE(http::ReasonPhrase(failure.status), "") << Named(route);
      EXPECT_FALSE(failure.meaning.empty()) << Named(route);
    }
    for (const QueryParameter& parameter : route.query) {
      EXPECT_FALSE(parameter.name.empty() || parameter.meaning.empty()) << Named(route);
    }
  }
}

// Whatever a client sends, and wherever: programs match `error`, so it is a fixed text.
TEST_F(RoutesTest, NoErrorHoldsWhatTheClientSent) {
  const std::string canary = "CANARY";
  int refused = 0;
  for (const Route& route : Routes()) {
    std::string target = Filled(route, canary);
    for (std::size_t at = 0; (at = target.find("/id", at)) != std::string::npos; ++at) {
      target.replace(at, 3, "/" + canary);
    }
    char separator = '?';
    for (const QueryParameter& parameter : route.query) {
      if (parameter.type != QueryParameter::Type::kText) continue;
      target += separator + std::string(parameter.name) + "=" + canary;
      separator = '&';
    }
    json::Object whole;
    if (route.body_schema != nullptr) {
      const json::Value schema = route.body_schema();
      for (const auto& [name, type] : schema.get_object().at("properties").get_object()) {
        whole.emplace(name, json::String(canary));
      }
    }
    std::vector<std::string> bodies = {json::Write(whole), canary, "\"" + canary + "\""};
    for (const auto& [name, value] : whole) {
      json::Object one;  // the other fields are absent
      one.emplace(name, value);
      bodies.push_back(json::Write(one));
    }
    for (const std::string& body : bodies) {
      const Response response =
          Ask(To(route.method, target, body, {{"X-Agent-ID", canary}, {"Host", "localhost"}}));
      if (response.status < 400) continue;
      ++refused;
      const json::Value answer = json::Parse(response.body).value();
      const std::string error(answer.get_object().at("error").get_string());
      EXPECT_EQ(error.find(canary), std::string::npos) << Named(route) << " " << body;
    }
  }
  EXPECT_GT(refused, 100);
}

// Whatever a row has as a number is checked before its handler runs.
TEST_F(RoutesTest, NoRowTakesANumberThatIsNone) {
  for (const Route& route : Routes()) {
    for (const QueryParameter& parameter : route.query) {
      if (parameter.type != QueryParameter::Type::kInteger) continue;
      for (const std::string bad : {"abc", "-1", "99999999999999999999"}) {
        const Response response = Ask(
            To(route.method, Filled(route, "p") + "?" + std::string(parameter.name) + "=" + bad));
        EXPECT_EQ(response.status, 400) << Named(route) << " " << parameter.name << "=" << bad;
        EXPECT_THAT(response.body, HasSubstr("\"field\":\"" + std::string(parameter.name) + "\""))
            << Named(route);
      }
    }
  }
}

// A row that asks for something must have the place it is found in.
TEST_F(RoutesTest, EveryRowHasWhatItsChecksLookAt) {
  for (const Route& route : Routes()) {
    const auto names = [&](std::string_view parameter) {
      return std::ranges::any_of(table_.router().Find(route.method, Filled(route, "p")).params,
                                 [&](const auto& param) { return param.first == parameter; });
    };
    const bool has_body = route.body != BodyKind::kNone;
    EXPECT_TRUE(route.project != ProjectFrom::kBody || has_body) << Named(route);
    EXPECT_EQ(route.project == ProjectFrom::kPath, names("project")) << Named(route);
    EXPECT_TRUE(route.actor != ActorFrom::kBodyFrom || has_body) << Named(route);
    EXPECT_TRUE(route.actor != ActorFrom::kRecipient || has_body) << Named(route);
    EXPECT_TRUE(route.actor != ActorFrom::kPathId || names("id")) << Named(route);
    EXPECT_TRUE(route.asker == ActorFrom::kNobody || route.actor == ActorFrom::kNobody)
        << Named(route);
    EXPECT_TRUE(route.asker != ActorFrom::kPathAgent || names("agent")) << Named(route);
    EXPECT_TRUE(route.asker != ActorFrom::kBodyAgentId || has_body) << Named(route);
    EXPECT_TRUE(route.method != Method::kGet || !has_body) << Named(route);
    if (route.access == Access::kAnyone) {
      EXPECT_EQ(route.project, ProjectFrom::kNone) << Named(route);
      EXPECT_EQ(route.actor, ActorFrom::kNobody) << Named(route);
    }
    const bool in_query =
        route.project == ProjectFrom::kQuery || route.project == ProjectFrom::kQueryChecked;
    const bool documented = std::ranges::any_of(
        route.query, [](const QueryParameter& parameter) { return parameter.name == "project"; });
    EXPECT_EQ(in_query, documented) << Named(route);
  }
}

}  // namespace
}  // namespace interlock::api
