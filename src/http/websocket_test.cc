#include "http/websocket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <future>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "api/app.h"
#include "api/route.h"
#include "api/server_fixture.h"
#include "base/mutex.h"
#include "http/handshake.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"
#include "testing/ws_client.h"

namespace interlock::http {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using testing::HttpClient;
using testing::WsClient;

// What the test says to all conversations at once: each sends the texts given to Say(), in order.
// Thread-safe; a mailbox outlives the server.
class Script {
 public:
  void Say(std::string text) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    texts_.push_back(std::move(text));
    WakeAll();
  }
  // The conversations end with this.
  void End(CloseReason reason) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    reason_ = std::move(reason);
    WakeAll();
  }
  // Lets the executors go: they must not outlive their server.
  void Forget() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    waiters_.clear();
  }
  std::vector<std::string> heard() const IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return heard_;
  }

  std::atomic<int> living = 0;    // conversations whose Run() is under way
  std::atomic<int> too_slow = 0;  // those that ended so

 private:
  friend class Conversation;
  struct Waiter {
    asio::any_io_executor executor;
    std::weak_ptr<asio::steady_timer> timer;
  };
  void WakeAll() IL_REQUIRES(mutex_) {
    for (const Waiter& waiter : waiters_) {
      asio::post(waiter.executor, [weak = waiter.timer] {
        if (const auto timer = weak.lock()) timer->cancel();
      });
    }
  }

  mutable Mutex mutex_;
  std::deque<std::string> texts_ IL_GUARDED_BY(mutex_);  // addresses stay
  std::optional<CloseReason> reason_ IL_GUARDED_BY(mutex_);
  std::vector<std::string> heard_ IL_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ IL_GUARDED_BY(mutex_);
};

class Conversation final : public Upgrade {
 public:
  Conversation(std::string key, Script& script) : Upgrade(std::move(key)), script_(script) {}

  asio::awaitable<CloseReason> Run(WebSocket& socket) override {
    ++script_.living;
    const auto executor = co_await asio::this_coro::executor;
    wake_ = std::make_shared<asio::steady_timer>(executor, asio::steady_timer::time_point::max());
    Register(executor);
    std::size_t next = 0;
    while (!ended_) {
      const std::string* const text = TextAt(next);
      if (text != nullptr) {
        ++next;
        const WebSocket::Sent sent = co_await socket.Send(*text);
        if (sent == WebSocket::Sent::kTooSlow) ++script_.too_slow;
        if (sent != WebSocket::Sent::kTaken) break;
        continue;
      }
      if (Reason()) break;
      co_await wake_->async_wait(asio::as_tuple(asio::use_awaitable));
      wake_->expires_at(asio::steady_timer::time_point::max());
    }
    wake_.reset();
    --script_.living;
    co_return Reason().value_or(CloseReason());
  }

  std::optional<CloseReason> OnText(std::string_view text) override {
    if (text == "leave") return CloseReason{CloseCode::kPolicy, std::string(500, 'r')};
    if (text == "throw") throw std::runtime_error("as the test asked");
    MutexLock lock(script_.mutex_);
    script_.heard_.emplace_back(text);
    script_.texts_.emplace_back("heard " + std::to_string(text.size()));
    script_.WakeAll();
    return std::nullopt;
  }

  void OnEnd() override {
    ended_ = true;
    if (wake_) wake_->cancel();
  }

 private:
  void Register(const asio::any_io_executor& executor) {
    MutexLock lock(script_.mutex_);
    script_.waiters_.push_back({executor, wake_});
  }
  const std::string* TextAt(std::size_t index) {
    MutexLock lock(script_.mutex_);
    return index < script_.texts_.size() ? &script_.texts_[index] : nullptr;
  }
  std::optional<CloseReason> Reason() {
    MutexLock lock(script_.mutex_);
    return script_.reason_;
  }

