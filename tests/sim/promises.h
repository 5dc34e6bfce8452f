#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "domain/event.h"
#include "domain/mailbox.h"

// The promises that the simulation checks, each a small class that is told what was seen and says
// what is broken. They know nothing of how the server works, and nothing of the world that feeds
// them, so that promises_test.cc can feed each one something broken.
//
// For one thread.
namespace interlock::sim {

using domain::Cursor;

// What is broken, in words.
class Violations {
 public:
  void Add(std::string what) { all_.push_back(std::move(what)); }
  bool empty() const { return all_.empty(); }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

// ---- What SQL shows.

struct LoggedEvent {
  Cursor cursor = 0;
  std::string type = {};
  std::string project = {};
  std::string entity_id = {};
  std::string agent = {};
  Timestamp created_at = {};
  // Of message.created: who has it in its inbox, in the order of their ids, and its subject.
  std::vector<std::string> recipients = {};
  std::string subject = {};

  bool operator==(const LoggedEvent&) const = default;
};

// A reservation that was not released.
struct HoldRow {
  std::string id = {};
  std::string project = {};
  std::string agent = {};
  std::size_t pattern = 0;  // of PathSpace
  bool exclusive = false;
  std::string reason = {};
  std::int64_t fence = 0;
  Timestamp expires_at = {};
  std::int64_t version = 0;

  bool operator==(const HoldRow&) const = default;
};

struct AgentRow {
  std::string id = {};
  Timestamp last_seen = {};
};

// ---- Promises.

// Cursors strictly rise, and have no gap that a reader could see: what is seen later never stands
// before what was seen, and what was seen stays, but for the oldest, which may be removed.
class LogPromise {
 public:
  explicit LogPromise(Violations& violations) : violations_(violations) {}

  // What the log holds beyond what was seen, and up to where it was removed. `published`: up to
  // where everything was handed out; later events are never removed.
  void See(std::span<const LoggedEvent> later, Cursor pruned_through, Cursor published);
  // The end of the log as it is now, which must hold all that was seen.
  void SeeAgain(std::span<const LoggedEvent> end, Cursor newest);

  Cursor newest() const { return static_cast<Cursor>(events_.size()); }
  Cursor pruned_through() const { return pruned_through_; }
  // REQUIRES: 1 <= cursor <= newest().
  const LoggedEvent& At(Cursor cursor) const {
    return events_.at(static_cast<std::size_t>(cursor - 1));
  }

 private:
  Violations& violations_;
  std::vector<LoggedEvent> events_;  // from cursor 1, removed ones too
  Cursor pruned_through_ = 0;
};

// No two agents hold overlapping paths at once, unless both share them; what ran out holds nothing,
// from then on; a fence rises with every grant; the sweeper touches nothing that holds, nor what
// belongs to an agent that was heard of, and nobody takes that by force; a heartbeat that renews
// keeps all that its agent holds.
//
// A claim ends when the clock first shows its end. A clock that is then set back does not bring it
// to life: others may hold its paths by now.
class HoldsPromise {
 public:
  HoldsPromise(Violations& violations, Duration grace) : violations_(violations), grace_(grace) {}

  void Tick(Timestamp now);  // the clock has moved
  // All claims that were not released, after some writes; the events of those writes; and the
  // living agents.
  void See(std::span<const HoldRow> rows, std::span<const LoggedEvent> events, Timestamp now);
  void SeeAgents(std::span<const AgentRow> living);
  // A request was made in the agent's name, which the server remembers. ForgetHeard(): it need not
  // do so any longer, since it was restarted, or its clock was set.
  void Heard(const std::string& agent, Timestamp at);
  void ForgetHeard() { heard_.clear(); }
  // A write of the last look, begun at `began` and over by `now`, was answered: all that the agent
  // holds in the project is kept for `lease`. What was granted in that look is owed nothing, as it
  // may have come later; neither is what two hold since a clock was set back.
  struct Renewal {
    std::string project;
    std::string agent;
    Duration lease;
  };
  void Renewed(const Renewal& renewal, Timestamp began, Timestamp now);

