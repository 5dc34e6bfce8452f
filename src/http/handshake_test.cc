#include "http/handshake.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace interlock::http {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr char kKey[] = "dGhlIHNhbXBsZSBub25jZQ==";

// A proper handshake, with these fields instead of its own; an empty value takes a field away.
Request Handshake(const Fields& changes = {}) {
  Fields fields = {{"Host", "localhost:7338"},
                   {"Upgrade", "websocket"},
                   {"Connection", "Upgrade"},
                   {"Sec-WebSocket-Version", "13"},
                   {"Sec-WebSocket-Key", kKey}};
  for (const auto& [name, value] : changes) {
    std::erase_if(fields, [&wanted = name](const auto& field) { return field.first == wanted; });
    if (!value.empty()) fields.emplace_back(name, value);
  }
  Request request;
  for (auto& [name, value] : fields) request.headers.Add(std::move(name), std::move(value));
  return request;
}

int StatusOf(const Request& request) {
  const auto key = HandshakeKey(request);
  return key.ok() ? 101 : HandshakeRefusal(key.error()).status;
}

TEST(HandshakeTest, AProperHandshakeGivesItsKey) {
  const auto key = HandshakeKey(Handshake());
  ASSERT_TRUE(key.ok()) << key.error();
  EXPECT_EQ(*key, kKey);
}

TEST(HandshakeTest, TokensAreFoundInListsWithoutRegardToCase) {
  EXPECT_EQ(StatusOf(Handshake({{"Connection", "keep-alive, upgrade"}})), 101);
  EXPECT_EQ(StatusOf(Handshake({{"Upgrade", "h2c , WebSocket"}})), 101);
  Request request = Handshake({{"Connection", "keep-alive"}});
  request.headers.Add("connection", "Upgrade");
  EXPECT_EQ(StatusOf(request), 101);
}

TEST(HandshakeTest, AnHttp10RequestCannotUpgrade) {
  Request request = Handshake();
  request.http_1_0 = true;
  EXPECT_EQ(StatusOf(request), 426);
}

TEST(HandshakeTest, WhatAsksForNoUpgradeIs426AndLearnsWhatIsServed) {
  const std::vector<Fields> cases = {{{"Upgrade", ""}},
                                     {{"Connection", ""}},
                                     {{"Upgrade", "h2c"}},
                                     {{"Connection", "close"}},
                                     {{"Connection", "upgrade2, x"}}};
  for (const Fields& changes : cases) {
    EXPECT_EQ(StatusOf(Handshake(changes)), 426) << changes[0].first << ": " << changes[0].second;
  }
  const Response refusal = HandshakeRefusal(HandshakeKey(Handshake({{"Upgrade", ""}})).error());
  EXPECT_EQ(refusal.headers.Find("Upgrade"), "websocket");
  EXPECT_EQ(refusal.headers.Find("Connection"), "Upgrade");
}

TEST(HandshakeTest, AnotherVersionOrABadKeyIs400AndLearnsTheVersion) {
  const std::vector<Fields> cases = {
      {{"Sec-WebSocket-Version", ""}},
      {{"Sec-WebSocket-Version", "8"}},
      {{"Sec-WebSocket-Version", "13, 8"}},
      {{"Sec-WebSocket-Key", ""}},
      {{"Sec-WebSocket-Key", "short=="}},
      {{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ"}},
      {{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j Q=="}},
      {{"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZSE="}},
  };
  for (const Fields& changes : cases) {
    EXPECT_EQ(StatusOf(Handshake(changes)), 400) << changes[0].first << ": " << changes[0].second;
  }
  Request twice = Handshake();
  twice.headers.Add("Sec-WebSocket-Key", kKey);
  EXPECT_EQ(StatusOf(twice), 400);
  const Response refusal =
      HandshakeRefusal(HandshakeKey(Handshake({{"Sec-WebSocket-Version", "8"}})).error());
  EXPECT_EQ(refusal.headers.Find("Sec-WebSocket-Version"), "13");
}

TEST(HandshakeTest, AnOriginOtherThanTheHostIs403) {
  EXPECT_EQ(StatusOf(Handshake({{"Origin", "http://localhost:7338"}})), 101);
  EXPECT_EQ(StatusOf(Handshake({{"Origin", "http://LOCALHOST:7338"}})), 101);
  for (const char* origin : {"http://evil.example", "http://localhost:7339", "http://localhost",
                             "null", "localhost:7338", "http://localhost:7338.evil.example",
                             "http://evil.example/localhost:7338"}) {
    EXPECT_EQ(StatusOf(Handshake({{"Origin", origin}})), 403) << origin;
  }
}

}  // namespace
}  // namespace interlock::http
