#include "http/message.h"

#include <gtest/gtest.h>

namespace interlock::http {
namespace {

TEST(MessageTest, HeaderNamesCompareWithoutRegardToCase) {
  Headers headers;
  headers.Add("X-Agent-ID", "one");
  headers.Add("x-agent-id", "two");
  EXPECT_EQ(headers.Find("x-AGENT-id"), "one");
  EXPECT_EQ(headers.Count("X-Agent-Id"), 2U);
  EXPECT_EQ(headers.Find("X-Agent"), std::nullopt);
}

TEST(MessageTest, MethodsAreCaseSensitive) {
  for (const Method method : {Method::kGet, Method::kPost, Method::kPut, Method::kPatch,
                              Method::kDelete, Method::kHead, Method::kOptions}) {
    EXPECT_EQ(ParseMethod(MethodName(method)), method);
  }
  EXPECT_EQ(ParseMethod("get"), Method::kOther);
  EXPECT_EQ(ParseMethod(""), Method::kOther);
}

TEST(MessageTest, EveryErrorHasAStatusWithAPhraseAndABodyWithSlugAndMessage) {
  for (const ErrcInfo& info : AllErrcs()) {
    const bool for_the_log = info.code == Errc::kInternal || info.code == Errc::kOutcomeUnknown ||
                             IsInfrastructure(info.code);
    if (for_the_log) continue;  // see below
    const Response response = ErrorResponse(Error(info.code, "say \"what\" to do"));
    EXPECT_EQ(response.status, info.http_status);
    EXPECT_NE(ReasonPhrase(response.status), "") << info.slug;
    const std::string more = info.http_status == 429 ? ",\"retry_after_seconds\":1" : "";
    EXPECT_EQ(response.body, "{\"error\":\"" + std::string(info.slug) +
                                 "\",\"message\":\"say \\\"what\\\" to do\"" + more + "}\n");
    EXPECT_EQ(response.headers.Find("Content-Type"), "application/json");
    EXPECT_EQ(response.headers.Find("Retry-After").has_value(),
              info.http_status == 503 || info.http_status == 429)
        << info.slug;
    EXPECT_EQ(response.headers.Find("WWW-Authenticate").value_or(""),
              info.http_status == 401 ? "Bearer realm=\"intermute\"" : "")
        << info.slug;
  }
}

TEST(MessageTest, ARateLimitSaysWhenToTryAgainInBothNames) {
  const Response limited = ErrorResponse(Error(Errc::kRateLimited, "wait")
                                             .WithSlug("rate_limit")
                                             .WithDetail("retry_after", std::int64_t{17}));
  EXPECT_EQ(limited.body,
            "{\"error\":\"rate_limit\",\"message\":\"wait\",\"retry_after\":17,"
            "\"retry_after_seconds\":17}\n");
  EXPECT_EQ(limited.headers.Find("Retry-After"), "17");
  // Waiting does not cure it.
  const Response full =
      ErrorResponse(Error(Errc::kRateLimited, "release some").WithSlug("reservation_limit"));
  EXPECT_EQ(full.body, "{\"error\":\"reservation_limit\",\"message\":\"release some\"}\n");
  EXPECT_FALSE(full.headers.Find("Retry-After").has_value());
}

TEST(MessageTest, LostDatabaseFileIsNotWorthARetry) {
  const Response lost =
      ErrorResponse(Error(Errc::kUnavailable, "/srv/i.db was removed").WithSlug("cannot_open"));
  EXPECT_EQ(lost.status, 503);
  EXPECT_FALSE(lost.headers.Find("Retry-After").has_value());
  EXPECT_EQ(lost.fault, "/srv/i.db was removed");
}

TEST(MessageTest, OurOwnMistakesAreForTheLogAndNotForTheClient) {
  const Response response =
      ErrorResponse(Error(Errc::kInternal, "the secret").WithDetail("key", std::string("secret")));
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.fault, "the secret");
  for (const Errc code :
       {Errc::kIo, Errc::kCorrupt, Errc::kDiskFull, Errc::kBusy, Errc::kOutcomeUnknown}) {
    const Response failed = ErrorResponse(Error(code, "running SELECT (/srv/i.db)"));
    EXPECT_EQ(failed.status, 503);
    EXPECT_EQ(failed.headers.Find("Retry-After").has_value(), true);
    EXPECT_EQ(failed.body.find("/srv"), std::string::npos) << failed.body;
    EXPECT_EQ(failed.fault, "running SELECT (/srv/i.db)");
  }
  EXPECT_EQ(response.body.find("secret"), std::string::npos);
  EXPECT_NE(response.body.find("{\"error\":\"internal\",\"message\":\""), std::string::npos);
}

TEST(MessageTest, DetailsOfAnErrorAreFieldsOfItsBody) {
  const Response response = ErrorResponse(Error(Errc::kCircuitOpen, "wait")
                                              .WithDetail("retry_after", std::int64_t{17})
                                              .WithDetail("holder", std::string("a")));
  EXPECT_EQ(
      response.body,
      "{\"error\":\"circuit_open\",\"message\":\"wait\",\"retry_after\":17,\"holder\":\"a\"}\n");
  EXPECT_EQ(response.headers.Find("Retry-After"), "17");
}

constexpr Timestamp kNow{1'767'323'045'678'901};

TEST(MessageTest, HeadsSayLengthAndPersistenceAndLetNoValueBreakOut) {
  Response response = Response::Json(200, "{}");
  response.headers.Add("Location", "/a\r\nSet-Cookie: x");
  EXPECT_EQ(
      HeadText(response, Persistence::kKeepOpen, kNow),
      "HTTP/1.1 200 OK\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\nContent-Type: application/json\r\n"
      "Location: /a  Set-Cookie: x\r\nContent-Length: 3\r\n\r\n");
  response.headers = Headers();
  EXPECT_EQ(HeadText(response, Persistence::kClose, kNow),
            "HTTP/1.1 200 OK\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\nContent-Length: "
            "3\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(HeadText(response, Persistence::kKeepOpenAndSaySo, kNow),
            "HTTP/1.1 200 OK\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\nContent-Length: "
            "3\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(
      HeadText(Response{.status = 204, .headers = {}, .body = {}}, Persistence::kKeepOpen, kNow),
      "HTTP/1.1 204 No Content\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\n\r\n");
}

TEST(MessageTest, TheDateMovesWithTheClockInBothDirections) {
  const Response response;
  for (const int second : {0, 1, 0, 2}) {
    const std::string head =
        HeadText(response, Persistence::kKeepOpen, kNow + std::chrono::seconds(second));
    EXPECT_NE(head.find("03:04:0" + std::to_string(5 + second) + " GMT"), std::string::npos);
  }
}

}  // namespace
}  // namespace interlock::http
