#include "service/agents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "domain/names.h"
#include "service/service_fixture.h"
#include "testing/on_threads.h"
#include "testing/random.h"

namespace interlock::service {
namespace {

using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Texts = std::vector<std::string>;

constexpr char kSession[] = "0198c5e2-7b1c-7d3e-8f00-0123456789ab";

constexpr db::Sql kEvents =
    "SELECT type, project, entity_id, agent, data, created_at FROM events ORDER BY cursor";
constexpr db::Sql kTokenHashes = "SELECT token_hash FROM agents";
constexpr db::Sql kFillNames =
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1) "
    "INSERT INTO agents (id, project, session_id, name, token_hash, status, contact_policy, "
    "live_contact_policy, focus_state, focus_at, created_at, last_seen) "
    "SELECT 'f' || i, 'p', 'f' || i, '', CAST('f' || i AS BLOB), '', 'open', 'open', 'unknown', "
    "0, 0, 0 FROM n";
constexpr db::Sql kNameOne = "UPDATE agents SET name = ?2 WHERE id = ?1";

// What the log says of one event.
struct Logged {
  std::string type;
  std::string project;
  std::string entity_id;
  std::string agent;
  std::string data;
  Timestamp created_at;
};

// Keeps what it is given, and where.
class KeptAgents final : public domain::AgentSink {
 public:
  void Restart() override { agents.clear(); }
  void Add(const domain::Agent& agent) override {
    agents.push_back(agent);
    thread = std::this_thread::get_id();
  }
  std::vector<domain::Agent> agents;
  std::thread::id thread;
};

class AgentsServiceTest : public ServiceTest {
 protected:
  using Registration = Agents::Registration;
  using Registered = Agents::Registered;

  Registered Register(Registration registration) {
    return Run(agents_.Register(std::move(registration))).value();
  }
  // The error of a registration that must fail.
  Error Refused(Registration registration) {
    const auto result = Run(agents_.Register(std::move(registration)));
    EXPECT_FALSE(result.ok());
    return result.ok() ? Error(Errc::kInternal, "it was not refused") : result.error();
  }
  Result<std::string> Heartbeat(const std::string& id, const std::string& focus = "") {
    return Run(agents_.Heartbeat({.id = id}, {.focus_state = focus}));
  }
  std::vector<domain::Agent> List(Agents::Filter filter) {
    const auto kept = std::make_shared<KeptAgents>();
    EXPECT_TRUE(Run(agents_.List(std::move(filter), kept)).ok());
    return kept->agents;
  }
  std::optional<domain::Agent> Find(const std::string& id) {
    const auto listed = List({});
    const auto found = std::ranges::find(listed, id, &domain::Agent::id);
    if (found == listed.end()) return std::nullopt;
    return *found;
  }
  Texts Ids(Agents::Filter filter) {
    const auto listed = List(std::move(filter));
    Texts ids;
    ids.reserve(listed.size());
    for (const domain::Agent& agent : listed) ids.push_back(agent.id);
    return ids;
  }
  std::vector<Logged> Events() {
    std::vector<Logged> events;
    EXPECT_TRUE(file_.Open()
                    ->ForEach(kEvents,
                              [&](const db::Row& row) {
                                events.push_back({row.String(0),
                                                  row.String(1),
                                                  row.String(2),
                                                  row.String(3),
                                                  row.String(4),
                                                  {row.Int(5)}});
                              })
                    .ok());
    return events;
  }

