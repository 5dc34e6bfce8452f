
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/app.h"
#include "api/app_fixture.h"
#include "api/dispatch.h"
#include "api/metrics.h"
#include "api/route.h"
#include "api/routes.h"
#include "auth/keyring.h"
#include "auth/keyring_holder.h"
#include "http/server.h"
#include "service/feed_fixture.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/ws_client.h"

namespace interlock::api {
namespace {

using domain::Cursor;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::WsClient;

using Cursors = std::vector<Cursor>;

Cursors FromTo(Cursor first, Cursor last) {
  Cursors cursors(static_cast<std::size_t>(last - first + 1));
  std::iota(cursors.begin(), cursors.end(), first);
  return cursors;
}

// The cursor of the next event; 0 when the connection ends first.
Cursor Next(WsClient& client) {
  const auto text = client.ReadText();
  constexpr std::string_view kHead = "{\"cursor\":";
  Cursor cursor = 0;
  if (text && text->starts_with(kHead)) {
    std::from_chars(text->data() + kHead.size(), text->data() + text->size(), cursor);
  }
  return cursor;
}

// The next events, until there are `count` or the connection ends.
Cursors Receive(WsClient& client, std::size_t count) {
  Cursors cursors;
  while (cursors.size() < count) {
    const Cursor cursor = Next(client);
    if (cursor == 0) break;
    cursors.push_back(cursor);
  }
  return cursors;
}

// The routes of this file on a real feed, database and server.
class FollowTest : public service::FeedTest {
 public:
  ~FollowTest() override { Stop(); }

 protected:
  void Serve(service::Feed::Options options = {}) {
    durability_ = sqlite::Durability::kFast;
    Open(options);
    services_ = std::make_unique<TestServices>(*database_, clock_);
    app_.reset(new App(services_->MakeApp(log_, services_->health, *feed_)));
    limits_.linger_timeout = milliseconds(300);
    table_ = std::make_unique<RouteTable>(FollowRoutes());
    dispatcher_ = std::make_unique<Dispatcher>(*table_, *app_);
    server_ = std::make_unique<http::Server>(*dispatcher_, log_, services_->events, clock_,
                                             http::Server::Options{.limits = limits_});
    auto tcp = http::ListenTcp("127.0.0.1", 0);
    port_ = tcp->port;
    server_->Listen(std::move(*tcp));
    server_->Start();
  }
  void Stop() {
    if (!server_) return;
    server_->StopAccepting();
    server_->Drain();
    Shutdown();
    server_->Join();
    server_.reset();
  }

