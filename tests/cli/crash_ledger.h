#pragma once

#include <fmt/format.h>
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cli/ic_process.h"

// What the writers of tests/cli/crash_test.cc were told, and what is there.
namespace interlock::testing {

// What is there, in words, by a name that its writer chose; "" = it is not there.
using Things = std::map<std::string, std::string>;

struct Snapshot {
  Things things;
  std::vector<std::string> events;  // the log of the runs, in its order
  std::vector<std::string> faults;  // of the file by itself
};

inline constexpr db::Sql kState =
    "SELECT 'state ' || key || ' ' || scope_id, 'version=' || version || ' payload=' || payload "
    "FROM state";
inline constexpr db::Sql kSentinels =
    "SELECT 'sentinel ' || name || ' ' || scope_id, "
    "CASE last_fired WHEN 0 THEN 'never fired' ELSE 'fired' END FROM sentinels";
inline constexpr db::Sql kRuns =
    "SELECT 'run ' || goal, 'id=' || id || ' ' || status || ' ' || phase || ' events=' || "
    "(SELECT count(*) FROM phase_events WHERE run_id = r.id) || ' agents=' || "
    "(SELECT count(*) FROM run_agents WHERE run_id = r.id) FROM runs r";
inline constexpr db::Sql kEvents =
    "SELECT id || ' ' || run_id || ' ' || event_type || ' ' || from_phase || '-' || to_phase "
    "FROM phase_events ORDER BY id";
inline constexpr db::Sql kIntegrity = "PRAGMA integrity_check";
inline constexpr db::Sql kActivePerBead =
    "SELECT bead_id || ' has several active runs' FROM runs WHERE status = 'active' "
    "GROUP BY project_dir, bead_id HAVING count(*) > 1";
inline constexpr db::Sql kStrayAgents =
    "SELECT id || ' is an agent of no run' FROM run_agents "
    "WHERE run_id NOT IN (SELECT id FROM runs)";

inline Snapshot Take(const IcPlace& place) {
  Snapshot taken;
  const auto file = place.OpenFile();
  const auto lines = [&file](const db::Sql& sql) {
    std::vector<std::string> found;
    EXPECT_TRUE(
        file->ForEach(sql, [&](const db::Row& row) { found.push_back(row.String(0)); }).ok());
    return found;
  };
  for (const db::Sql& sql : {kState, kSentinels, kRuns}) {
    const auto read = file->ForEach(sql, [&](const db::Row& row) {
      if (taken.things.try_emplace(row.String(0), row.String(1)).second) return;
      taken.faults.push_back(row.String(0) + " is there twice");
    });
    EXPECT_TRUE(read.ok());
  }
  taken.events = lines(kEvents);
  for (const db::Sql& sql : {kIntegrity, kActivePerBead, kStrayAgents}) {
    for (std::string& line : lines(sql)) {
      if (line != "ok") taken.faults.push_back(std::move(line));
    }
  }
  return taken;
}

// What one writer knows of the things that are its own.
class Ledger {
 public:
  std::string Text(const std::string& key) const {
    const auto found = things_.find(key);
    return found == things_.end() ? "" : found->second;
  }
  bool IsCertain(const std::string& key) const { return !unheard_.contains(key); }
  bool Knows(const std::string& key) const { return things_.contains(key); }

  void Acknowledge(const std::string& key, std::string text) { things_[key] = std::move(text); }
  // The call was killed before it answered: it is as it was, or so, with a * for what only the
  // answer would have said.
  void LoseSight(const std::string& key, std::string text) {
    things_.try_emplace(key);
    unheard_[key] = std::move(text);
  }

  struct Checked {
    std::vector<std::string> lies;
    int happened = 0;  // of those of which nothing was heard
    int did_not_happen = 0;
  };
  // Whatever was uncertain is certain afterwards.
  Checked Check(const Things& there) {
    Checked checked;
    for (auto& [key, expected] : things_) {
      const auto found = there.find(key);
      const std::string text = found == there.end() ? "" : found->second;
      const auto other = unheard_.find(key);
      const bool as_it_was = text == expected;
      const bool as_asked =
          other != unheard_.end() && ::fnmatch(other->second.c_str(), text.c_str(), 0) == 0;
      if (other != unheard_.end()) ++(as_it_was ? checked.did_not_happen : checked.happened);
      if (!as_it_was && !as_asked) {
        checked.lies.push_back(
            fmt::format("{} must be '{}'{}, and is '{}'", key, expected,
                        other == unheard_.end() ? "" : " or '" + other->second + "'", text));
      }
      expected = text;
    }
    unheard_.clear();
    return checked;
  }

 private:
  Things things_;  // as acknowledged
  Things unheard_;
};

// The number behind `before` in a text; 0 when there is none.
inline std::int64_t NumberAfter(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + before.size());
}

enum class Heard : std::uint8_t { kAnswer, kRefusal, kNothing };

// How often something was done that all do: as often as that was answered, and for each that was
// killed before it answered once more or not.
class Tally {
 public:
  void Hear(Heard heard) {
    if (heard == Heard::kAnswer) ++done_;
    if (heard == Heard::kNothing) ++unheard_;
  }
  // "" when it can have been done `times`. Then it was, and nothing is unheard of any more.
  std::string Check(std::int64_t times) {
    const bool possible = done_ <= times && times <= done_ + unheard_;
    std::string lie =
        possible ? ""
                 : fmt::format("done {} times, not {} and up to {} more", times, done_, unheard_);
    done_ = times;
    unheard_ = 0;
    return lie;
  }

