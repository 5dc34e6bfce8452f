#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace interlock::sim {

// What clients of reservations asked and heard, and when: the raw material of a judgement that does
// not ask the server. Values; Text() is what a failing history is written down as.

// A reservation as an answer shows it.
struct Seen {
  std::string id;
  std::string agent;
  std::string pattern;
  bool exclusive = false;
  std::int64_t fence = 0;
  std::int64_t expires_at = 0;  // microseconds since 1970, by the server's clock
};

enum class Call : std::uint8_t { kReserve, kRenew, kRelease, kTransfer, kLook };

enum class Heard : std::uint8_t {
  kNothing,    // the connection ended first: it was done, or it was not
  kDone,       // 200, 201
  kConflict,   // 409
  kForbidden,  // 403
  kGone,       // 404
  kGaveUp,     // 409: it waited for others who waited for it
};

// Times are ticks of one counter that all clients share: an answer that was read before another
// request was sent has the smaller one.
struct Operation {
  int client = 0;
  Call call = Call::kLook;
  std::string agent = {};    // in whose name
  std::string pattern = {};  // what is reserved, or what the reservation named by `id` holds
  bool exclusive = false;    // of kReserve
  int wait_seconds = 0;      // of kReserve
  std::string id = {};       // of kRenew, kRelease and kTransfer
  std::string to_agent = {};
  Heard heard = Heard::kNothing;
  // Of kDone the reservation (kLook: all that there are); of kConflict all that are in the way.
  std::vector<Seen> seen = {};
  int waiters = 0;  // of kConflict: how many more are in the way who wait in line before it
  std::int64_t begin = 0;
  // When the answer was there. Of kNothing: when it was certain that nothing more would happen, the
  // server being dead; kNever when that was never so.
  std::int64_t end = kNever;

  static constexpr std::int64_t kNever = INT64_MAX;
};

using History = std::vector<Operation>;

std::string Text(const Operation& operation);  // one line, without its end

// The part before the slash. Patterns of two groups never overlap, so what happens in one says
// nothing of the other, fences aside.
std::string GroupOf(const std::string& pattern);

}  // namespace interlock::sim