  WsClient Connect(const std::string& query = "") {
    return WsClient::Tcp(port_, "/ws/events?project=p" + query);
  }
  // Many events in one transaction, each with so much data.
  void AppendBulk(int count, std::size_t data_bytes) {
    const std::string data = "\"" + std::string(data_bytes, 'x') + "\"";
    ASSERT_TRUE(Write([count, data](db::Transaction& tx) -> Result<void> {
                  for (int i = 0; i < count; ++i) {
                    IL_TRY_VOID(store::AppendEvent(
                        tx, {.type = "t", .project = "p", .entity_id = "e", .data = data}));
                  }
                  return {};
                }).ok());
  }
  bool AwaitFollowers(std::size_t count) {
    const Duration end = clock_.Monotonic() + std::chrono::seconds(20);
    while (feed_->stats().followers != count) {
      if (clock_.Monotonic() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  // The log as a server finds it that starts on it: nothing is read before somebody asks.
  void ServeLog(int events, service::Feed::Options options = {}) {
    durability_ = sqlite::Durability::kFast;
    Open();
    AppendMany(events, "p");
    Reset();
    Serve(options);
  }
  // So many bytes of events that neither the kernel nor a peer's outbox takes them all.
  void AppendTooMuch() {
    for (int i = 0; i < 60; ++i) AppendBulk(8, 30'000);  // 480 of them
  }
  // What /metrics says of consumers that were too slow.
  std::string LaggedMetric() {
    const Metrics metrics(Routes(), clock_, [this] {
      ServerNumbers numbers;
      numbers.websocket.lagged = feed_->stats().lagged;
      return numbers;
    });
    const std::string text = metrics.Text({});
    const std::size_t begin = text.find("\nintermute_websocket_lagged_total ") + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  // Waits until the server has heard everything that `client` sent before.
  static void AwaitHeard(WsClient& client) {
    client.SendBytes(WsClient::FrameBytes(WsClient::kPing, "heard?"));
    const auto pong = client.ReadFrame();
    ASSERT_TRUE(pong);
    ASSERT_EQ(pong->opcode, WsClient::kPong);
  }

  Limits limits_;
  std::unique_ptr<TestServices> services_;
  std::unique_ptr<App> app_;
  std::unique_ptr<RouteTable> table_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<http::Server> server_;
  std::uint16_t port_ = 0;
};

TEST_F(FollowTest, ReplaysBehindACursorAndGoesOnLive) {
  Serve();
  AppendMany(3, "p");
  WsClient resumed = Connect("&since_cursor=1");
  WsClient oldest = Connect("&since_cursor=0");
  WsClient live = Connect();
  ASSERT_TRUE(resumed.open() && oldest.open() && live.open());
  AppendMany(2, "p");
  EXPECT_THAT(Receive(resumed, 4), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(Receive(oldest, 5), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Receive(live, 2), ElementsAre(4, 5));
}

TEST_F(FollowTest, AnExpiredCursorIs410AndNamesTheOldest) {
  Serve();
  AppendMany(5, "p");
  ASSERT_TRUE(Write([](db::Transaction& tx) -> Result<void> {
                IL_TRY_VOID(store::PruneEvents(tx, 3, 500));
                return {};
              }).ok());
  const WsClient expired = Connect("&since_cursor=1");
  EXPECT_EQ(expired.answer().status, 410);
  EXPECT_THAT(expired.answer().body, HasSubstr("\"error\":\"cursor_expired\""));
  EXPECT_THAT(expired.answer().body, HasSubstr("\"oldest_cursor\":4"));
  WsClient oldest = Connect("&since_cursor=0");
  EXPECT_THAT(Receive(oldest, 2), ElementsAre(4, 5));
}

TEST_F(FollowTest, CursorBeyondTheLogClosesWith4409AndNamesTheNewest) {
  Serve();
  AppendMany(2, "p");
  for (const char* ahead : {"3", "9223372036854775807"}) {
    WsClient client = Connect(std::string("&since_cursor=") + ahead);
    ASSERT_TRUE(client.open()) << ahead;
    EXPECT_FALSE(client.ReadText());
    EXPECT_EQ(client.close_code(), 4409) << ahead;
    EXPECT_THAT(client.close_reason(), HasSubstr("cursor_ahead: the log ends at cursor 2."));
  }
  WsClient at_the_end = Connect("&since_cursor=2");
  AppendMany(1, "p");
  EXPECT_THAT(Receive(at_the_end, 1), ElementsAre(3));
}

TEST_F(FollowTest, FiltersAreSetByTheQueryAndChangedByMessages) {
  Serve();
  WsClient client = Connect("&types=a,%20b,");
  WsClient all = Connect();
  ASSERT_TRUE(client.open() && all.open());
  for (const char* type : {"a", "c", "b"}) ASSERT_TRUE(Append("p", type).ok());
  EXPECT_THAT(Receive(client, 2), ElementsAre(1, 3));
  client.SendText(R"({"type":"unsubscribe","event_types":["a"]})");
  client.SendText(R"({"type":"subscribe","event_types":["c"]})");
  AwaitHeard(client);
  for (const char* type : {"a", "b", "c"}) ASSERT_TRUE(Append("p", type).ok());
  EXPECT_THAT(Receive(client, 2), ElementsAre(5, 6));

  EXPECT_EQ(Receive(all, 6), FromTo(1, 6));
  for (const char* ignored :
       {R"({"type":"subscribe","event_types":[]})", R"({"type":"subscribe"})", "null", "[1]",
        R"({"type":"subscribe","event_types":["a",1]})", R"({"type":1,"event_types":["a"]})",
        R"({"type":"hello","event_types":["a"]})", R"({"event_types":["a"]} trailing)"}) {
    all.SendText(ignored);
  }
  AwaitHeard(all);
  ASSERT_TRUE(Append("p", "z").ok());
  EXPECT_THAT(Receive(all, 1), ElementsAre(7));
  all.SendText(R"({"type":"unsubscribe","event_types":["z"]})");
  AwaitHeard(all);
  for (const char* type : {"z", "y"}) ASSERT_TRUE(Append("p", type).ok());
  EXPECT_THAT(Receive(all, 1), ElementsAre(9));
}

TEST_F(FollowTest, MoreTypesThanAFilterHoldsIs1008) {
  Serve({.types_max = 2});
  WsClient client = Connect();
  client.SendText(R"({"type":"subscribe","event_types":["a","b","c"]})");
  EXPECT_EQ(client.ReadClose(), 1008);
  EXPECT_EQ(Connect("&types=a,b,c").answer().status, 400);
}

TEST_F(FollowTest, ASlowConsumerIsClosedWith1013AndResumesWithoutAGap) {
  Serve({.outbox_events_max = 16});
  WsClient slow = Connect();
  WsClient other = Connect();
  ASSERT_TRUE(slow.open() && other.open());
  // Far more than the kernel keeps for a connection, and the outbox for a consumer.
  constexpr Cursor kLast = 480;
  for (Cursor last = 8; last <= kLast; last += 8) {
    AppendBulk(8, 30'000);
    ASSERT_EQ(Receive(other, 8), FromTo(last - 7, last));  // the slow one delays nobody
  }
  Cursors seen = Receive(slow, 1'000'000);
  EXPECT_EQ(slow.close_code(), 1013) << seen.size();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(feed_->stats().lagged, 1U);
  EXPECT_TRUE(AwaitFollowers(1));
  ASSERT_LT(seen.back(), kLast);
  WsClient resumed = Connect("&since_cursor=" + std::to_string(seen.back()));
  for (const Cursor cursor : Receive(resumed, static_cast<std::size_t>(kLast - seen.back()))) {
    seen.push_back(cursor);
  }
  EXPECT_EQ(seen, FromTo(1, kLast));
}

TEST_F(FollowTest, AFailureOfTheLogIs1011) {
  Serve();
  AppendBulk(4000, 8'000);  // more than the kernel and one read take
  // All of it is in the past when it is followed, so it is read from the log and not told live.
  const Duration end = clock_.Monotonic() + std::chrono::seconds(20);
  while (feed_->stats().published < 4000 && clock_.Monotonic() < end) std::this_thread::yield();
  WsClient client = Connect("&since_cursor=0");
  ASSERT_TRUE(client.open());
  EXPECT_EQ(Next(client), 1);
  storage_->Stop();
  ASSERT_TRUE(database_->Close().ok());
  const std::size_t seen = 1 + Receive(client, 1'000'000).size();
  EXPECT_EQ(client.close_code(), 1011) << seen;
  EXPECT_LT(seen, 4000U);
}

TEST_F(FollowTest, AFeedThatStopsCloses1001) {
  Serve();
  WsClient client = Connect();
  ASSERT_TRUE(client.open());
  feed_->Stop();
  EXPECT_EQ(client.ReadClose(), 1001);
  const WsClient late = Connect();
  EXPECT_EQ(late.answer().status, 503);
  EXPECT_THAT(late.answer().body, HasSubstr("\"error\":\"unavailable\""));
  EXPECT_THAT(late.answer().body, HasSubstr("The server is stopping"));
}

// However long the storage takes: here it never answers.
TEST_F(FollowTest, AServerThatStopsCloses1001AlsoWhoStillReplays) {
  ServeLog(3, {.replays_max = 1});
  std::vector<WsClient> clients;
  clients.reserve(3);
  for (int i = 0; i < 3; ++i) {
    reads_->HoldAfter(1);  // the look whether the cursor has expired
    clients.push_back(Connect("&since_cursor=0"));
    ASSERT_TRUE(clients.back().open());
    const auto asked = static_cast<std::size_t>(i) + 1;
    while (feed_->stats().replays_running + feed_->stats().replays_waiting < asked) {
      std::this_thread::yield();
    }
    while (reads_->held() == 0) std::this_thread::yield();
  }
  std::thread stopping([this] { Stop(); });
  for (WsClient& client : clients) EXPECT_EQ(client.ReadClose(), 1001);
  stopping.join();
}

TEST_F(FollowTest, AConsumerThatNeverReadsAgainCountsAsLaggedOnce) {
  limits_.write_timeout = milliseconds(300);
  Serve({.outbox_events_max = 16});
  WsClient stalled = Connect();
  ASSERT_TRUE(stalled.open());
  AppendTooMuch();  // its outbox overflows too, and it never comes to see it
  EXPECT_TRUE(AwaitFollowers(0));
  EXPECT_EQ(LaggedMetric(), "intermute_websocket_lagged_total 1");
}

TEST_F(FollowTest, AConsumerCutOffBeforeItsOutboxIsFullCountsAsLaggedToo) {
  limits_.write_timeout = milliseconds(300);
  Serve({.outbox_events_max = 100'000, .outbox_bytes_max = std::size_t{1} << 30});
  WsClient stalled = Connect();
  ASSERT_TRUE(stalled.open());
  AppendTooMuch();
  EXPECT_TRUE(AwaitFollowers(0));
  EXPECT_EQ(LaggedMetric(), "intermute_websocket_lagged_total 1");
}

TEST_F(FollowTest, AConsumerThatLagsAndLeavesBeforeItIsToldCountsOnceAndOneThatOnlyLeavesDoesNot) {
  Serve({.outbox_events_max = 16});
  WsClient leaving = Connect();
  ASSERT_TRUE(leaving.open());
  leaving.SendClose(1000);
  EXPECT_TRUE(AwaitFollowers(0));
  WsClient lagging = Connect();
  ASSERT_TRUE(lagging.open());
  AppendTooMuch();
  while (feed_->stats().published < 480) std::this_thread::yield();
  lagging.http().Reset();
  EXPECT_TRUE(AwaitFollowers(0));
  EXPECT_EQ(LaggedMetric(), "intermute_websocket_lagged_total 1");
}

TEST_F(FollowTest, ACursorThatIsNoNumberIs400) {
  Serve();
  for (const char* bad :
       {"abc", "1x", "0x10", "1.5", "--1", "-3", "%2B1", "99999999999999999999999"}) {
    const WsClient refused = Connect(std::string("&since_cursor=") + bad);
    EXPECT_EQ(refused.answer().status, 400) << bad;
    EXPECT_THAT(refused.answer().body, HasSubstr(R"("field":"since_cursor")"));
  }
  for (const char* good : {"", "%20", "0"}) {
    EXPECT_TRUE(Connect(std::string("&since_cursor=") + good).open()) << good;
  }
}

TEST_F(FollowTest, AKeyThatIsWithdrawnEndsItsConnectionsWith1008AndNoOther) {
  Serve();
  const auto keys = [](const char* text) { return auth::Keyring::Parse(text).value(); };
  services_->keys.Set(keys("projects: {p: {keys: [alpha, beta]}}"));
  const auto with_key = [this](const char* key) {
    return WsClient::Tcp(port_, "/ws/events?project=p",
                         std::string("Authorization: Bearer ") + key + "\r\n");
  };
  WsClient withdrawn = with_key("alpha");
  WsClient kept = with_key("beta");
  WsClient local = Connect();
  ASSERT_TRUE(withdrawn.open() && kept.open() && local.open());
  services_->keys.Set(keys("projects: {p: {keys: [beta]}}"));
  server_->RecheckCallers();
  EXPECT_EQ(withdrawn.ReadClose(), 1008);
  EXPECT_THAT(withdrawn.close_reason(), HasSubstr("key"));
  AppendMany(1, "p");
  EXPECT_THAT(Receive(kept, 1), ElementsAre(1));
  EXPECT_THAT(Receive(local, 1), ElementsAre(1));
  services_->keys.Set(
      keys("default_policy: {allow_localhost_without_auth: false}\n"
           "projects: {p: {keys: [beta]}}"));
  server_->RecheckCallers();
  EXPECT_EQ(local.ReadClose(), 1008);
  AppendMany(1, "p");
  EXPECT_THAT(Receive(kept, 1), ElementsAre(2));
}

TEST_F(FollowTest, AKeyWithdrawnDuringTheHandshakeEndsTheConnectionToo) {
  ServeLog(1);
  services_->keys.Set(auth::Keyring::Parse("projects: {p: {keys: [alpha]}}").value());
  reads_->HoldAfter(0);
  auto connected = std::async(std::launch::async, [this] {
    return WsClient::Tcp(port_, "/ws/events?since_cursor=1", "Authorization: Bearer alpha\r\n");
  });
  while (reads_->held() == 0) std::this_thread::yield();  // it is let in, and not yet upgraded
  services_->keys.Set(auth::Keyring());
  server_->RecheckCallers();
  reads_->Release();
  WsClient client = connected.get();
  EXPECT_TRUE(client.open());
  EXPECT_EQ(client.ReadClose(), 1008);
}

TEST_F(FollowTest, NoConsumerIsLeftHoweverItsConnectionEnds) {
  Serve();
  constexpr int kPeers = testing::kSlowBuild ? 100 : 500;
  AppendMany(3, "p");
  for (int i = 0; i < kPeers; ++i) {
    WsClient client = Connect(i % 2 == 0 ? "" : "&since_cursor=0");
    ASSERT_TRUE(client.open()) << i;
    switch (i % 5) {
      case 0:
        client.SendClose(1000);
        break;
      case 1:
        client.http().Reset();
        break;
      case 2:
        client.SendText("not json");
        break;
      case 3:
        client.SendBytes("\x81");
        break;
      default:
        break;
    }
  }
  EXPECT_TRUE(AwaitFollowers(0));
}

// Consumers that leave in the middle of things and come back see exactly the log.
TEST_F(FollowTest, ConsumersThatComeAndGoSeeExactlyTheLog) {
  Serve({.outbox_events_max = 32});
  constexpr Cursor kEvents = testing::kSlowBuild ? 400 : 2000;
  constexpr int kConsumers = 8;
  std::vector<Cursors> seen(kConsumers);
  std::vector<std::thread> consumers;
  consumers.reserve(kConsumers);
  for (int i = 0; i < kConsumers; ++i) {
    consumers.emplace_back([this, i, &mine = seen[i]] {
      std::mt19937_64 rng(testing::TestSeed() + static_cast<std::uint64_t>(i));
      while (mine.empty() || mine.back() < kEvents) {
        const Cursor last = mine.empty() ? 0 : mine.back();
        WsClient client = Connect("&since_cursor=" + std::to_string(last));
        const auto left = static_cast<std::size_t>(kEvents - last);
        const std::size_t count = std::min(1 + testing::Below(rng, 50), left);
        for (const Cursor cursor : Receive(client, count)) mine.push_back(cursor);
      }
    });
  }
  AppendMany(kEvents, "p");
  for (std::thread& consumer : consumers) consumer.join();
  for (const Cursors& cursors : seen) EXPECT_EQ(cursors, FromTo(1, kEvents));
  EXPECT_TRUE(AwaitFollowers(0));
}

}  // namespace
}  // namespace interlock::api