  Script& script_;
  std::shared_ptr<asio::steady_timer> wake_;
  bool ended_ = false;
};

Script* g_script = nullptr;  // of the test that runs; a handler has no other way to it

asio::awaitable<Result<Response>> Talk(api::App& /*app*/, api::Request& request) {
  auto key = HandshakeKey(request.sent);
  if (!key.ok()) co_return HandshakeRefusal(key.error());
  Response response;
  response.upgrade = std::make_shared<Conversation>(*key, *g_script);
  co_return response;
}

constexpr std::array kRoutes = {
    api::Route{.method = Method::kGet,
               .path = "/talk",
               .handler = Talk,
               .summary = "Says what it is told."},
};

// A real server whose WebSockets say what the test tells them.
class WebSocketTest : public api::RunningServerTest {
 public:
  ~WebSocketTest() override {
    Stop();
    g_script = nullptr;
  }

 protected:
  WebSocketTest() {
    g_script = &script_;
    limits_.linger_timeout = milliseconds(500);
  }

  void Start() { RunningServerTest::Start(kRoutes); }
  WsClient Connect() const { return WsClient::Tcp(port_, "/talk"); }
  // Sends `bytes`, and returns the close code that the server answers with.
  int CodeFor(std::string_view bytes) {
    WsClient client = Connect();
    EXPECT_TRUE(client.open());
    client.SendBytes(bytes);
    return client.ReadClose();
  }
  static WsClient::FrameStyle Style(bool final, bool masked, std::uint8_t reserved = 0) {
    return {.final = final, .masked = masked, .reserved = reserved};
  }

  Script script_;

 private:
  void OnJoined() override { script_.Forget(); }
};

TEST_F(WebSocketTest, SendsTextsInOrderEachAsOneFrame) {
  Start();
  WsClient client = Connect();
  ASSERT_TRUE(client.open()) << client.answer().status;
  const std::vector<std::string> texts = {"", "short", std::string(125, 'a'), std::string(126, 'b'),
                                          std::string(70'000, 'c')};
  for (const std::string& text : texts) script_.Say(text);
  for (const std::string& text : texts) {
    const auto frame = client.ReadFrame();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->opcode, WsClient::kText);
    EXPECT_TRUE(frame->final);
    EXPECT_EQ(frame->payload, text);
  }
}

TEST_F(WebSocketTest, OffersNoExtension) {
  Start();
  WsClient client(HttpClient::Tcp(port_), "/talk",
                  "Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Protocol: x\r\n");
  EXPECT_TRUE(client.open());
}

TEST_F(WebSocketTest, HearsWholeAndFragmentedMessages) {
  Start();
  WsClient client = Connect();
  EXPECT_TRUE(client.SendText("{}"));
  EXPECT_EQ(client.ReadText(), "heard 2");
  client.SendBytes(WsClient::FrameBytes(WsClient::kText, "ab", Style(false, true)));
  client.SendBytes(WsClient::FrameBytes(WsClient::kPing, "between"));
  client.SendBytes(WsClient::FrameBytes(WsClient::kContinuation, "c", Style(false, true)));
  client.SendBytes(WsClient::FrameBytes(WsClient::kContinuation, ""));
  const auto pong = client.ReadFrame();
  ASSERT_TRUE(pong);
  EXPECT_EQ(pong->opcode, WsClient::kPong);
  EXPECT_EQ(pong->payload, "between");
  EXPECT_EQ(client.ReadText(), "heard 3");
  EXPECT_EQ(script_.heard(), (std::vector<std::string>{"{}", "abc"}));
}

TEST_F(WebSocketTest, ReadsWhatCameAlongWithTheHandshake) {
  Start();
  HttpClient http = HttpClient::Tcp(port_);
  std::string bytes = WsClient::Handshake("/talk");
  for (int i = 0; i < 400; ++i)
    bytes += WsClient::FrameBytes(WsClient::kText, "number " + std::to_string(i));
  const std::string_view all = bytes;
  ASSERT_TRUE(http.Send(all.substr(0, all.size() - 3)));
  const auto answer = http.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 101);
  ASSERT_TRUE(http.Send(all.substr(all.size() - 3)));
  while (script_.heard().size() < 400) std::this_thread::yield();
  for (int i = 0; i < 400; ++i) EXPECT_EQ(script_.heard()[i], "number " + std::to_string(i));
}

