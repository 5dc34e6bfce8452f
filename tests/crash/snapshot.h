#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace interlock::crash {

// What a database of the server holds, as the tests of crashes compare it: each thing that a client
// may have written, in words, under a key that the client chose, with the number of its events.
//
//   "agent <session_id>"    id=… name=…
//   "message <id>"          cursor=… from=… to=… body=<without dots at its end> length=… acked=0
//   "reservation <path>"    id=… agent=… fence=… expires=<microseconds> held   (or released)
//   "spec <id>", "task <id>"
//                           version=… title=… status=… agent=…
//
// Of a plan that was deleted only the events are left.
struct Thing {
  std::string text;          // "" = it is not there
  std::int64_t changes = 0;  // its events

  bool operator==(const Thing&) const = default;
};

struct LoggedEvent {
  std::int64_t cursor;
  std::string type;
  std::string entity;

  auto operator<=>(const LoggedEvent&) const = default;
};

struct Snapshot {
  std::map<std::string, Thing> things;
  std::vector<LoggedEvent> log;                // in the order of cursors
  std::map<std::int64_t, std::string> fences;  // and whose it is
  // What is wrong with the file by itself: integrity_check, something that is there twice, rows
  // that belong to nothing.
  std::vector<std::string> faults;
};

// Of a file that a server has open. Opened by itself, the file would be recovered here and not by
// the server that is to be tested.
Snapshot TakeSnapshot(const std::filesystem::path& database);

// How `now` contradicts that `before` was there first: an event that is gone, has changed, or came
// in front of others; a fence that is gone, or a new one that is not above all the old ones.
std::vector<std::string> Contradictions(const Snapshot& before, const Snapshot& now);

}  // namespace interlock::crash
