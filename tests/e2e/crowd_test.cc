// Many senders and many followers at once against the real server, and everything that they saw
// held against each other: the answers to the senders, the inboxes, the threads, the log, and what
// each follower was told.

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "e2e_test.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/ws_client.h"

namespace interlock::e2e {
namespace {

using testing::Below;
using testing::WsClient;
using Cursor = std::int64_t;
using Random = std::mt19937_64;

constexpr std::size_t kSenders = testing::kSlowBuild ? 4 : 10;
constexpr std::size_t kLetters = testing::kSlowBuild ? 100 : 1000;  // of each sender
constexpr std::size_t kFollowers = testing::kSlowBuild ? 10 : 50;
constexpr std::size_t kDrivers = 4;  // threads that the followers share
constexpr std::size_t kAgents = 20;
constexpr std::size_t kThreads = 5;
// A follower stays for at most so many events.
constexpr std::size_t kStay = testing::kSlowBuild ? 60 : 600;

const std::string kCreated = "message.created";
const std::string kRead = "message.read";
const std::string kEnd = "the-end";  // the last message of each project

std::string AgentName(std::size_t number) { return "agent-" + std::to_string(number); }

json::Object Parsed(std::string_view text) {
  auto value = json::Parse(text, {.limits = {.bytes_max = std::size_t{16} << 20}});
  if (value.ok() && value->is_object()) return value->get_object();
  ADD_FAILURE() << "not a JSON object: " << text.substr(0, 300);
  return {};
}

const json::Value& Member(const json::Object& object, std::string_view name) {
  static const json::Value kNull;
  const json::Value* const value = object.if_contains({name.data(), name.size()});
  return value == nullptr ? kNull : *value;
}
std::string Text(const json::Object& object, std::string_view name) {
  const json::Value& value = Member(object, name);
  return value.is_string() ? std::string(json::View(value.get_string())) : "";
}
Cursor Number(const json::Object& object, std::string_view name) {
  const json::Value& value = Member(object, name);
  return value.is_int64() ? value.get_int64() : -1;
}
json::Array List(const json::Object& object, std::string_view name) {
  const json::Value& value = Member(object, name);
  return value.is_array() ? value.get_array() : json::Array();
}

// A connection whose requests must succeed.
class Client {
 public:
  explicit Client(std::uint16_t port) : http_(HttpClient::Tcp(port)) { http_.StopRecording(); }

  std::string Ask(std::string_view method, const std::string& target, std::string_view body = "",
                  std::string_view headers = "") {
    if (!http_.Request(method, target, body, headers)) return Lost(target);
    auto answer = http_.Read();
    if (!answer) return Lost(target);
    EXPECT_EQ(answer->status, 200) << target << " " << body << "\n" << answer->body;
    return std::move(answer->body);
  }
  json::Object Get(const std::string& target) { return Parsed(Ask("GET", target)); }

 private:
  static std::string Lost(const std::string& target) {
    ADD_FAILURE() << "no answer to " << target;
    return "{}";
  }

  HttpClient http_;
};

// What somebody sent, and what the answer said.
struct Letter {
  std::string project = {};
  std::string id = {};
  std::string from = {};
  std::string thread = {};  // "": none
  std::set<std::string> recipients = {};
  Cursor cursor = 0;
};

// One sender: letters to a few agents each, some of them named twice; some with ids of their own,
// and of these some sent again, as by a client that lost the answer; some read by a recipient.
class Sender {
 public:
  Sender(std::uint16_t port, std::size_t number)
      : client_(port), random_(testing::TestSeed() * 1000 + number), name_(AgentName(number)) {}

  void Run() {
    letters_.reserve(kLetters);
    for (std::size_t n = 0; n < kLetters && !::testing::Test::HasFailure(); ++n) SendOne(n);
  }
  const std::vector<Letter>& letters() const { return letters_; }
  const std::set<std::pair<std::string, std::string>>& read() const { return read_; }