  std::uint64_t renewals_checked() const { return renewals_checked_; }  // of one row each
  const std::map<std::string, HoldRow>& rows() const { return rows_; }
  const std::map<std::string, HoldRow>& rows_before() const { return before_; }  // the last look
  // An event says so.
  bool WasGranted(const std::string& id) const { return granted_.contains(id); }
  bool HasEnded(const std::string& id) const { return ended_.contains(id); }
  // The same, by an event behind that cursor.
  bool HasEndedAfter(const std::string& id, Cursor cursor) const {
    const auto ended = ended_.find(id);
    return ended != ended_.end() && ended->second > cursor;
  }
  // They may not be held at once.
  static bool Conflicts(const HoldRow& a, const HoldRow& b);

 private:
  void SeeEvents(std::span<const LoggedEvent> events);
  void SeeEnd(const LoggedEvent& ended, const HoldRow& row);
  void SeeFence(const HoldRow& row, const HoldRow* before, Timestamp now);
  void CheckPairs(const HoldRow& changed);

  Violations& violations_;
  const Duration grace_;
  std::map<std::string, HoldRow> rows_;
  std::map<std::string, HoldRow> before_;
  std::set<std::string> live_;  // ids
  std::set<std::string> granted_;
  std::map<std::string, Cursor> ended_;         // by the event with that cursor
  std::map<std::string, std::int64_t> fences_;  // the highest of each project, before this look
  std::map<std::string, std::set<std::int64_t>> new_fences_;  // of this look
  std::map<std::string, Timestamp> living_;                   // agents: when they were last seen
  std::map<std::string, Timestamp> heard_;                    // the same, of their requests
  std::uint64_t renewals_checked_ = 0;
};

// Those who wait are served in the order they came.
class TurnsPromise {
 public:
  using Op = std::uint64_t;
  struct Claim {
    std::string project = {};
    std::string agent = {};
    std::vector<std::size_t> patterns = {};
    bool exclusive = false;
    std::uint64_t asked_at = 0;  // step
    Cursor log_end = 0;          // at that time
  };

  explicit TurnsPromise(Violations& violations) : violations_(violations) {}

  void Wait(Op op, Claim claim) { waits_[op] = {.claim = std::move(claim)}; }
  // By now everybody who waits stands in line.
  void AllStandInLine(std::uint64_t step);
  // It hangs up: it is owed nothing any more, and may stand in the way until it has left.
  void HangUp(Op op);
  void Leave(Op op, std::uint64_t step);
  void ClockJumped();
  void Clear();
  // `own`: what the agent held before.
  void Granted(const Claim& claim, std::span<const HoldRow> own);
  // `claim` was refused because that agent waits: it did, since the question was asked, and for
  // something that overlaps.
  void Refused(const Claim& claim, const std::string& agent);
  // When all is quiet: whoever waits has somebody in its way who holds, or who waits in its turn.
  void CheckAllBlocked(std::span<const HoldRow> active);
  // And no agents wait for what they hold themselves, each for the next one's.
  void CheckNoCircle(std::span<const HoldRow> active);

  std::size_t waiting() const { return waits_.size(); }
  // How often one who waits was held against a grant, or against what holds when all is quiet.
  std::uint64_t checks() const { return checks_; }

 private:
  struct Waiting {
    Claim claim;
    std::optional<std::uint64_t> in_line_since = {};
    bool jumped = false;  // the wall clock jumped meanwhile, of which nobody is told
  };
  struct Past {
    Claim claim;
    std::optional<std::uint64_t> left_at = {};  // step; nothing: it has hung up, and may be there
  };
  Violations& violations_;
  std::map<Op, Waiting> waits_;
  std::map<Op, Past> past_;  // who waited
  std::uint64_t checks_ = 0;
};

// What was refused is not there, and what was asked for once is there once at most. A tag names
// what somebody asked for, however often it asked.
class TagsPromise {
 public:
  explicit TagsPromise(Violations& violations) : violations_(violations) {}

