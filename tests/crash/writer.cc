#include "crash/writer.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <chrono>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/time_text.h"
#include "json/parse.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::crash {
namespace {

using testing::Below;
using testing::HttpAnswer;
using testing::HttpClient;

// Fewer than an agent may hold, and few enough that all fit into one list. Each heartbeat renews
// all of them.
constexpr std::size_t kHeldMax = 20;

constexpr int kLeaseMinutes = 1440;  // the longest

constexpr std::size_t kLongLetter = 100'000;  // 25 pages

// Of "message m-1-2" the first word, and the second.
std::string SortOf(const std::string& key) { return key.substr(0, key.find(' ')); }
std::string IdIn(const std::string& key) { return key.substr(key.find(' ') + 1); }

std::string As(const std::string& agent) { return "X-Agent-ID: " + agent + "\r\n"; }

Write ChangingNothing(Write write) {
  write.key = "";
  write.also.clear();
  return write;
}

Write Refused(Write write, int status) {
  write.status = status;
  write.told = nullptr;
  return ChangingNothing(std::move(write));
}

// It leaves as much open as a connection that ends.
bool IsOutcomeUnknown(const HttpAnswer& answer) {
  return answer.status == 503 && TextIn(BodyOf(answer), "error") == "outcome_unknown";
}

}  // namespace

json::Object BodyOf(const HttpAnswer& answer) {
  return json::Parse(answer.body).value().get_object();
}

std::string TextIn(const json::Object& object, std::string_view field) {
  return std::string(json::View(object.at(field).get_string()));
}

std::string ReservationText(const json::Object& told) {
  const Timestamp expires = ParseRfc3339(TextIn(told, "expires_at")).value();
  return fmt::format("id={} agent={} fence={} expires={} held", TextIn(told, "id"),
                     TextIn(told, "agent_id"), told.at("fence").as_int64(), expires.micros);
}

std::string PlanText(const json::Object& told) {
  return fmt::format("version={} title={} status={} agent={}", told.at("version").as_int64(),
                     TextIn(told, "title"), TextIn(told, "status"),
                     told.contains("agent") ? TextIn(told, "agent") : "");
}

Writer::Writer(int number)
    : number_(number), rng_(testing::TestSeed() * 1000 + static_cast<std::uint64_t>(number)) {}

std::string Writer::inbox() const { return fmt::format("inbox-{}", number_); }

void Writer::WriteUntilTheEnd(const testing::ServerProcess& server,
                              std::atomic<std::int64_t>& answers, Letters letters) {
  letters_ = letters;
  HttpClient http = server.Connect();
  http.StopRecording();
  if (!http.connected()) return;
  held_.clear();
  for (const std::string& key : keys_["reservation"]) {
    if (ledger_.Text(key).ends_with(" held")) held_.push_back(key);
  }
  if (const auto unheard = std::exchange(unheard_, std::nullopt)) {
    if (!Do(http, Again(*unheard))) return;
  }
  if (!token_.empty() && !Do(http, Prove())) return;
  while (Do(http, Any())) ++answers;
}

bool Writer::Do(HttpClient& http, const Write& write) {
  if (!write.key.empty() && !ledger_.things().contains(write.key)) {
    keys_[SortOf(write.key)].push_back(write.key);
  }
  std::optional<HttpAnswer> answer;
  if (http.Request(write.method, write.target, write.body, write.headers)) answer = http.Read();
  if (!answer || IsOutcomeUnknown(*answer)) {
    ++counts_.unheard;
    if (write.key.empty()) return false;
    ledger_.LoseSight(write.key, write.text);
    for (const auto& [key, text] : write.also) ledger_.LoseSight(key, text);
    unheard_ = write;
    return false;
  }
  if (answer->status == 503) {  // it says that nothing was done, and the ledger holds it to that
    ++counts_.turned_away;
    return true;
  }
  const std::string asked = write.method + " " + write.target + " " + write.body;
  EXPECT_EQ(answer->status, write.status) << asked << "\n" << answer->body;
  if (answer->status != write.status) return false;
  const std::string text = write.told ? write.told(BodyOf(*answer)) : write.text;
  EXPECT_EQ(::fnmatch(write.text.c_str(), text.c_str(), 0), 0) << asked << "\n"
                                                               << write.text << " and not " << text;
  if (write.key.empty()) {
    ++(write.status >= 400 ? counts_.refused : counts_.repeated);
    return true;
  }
  ++counts_.acknowledged.at(static_cast<std::size_t>(write.kind));
  ledger_.Acknowledge(write.key, text);
  for (const auto& [key, also] : write.also) ledger_.Acknowledge(key, also);
  if (write.kind == Kind::kReserve || write.kind == Kind::kRelease) std::erase(held_, write.key);
  if (write.kind == Kind::kReserve) held_.push_back(write.key);
  if (write.kind == Kind::kRegister) {
    token_ = TextIn(BodyOf(*answer), "token");
    if (holder_.empty()) holder_ = FieldOf(text, "id");
  }
  return true;
}