TEST_F(WebSocketTest, AMessageOfThirtyTwoKiBPassesAndOneByteMoreIs1009) {
  Start();
  const std::string most(limits_.ws_message_bytes_max, 'x');
  WsClient client = Connect();
  client.SendText(most);
  EXPECT_EQ(client.ReadText(), "heard 32768");
  client.SendText(most + "x");
  EXPECT_EQ(client.ReadClose(), 1009);
  // Also in pieces that are each small enough, and when only the length has come.
  const std::string half(limits_.ws_message_bytes_max / 2 + 1, 'x');
  EXPECT_EQ(CodeFor(WsClient::FrameBytes(WsClient::kText, half, Style(false, true)) +
                    WsClient::FrameBytes(WsClient::kContinuation, half)),
            1009);
  EXPECT_EQ(CodeFor(std::string("\x81\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x02\x03\x04", 14)),
            1009);
  EXPECT_EQ(CodeFor(std::string("\x81\xFF\x80\0\0\0\0\0\0\0mask", 14)), 1009);  // 2^63
}

TEST_F(WebSocketTest, FragmentsMayFillThirtyTwoKiBAndNotAByteMore) {
  Start();
  const std::string most(limits_.ws_message_bytes_max, 'x');
  const auto first = [](std::string_view text) {
    return WsClient::FrameBytes(WsClient::kText, text, Style(false, true));
  };
  const auto last = [](std::string_view text) {
    return WsClient::FrameBytes(WsClient::kContinuation, text);
  };
  const std::string_view all = most;
  WsClient client = Connect();
  client.SendBytes(first(all.substr(1)) + last("x"));
  EXPECT_EQ(client.ReadText(), "heard 32768");
  client.SendBytes(first(all) + last(""));  // nothing is left of the room, and nothing needed
  EXPECT_EQ(client.ReadText(), "heard 32768");
  // The first fragment fills the room to the last byte; what follows is too much, and is told so.
  EXPECT_EQ(CodeFor(first(all) + last("x")), 1009);
  EXPECT_EQ(CodeFor(first(all.substr(1)) + last("xy")), 1009);
  EXPECT_EQ(CodeFor(first(all) + last(all)), 1009);
}

TEST_F(WebSocketTest, AnHttp10RequestIsNotUpgraded) {
  Start();
  HttpClient http = HttpClient::Tcp(port_);
  std::string bytes = WsClient::Handshake("/talk");
  bytes.replace(bytes.find("HTTP/1.1"), 8, "HTTP/1.0");
  ASSERT_TRUE(http.Send(bytes));
  const auto answer = http.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 426);
}

TEST_F(WebSocketTest, BrokenFramesAre1002) {
  Start();
  const auto frame = [](WsClient::Opcode opcode, WsClient::FrameStyle style) {
    return WsClient::FrameBytes(opcode, "x", style);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"unmasked", frame(WsClient::kText, Style(true, false))},
      {"reserved bit 1", frame(WsClient::kText, Style(true, true, 4))},
      {"reserved bit 3", frame(WsClient::kText, Style(true, true, 1))},
      {"unknown data opcode", frame(WsClient::Opcode(3), {})},
      {"unknown control opcode", frame(WsClient::Opcode(11), {})},
      {"fragmented ping", frame(WsClient::kPing, Style(false, true))},
      {"long ping", WsClient::FrameBytes(WsClient::kPing, std::string(126, 'x'))},
      {"continuation of nothing", frame(WsClient::kContinuation, {})},
      {"text within a text",
       frame(WsClient::kText, Style(false, true)) + frame(WsClient::kText, {})},
      {"length in more bytes than needed", std::string("\x81\xFE\x00\x01mask.", 9)},
      {"close code of one byte", WsClient::FrameBytes(WsClient::kClose, "x")},
  };
  for (const auto& [what, bytes] : cases) EXPECT_EQ(CodeFor(bytes), 1002) << what;
  EXPECT_TRUE(script_.heard().empty());
}