 private:
  void SendOne(std::size_t n) {
    Letter letter{.project = Below(random_, 12) == 0 ? "q" : "p", .from = name_};
    if (Below(random_, 3) != 0)
      letter.thread = "thread-" + std::to_string(Below(random_, kThreads));
    if (n % 2 == 0) letter.id = name_ + "-" + std::to_string(n);
    const std::string body = BodyOf(letter);
    const std::string text = client_.Ask("POST", "/api/messages", body);
    const json::Object answer = Parsed(text);
    if (n % 10 == 0) {
      EXPECT_EQ(client_.Ask("POST", "/api/messages", body), text);
    }
    letter.id = Text(answer, "message_id");
    letter.cursor = Number(answer, "cursor");
    if (n % 8 == 0) MarkRead(letter);
    letters_.push_back(std::move(letter));
  }

  // The request, with random addresses, which the letter then has.
  std::string BodyOf(Letter& letter) {
    std::string lists[3];
    const std::size_t count = 1 + Below(random_, 4);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string agent = AgentName(Below(random_, kAgents));
      std::string& list = lists[i == 0 ? 0 : Below(random_, 3)];
      list += (list.empty() ? "\"" : ",\"") + agent + "\"";
      letter.recipients.insert(agent);
    }
    return R"({"project":")" + letter.project + R"(","from":")" + letter.from + R"(","id":")" +
           letter.id + R"(","thread_id":")" + letter.thread + R"(","to":[)" + lists[0] +
           R"(],"cc":[)" + lists[1] + R"(],"bcc":[)" + lists[2] +
           R"(],"subject":"crowd","body":"from )" + letter.from + "\"}";
  }

  void MarkRead(const Letter& letter) {
    const std::string& reader = *letter.recipients.begin();
    client_.Ask("POST", "/api/messages/" + letter.id + "/read?project=" + letter.project, "{}",
                "X-Agent-ID: " + reader + "\r\n");
    read_.insert({letter.project, reader + " " + letter.id});
  }

  Client client_;
  Random random_;
  const std::string name_;
  std::vector<Letter> letters_;
  std::set<std::pair<std::string, std::string>> read_;  // (project, "reader id")
};

// Somebody who follows the log from its beginning to its end, with absences.
struct Follower {
  std::string project;
  std::string agent;                     // "": of the whole project
  std::string type;                      // the only one it wants; "": all
  std::vector<const std::string*> seen;  // frames; many followers see the same
  Cursor cursor = 0;                     // of the last one
  std::size_t left = 0;                  // events until it leaves
  std::size_t visits = 0;
  bool finished = false;
  std::unique_ptr<WsClient> socket;

  std::string Target() const {
    return (agent.empty() ? "/ws/events" : "/ws/agents/" + agent) + "?project=" + project +
           (type.empty() ? "" : "&types=" + type) + "&since_cursor=" + std::to_string(cursor);
  }
  // Nothing that it would be told comes after this one.
  bool IsLast(std::string_view frame) const {
    return frame.find("\"type\":\"" + (type.empty() ? kRead : type) + "\"") !=
               std::string_view::npos &&
           frame.find("\"entity_id\":\"" + kEnd + "\"") != std::string_view::npos;
  }
};

// Of ten, four follow a whole project and six an agent; some of each want one type only, and two
// follow the small project.
Follower MakeFollower(std::size_t number) {
  Follower follower;
  const std::size_t kind = number % 10;
  follower.project = kind == 1 || kind == 5 ? "q" : "p";
  if (kind >= 4) follower.agent = AgentName((number * 7) % kAgents);
  if (kind == 2 || kind == 8) follower.type = kCreated;
  if (kind == 3 || kind == 9) follower.type = kRead;
  return follower;
}

// Some followers on one thread. Each leaves and comes back as chance will have it, until it has
// seen the end.
class Driver {
 public:
  Driver(std::uint16_t port, std::size_t number)
      : port_(port), random_(testing::TestSeed() * 1000 + 500 + number) {}

  void Add(Follower follower) { followers_.push_back(std::move(follower)); }
  const std::vector<Follower>& followers() const { return followers_; }