  void Asked(const std::string& tag) { ++tags_[tag].open; }
  enum class Outcome : std::uint8_t { kDone, kUnknown, kNotDone };
  void Answered(const std::string& tag, Outcome outcome);
  // It is in the log or a table.
  void Seen(const std::string& tag);
  // The same of what can be there once only.
  void SeenOnce(const std::string& tag);

 private:
  struct Tag {
    int open = 0;               // questions
    bool may_be_there = false;  // done, or of unknown outcome
    bool seen = false;
  };
  Violations& violations_;
  std::map<std::string, Tag> tags_;
};

// A message is delivered once to each recipient: it is in every inbox under its one cursor, and who
// pages through its inbox sees each once, in order, and misses none. A receipt is recorded once.
class MailPromise {
 public:
  explicit MailPromise(Violations& violations) : violations_(violations) {}

  // A message that was removed, which is after its event was, may be sent anew.
  void See(const LoggedEvent& created, Cursor pruned_through);
  struct Delivered {
    std::string message_id;
    Cursor cursor = 0;
    std::vector<std::string> received;
  };
  void Answered(const Delivered& delivered);
  // A page of the agent's inbox after `after`, of at most `limit`, read after all that was seen.
  struct Page {
    std::string agent;
    Cursor after = 0;
    std::size_t limit = 0;
    std::vector<Cursor> cursors = {};
  };
  void Read(const Page& page, Cursor pruned_through);

  struct Receipt {
    std::string message_id;
    std::string agent;
    domain::ReceiptKind kind;
    auto operator<=>(const Receipt&) const = default;
  };
  void ReceiptAsked(const Receipt& receipt) { ++asked_[receipt]; }
  void ReceiptAnswered(const Receipt& receipt, domain::ReceiptOutcome outcome);

 private:
  struct Kept {
    Cursor cursor = 0;
    std::vector<std::string> recipients;
  };
  Violations& violations_;
  std::map<std::string, Kept> messages_;                // by id
  std::map<std::string, std::vector<Cursor>> inboxes_;  // by agent
  std::map<Receipt, int> asked_;                        // how often
  std::set<Receipt> recorded_;
};

// Who follows the log hears each of its events once, in order, without a gap.
class FollowPromise {
 public:
  FollowPromise(Violations& violations, const LogPromise& log, std::string project,
                std::string agent)
      : violations_(violations),
        log_(log),
        project_(std::move(project)),
        agent_(std::move(agent)) {}

  // Begins after `since`; nothing: with whatever comes first.
  void Join(std::optional<Cursor> since) { position_ = since; }
  void Heard(Cursor cursor);
  // It was told that there is nothing more for it up to here.
  void Reached(Cursor cursor);
  // It was told that its place is gone. True: that is so.
  bool Gone();
  // All is quiet: nothing may be left to hear.
  void CheckCaughtUp();

  std::optional<Cursor> position() const { return position_; }

 private:
  bool Hears(const LoggedEvent& event) const;
  std::optional<Cursor> FirstBetween(Cursor after, Cursor before) const;

  Violations& violations_;
  const LogPromise& log_;
  const std::string project_;
  const std::string agent_;  // empty: hears of everybody's messages
  std::optional<Cursor> position_;
};

// All of them, as one world has them.
struct Promises {
  explicit Promises(Duration grace) : holds(violations, grace) {}

  Violations violations;
  LogPromise log{violations};
  HoldsPromise holds;
  TurnsPromise turns{violations};
  TagsPromise tags{violations};
  MailPromise mail{violations};
};

}  // namespace interlock::sim
