// Many senders at once, and everything they did held against a model of it.

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "service/mail_fixture.h"
#include "testing/on_threads.h"
#include "testing/random.h"

namespace interlock::service {
namespace {

using domain::Cursor;
using testing::Below;

constexpr db::Sql kInbox =
    "SELECT i.agent || ' ' || m.id FROM inbox AS i JOIN messages AS m ON m.cursor = i.cursor "
    "WHERE i.project = ?1";
constexpr db::Sql kThreads =
    "SELECT agent || ' ' || thread_id || ' ' || message_count || ' ' || last_cursor "
    "FROM thread_members WHERE project = ?1";
constexpr db::Sql kLog =
    "SELECT m.sender || ' ' || m.id FROM events AS e JOIN messages AS m ON m.cursor = e.cursor "
    "ORDER BY e.cursor";
constexpr db::Sql kEvents = "SELECT count(*) FROM events";

// What one sender saw.
struct Letter {
  std::string id;
  std::string thread;
  std::vector<std::string> recipients;
  Cursor cursor = 0;
};

class MailLoadTest : public MailTest {
 protected:
  static constexpr std::size_t kSenders = 10;
  static constexpr std::size_t kLetters = testing::kSlowBuild ? 150 : 1000;

  // Sends to a few of twenty agents, some of which are senders, in a few threads; every tenth
  // letter is repeated, as by a client that lost the answer.
  std::vector<Letter> SendMany(std::size_t sender) {
    std::mt19937_64 rng(testing::TestSeed() + sender);
    std::vector<Letter> letters;
    letters.reserve(kLetters);
    const std::string from = "agent-" + std::to_string(sender);
    for (std::size_t n = 0; n < kLetters; ++n) {
      Mail::Draft draft = {.project = "p", .from = from, .body = "text"};
      draft.id = from + "-" + std::to_string(n);
      draft.thread_id = Below(rng, 3) == 0 ? "" : "thread-" + std::to_string(Below(rng, 5));
      draft.addresses = RandomAddresses(rng);
      const auto sent = Send(draft);
      if (!sent.ok()) {
        ADD_FAILURE() << sent.error();
        return letters;
      }
      if (n % 10 == 0) {
        EXPECT_EQ(Send(draft).value(), *sent);
      }
      letters.push_back({draft.id, draft.thread_id, sent->received, sent->cursor});
    }
    return letters;
  }

  static domain::Addresses RandomAddresses(std::mt19937_64& rng) {
    domain::Addresses addresses;
    const std::size_t count = 1 + Below(rng, 4);
    for (std::size_t i = 0; i < count; ++i) {
      std::string agent = "agent-" + std::to_string(Below(rng, 20));
      const std::size_t kind = i == 0 ? 0 : Below(rng, 3);
      (kind == 0   ? addresses.to
       : kind == 1 ? addresses.cc
                   : addresses.bcc)
          .push_back(std::move(agent));
    }
    return addresses;
  }
};

TEST_F(MailLoadTest, EachInboxHoldsEachMessageOnceCursorsRiseAndThreadsCountExactly) {
  std::vector<std::vector<Letter>> letters(kSenders);
  testing::OnThreads(static_cast<int>(kSenders), [&](int t) {
    const auto s = static_cast<std::size_t>(t);
    letters[s] = SendMany(s);
  });

  // What must be there, from the answers alone.
  std::vector<std::string> inbox;
  std::map<std::pair<std::string, std::string>, std::pair<int, Cursor>> counts;
  std::map<Cursor, std::string> log;
  for (std::size_t s = 0; s < kSenders; ++s) {
    const std::string from = "agent-" + std::to_string(s);
    Cursor last = 0;
    for (const Letter& letter : letters[s]) {
      EXPECT_GT(letter.cursor, last) << "a sender's cursors rise in the order it sent";
      last = letter.cursor;
      EXPECT_TRUE(log.emplace(letter.cursor, from + " " + letter.id).second);
      std::set<std::string> members(letter.recipients.begin(), letter.recipients.end());
      EXPECT_EQ(members.size(), letter.recipients.size());
      for (const std::string& agent : members) inbox.push_back(agent + " " + letter.id);
      members.insert(from);
      if (letter.thread.empty()) continue;
      for (const std::string& agent : members) {
        auto& [count, newest] = counts[{agent, letter.thread}];
        ++count;
        newest = std::max(newest, letter.cursor);
      }
    }
  }
  std::vector<std::string> members;
  members.reserve(counts.size());
  for (const auto& [key, value] : counts) {
    members.push_back(key.first + " " + key.second + " " + std::to_string(value.first) + " " +
                      std::to_string(value.second));
  }
  std::vector<std::string> logged;
  logged.reserve(log.size());
  for (const auto& [cursor, text] : log) logged.push_back(text);
  EXPECT_EQ(logged.size(), kSenders * kLetters);
  EXPECT_EQ(log.rbegin()->first, static_cast<Cursor>(logged.size())) << "a cursor was lost";

  const auto sorted = [](std::vector<std::string> texts) {
    std::ranges::sort(texts);
    return texts;
  };
  const std::string_view project = "p";
  EXPECT_EQ(sorted(Rows(kInbox, {project})), sorted(inbox));
  EXPECT_EQ(sorted(Rows(kThreads, {project})), sorted(members));
  EXPECT_EQ(Rows(kLog), logged);
  EXPECT_EQ(Count(kEvents), static_cast<std::int64_t>(logged.size()));
}

}  // namespace
}  // namespace interlock::service
