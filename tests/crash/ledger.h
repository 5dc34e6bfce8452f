#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "crash/snapshot.h"

namespace interlock::crash {

// What one client was told, and so what must be in the database after the server died and came
// back. The state of a thing is the words of snapshot.h.
//
// Used by one thread at a time.
class Ledger {
 public:
  // As far as it is known: "" for what is not there, and for what was never asked for.
  std::string Text(const std::string& key) const;
  // Nothing is known to be under way for it.
  bool IsCertain(const std::string& key) const;

  // The server has answered: it looks so from now on, after one more change. `text` is "" for what
  // was deleted, and has "name>=number" for what the answer gives a lower bound of.
  void Acknowledge(const std::string& key, std::string text);

  // The connection died before the answer. After the restart it looks as it did, or so, after one
  // more change; of `text` a * stands for what only the answer would have said. What is lost sight
  // of between two checks is one write: all of it has happened, or nothing.
  void LoseSight(const std::string& key, std::string text);

  struct Checked {
    std::vector<std::string> lies;  // what is not as it must be
    std::int64_t happened = 0;      // 1 for the write of which nothing was heard
    std::int64_t did_not_happen = 0;
  };
  // Holds everything against what is there, whole and exactly once. What was uncertain is certain
  // afterwards.
  Checked Check(const Snapshot& snapshot);

  const std::map<std::string, Thing>& things() const { return things_; }

 private:
  std::map<std::string, Thing> things_;         // as acknowledged
  std::map<std::string, std::string> unheard_;  // as it may look instead
};

// What is in the snapshot and in none of the ledgers: something that was refused, or that nobody
// asked for. Events count too: each must be of a thing.
std::vector<std::string> Strangers(const Snapshot& snapshot,
                                   const std::vector<const Ledger*>& ledgers);

// Whether a thing is as `words` say, in which a * stands for anything, and "name>=number" for a
// value from that number up.
bool Fits(const std::string& words, const std::string& text);

// The value of "name=value" in the words of a thing.
std::string FieldOf(const std::string& text, const std::string& name);

}  // namespace interlock::crash