  void Run() {
    while (!::testing::Test::HasFailure()) {
      std::vector<pollfd> waits;
      std::vector<Follower*> waiting;
      for (Follower& follower : followers_) {
        if (follower.finished) continue;
        if (follower.socket == nullptr) Visit(follower);
        if (follower.socket == nullptr) continue;
        waits.push_back({follower.socket->http().fd(), POLLIN, 0});
        waiting.push_back(&follower);
      }
      if (std::ranges::all_of(followers_, &Follower::finished)) return;
      if (waits.empty()) continue;
      constexpr int kPatienceMs = 20'000;
      ASSERT_GT(::poll(waits.data(), waits.size(), kPatienceMs), 0) << "nobody hears anything";
      for (std::size_t i = 0; i < waits.size(); ++i) {
        if (waits[i].revents != 0) Receive(*waiting[i]);
      }
    }
  }

 private:
  // Comes back. The events that are there already may come with the answer.
  void Visit(Follower& follower) {
    ++follower.visits;
    if (Below(random_, 10) == 0) {  // and is gone before it has an answer
      HttpClient hasty = HttpClient::Tcp(port_);
      hasty.StopRecording();
      hasty.Send(WsClient::Handshake(follower.Target()));
      if (Below(random_, 2) == 0) hasty.Reset();
      return;
    }
    HttpClient http = HttpClient::Tcp(port_);
    http.StopRecording();
    follower.socket = std::make_unique<WsClient>(std::move(http), follower.Target());
    ASSERT_TRUE(follower.socket->open()) << follower.socket->answer().body;
    follower.left = 1 + Below(random_, kStay);
    while (follower.socket != nullptr && follower.socket->HasFrame()) Receive(follower);
  }

  void Receive(Follower& follower) {
    do {
      const auto frame = follower.socket->ReadFrame();
      if (!frame || frame->opcode == WsClient::kClose) {
        // Too slow for what is sent to it: it may come back.
        EXPECT_EQ(follower.socket->close_code(), 1013) << "closed by the server";
        follower.socket.reset();
        return;
      }
      if (frame->opcode == WsClient::kPing) {
        follower.socket->SendBytes(WsClient::FrameBytes(WsClient::kPong, frame->payload));
        continue;
      }
      Take(follower, frame->payload);
      if (follower.IsLast(frame->payload)) return Finish(follower);
      if (--follower.left == 0) return Leave(follower);
    } while (follower.socket->HasFrame());
  }

  void Take(Follower& follower, const std::string& frame) {
    constexpr std::string_view kBefore = "{\"cursor\":";
    ASSERT_TRUE(frame.starts_with(kBefore)) << frame;
    std::from_chars(frame.data() + kBefore.size(), frame.data() + frame.size(), follower.cursor);
    follower.seen.push_back(&*frames_.insert(frame).first);
  }

  // What comes after the last event that was taken is lost, however one leaves.
  void Leave(Follower& follower) {
    switch (Below(random_, 4)) {
      case 0:
        follower.socket->SendClose(1000);
        while (follower.socket->ReadText()) {
        }
        EXPECT_EQ(follower.socket->close_code(), 1000);
        break;
      case 1:
        follower.socket->SendClose(1001);
        break;
      case 2:
        follower.socket->http().Reset();
        break;
      default:
        break;
    }
    follower.socket.reset();
  }

  // Reads on to the server's last word: what comes after the last event is one too many.
  void Finish(Follower& follower) {
    follower.socket->SendClose(1000);
    while (const auto more = follower.socket->ReadText()) Take(follower, *more);
    EXPECT_EQ(follower.socket->close_code(), 1000);
    follower.socket.reset();
    follower.finished = true;
  }

  const std::uint16_t port_;
  Random random_;
  std::unordered_set<std::string> frames_;
  std::vector<Follower> followers_;
};