// ---- Choosing ----

Write Writer::Any() {
  if (holder_.empty()) return Next(Kind::kRegister);
  auto kind = static_cast<Kind>(Below(rng_, kKindNames.size()));
  if (letters_ == Letters::kLong && Below(rng_, 2) == 0) kind = Kind::kSend;
  return Below(rng_, 5) == 0 ? Harmless(kind) : Next(kind);
}

Write Writer::Next(Kind kind) {
  const std::string message = Some("message", "acked=0");
  const std::string held = SomeHeld();
  const std::string plan = SomePlan();
  const std::string task = Some("task", "");
  if (kind == Kind::kRegister) {
    return Register(fmt::format("{:08x}-0000-4000-8000-{:012x}", number_, ++made_));
  }
  if (kind == Kind::kAck && !message.empty()) return Ack(message);
  if (kind == Kind::kSend || kind == Kind::kAck) {
    return Send(NewName("m"), letters_ == Letters::kLong ? kLongLetter : 0);
  }
  if (kind == Kind::kRenew && !held.empty()) return Renew(held);
  if (kind == Kind::kHeartbeat && !held.empty()) return Heartbeat(kLeaseMinutes);
  const bool enough = kind == Kind::kReserve && held_.size() >= kHeldMax;
  if ((kind == Kind::kRelease || enough) && !held.empty()) return Release(held);
  if (kind == Kind::kChange && !plan.empty()) return Change(plan);
  if (kind == Kind::kDelete && !plan.empty()) return Delete(plan);
  if (kind == Kind::kAssign && !task.empty()) return Assign(task);
  if (kind == Kind::kMakeTask || kind == Kind::kAssign) return Make("task " + NewName("t"));
  if (kind >= Kind::kMakeSpec) return Make("spec " + NewName("s"));
  return Reserve(NewName("f"));
}

Write Writer::Harmless(Kind kind) {
  const std::string agent = NewestAgent();
  const std::string message = Some("message", "acked=0");
  const std::string acked = Some("message", "acked=1");
  const std::string held = SomeHeld();
  const std::string released = Some("reservation", " released");
  const std::string plan = SomePlan();
  const std::string gone = SomeGone(kind == Kind::kAssign ? "task" : "spec");
  if (kind == Kind::kRegister && !agent.empty()) return Refused(Register(IdIn(agent)), 409);
  if (kind == Kind::kSend && !message.empty()) {
    const std::string text = ledger_.Text(message);
    Write write = Send(IdIn(message), std::stoull(FieldOf(text, "length")));
    write.text = text;
    if (Below(rng_, 2) == 0) return ChangingNothing(std::move(write));
    write.body.replace(write.body.find("text-of"), 7, "another");
    return Refused(std::move(write), 409);
  }
  if (kind == Kind::kAck && !acked.empty()) return ChangingNothing(Ack(acked));
  if (kind == Kind::kRenew && !held.empty()) {
    Write write = Renew(held);
    write.headers = As("stranger");
    return Refused(std::move(write), 403);
  }
  if (kind == Kind::kHeartbeat) return ChangingNothing(Heartbeat(1));  // all lasts longer already
  if (kind == Kind::kRelease && !released.empty()) return Refused(Release(released), 404);
  const bool makes = kind == Kind::kMakeSpec || kind == Kind::kMakeTask;
  if (makes && !plan.empty()) return Refused(Make(plan), 409);
  if (kind == Kind::kAssign && !gone.empty()) return Refused(Assign(gone), 404);
  if (kind == Kind::kDelete && !gone.empty()) return ChangingNothing(Delete(gone));
  if (kind == Kind::kChange && !plan.empty()) {
    Write write = Change(plan);
    write.body.replace(write.body.find(R"("version":)"), 10, R"("version":7)");
    return Refused(std::move(write), 409);
  }
  return Refused(Reserve("wall/" + Name("f")), 409);
}