 private:
  std::int64_t done_ = 0;
  std::int64_t unheard_ = 0;
};

// What all writers fight for. Thread-safe.
class Contest {
 public:
  // ---- a counter

  void HearSum(Heard heard, const std::string& out) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    sum_tally_.Hear(heard);
    if (heard == Heard::kAnswer && !sums_.insert(std::atoll(out.c_str())).second) {
      lies_.push_back("two were told the sum " + out);
    }
  }

  // ---- a row that changes by compare-and-swap

  std::int64_t version() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return version_;
  }
  void HearSwap(Heard heard, const std::string& payload, const Finished& run) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    swap_tally_.Hear(heard);
    if (heard == Heard::kNothing) return;
    if (heard == Heard::kRefusal) {
      refused_.insert(payload);
      version_ = std::max(version_, NumberAfter(run.err, "has version "));
      return;
    }
    const std::int64_t now = NumberAfter(run.out, R"("version":)");
    version_ = std::max(version_, now);
    if (!swaps_.try_emplace(now, payload).second) {
      lies_.push_back(fmt::format("two were told that they wrote version {}", now));
    }
  }

  // ---- sentinels that fire once

  void HearVerdict(Heard heard, const std::string& name) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Verdicts& verdicts = verdicts_[name];
    if (heard == Heard::kNothing) ++verdicts.unheard;
    if (heard == Heard::kRefusal) ++verdicts.throttled;
    if (heard == Heard::kAnswer && ++verdicts.allowed > 1) {
      lies_.push_back(name + " was allowed twice");
    }
  }

  // ---- a lock on the file system

  void HearAcquired(int writer) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (holder_) lies_.push_back(fmt::format("{} and {} hold the lock", *holder_, writer));
    holder_ = writer;
  }
  // To be called before it is given back.
  void LetGo(int writer) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (holder_ == writer) holder_.reset();
  }
  std::optional<int> holder() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return holder_;
  }

  // What was told that cannot be true; what is there that contradicts it.
  std::vector<std::string> Check(const Things& there) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<std::string> lies = std::exchange(lies_, {});
    const auto text = [&there](const std::string& key) {
      const auto found = there.find(key);
      return found == there.end() ? std::string() : found->second;
    };
    const std::string sum = text("state counted all");
    const std::int64_t counted = NumberAfter(sum, "payload=");
    if (const std::string lie = sum_tally_.Check(counted); !lie.empty()) {
      lies.push_back("counting was " + lie);
    }
    const std::int64_t last_sum = sums_.empty() ? 0 : *sums_.rbegin();
    if (counted < last_sum || NumberAfter(sum, "version=") != counted) {
      lies.push_back(fmt::format("'{}' after the sum {} was told", sum, last_sum));
    }
    const std::string swapped = text("state swapped all");
    const std::string payload = swapped.substr(std::min(swapped.find(" payload="), swapped.size()));
    const std::int64_t version = NumberAfter(swapped, "version=");
    if (const std::string lie = swap_tally_.Check(version); !lie.empty()) {
      lies.push_back("swapping was " + lie);
    }
    const auto last =
        swaps_.empty() ? std::pair<const std::int64_t, std::string>() : *swaps_.rbegin();
    if (version < last.first || (version == last.first && !payload.ends_with(last.second))) {
      lies.push_back(
          fmt::format("'{}' after {} was told of version {}", swapped, last.second, last.first));
    }
    for (const std::string& refused : refused_) {
      if (payload == " payload=" + refused) lies.push_back(refused + " was refused and is there");
    }
    for (const auto& [name, verdicts] : verdicts_) {
      const bool fired = text("sentinel shared " + name) == "fired";
      const bool told = verdicts.allowed + verdicts.throttled > 0;
      if (told != fired && (told || verdicts.unheard == 0)) {
        lies.push_back(fmt::format("{} {} after it was allowed {} times, throttled {}", name,
                                   fired ? "has fired" : "has not fired", verdicts.allowed,
                                   verdicts.throttled));
      }
      if (verdicts.throttled > 0 && verdicts.allowed + verdicts.unheard == 0) {
        lies.push_back(name + " was throttled before anybody claimed it");
      }
    }
    return lies;
  }

 private:
  struct Verdicts {
    int allowed = 0;
    int throttled = 0;
    int unheard = 0;
  };

  Mutex mutex_;
  std::vector<std::string> lies_ IL_GUARDED_BY(mutex_);
  std::set<std::int64_t> sums_ IL_GUARDED_BY(mutex_);
  Tally sum_tally_ IL_GUARDED_BY(mutex_);
  std::int64_t version_ IL_GUARDED_BY(mutex_) = 0;
  Tally swap_tally_ IL_GUARDED_BY(mutex_);
  std::map<std::int64_t, std::string> swaps_ IL_GUARDED_BY(mutex_);  // who wrote which version
  std::set<std::string> refused_ IL_GUARDED_BY(mutex_);
  std::map<std::string, Verdicts> verdicts_ IL_GUARDED_BY(mutex_);
  std::optional<int> holder_ IL_GUARDED_BY(mutex_);  // who surely holds the lock
};

}  // namespace interlock::testing