std::string CloseBytes(int code) {
  const std::string payload = {static_cast<char>(code / 256), static_cast<char>(code % 256)};
  return WsClient::FrameBytes(WsClient::kClose, payload);
}

TEST_F(WebSocketTest, CloseCodesOutsideTheAllowedRangesAre1002) {
  Start();
  for (const int bad :
       {0, 1, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 5001, 5119, 5120, 9999, 65535}) {
    WsClient client = Connect();
    client.SendBytes(CloseBytes(bad));
    EXPECT_EQ(client.ReadClose(), 1002) << bad;
    EXPECT_TRUE(client.ClosedByServer()) << bad;
  }
  for (const int good : {1000, 1001, 1003, 1007, 1011, 1013, 3000, 3999, 4000, 4409, 4999}) {
    EXPECT_EQ(CodeFor(CloseBytes(good)), good);
  }
  EXPECT_TRUE(AwaitConnections(0));
}

TEST_F(WebSocketTest, BadCloseCodeAmongOtherFramesIs1002) {
  Start();
  for (int i = 0; i < 20; ++i) {
    WsClient client = Connect();
    client.SendBytes(WsClient::FrameBytes(WsClient::kPing, "p") + CloseBytes(5000 + i) +
                     CloseBytes(1000) + WsClient::FrameBytes(WsClient::kText, "late"));
    EXPECT_EQ(client.ReadClose(), 1002) << i;
  }
  EXPECT_TRUE(AwaitConnections(0));
}

TEST_F(WebSocketTest, TextThatIsNotUtf8Is1007AndBinaryIs1003) {
  Start();
  EXPECT_EQ(CodeFor(WsClient::FrameBytes(WsClient::kText, "\xC3\x28")), 1007);
  EXPECT_EQ(CodeFor(WsClient::FrameBytes(WsClient::kText, "\xED\xA0\x80")), 1007);
  EXPECT_EQ(CodeFor(WsClient::FrameBytes(WsClient::kText, "\xE2\x82")), 1007);
  const std::string half = WsClient::FrameBytes(WsClient::kText, "1\xC3", {.final = false});
  EXPECT_EQ(CodeFor(half + WsClient::FrameBytes(WsClient::kContinuation, "")), 1007)
      << "the end is missing, though the last frame is good";
  EXPECT_EQ(CodeFor(WsClient::FrameBytes(WsClient::kBinary, "{}")), 1003);
}

TEST_F(WebSocketTest, WhatTheConversationRefusesClosesWithItsReasonCutToFit) {
  Start();
  WsClient client = Connect();
  client.SendText("leave");
  EXPECT_EQ(client.ReadClose(), 1008);
  EXPECT_EQ(client.close_reason(), std::string(123, 'r'));
  EXPECT_TRUE(client.ClosedByServer());
  EXPECT_TRUE(AwaitConnections(0));
}

TEST_F(WebSocketTest, AConversationThatThrowsLosesItsConnectionOnly) {
  Start();
  WsClient witness = Connect();
  ASSERT_TRUE(witness.open());
  EXPECT_EQ(CodeFor(WsClient::FrameBytes(WsClient::kText, "throw")), 1011);
  witness.SendText("{}");
  EXPECT_EQ(witness.ReadText(), "heard 2");
}