Write Writer::Again(const Write& unheard) const {
  if (unheard.kind == Kind::kHeartbeat) return Heartbeat(kLeaseMinutes);
  const std::string text = ledger_.Text(unheard.key);
  const bool happened = Fits(unheard.text, text);
  if (!happened || unheard.kind == Kind::kRenew) return unheard;
  switch (unheard.kind) {
    case Kind::kSend: {
      Write write = ChangingNothing(unheard);
      write.text = text;
      return write;
    }
    case Kind::kAck:
    case Kind::kDelete:
      return ChangingNothing(unheard);
    case Kind::kAssign:
      return Assign(unheard.key);  // whatever the version
    case Kind::kReserve: {
      // The same reservation, for longer: with its id and its fence.
      Write write = unheard;
      write.text = Renew(unheard.key).text;
      return write;
    }
    case Kind::kRelease:
      return Refused(unheard, 404);
    default:
      return Refused(unheard, 409);
  }
}

// ---- Writes ----

Write Writer::Register(const std::string& session) const {
  const std::string name = Name("agent");
  return {.kind = Kind::kRegister,
          .method = "POST",
          .target = "/api/agents",
          .body = fmt::format(R"({{"project":"p","session_id":"{}","name":"{}"}})", session, name),
          .key = "agent " + session,
          .text = "id=* name=" + name,
          .told = [name](const json::Object& told) {
            return fmt::format("id={} name={}", TextIn(told, "agent_id"), name);
          }};
}

// Whoever sends a token that the server knows may not say that it is somebody else; one that the
// server does not know is not looked at.
Write Writer::Prove() const {
  return {.kind = Kind::kRegister,
          .method = "POST",
          .target = "/api/messages/none/ack?project=p",
          .headers = "X-Agent-Token: " + token_ + "\r\n" + As("stranger"),
          .status = 403};
}

Write Writer::Send(const std::string& id, std::size_t length) const {
  const std::string body = fmt::format("{:.<{}}", "text-of-" + id, length);
  const std::string rest = fmt::format(" from=sender-{} to={} body=text-of-{} length={} acked=0",
                                       number_, inbox(), id, body.size());
  return {.kind = Kind::kSend,
          .method = "POST",
          .target = "/api/messages",
          .body = fmt::format(
              R"({{"project":"p","id":"{}","from":"sender-{}","to":["{}"],"body":"{}"}})", id,
              number_, inbox(), body),
          .key = "message " + id,
          .text = "cursor=*" + rest,
          .told = [rest](const json::Object& told) {
            return fmt::format("cursor={}{}", told.at("cursor").as_int64(), rest);
          }};
}

Write Writer::Ack(const std::string& message) const {
  std::string text = ledger_.Text(message);
  text.back() = '1';
  return {.kind = Kind::kAck,
          .method = "POST",
          .target = "/api/messages/" + IdIn(message) + "/ack?project=p",
          .body = fmt::format(R"({{"agent":"{}"}})", inbox()),
          .key = message,
          .text = text};
}

Write Writer::Reserve(const std::string& path) const {
  return {
      .kind = Kind::kReserve,
      .method = "POST",
      .target = "/api/reservations",
      .body = fmt::format(R"({{"project":"p","agent_id":"{}","path_pattern":"{}","exclusive":true,)"
                          R"("ttl_minutes":{}}})",
                          holder_, path, kLeaseMinutes),
      .status = 201,
      .key = "reservation " + path,
      .text = fmt::format("id=* agent={} fence=* expires=* held", holder_),
      .told = ReservationText};
}

Write Writer::Renew(const std::string& held) const {
  const std::string text = ledger_.Text(held);
  return {.kind = Kind::kRenew,
          .method = "POST",
          .target = "/api/reservations/" + FieldOf(text, "id") + "/renew",
          .body = fmt::format(R"({{"ttl_minutes":{}}})", kLeaseMinutes),
          .headers = As(FieldOf(text, "agent")),
          .key = held,
          .text = fmt::format("id={} agent={} fence={} expires=* held", FieldOf(text, "id"),
                              FieldOf(text, "agent"), FieldOf(text, "fence")),
          .told = ReservationText};
}

// The answer does not say until when. It is so long from a moment that is not before now.
Write Writer::Heartbeat(int renew_minutes) const {
  const Timestamp least = SystemClock().Now() + std::chrono::minutes(renew_minutes);
  Write write = {.kind = Kind::kHeartbeat,
                 .method = "POST",
                 .target = "/api/agents/" + holder_ + "/heartbeat",
                 .body = fmt::format(R"({{"renew_minutes":{}}})", renew_minutes)};
  for (const std::string& held : held_) {
    const std::string text = ledger_.Text(held);
    write.also.emplace_back(
        held, fmt::format("id={} agent={} fence={} expires>={} held", FieldOf(text, "id"),
                          FieldOf(text, "agent"), FieldOf(text, "fence"), least.micros));
  }
  if (write.also.empty()) return write;
  std::tie(write.key, write.text) = write.also.back();
  write.also.pop_back();
  return write;
}