  UuidMaker uuids_{clock_, random_};
  Agents agents_{*storage_, clock_, random_, uuids_};
};

TEST_F(AgentsServiceTest, ANewAgentHasWhatItSentAndTheDefaults) {
  const Registered made = Register({.project = "p",
                                    .name = "  Ada ",
                                    .session_id = " {0198C5E2-7b1c-7d3e-8f00-0123456789ab}\n",
                                    .capabilities = Texts{"build"},
                                    .metadata = domain::Metadata{{"k", "v"}},
                                    .status = "busy"});
  const domain::Agent expected = {.id = made.agent.id,
                                  .project = "p",
                                  .session_id = "{0198C5E2-7b1c-7d3e-8f00-0123456789ab}",
                                  .name = "Ada",
                                  .capabilities = Texts{"build"},
                                  .metadata = domain::Metadata{{"k", "v"}},
                                  .status = "busy",
                                  .created_at = clock_.Now(),
                                  .last_seen = clock_.Now()};
  EXPECT_EQ(made.agent, expected);
  EXPECT_EQ(Find(made.agent.id), expected);
  EXPECT_EQ(Uuid::Parse(made.agent.id).value().version(), 7);
}

TEST_F(AgentsServiceTest, NothingIsSharedByAgentsWithoutASession) {
  const Registered one = Register({.project = "p", .session_id = " "});
  const Registered two = Register({.project = "p"});
  EXPECT_NE(one.agent.id, two.agent.id);
  EXPECT_NE(one.agent.session_id, two.agent.session_id);
  EXPECT_TRUE(domain::IsSessionId(one.agent.session_id));
  EXPECT_FALSE(one.token.Matches(two.token.Reveal()));
}

TEST_F(AgentsServiceTest, ASessionThatIsNoUuidIsRefusedWithTheTextClientsKnow) {
  const Error error = Refused({.project = "p", .session_id = " not\"one "});
  EXPECT_EQ(error.code(), Errc::kInvalidArgument);
  EXPECT_EQ(error.slug(), "invalid session_id: must be a valid UUID");
  EXPECT_TRUE(error.message().starts_with("session_id \"not\"one\" is no UUID")) << error;
  ASSERT_EQ(error.details().size(), 1U);
  EXPECT_EQ(error.details()[0].first, "code");
  EXPECT_EQ(std::get<std::string>(error.details()[0].second), "invalid_session_id");
  EXPECT_TRUE(Events().empty());
  // However long it is, the answer is short, and cut between characters.
  std::string euros = "x";
  for (int i = 0; i < 1'000; ++i) euros += "€";
  const Error cut = Refused({.project = "p", .session_id = euros});
  EXPECT_LT(cut.message().size(), 300U);
  EXPECT_NE(cut.message().find("€…\""), std::string::npos) << cut;
}

TEST_F(AgentsServiceTest, ATokenIsThirtyTwoCharactersAndStoredAsItsHashOnly) {
  const Registered made = Register({.project = "p"});
  const std::string& token = made.token.Reveal();
  EXPECT_EQ(token.size(), 32U);
  EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-_"),
            std::string::npos);
  EXPECT_EQ(Run(agents_.OfToken(made.token)).value()->id, made.agent.id);
  EXPECT_EQ(Run(agents_.OfToken(Secret(token + "x"))).value(), std::nullopt);
  EXPECT_EQ(Run(agents_.OfToken(Secret())).value(), std::nullopt);
  std::vector<std::size_t> sizes;
  ASSERT_TRUE(file_.Open()
                  ->ForEach(kTokenHashes,
                            [&](const db::Row& row) {
                              sizes.push_back(row.Bytes(0).size());
                              const Secret hash(std::string(
                                  reinterpret_cast<const char*>(row.Bytes(0).data()), sizes[0]));
                              EXPECT_FALSE(hash.Matches(token));
                            })
                  .ok());
  EXPECT_EQ(sizes, std::vector<std::size_t>{32});
  for (const Logged& event : Events()) EXPECT_EQ(event.data.find(token), std::string::npos);
}

TEST_F(AgentsServiceTest, AnActiveSessionIsRefusedAndAStaleOneTakenOver) {
  const Registered first = Register({.project = "p",
                                     .name = "old",
                                     .session_id = kSession,
                                     .capabilities = Texts{"a"},
                                     .metadata = domain::Metadata{{"k", "v"}},
                                     .status = "busy"});
  ASSERT_TRUE(Run(agents_.SetPolicies({.id = first.agent.id}, {.mail = "block_all"})).ok());
  clock_.Advance(seconds(10));
  ASSERT_TRUE(Heartbeat(first.agent.id, "at-prompt").ok());
  clock_.Advance(minutes(5) - microseconds(1));

  const Error error = Refused({.project = "p", .session_id = kSession});
  EXPECT_EQ(error.code(), Errc::kConflict);
  EXPECT_EQ(error.slug(), "session_id is in use by an active agent");
  EXPECT_EQ(std::get<std::string>(error.details().at(0).second), "active_session_conflict");

  clock_.Advance(microseconds(1));
  const Registered second = Register({.project = "p", .name = "new", .session_id = kSession});
  const domain::Agent expected = {.id = first.agent.id,
                                  .project = "p",
                                  .session_id = kSession,
                                  .name = "new",
                                  .policies = {.mail = domain::ContactPolicy::kBlockAll},
                                  .created_at = first.agent.created_at,
                                  .last_seen = clock_.Now()};
  EXPECT_EQ(second.agent, expected) << "focus and all else as new";
  EXPECT_EQ(Find(first.agent.id), expected);
  EXPECT_EQ(Run(agents_.OfToken(first.token)).value(), std::nullopt) << "worth nothing now";
  EXPECT_EQ(Run(agents_.OfToken(second.token)).value()->id, first.agent.id);
}

TEST_F(AgentsServiceTest, ASessionBelongsToItsProject) {
  const Registered here = Register({.project = "p", .session_id = kSession});
  const Registered there = Register({.project = "q", .session_id = kSession});
  EXPECT_NE(here.agent.id, there.agent.id);
}

TEST_F(AgentsServiceTest, AnAgentTakesItsOwnSessionUpAgainAtOnce) {
  const Registered first = Register({.project = "p", .session_id = kSession});
  const Registered stranger = Register({.project = "p"});
  EXPECT_EQ(Refused({.project = "p", .session_id = kSession, .shown_token = stranger.token}).code(),
            Errc::kConflict);
  const Registered again =
      Register({.project = "p", .session_id = kSession, .shown_token = first.token});
  EXPECT_EQ(again.agent.id, first.agent.id);
  EXPECT_EQ(Refused({.project = "p", .session_id = kSession, .shown_token = first.token}).code(),
            Errc::kConflict)
      << "the old token is worth nothing";
}

TEST_F(AgentsServiceTest, FiftyThreadsThatRegisterOneSessionGiveOneAgent) {
  const auto rounds = testing::kSlowBuild ? 2 : 10;
  for (int round = 0; round < rounds; ++round) {
    const std::string session = uuids_.Next().Text();
    std::atomic<int> made = 0;
    std::atomic<int> conflicts = 0;
    testing::OnThreads(50, [&](int) {
      const auto result = Run(agents_.Register({.project = "p", .session_id = session}));
      if (result.ok()) ++made;
      if (!result.ok() && result.error().code() == Errc::kConflict) ++conflicts;
    });
    EXPECT_EQ(made, 1);
    EXPECT_EQ(conflicts, 49);
  }
  EXPECT_EQ(Ids({}).size(), static_cast<std::size_t>(rounds));
  EXPECT_EQ(Events().size(), static_cast<std::size_t>(rounds)) << "a refusal leaves no event";
}

// Stale, so that each could have it: only the first finds it so.
TEST_F(AgentsServiceTest, FiftyThreadsThatTakeAStaleSessionOverGiveOneToken) {
  const Registered first = Register({.project = "p", .session_id = kSession});
  clock_.Advance(minutes(6));
  std::atomic<int> made = 0;
  testing::OnThreads(50, [&](int) {
    if (Run(agents_.Register({.project = "p", .session_id = kSession})).ok()) ++made;
  });
  EXPECT_EQ(made, 1);
}

TEST_F(AgentsServiceTest, ConcurrentAgentsWithoutANameGetDifferentOnes) {
  constexpr int kThreads = 8;
  const int each = testing::kSlowBuild ? 20 : 100;
  testing::OnThreads(kThreads, [&](int) {
    for (int i = 0; i < each; ++i) Register({.project = "p", .name = " \t"});
  });
  std::set<std::string> names;
  const auto listed = List({});
  for (const domain::Agent& agent : listed) names.insert(agent.name);
  EXPECT_EQ(listed.size(), static_cast<std::size_t>(kThreads * each));
  EXPECT_EQ(names.size(), listed.size());
}

TEST_F(AgentsServiceTest, InACrowdedProjectANameGetsTheNextFreeNumber) {
  const auto connection = file_.Open();
  const auto count = static_cast<std::int64_t>(domain::kPlainNames);
  ASSERT_TRUE(connection->BeginExclusive().ok());
  ASSERT_TRUE(connection->Run(kFillNames, count).ok());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string id = "f" + std::to_string(i);
    const std::string name = domain::GeneratedName(static_cast<std::uint64_t>(i));
    ASSERT_TRUE(connection->Run(kNameOne, id, name).ok());
  }
  ASSERT_TRUE(connection->Commit().ok());
  std::set<std::string> names;
  for (int i = 0; i < 20; ++i) {
    const std::string name = Register({.project = "p"}).agent.name;
    EXPECT_TRUE(name.ends_with(" 2")) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_FALSE(Register({.project = "q"}).agent.name.ends_with(" 2")) << "it is empty there";
}

TEST_F(AgentsServiceTest, WhatAnAgentSaysOfItselfIsBounded) {
  const Limits limits;
  const auto error = [&](const Registration& registration) {
    const auto result = Run(agents_.Register(registration));
    return result.ok() ? Errc::kInternal : result.error().code();
  };
  const std::string text(limits.agent_text_bytes_max + 1, 'x');
  domain::Metadata many;
  for (std::size_t i = 0; i <= limits.metadata_entries_max; ++i) many[std::to_string(i)] = "";
  const std::string value(limits.metadata_bytes_max, 'x');
  const std::vector<Registration> bad = {
      {.name = text},
      {.status = text},
      {.project = std::string(limits.project_bytes_max + 1, 'p')},
      {.capabilities = Texts(limits.capabilities_max + 1)},
      {.capabilities = Texts{std::string(limits.capability_bytes_max + 1, 'x')}},
      {.name = std::string("a\0b", 3)},
      {.status = std::string("a\0b", 3)},
      {.capabilities = Texts{std::string("a\0b", 3)}},
      {.metadata = many},
      {.metadata = domain::Metadata{{"k", value}}},
  };
  for (const Registration& registration : bad) {
    EXPECT_EQ(error(registration), Errc::kInvalidArgument) << &registration - bad.data();
  }
  EXPECT_TRUE(Events().empty());
  many.erase("0");
  EXPECT_TRUE(Run(agents_.Register({.name = text.substr(1),
                                    .capabilities = Texts(limits.capabilities_max),
                                    .metadata = many}))
                  .ok());
}

TEST_F(AgentsServiceTest, AHeartbeatMovesLastSeenAndLogsNothing) {
  const std::string id = Register({.project = "p"}).agent.id;
  clock_.Advance(seconds(7));
  ASSERT_TRUE(Heartbeat(id, "tool-use").ok());
  EXPECT_EQ(Find(id)->last_seen, clock_.Now());
  EXPECT_EQ(Find(id)->focus, domain::FocusState::kToolUse);
  const Timestamp told = clock_.Now();
  clock_.Advance(seconds(1));
  ASSERT_TRUE(Heartbeat(id).ok());
  EXPECT_EQ(Find(id)->focus_at, told) << "nothing new was said";
  EXPECT_EQ(Events().size(), 1U);
}

TEST_F(AgentsServiceTest, AHeartbeatNeedsALivingAgentOfTheProjectAndAFocusThatExists) {
  const std::string id = Register({.project = "p"}).agent.id;
  const Timestamp born = clock_.Now();
  clock_.Advance(seconds(7));
  const auto beat = [&](const std::string& of, std::optional<std::string> project,
                        const std::string& focus) {
    const auto result =
        Run(agents_.Heartbeat({.id = of, .project = std::move(project)}, {.focus_state = focus}));
    return result.ok() ? "ok" : std::string(result.error().slug());
  };
  EXPECT_EQ(beat("nobody", std::nullopt, ""), "not_found");
  EXPECT_EQ(beat("nobody", std::nullopt, "thinking"), "not_found");
  EXPECT_EQ(beat(id, "q", ""), "not_found");
  EXPECT_EQ(beat(id, "p", "Thinking"), "invalid focus_state");
  EXPECT_EQ(Find(id)->last_seen, born);
  EXPECT_EQ(beat(id, "p", "unknown"), "ok");
  ASSERT_TRUE(Run(agents_.Deregister({.id = id})).ok());
  EXPECT_EQ(beat(id, "p", ""), "not_found");
}

TEST_F(AgentsServiceTest, AListIsFilteredByOneOfSeveralCapabilitiesAndByMetadata) {
  const std::string a = Register({.project = "p",
                                  .capabilities = Texts{"build", "test"},
                                  .metadata = domain::Metadata{{"repo", " r1 "}}})
                            .agent.id;
  clock_.Advance(seconds(1));
  const std::string b =
      Register({.project = "p",
                .capabilities = Texts{"review"},
                .metadata = domain::Metadata{{"repo", "r1"}, {"active_bead_id", "b-1"}}})
          .agent.id;
  clock_.Advance(seconds(1));
  const std::string c = Register({.project = "q", .capabilities = Texts{"build"}}).agent.id;
  EXPECT_EQ(Ids({}), (Texts{c, b, a}));
  EXPECT_EQ(Ids({.project = "p"}), (Texts{b, a}));
  EXPECT_EQ(Ids({.project = "p", .capabilities = {"review", "test"}}), (Texts{b, a}));
  EXPECT_EQ(Ids({.capabilities = {"build"}}), (Texts{c, a}));
  EXPECT_EQ(Ids({.capabilities = {"Build"}}), Texts{});
  EXPECT_EQ(Ids({.repo = "r1"}), (Texts{b, a}));
  EXPECT_EQ(Ids({.repo = "r"}), Texts{});
  EXPECT_EQ(Ids({.repo = "r1", .active_bead_id = "b-1"}), Texts{b});
  ASSERT_TRUE(Heartbeat(a).ok());
  clock_.Advance(seconds(1));
  ASSERT_TRUE(Heartbeat(a).ok());
  EXPECT_EQ(Ids({.project = "p"}), (Texts{a, b})) << "the last seen first";
  EXPECT_EQ(Run(agents_.CountActive()).value(), 3);
  clock_.Advance(minutes(5));
  EXPECT_EQ(Run(agents_.CountActive()).value(), 1);
}

TEST_F(AgentsServiceTest, MetadataIsMergedKeyByKeyAndCountsAsASignOfLife) {
  const std::string id =
      Register({.project = "p", .metadata = domain::Metadata{{"a", "1"}, {"b", "2"}}}).agent.id;
  clock_.Advance(seconds(3));
  const auto merged = Run(agents_.MergeMetadata({.id = id}, {{"b", "3"}, {"c", ""}})).value();
  EXPECT_EQ(merged.metadata, (domain::Metadata{{"a", "1"}, {"b", "3"}, {"c", ""}}));
  EXPECT_EQ(merged.last_seen, clock_.Now());
  EXPECT_EQ(Find(id), merged);
  const std::string bare = Register({.project = "p"}).agent.id;
  EXPECT_EQ(Run(agents_.MergeMetadata({.id = bare}, {{"x", "y"}})).value().metadata,
            (domain::Metadata{{"x", "y"}}));
}

TEST_F(AgentsServiceTest, MetadataThatIsEmptyTooMuchOrNobodysIsRefused) {
  const std::string id = Register({.project = "p"}).agent.id;
  const auto merge = [&](AgentRef ref, domain::Metadata entries) {
    const auto result = Run(agents_.MergeMetadata(std::move(ref), std::move(entries)));
    return result.ok() ? "ok" : std::string(result.error().slug());
  };
  EXPECT_EQ(merge({.id = id}, {}), "metadata map required");
  EXPECT_EQ(merge({.id = "nobody"}, {{"k", "v"}}), "not_found");
  EXPECT_EQ(merge({.id = id, .project = "q"}, {{"k", "v"}}), "not_found");
  const std::string half(Limits().metadata_bytes_max / 2, 'x');
  EXPECT_EQ(merge({.id = id, .project = "p"}, {{"a", half}}), "ok");
  EXPECT_EQ(merge({.id = id}, {{"b", half}}), "invalid_request") << "together it is too much";
  EXPECT_EQ(merge({.id = id}, {{"a", half + "y"}}), "ok") << "it takes the place of the other";
  EXPECT_EQ(Find(id)->metadata->size(), 1U);
  EXPECT_EQ(Events().size(), 3U);
}

// A lost update would drop keys of others.
TEST_F(AgentsServiceTest, ConcurrentMergesLoseNothing) {
  const std::string id = Register({.project = "p"}).agent.id;
  testing::OnThreads(8, [&](int t) {
    for (int i = 0; i < 10; ++i) {
      const std::string key = std::to_string(t) + "." + std::to_string(i);
      ASSERT_TRUE(Run(agents_.MergeMetadata({.id = id}, {{key, ""}})).ok());
    }
  });
  EXPECT_EQ(Find(id)->metadata->size(), 80U);
}

TEST_F(AgentsServiceTest, PoliciesAreSetOneByOneAndReadBack) {
  const std::string id = Register({.project = "p"}).agent.id;
  const auto set = [&](Agents::PolicyChange change) {
    return Run(agents_.SetPolicies({.id = id, .project = "p"}, std::move(change))).value().policies;
  };
  using enum domain::ContactPolicy;
  EXPECT_EQ(Run(agents_.PoliciesOf({.id = id})).value().policies, domain::Policies());
  EXPECT_EQ(set({.mail = "auto"}), (domain::Policies{.mail = kAuto, .live = kContactsOnly}));
  EXPECT_EQ(set({.live = "block_all"}), (domain::Policies{.mail = kAuto, .live = kBlockAll}));
  EXPECT_EQ(set({.mail = "contacts_only", .live = "open"}),
            (domain::Policies{.mail = kContactsOnly, .live = kOpen}));
  EXPECT_EQ(Events().size(), 4U);
  EXPECT_EQ(set({.live = "open"}), (domain::Policies{.mail = kContactsOnly, .live = kOpen}));
  EXPECT_EQ(Events().size(), 4U) << "nothing changed";
  EXPECT_EQ(Run(agents_.PoliciesOf({.id = id, .project = "p"})).value().policies,
            (domain::Policies{.mail = kContactsOnly, .live = kOpen}));
}

TEST_F(AgentsServiceTest, PoliciesOfNobodyAreTheDefaultsAndCannotBeSet) {
  const std::string id = Register({.project = "p"}).agent.id;
  EXPECT_EQ(Run(agents_.PoliciesOf({.id = "nobody", .project = "p"})).value().policies,
            domain::Policies());
  ASSERT_TRUE(Run(agents_.SetPolicies({.id = id}, {.mail = "block_all"})).ok());
  EXPECT_EQ(Run(agents_.PoliciesOf({.id = id, .project = "q"})).value().policies,
            domain::Policies());
  const auto set = [&](AgentRef ref, Agents::PolicyChange change) {
    return std::string(Run(agents_.SetPolicies(std::move(ref), std::move(change))).error().slug());
  };
  EXPECT_EQ(set({.id = "nobody"}, {.mail = "open"}), "not_found");
  EXPECT_EQ(set({.id = id, .project = "q"}, {.mail = "open"}), "not_found");
  EXPECT_EQ(set({.id = id}, {}), "policy or live_contact_policy required");
  EXPECT_EQ(set({.id = id}, {.mail = "shut"}),
            "invalid policy: must be open, auto, contacts_only, or block_all");
  EXPECT_EQ(set({.id = id}, {.mail = "open", .live = "Open"}),
            "invalid live_contact_policy: must be open, auto, contacts_only, or block_all");
}

TEST_F(AgentsServiceTest, ContactsComeAndGoOneWayAndOnlyChangesAreLogged) {
  const std::string a = Register({.project = "p"}).agent.id;
  const std::string b = Register({.project = "p"}).agent.id;
  EXPECT_EQ(Run(agents_.AddContact({.id = a}, " x ")).value(), Texts{"x"});
  EXPECT_EQ(Run(agents_.AddContact({.id = a, .project = "p"}, b)).value(), (Texts{b, "x"}));
  EXPECT_EQ(Run(agents_.AddContact({.id = a}, b)).value(), (Texts{b, "x"}));
  EXPECT_EQ(Run(agents_.ContactsOf({.id = a})).value(), (Texts{b, "x"}));
  EXPECT_EQ(Run(agents_.ContactsOf({.id = b})).value(), Texts{});
  EXPECT_EQ(Run(agents_.RemoveContact({.id = a}, "x")).value(), Texts{b});
  EXPECT_EQ(Run(agents_.RemoveContact({.id = a}, "x")).value(), Texts{b});
  const auto events = Events();
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[2].type, "contact.added");
  EXPECT_EQ(events[2].data, R"({"contact":"x"})");
  EXPECT_EQ(events[4].type, "contact.removed");
  for (std::size_t i = 2; i < events.size(); ++i) {
    EXPECT_EQ(events[i].entity_id, a);
    EXPECT_EQ(events[i].agent, a);
    EXPECT_EQ(events[i].project, "p");
  }
}