// An event as far as everybody who is told of it is told the same.
struct Event {
  Cursor cursor = 0;
  std::string type;
  std::string project;
  std::string entity_id;
  std::string agent;
  std::string created_at;
  std::string data;

  bool operator==(const Event&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Event& e) {
    return out << e.cursor << " " << e.type << " " << e.project << " " << e.entity_id << " "
               << e.agent << " " << e.created_at << " " << e.data;
  }
};

Event EventFrom(const json::Object& object) {
  return {.cursor = Number(object, "cursor"),
          .type = Text(object, "type"),
          .project = Text(object, "project"),
          .entity_id = Text(object, "entity_id"),
          .agent = Text(object, "agent"),
          .created_at = Text(object, "created_at"),
          .data = json::Write(Member(object, "data"), {.key_order = json::KeyOrder::kSorted})};
}

// Where two lists begin to differ; a whole list would hide it.
template <typename T>
::testing::AssertionResult Same(const std::vector<T>& is, const std::vector<T>& should_be) {
  const auto [i, s] = std::ranges::mismatch(is, should_be);
  if (i == is.end() && s == should_be.end()) return ::testing::AssertionSuccess();
  const auto shown = [](const auto at, const auto end) {
    return at == end ? std::string("nothing more") : ::testing::PrintToString(*at);
  };
  return ::testing::AssertionFailure()
         << "at " << i - is.begin() << " of " << should_be.size() << " is " << shown(i, is.end())
         << " and should be " << shown(s, should_be.end());
}

// Everything that was sent, by project.
class Model {
 public:
  void Add(Letter letter) {
    by_id_[letter.project][letter.id] = letter;
    by_cursor_[letter.project].emplace(letter.cursor, std::move(letter));
  }
  const std::map<Cursor, Letter>& Letters(const std::string& project) {
    return by_cursor_[project];
  }
  const Letter* Find(const std::string& project, const std::string& id) {
    const auto found = by_id_[project].find(id);
    return found == by_id_[project].end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, std::map<Cursor, Letter>> by_cursor_;
  std::map<std::string, std::unordered_map<std::string, Letter>> by_id_;
};

class CrowdTest : public E2eTest {
 protected:
  // All at once, and then the last message of each project, to everybody, which somebody reads.
  void RunCrowd() {
    for (std::size_t i = 0; i < kDrivers; ++i) drivers_.emplace_back(port(), i);
    for (std::size_t i = 0; i < kFollowers; ++i) drivers_[i % kDrivers].Add(MakeFollower(i));
    senders_.reserve(kSenders);
    for (std::size_t i = 0; i < kSenders; ++i) {
      senders_.push_back(std::make_unique<Sender>(port(), i));
    }
    std::vector<std::thread> following;
    following.reserve(kDrivers);
    for (Driver& driver : drivers_) following.emplace_back([&driver] { driver.Run(); });
    std::vector<std::thread> sending;
    sending.reserve(kSenders);
    for (const auto& sender : senders_) sending.emplace_back([&sender] { sender->Run(); });
    for (std::thread& thread : sending) thread.join();
    client_.emplace(port());
    for (const std::string project : {"p", "q"}) model_.Add(SendTheEnd(project));
    for (std::thread& thread : following) thread.join();
    client_.emplace(port());  // the first one may have waited too long
    for (const auto& sender : senders_) {
      for (const Letter& letter : sender->letters()) model_.Add(letter);
      reads_ += sender->read().size();
    }
  }