Write Writer::Release(const std::string& held) const {
  const std::string text = ledger_.Text(held);
  return {.kind = Kind::kRelease,
          .method = "DELETE",
          .target = "/api/reservations/" + FieldOf(text, "id"),
          .headers = As(FieldOf(text, "agent")),
          .key = held,
          .text = text.substr(0, text.rfind(' ')) + " released"};
}

Write Writer::Make(const std::string& plan) const {
  const bool is_task = SortOf(plan) == "task";
  const std::string title = Name("title");
  return {.kind = is_task ? Kind::kMakeTask : Kind::kMakeSpec,
          .method = "POST",
          .target = fmt::format("/api/{}s", SortOf(plan)),
          .body = fmt::format(R"({{"project":"p","id":"{}","title":"{}"}})", IdIn(plan), title),
          .status = 201,
          .key = plan,
          .text = fmt::format("version=1 title={} status={} agent=", title,
                              is_task ? "pending" : "draft"),
          .told = PlanText};
}

Write Writer::Change(const std::string& plan) const {
  const std::int64_t version = VersionOf(plan);
  const std::string text = ledger_.Text(plan);
  return {
      .kind = Kind::kChange,
      .method = "PATCH",
      .target = fmt::format("/api/{}s/{}", SortOf(plan), IdIn(plan)),
      .body = fmt::format(R"({{"project":"p","version":{},"title":"after-{}"}})", version, version),
      .key = plan,
      .text = fmt::format("version={} title=after-{} status={} agent={}", version + 1, version,
                          FieldOf(text, "status"), FieldOf(text, "agent")),
      .told = PlanText};
}

Write Writer::Assign(const std::string& task) const {
  const std::int64_t version = VersionOf(task);
  return {.kind = Kind::kAssign,
          .method = "POST",
          .target = fmt::format("/api/tasks/{}/assign?project=p", IdIn(task)),
          .body = fmt::format(R"({{"agent":"worker-{}"}})", version),
          .key = task,
          .text = fmt::format("version={} title={} status=running agent=worker-{}", version + 1,
                              FieldOf(ledger_.Text(task), "title"), version),
          .told = PlanText};
}

Write Writer::Delete(const std::string& plan) const {
  return {.kind = Kind::kDelete,
          .method = "DELETE",
          .target = fmt::format("/api/{}s/{}?project=p", SortOf(plan), IdIn(plan)),
          .status = 204,
          .key = plan};
}

std::int64_t Writer::VersionOf(const std::string& plan) const {
  const std::string version = FieldOf(ledger_.Text(plan), "version");
  return version.empty() ? 0 : std::stoll(version);
}

// ---- Names ----

std::string Writer::Name(const char* what) const {
  return fmt::format("{}-{}-{}", what, number_, made_);
}

std::string Writer::NewName(const char* what) {
  ++made_;
  return Name(what);
}

std::string Writer::Some(const std::string& sort, const std::string& part) {
  const std::vector<std::string>& keys = keys_[sort];
  for (int tries = 0; !keys.empty() && tries < 8; ++tries) {
    const std::string& key = keys[Below(rng_, keys.size())];
    const std::string text = ledger_.Text(key);
    const bool fits = !text.empty() && text.find(part) != std::string::npos;
    if (fits && ledger_.IsCertain(key)) return key;
  }
  return "";
}

std::string Writer::SomePlan() { return Some(Below(rng_, 2) == 0 ? "spec" : "task", ""); }

std::string Writer::SomeGone(const std::string& sort) {
  const std::vector<std::string>& keys = keys_[sort];
  for (int tries = 0; !keys.empty() && tries < 8; ++tries) {
    const std::string& key = keys[Below(rng_, keys.size())];
    if (ledger_.Text(key).empty() && ledger_.IsCertain(key)) return key;
  }
  return "";
}

std::string Writer::SomeHeld() { return held_.empty() ? "" : held_[Below(rng_, held_.size())]; }

std::string Writer::NewestAgent() {
  const std::vector<std::string>& keys = keys_["agent"];
  if (keys.empty()) return "";
  const bool there = !ledger_.Text(keys.back()).empty() && ledger_.IsCertain(keys.back());
  return there ? keys.back() : "";
}

}  // namespace interlock::crash