TEST_F(AgentsServiceTest, ContactsAreBoundedNamedAndSomebodys) {
  const std::string id = Register({.project = "p"}).agent.id;
  Agents few(*storage_, clock_, random_, uuids_, Limits{.contacts_max = 2});
  const auto add = [&](AgentRef ref, const std::string& contact) {
    const auto result = Run(few.AddContact(std::move(ref), contact));
    return result.ok() ? "ok" : std::string(result.error().slug());
  };
  EXPECT_EQ(add({.id = id}, " "), "invalid_request");
  EXPECT_EQ(add({.id = id}, std::string(Limits().agent_id_bytes_max + 1, 'x')), "invalid_request");
  EXPECT_EQ(add({.id = "nobody"}, "x"), "not_found");
  EXPECT_EQ(add({.id = id, .project = "q"}, "x"), "not_found");
  EXPECT_EQ(add({.id = id}, "x"), "ok");
  EXPECT_EQ(add({.id = id}, "y"), "ok");
  EXPECT_EQ(add({.id = id}, "z"), "too_many_contacts");
  EXPECT_EQ(add({.id = id}, "y"), "ok") << "it is there already";
  EXPECT_EQ(Run(few.ContactsOf({.id = id})).value(), (Texts{"x", "y"}));
  EXPECT_EQ(Run(few.ContactsOf({.id = "nobody"})).error().code(), Errc::kNotFound);
  EXPECT_EQ(Run(few.RemoveContact({.id = id, .project = "q"}, "x")).error().code(),
            Errc::kNotFound);
}