  Letter SendTheEnd(const std::string& project) {
    Letter letter{.project = project, .id = kEnd, .from = "the-author"};
    std::string to;
    for (std::size_t i = 0; i < kAgents; ++i) {
      to += (to.empty() ? "\"" : ",\"") + AgentName(i) + "\"";
      letter.recipients.insert(AgentName(i));
    }
    const std::string answer =
        client_->Ask("POST", "/api/messages",
                     R"({"project":")" + project + R"(","id":")" + kEnd +
                         R"(","from":"the-author","body":"","to":[)" + to + "]}");
    letter.cursor = Number(Parsed(answer), "cursor");
    client_->Ask("POST", "/api/messages/" + kEnd + "/read?project=" + project, "{}",
                 "X-Agent-ID: " + AgentName(0) + "\r\n");
    ++reads_;
    return letter;
  }

  // The log of a project as GET /api/events tells it; of "" everybody's.
  std::vector<Event> ReadLog(const std::string& project) {
    std::vector<Event> log;
    Cursor cursor = 0;
    while (true) {
      const json::Object page = client_->Get("/api/events?limit=1000&project=" + project +
                                             "&since_cursor=" + std::to_string(cursor));
      const json::Array events = List(page, "events");
      if (events.empty()) return log;
      for (const json::Value& event : events) {
        log.push_back(EventFrom(event.get_object()));
        EXPECT_GT(log.back().cursor, cursor) << "cursors rise";
        cursor = log.back().cursor;
      }
    }
  }

  // (cursor, id) of each message that the pages at `target` hold.
  using Mail = std::vector<std::pair<Cursor, std::string>>;
  Mail ReadPages(const std::string& target, const std::string& parameter) {
    Mail mail;
    Cursor cursor = 0;
    while (true) {
      std::string next = target;
      next.append("&limit=97&").append(parameter).append("=").append(std::to_string(cursor));
      const json::Object page = client_->Get(next);
      const json::Array messages = List(page, "messages");
      if (messages.empty()) return mail;
      const Cursor before = cursor;
      for (const json::Value& message : messages) {
        const json::Object& object = message.get_object();
        EXPECT_GT(Number(object, "cursor"), cursor);
        cursor = Number(object, "cursor");
        mail.emplace_back(cursor, Text(object, "id"));
      }
      EXPECT_EQ(Number(page, "cursor"), cursor);
      if (cursor <= before) return mail;  // would go round for ever
    }
  }

  void CheckInboxes(const std::string& project) {
    for (std::size_t i = 0; i < kAgents; ++i) {
      const std::string agent = AgentName(i);
      Mail expected;
      for (const auto& [cursor, letter] : model_.Letters(project)) {
        if (letter.recipients.contains(agent)) expected.emplace_back(cursor, letter.id);
      }
      const std::string inbox = "/api/inbox/" + agent;
      const std::string query = "?project=" + project;
      EXPECT_TRUE(Same(ReadPages(inbox + query, "since_cursor"), expected)) << project << agent;
      std::string counting = inbox;
      const json::Object counts = client_->Get(counting.append("/counts").append(query));
      EXPECT_EQ(Number(counts, "total"), static_cast<Cursor>(expected.size()));
      std::set<std::string> read;
      for (const auto& sender : senders_) {
        for (const auto& [of, text] : sender->read()) {
          if (of == project && text.starts_with(agent + " ")) read.insert(text);
        }
      }
      if (i == 0) read.insert(kEnd);
      EXPECT_EQ(Number(counts, "unread"), static_cast<Cursor>(expected.size() - read.size()));
    }
  }

  void CheckThreads(const std::string& project) {
    // (agent, thread): how many messages, and the last.
    std::map<std::pair<std::string, std::string>, std::pair<Cursor, Cursor>> expected;
    std::map<std::string, Mail> content;
    for (const auto& [cursor, letter] : model_.Letters(project)) {
      if (letter.thread.empty()) continue;
      content[letter.thread].emplace_back(cursor, letter.id);
      std::set<std::string> members = letter.recipients;
      members.insert(letter.from);
      for (const std::string& agent : members) {
        auto& [count, last] = expected[{agent, letter.thread}];
        ++count;
        last = cursor;
      }
    }
    decltype(expected) found;
    for (std::size_t i = 0; i < kAgents; ++i) {
      const json::Object threads =
          client_->Get("/api/threads?agent=" + AgentName(i) + "&project=" + project);
      for (const json::Value& thread : List(threads, "threads")) {
        const json::Object& object = thread.get_object();
        found[{AgentName(i), Text(object, "thread_id")}] = {Number(object, "message_count"),
                                                            Number(object, "last_cursor")};
      }
    }
    EXPECT_EQ(found, expected);
    for (const auto& [thread, mail] : content) {
      std::string target = "/api/threads/";
      target.append(thread).append("?project=").append(project);
      EXPECT_TRUE(Same(ReadPages(target, "cursor"), mail)) << project << " " << thread;
    }
  }

  // The log has one event for each message and one for each that was read, and nothing else.
  void CheckLog(const std::string& project, const std::vector<Event>& log) {
    Mail created;
    for (const Event& event : log) {
      EXPECT_EQ(event.project, project);
      if (event.type != kCreated) continue;
      created.emplace_back(event.cursor, event.entity_id);
      const Letter* const letter = model_.Find(project, event.entity_id);
      EXPECT_TRUE(letter != nullptr && letter->from == event.agent) << event;
    }
    Mail sent;
    for (const auto& [cursor, letter] : model_.Letters(project)) {
      sent.emplace_back(cursor, letter.id);
    }
    EXPECT_TRUE(Same(created, sent)) << project;
  }

  // What `follower` must have been told.
  std::vector<Event> Concerning(const Follower& follower, const std::vector<Event>& log) {
    std::vector<Event> told;
    for (const Event& event : log) {
      if (!follower.type.empty() && event.type != follower.type) continue;
      told.push_back(event);
      if (follower.agent.empty() || event.type != kCreated) continue;
      told.back().agent = follower.agent;
      const Letter* const letter = model_.Find(follower.project, event.entity_id);
      if (letter == nullptr || !letter->recipients.contains(follower.agent)) told.pop_back();
    }
    return told;
  }

  void CheckFollowers(const std::map<std::string, std::vector<Event>>& logs) {
    std::unordered_map<const std::string*, Event> parsed;
    for (const Driver& driver : drivers_) {
      for (const Follower& follower : driver.followers()) {
        std::vector<Event> seen;
        seen.reserve(follower.seen.size());
        for (const std::string* frame : follower.seen) {
          auto [place, added] = parsed.try_emplace(frame);
          if (added) place->second = EventFrom(Parsed(*frame));
          seen.push_back(place->second);
        }
        EXPECT_TRUE(Same(seen, Concerning(follower, logs.at(follower.project))))
            << follower.Target() << " in " << follower.visits << " visits";
        visits_ += follower.visits;
        frames_ += seen.size();
      }
    }
  }

  std::uint16_t port() const { return server_->port(); }

  // An fsync per batch would only make it longer.
  const std::unique_ptr<ServerProcess> server_ = Start({"--durability", "fast"});
  std::optional<Client> client_;  // once the crowd has gone
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<Driver> drivers_;
  Model model_;
  std::size_t reads_ = 0;
  std::size_t visits_ = 0;
  std::size_t frames_ = 0;
};

TEST_F(CrowdTest, EachMessageArrivesOnceAndFollowersThatLeaveAndResumeSeeExactlyTheLog) {
  SCOPED_TRACE("IL_SEED=" + std::to_string(testing::TestSeed()));
  RunCrowd();
  ASSERT_FALSE(HasFailure());
  std::map<std::string, std::vector<Event>> logs;
  for (const std::string project : {"p", "q"}) {
    logs[project] = ReadLog(project);
    CheckLog(project, logs[project]);
    CheckInboxes(project);
    CheckThreads(project);
  }
  const std::vector<Event> whole = ReadLog("");
  EXPECT_EQ(whole.size(), logs["p"].size() + logs["q"].size());
  EXPECT_EQ(whole.size(), kSenders * kLetters + 2 + reads_);
  CheckFollowers(logs);
  RecordProperty("visits", static_cast<int>(visits_));
  RecordProperty("frames", static_cast<int>(frames_));
  EXPECT_GT(visits_, 2 * kFollowers) << "hardly anybody left";
  EXPECT_EQ(server_->Stop(), 0) << server_->process().Stderr();
}

}  // namespace
}  // namespace interlock::e2e
