#include "http/router.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace interlock::http {
namespace {

Router::Row At(Method method, std::string_view path) { return {.method = method, .path = path}; }

// The rows and their router.
class Routes {
 public:
  template <std::size_t size>
  explicit Routes(const std::array<Router::Row, size>& rows)
      : rows_(rows.begin(), rows.end()), router_(rows_) {}

  const Router::Row& row(std::size_t index) const { return rows_[index]; }
  Router::Match Find(Method method, std::string_view path) const {
    return router_.Find(method, path);
  }

 private:
  const std::vector<Router::Row> rows_;
  const Router router_;
};

// "PATH name=value…" of what was found, "301", "404", or "405 Allow".
std::string Found(const Routes& router, Method method, std::string_view path) {
  const Router::Match match = router.Find(method, path);
  if (match.kind == Router::Match::Kind::kNothing) return "404";
  if (match.kind == Router::Match::Kind::kAddSlash) return "301";
  if (match.kind == Router::Match::Kind::kWrongMethod) return "405 " + match.allow;
  std::string text(router.row(match.row).path);
  for (const auto& [name, value] : match.params) text.append(" ").append(name) += "=" + value;
  return text;
}

TEST(RouterTest, PathsAreMatchedWhole) {
  const std::array routes = {At(Method::kGet, "/health"), At(Method::kGet, "/api/agents"),
                             At(Method::kGet, "/")};
  const Routes router(routes);
  EXPECT_EQ(Found(router, Method::kGet, "/health"), "/health");
  EXPECT_EQ(Found(router, Method::kGet, "/"), "/");
  for (const char* path : {"/healt", "/healthy", "/health/", "/health/x", "/HEALTH", "/api",
                           "/api/", "/api/agents/"}) {
    EXPECT_EQ(Found(router, Method::kGet, path), "404") << path;
  }
}

TEST(RouterTest, ParametersTakeOneSegmentAndRestsTakeMore) {
  const std::array routes = {At(Method::kPost, "/api/agents/{id}/heartbeat"),
                             At(Method::kGet, "/api/inbox/{agent...}"),
                             At(Method::kPost, "/api/inbox/pokes/{id...}/ack")};
  const Routes router(routes);
  EXPECT_EQ(Found(router, Method::kPost, "/api/agents/a b/heartbeat"),
            "/api/agents/{id}/heartbeat id=a b");
  EXPECT_EQ(Found(router, Method::kPost, "/api/agents/a/b/heartbeat"), "404");
  EXPECT_EQ(Found(router, Method::kGet, "/api/inbox/x"), "/api/inbox/{agent...} agent=x");
  EXPECT_EQ(Found(router, Method::kGet, "/api/inbox/x/y/z"), "/api/inbox/{agent...} agent=x/y/z");
  EXPECT_EQ(Found(router, Method::kPost, "/api/inbox/pokes/p/q/ack"),
            "/api/inbox/pokes/{id...}/ack id=p/q");
  EXPECT_EQ(Found(router, Method::kPost, "/api/inbox/pokes/ack"), "405 GET, HEAD");
}

TEST(RouterTest, TemplatesThatBeginAlikeAreFoundWhereverTheyPart) {
  const std::array routes = {
      At(Method::kGet, "/api"),          At(Method::kGet, "/api/{noun}"),
      At(Method::kGet, "/api/agents"),   At(Method::kGet, "/api/agents/{id}/contacts"),
      At(Method::kGet, "/{any}/agents"), At(Method::kGet, "/{any}/{rest...}/end")};
  const Routes router(routes);
  const auto found = [&](std::string_view path) { return Found(router, Method::kGet, path); };
  EXPECT_EQ(found("/api"), "/api");
  EXPECT_EQ(found("/api/agents"), "/api/agents");
  EXPECT_EQ(found("/api/agentsx"), "/api/{noun} noun=agentsx");
  EXPECT_EQ(found("/apix/agents"), "/{any}/agents any=apix");
  EXPECT_EQ(found("/api/agents/a/contacts"), "/api/agents/{id}/contacts id=a");
  EXPECT_EQ(found("/api/agents/a/b/end"), "/{any}/{rest...}/end any=api rest=agents/a/b");
  EXPECT_EQ(found("/other/x/end"), "/{any}/{rest...}/end any=other rest=x");
  EXPECT_EQ(found("/api/agents/x"), "404");
}

TEST(RouterTest, ASlashAtTheEndDoesNotCountWhereIdsStand) {
  const std::array routes = {
      At(Method::kGet, "/api/inbox/{agent...}"), At(Method::kGet, "/api/inbox/{agent...}/counts"),
      At(Method::kGet, "/api/threads"), At(Method::kPost, "/api/agents/{id}/heartbeat")};
  const Routes router(routes);
  EXPECT_EQ(Found(router, Method::kGet, "/api/inbox/x/"), "/api/inbox/{agent...} agent=x");
  EXPECT_EQ(Found(router, Method::kGet, "/api/inbox/x/y/"), "/api/inbox/{agent...} agent=x/y");
  EXPECT_EQ(Found(router, Method::kGet, "/api/inbox/x/y/counts/"),
            "/api/inbox/{agent...}/counts agent=x/y");
  EXPECT_EQ(Found(router, Method::kPost, "/api/agents/x/heartbeat/"),
            "/api/agents/{id}/heartbeat id=x");
  EXPECT_EQ(Found(router, Method::kGet, "/api/agents/x/heartbeat/"), "405 POST");
  EXPECT_EQ(Found(router, Method::kGet, "/api/threads/"), "404");
}

TEST(RouterTest, APathThatLacksOnlyItsIdsFindsItsRouteWithEmptyOnes) {
  const std::array routes = {At(Method::kGet, "/api/inbox/{agent...}"),
                             At(Method::kGet, "/api/threads"),
                             At(Method::kGet, "/api/threads/{id...}"),
                             At(Method::kGet, "/api/topics/{project}/{topic...}"),
                             At(Method::kPost, "/api/agents/{id}/heartbeat"),
                             At(Method::kGet, "/api/agents/{id}/contacts"),
                             At(Method::kDelete, "/api/agents/{id}/contacts/{contact}")};
  const Routes router(routes);
  EXPECT_EQ(Found(router, Method::kGet, "/api/inbox/"), "/api/inbox/{agent...} agent=");
  EXPECT_EQ(Found(router, Method::kPost, "/api/inbox/"), "405 GET, HEAD");
  EXPECT_EQ(Found(router, Method::kGet, "/api/threads/"), "/api/threads/{id...} id=");
  EXPECT_EQ(Found(router, Method::kGet, "/api/threads"), "/api/threads");
  for (const char* path : {"/api/topics/p", "/api/topics/p/"}) {
    EXPECT_EQ(Found(router, Method::kGet, path),
              "/api/topics/{project}/{topic...} project=p topic=")
        << path;
  }
  EXPECT_EQ(Found(router, Method::kGet, "/api/topics/"),
            "/api/topics/{project}/{topic...} project= topic=");
  // Something literal is missing: that is another path.
  EXPECT_EQ(Found(router, Method::kPost, "/api/agents/x"), "404");
  EXPECT_EQ(Found(router, Method::kPost, "/api/agents/"), "404");
  // What fits whole comes first, if it takes the method.
  EXPECT_EQ(Found(router, Method::kGet, "/api/agents/x/contacts/"),
            "/api/agents/{id}/contacts id=x");
  EXPECT_EQ(Found(router, Method::kDelete, "/api/agents/x/contacts/"),
            "/api/agents/{id}/contacts/{contact} id=x contact=");
  EXPECT_EQ(Found(router, Method::kPost, "/api/agents/x/contacts/"), "405 GET, HEAD");
}

TEST(RouterTest, WhereOnlyIdsCouldFollowTheSlashIsMissing) {
  const std::array routes = {
      At(Method::kGet, "/api/inbox/{agent...}"),
      At(Method::kGet, "/api/topics/{project}/{topic...}"), At(Method::kGet, "/api/threads"),
      At(Method::kGet, "/api/threads/{id...}"), At(Method::kPost, "/api/agents/{id}/heartbeat")};
  const Routes router(routes);
  EXPECT_EQ(Found(router, Method::kGet, "/api/inbox"), "301");
  EXPECT_EQ(Found(router, Method::kPost, "/api/topics"), "301");
  for (const char* path : {"/api", "/api/agents", "/inbox", "/api/agents/x", "/"}) {
    EXPECT_EQ(Found(router, Method::kGet, path), "404") << path;
  }
  EXPECT_EQ(Found(router, Method::kGet, "/api/threads"), "/api/threads");
  EXPECT_EQ(Found(router, Method::kPost, "/api/threads"), "405 GET, HEAD");
}

TEST(RouterTest, TheMostLiteralTemplateCountsWhateverTheOrder) {
  std::array routes = {At(Method::kGet, "/r/{id...}"), At(Method::kGet, "/r/{id}"),
                       At(Method::kGet, "/r/check"), At(Method::kGet, "/r/{id}/events"),
                       At(Method::kGet, "/{kind}/check")};
  for (int order = 0; order < 5; ++order) {
    std::rotate(routes.begin(), routes.begin() + 1, routes.end());
    const Routes router(routes);
    EXPECT_EQ(Found(router, Method::kGet, "/r/check"), "/r/check");
    EXPECT_EQ(Found(router, Method::kGet, "/r/7"), "/r/{id} id=7");
    EXPECT_EQ(Found(router, Method::kGet, "/r/7/events"), "/r/{id}/events id=7");
    EXPECT_EQ(Found(router, Method::kGet, "/r/7/other"), "/r/{id...} id=7/other");
    EXPECT_EQ(Found(router, Method::kGet, "/s/check"), "/{kind}/check kind=s");
  }
}

TEST(RouterTest, AWrongMethodIsToldEveryMethodOfTheMostLiteralTemplate) {
  const std::array routes = {At(Method::kPut, "/a/{id}"), At(Method::kGet, "/a/{id}"),
                             At(Method::kDelete, "/a/b"), At(Method::kGet, "/a/b")};
  const Routes router(routes);
  EXPECT_EQ(Found(router, Method::kPost, "/a/x"), "405 GET, HEAD, PUT");
  EXPECT_EQ(Found(router, Method::kPost, "/a/b"), "405 GET, HEAD, DELETE");
  EXPECT_EQ(Found(router, Method::kPut, "/a/b"), "405 GET, HEAD, DELETE") << "b is no id here";
  EXPECT_EQ(Found(router, Method::kOther, "/nothing"), "404");
}

TEST(RouterTest, HeadFindsTheRouteOfGetButNoWebSocket) {
  Router::Row socket = At(Method::kGet, "/ws");
  socket.is_upgrade = true;
  const std::array routes = {At(Method::kGet, "/a/{id}"), At(Method::kPost, "/b"), socket};
  const Routes router(routes);
  EXPECT_EQ(Found(router, Method::kHead, "/a/x"), "/a/{id} id=x");
  EXPECT_EQ(Found(router, Method::kHead, "/b"), "405 POST");
  EXPECT_EQ(Found(router, Method::kHead, "/ws"), "405 GET");
}

TEST(RouterDeathTest, RoutesThatNoRequestCouldTellApartAreRefused) {
  const auto build = [](auto... routes) {
    const std::array table = {routes...};
    const Routes router(table);
  };
  EXPECT_DEATH(build(At(Method::kGet, "/a/{x}"), At(Method::kGet, "/a/{y}")), "check failed");
  EXPECT_DEATH(build(At(Method::kGet, "/a"), At(Method::kGet, "/a")), "check failed");
  EXPECT_DEATH(build(At(Method::kGet, "a")), "check failed");
  EXPECT_DEATH(build(At(Method::kGet, "/{x...}/{y...}")), "check failed");
  EXPECT_DEATH(build(At(Method::kGet, "/a{x}")), "check failed");
  EXPECT_DEATH(build(At(Method::kGet, "/{}")), "check failed");
  build(At(Method::kGet, "/a/{x}"), At(Method::kPost, "/a/{y}"), At(Method::kGet, "/a/{x...}"));
}

}  // namespace
}  // namespace interlock::http
