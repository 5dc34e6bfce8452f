#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crash/ledger.h"
#include "json/value.h"
#include "testing/http_client.h"
#include "testing/server_process.h"

namespace interlock::crash {

enum class Kind : std::uint8_t {
  kRegister,
  kSend,
  kAck,
  kReserve,
  kRenew,
  kHeartbeat,  // that renews
  kRelease,
  kMakeSpec,
  kMakeTask,
  kChange,
  kAssign,
  kDelete
};
inline constexpr std::array<const char*, 12> kKindNames = {
    "register", "send",      "ack",       "reserve",      "renew",         "heartbeat",
    "release",  "spec made", "task made", "plan changed", "task assigned", "plan deleted"};

struct Counts {
  std::array<std::int64_t, kKindNames.size()> acknowledged = {};  // by Kind
  std::int64_t repeated = 0;  // answered again, without a change
  std::int64_t refused = 0;
  std::int64_t unheard = 0;      // no answer, or that the outcome is unknown
  std::int64_t turned_away = 0;  // by any other 503: surely not done
};

// What is sent: with long ones the log of the database grows quickly.
enum class Letters : std::uint8_t { kShort, kLong };

// One request and what it means.
struct Write {
  Kind kind;
  std::string method;
  std::string target;
  std::string body = {};
  std::string headers = {};
  int status = 200;       // that it must be answered with
  std::string key = {};   // of the thing that it changes; "" = it must change nothing
  std::string text = {};  // of the thing afterwards, with a * for what only the answer says
  // The same with the answer's part in it; nothing when there is no such part.
  std::function<std::string(const json::Object&)> told = {};
  // What else it changes, all of it or nothing: keys, and the text of each afterwards.
  std::vector<std::pair<std::string, std::string>> also = {};
};

// A client that writes things of its own, so that it alone knows how they must look, and that keeps
// a ledger of what it was told. It writes at random, by the seed of the test: most of it is new,
// some must be refused or change nothing. What it did not hear of in one life of the server it says
// again at the start of the next, as clients do.
//
// Everything is in project p. Others hold wall/**. Used by one thread at a time; an answer that is
// not as it must be fails the test, and so does every 5xx but 503.
class Writer {
 public:
  explicit Writer(int number);

  // Writes until the connection ends; counts what was answered in `answers` too.
  void WriteUntilTheEnd(const testing::ServerProcess& server, std::atomic<std::int64_t>& answers,
                        Letters letters);

  // To whom its messages go.
  std::string inbox() const;
  Ledger& ledger() { return ledger_; }
  const Counts& counts() const { return counts_; }

 private:
  // False when it was not answered.
  bool Do(testing::HttpClient& http, const Write& write);

  Write Any();
  Write Next(Kind kind);
  // Something that is refused, or was said before.
  Write Harmless(Kind kind);
  // What was not heard of, once more, now that it is known whether it had happened.
  Write Again(const Write& unheard) const;

  Write Register(const std::string& session) const;
  Write Prove() const;                                          // that the token is known
  Write Send(const std::string& id, std::size_t length) const;  // of the body, at least
  Write Ack(const std::string& message) const;
  Write Reserve(const std::string& path) const;
  Write Renew(const std::string& held) const;
  // Everything that it holds lasts at least so long.
  Write Heartbeat(int renew_minutes) const;
  Write Release(const std::string& held) const;
  Write Make(const std::string& plan) const;
  Write Change(const std::string& plan) const;
  Write Assign(const std::string& task) const;
  Write Delete(const std::string& plan) const;
  std::int64_t VersionOf(const std::string& plan) const;  // 0 = it is not there

  std::string Name(const char* what) const;
  std::string NewName(const char* what);
  // A thing of that sort whose state is known and has `part` in it; "" when none is found.
  std::string Some(const std::string& sort, const std::string& part);
  std::string SomeHeld();
  std::string SomePlan();
  // One that surely is not there, since it was deleted or was never made; "" when none is found.
  std::string SomeGone(const std::string& sort);
  // One whose session is not old enough to be taken over; "" when it is not known to be there.
  std::string NewestAgent();

  const int number_;
  std::mt19937_64 rng_;
  Ledger ledger_;
  Counts counts_;
  std::map<std::string, std::vector<std::string>>
      keys_;                       // of the ledger, by sort, the oldest first
  std::vector<std::string> held_;  // the reservations among them that are surely held
  std::int64_t made_ = 0;
  Letters letters_ = Letters::kShort;
  std::string holder_;  // the first agent that it registered: reserves, and shows that it lives
  std::string token_;   // of the agent that was registered last
  std::optional<Write> unheard_;  // of the life before
};

// A reservation that was granted, and a plan, in the words of snapshot.h.
std::string ReservationText(const json::Object& told);
std::string PlanText(const json::Object& told);

json::Object BodyOf(const testing::HttpAnswer& answer);
std::string TextIn(const json::Object& object, std::string_view field);

}  // namespace interlock::crash