TEST_F(WebSocketTest, AClosingPeerGetsItsCodeBackAndTheServerClosesFirst) {
  Start();
  WsClient client = Connect();
  client.SendClose(1000, "done");
  EXPECT_EQ(client.ReadClose(), 1000);
  EXPECT_TRUE(client.ClosedByServer());
  EXPECT_TRUE(AwaitConnections(0));
  EXPECT_EQ(script_.living, 0);
}

TEST_F(WebSocketTest, AConversationThatEndsClosesWithItsReason) {
  Start();
  WsClient client = Connect();
  script_.Say("last");
  script_.End({CloseCode::kTryAgainLater, "too slow"});
  EXPECT_EQ(client.ReadText(), "last");
  EXPECT_EQ(client.ReadClose(), 1013);
  EXPECT_EQ(client.close_reason(), "too slow");
}

TEST_F(WebSocketTest, PeersThatVanishLeaveNothingBehind) {
  Start();
  constexpr int kPeers = testing::kSlowBuild ? 200 : 1000;
  for (int i = 0; i < kPeers; ++i) {
    WsClient client = Connect();
    ASSERT_TRUE(client.open()) << i;
    const std::string frame = WsClient::FrameBytes(WsClient::kText, "{\"type\":\"x\"}");
    if (i % 4 == 0) client.SendBytes(std::string_view(frame).substr(0, i % frame.size()));
    if (i % 4 == 1) client.http().Reset();
    if (i % 4 == 2) client.http().FinishSending();
    if (i % 4 == 3) {
      client.SendBytes(std::string_view(frame).substr(0, 5));
      client.http().Reset();
    }
  }
  EXPECT_TRUE(AwaitConnections(0));
  EXPECT_EQ(script_.living, 0);
}

TEST_F(WebSocketTest, ASilentPeerIsPingedAndThenDropped) {
  limits_.ws_ping_interval = milliseconds(100);
  Start();
  WsClient client = Connect();
  const auto ping = client.ReadFrame();  // and no pong
  ASSERT_TRUE(ping);
  EXPECT_EQ(ping->opcode, WsClient::kPing);
  EXPECT_TRUE(client.ClosedByServer());
  EXPECT_TRUE(AwaitConnections(0));
}

TEST_F(WebSocketTest, HalfAFrameAndThenSilenceIsDroppedToo) {
  limits_.ws_ping_interval = milliseconds(100);
  Start();
  WsClient client = Connect();
  client.SendBytes(std::string_view(WsClient::FrameBytes(WsClient::kText, "half")).substr(0, 7));
  while (client.ReadFrame()) {
  }
  EXPECT_TRUE(AwaitConnections(0));
}

TEST_F(WebSocketTest, APeerThatAnswersPingsOutlivesEveryHttpTimeout) {
  limits_.ws_ping_interval = milliseconds(60);
  limits_.idle_timeout = limits_.header_timeout = limits_.body_timeout = milliseconds(20);
  Start();
  WsClient client = Connect();
  for (int pings = 0; pings < 5; ++pings) {
    const auto ping = client.ReadFrame();
    ASSERT_TRUE(ping);
    ASSERT_EQ(ping->opcode, WsClient::kPing);
    client.SendBytes(WsClient::FrameBytes(WsClient::kPong, ping->payload));
  }
  script_.Say("still here");
  EXPECT_EQ(client.ReadText(), "still here");
}

TEST_F(WebSocketTest, APeerThatReadsNothingIsDroppedAndDelaysNobody) {
  limits_.write_timeout = milliseconds(testing::kSlowBuild ? 4'000 : 1'000);
  Start();
  WsClient stalled = Connect();
  WsClient reader = Connect();
  ASSERT_TRUE(stalled.open() && reader.open());
  const std::string big(1'000'000, 'x');  // a few of these fill what the kernel buffers
  for (int i = 0; i < 20; ++i) script_.Say(big);
  for (int i = 0; i < 20; ++i) {
    const auto text = reader.ReadText();
    ASSERT_TRUE(text) << i;
    ASSERT_EQ(text->size(), big.size());
  }
  EXPECT_TRUE(AwaitConnections(1));
  EXPECT_EQ(script_.too_slow, 1);
}