TEST_F(AgentsServiceTest, ADeregisteredAgentIsGoneButItsSessionAndPoliciesWait) {
  const Registered made = Register({.project = "p", .session_id = kSession});
  const AgentRef ref = {.id = made.agent.id, .project = "p"};
  ASSERT_TRUE(Run(agents_.SetPolicies(ref, {.mail = "block_all"})).ok());
  EXPECT_EQ(Run(agents_.Deregister({.id = ref.id, .project = "q"})).error().code(),
            Errc::kNotFound);
  ASSERT_TRUE(Run(agents_.Deregister(ref)).ok());
  EXPECT_EQ(Run(agents_.Deregister(ref)).error().code(), Errc::kNotFound);
  EXPECT_EQ(Find(ref.id), std::nullopt);
  EXPECT_EQ(Run(agents_.OfToken(made.token)).value(), std::nullopt);
  EXPECT_EQ(Run(agents_.MergeMetadata(ref, {{"k", "v"}})).error().code(), Errc::kNotFound);
  EXPECT_EQ(Run(agents_.SetPolicies(ref, {.mail = "open"})).error().code(), Errc::kNotFound);
  EXPECT_EQ(Run(agents_.AddContact(ref, "x")).error().code(), Errc::kNotFound);
  EXPECT_EQ(Run(agents_.PoliciesOf(ref)).value().policies.mail, domain::ContactPolicy::kBlockAll);

  const Registered again = Register({.project = "p", .name = "n", .session_id = kSession});
  EXPECT_EQ(again.agent.id, ref.id);
  EXPECT_EQ(again.agent.policies.mail, domain::ContactPolicy::kBlockAll);
  EXPECT_EQ(Find(ref.id)->name, "n");
  EXPECT_EQ(Run(agents_.OfToken(again.token)).value()->id, ref.id);
}