TEST_F(WebSocketTest, APeerClosedForBeingSlowMayStillReadUpToTheCloseFrame) {
  Start();
  WsClient slow = Connect();
  ASSERT_TRUE(slow.open());
  const std::string big(1'000'000, 'x');
  for (int i = 0; i < 20; ++i) script_.Say(big);
  script_.End({CloseCode::kTryAgainLater, "too slow"});
  WsClient other = Connect();
  EXPECT_EQ(other.ReadClose(), 1013);  // by now the slow one's writes have begun, too
  int texts = 0;
  while (slow.ReadText()) ++texts;
  EXPECT_EQ(texts, 20);
  EXPECT_EQ(slow.close_code(), 1013);
}

TEST_F(WebSocketTest, AStoppingServerCloses1001) {
  Start();
  WsClient client = Connect();
  ASSERT_TRUE(client.open());
  auto stopped = std::async(std::launch::async, [&] { return Stop(); });
  EXPECT_EQ(client.ReadClose(), 1001);
  EXPECT_TRUE(client.ClosedByServer());
  EXPECT_EQ(stopped.get(), Server::Drained::kAll);
  EXPECT_EQ(script_.living, 0);
}

TEST_F(WebSocketTest, StopWaitsNeitherForAStalledPeerNorForAnAnswerToItsClose) {
  limits_.drain_timeout = std::chrono::seconds(60);
  limits_.linger_timeout = milliseconds(100);
  Start();
  WsClient stalled = Connect();
  WsClient mute = Connect();
  ASSERT_TRUE(stalled.open() && mute.open());
  for (int i = 0; i < 20; ++i) script_.Say(std::string(1'000'000, 'x'));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(mute.ReadText());
  const Duration begin = clock_.Monotonic();
  EXPECT_EQ(Stop(), Server::Drained::kAll);
  EXPECT_LT(clock_.Monotonic() - begin, std::chrono::seconds(20));
  EXPECT_EQ(script_.too_slow, 0) << "a server that stops calls nobody slow";
  EXPECT_FALSE(mute.ReadText());
  EXPECT_EQ(mute.close_code(), 1001);
}

TEST_F(WebSocketTest, CountsAgainstTheConnections) {
  limits_.connections_max = 2;
  Start();
  WsClient first = Connect();
  WsClient second = Connect();
  ASSERT_TRUE(first.open() && second.open());
  EXPECT_EQ(server_->connections(), 2U);
  WsClient third = Connect();
  EXPECT_EQ(third.answer().status, 503);
}

TEST_F(WebSocketTest, RandomBytesNeverHarmTheServer) {
  Start();
  std::mt19937_64 rng(testing::TestSeed());
  WsClient witness = Connect();
  ASSERT_TRUE(witness.open());
  constexpr int kRounds = testing::kSlowBuild ? 100 : 500;
  for (int round = 0; round < kRounds; ++round) {
    WsClient client = Connect();
    ASSERT_TRUE(client.open());
    std::string bytes = WsClient::FrameBytes(WsClient::kText, "{\"type\":\"subscribe\"}");
    const std::size_t changes = 1 + testing::Below(rng, 4);
    for (std::size_t i = 0; i < changes; ++i) {
      bytes[testing::Below(rng, bytes.size())] = static_cast<char>(testing::Below(rng, 256));
    }
    client.SendBytes(bytes);
    if (round % 2 == 0) client.http().FinishSending();
  }
  ASSERT_TRUE(AwaitConnections(1));
  witness.SendText("alive?");
  while (true) {
    const auto text = witness.ReadText();
    ASSERT_TRUE(text);
    if (*text == "heard 6") break;
  }
}

}  // namespace
}  // namespace interlock::http