TEST_F(AgentsServiceTest, TheEventOfMetadataNamesWhatChangedAndNothingElse) {
  const std::string id =
      Register({.project = "p", .metadata = domain::Metadata{{"big", std::string(20'000, 'x')}}})
          .agent.id;
  const auto merge = [&](domain::Metadata entries) {
    clock_.Advance(seconds(1));
    const auto merged = Run(agents_.MergeMetadata({.id = id}, std::move(entries)));
    EXPECT_EQ(merged.value().last_seen, clock_.Now());
    EXPECT_EQ(Find(id)->last_seen, clock_.Now()) << "a sign of life in any case";
    return Events().back().data;
  };
  const std::string start = R"({"agent_id":")" + id + R"(","changed":)";
  EXPECT_EQ(merge({{"a", "1"}, {"b", "1"}}), start + R"(["a","b"]})");
  EXPECT_EQ(merge({{"a", "1"}, {"b", "2"}, {"c", ""}}), start + R"(["b","c"]})");
  EXPECT_EQ(Events().size(), 3U);
  merge({{"a", "1"}, {"c", ""}});
  EXPECT_EQ(Events().size(), 3U) << "no more than a heartbeat";
}

TEST_F(AgentsServiceTest, AListIsWrittenByTheReaderAndNotByTheThreadThatAsks) {
  Register({.project = "p"});
  const auto kept = std::make_shared<KeptAgents>();
  const auto asking = [&]() -> boost::asio::awaitable<std::thread::id> {
    Agents::Filter everybody;
    const auto listed = co_await agents_.List(std::move(everybody), kept);
    EXPECT_TRUE(listed.ok());
    co_return std::this_thread::get_id();
  };
  const std::thread::id io = Run(asking());
  EXPECT_EQ(kept->agents.size(), 1U);
  EXPECT_NE(kept->thread, io);
  EXPECT_NE(kept->thread, std::thread::id());
}

TEST_F(AgentsServiceTest, EveryChangeHasItsOneEvent) {
  const Registered made = Register({.project = "p", .name = "Ada", .session_id = kSession});
  const AgentRef ref = {.id = made.agent.id};
  clock_.Advance(seconds(1));
  ASSERT_TRUE(Run(agents_.MergeMetadata(ref, {{"k", "v"}, {"l", "v"}})).ok());
  ASSERT_TRUE(Run(agents_.SetPolicies(ref, {.live = "open"})).ok());
  ASSERT_TRUE(Run(agents_.Deregister(ref)).ok());
  const auto events = Events();
  ASSERT_EQ(events.size(), 4U);
  const std::string start = R"({"agent_id":")" + ref.id + R"(","session_id":")" + kSession +
                            R"(","name":"Ada","project":"p","capabilities":null,"metadata":)";
  const std::string born = R"("created_at":"2026-01-02T03:04:05Z"})";
  EXPECT_EQ(events[0].type, "agent.registered");
  EXPECT_EQ(events[0].data,
            start + R"(null,"status":"","last_seen":"2026-01-02T03:04:05Z",)" + born);
  EXPECT_EQ(events[1].type, "agent.updated");
  EXPECT_EQ(events[1].data, R"({"agent_id":")" + ref.id + R"(","changed":["k","l"]})");
  EXPECT_EQ(events[2].type, "policy.updated");
  EXPECT_EQ(events[2].data,
            R"({"agent_id":")" + ref.id + R"(","policy":"open","live_contact_policy":"open"})");
  EXPECT_EQ(events[3].type, "agent.deregistered");
  EXPECT_EQ(events[3].data,
            start +
                R"({"k":"v","l":"v"},"status":"deregistered","last_seen":"2026-01-02T03:04:06Z",)" +
                born);
  for (const Logged& event : events) {
    EXPECT_EQ(event.entity_id, ref.id);
    EXPECT_EQ(event.agent, ref.id);
    EXPECT_EQ(event.project, "p");
  }
  EXPECT_EQ(events[3].created_at, clock_.Now());
}

}  // namespace
}  // namespace interlock::service
