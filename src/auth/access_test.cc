#include "auth/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/keyring.h"

namespace interlock::auth {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kKeys =
    "projects:\n  dev: {keys: [alpha]}\n  web: {keys: ['two words', 'sha256:"
    "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753']}\n";  // of "beta"

Keyring Ring(std::string_view yaml = kKeys) { return Keyring::Parse(yaml).value(); }

HeaderField Field(std::string_view value) { return {.count = 1, .first = value}; }

// A plain request of a local tool.
RequestFacts Local() {
  return {.channel = RequestFacts::Channel::kTcp,
          .address = "127.0.0.1",
          .host = Field("127.0.0.1:7338")};
}
RequestFacts Remote() {
  return {.channel = RequestFacts::Channel::kTcp,
          .address = "10.1.2.3",
          .host = Field("10.0.0.1:7338")};
}

// "local", "key <project>", or the slug of the refusal.
std::string Decide(const RequestFacts& facts, const Keyring& keyring,
                   const AccessRules& rules = {}) {
  const auto caller = Admit(facts, keyring, rules);
  if (!caller.ok()) return std::string(caller.error().slug());
  if (caller->mode == Caller::Mode::kKey) return "key " + caller->project;
  EXPECT_EQ(caller->project, "");
  return "local";
}
std::string Decide(const RequestFacts& facts) { return Decide(facts, Ring()); }

// ---- Every combination of the facts, each value marked with what it means ----

struct Fact {
  HeaderField field;
  enum class Means : std::uint8_t { kAbsent, kGood, kBad } means;
};

struct PeerFact {
  RequestFacts::Channel channel;
  std::string_view address;
  bool here;
};

std::string Expected(const Fact& key, const PeerFact& peer, const Fact& forwarded, const Fact& host,
                     const Fact& origin, LocalPolicy policy, const AccessRules& rules) {
  using enum Fact::Means;
  if (key.means == kBad) return "unauthorized";
  if (key.means == kGood) return "key dev";
  const bool here = peer.here && forwarded.means != kBad;
  if (!here && !rules.insecure) return "unauthorized";
  if (policy == LocalPolicy::kKeyNeeded) return "unauthorized";
  if (here && host.means == kBad) return "forbidden_origin";
  return origin.means == kBad ? "forbidden_origin" : "local";
}

TEST(AccessTest, EveryCombinationOfFactsIsDecidedAsTheRulesSay) {
  using enum Fact::Means;
  const std::vector<Fact> keys = {{{}, kAbsent},
                                  {Field("Bearer alpha"), kGood},
                                  {Field("Bearer wrong"), kBad},
                                  {{.count = 2, .first = "Bearer alpha"}, kBad}};
  const std::vector<PeerFact> peers = {{RequestFacts::Channel::kTcp, "127.0.0.1", true},
                                       {RequestFacts::Channel::kTcp, "::1", true},
                                       {RequestFacts::Channel::kUnix, "", true},
                                       {RequestFacts::Channel::kTcp, "192.168.0.7", false},
                                       {RequestFacts::Channel::kTcp, "2001:db8::1", false},
                                       {RequestFacts::Channel::kTcp, "", false}};
  const std::vector<Fact> forwards = {
      {{}, kAbsent}, {Field("127.0.0.1"), kGood}, {Field("203.0.113.9"), kBad}, {Field(""), kBad}};
  const std::vector<Fact> hosts = {{{}, kAbsent},
                                   {Field("localhost:7338"), kGood},
                                   {Field("evil.example:7338"), kBad},
                                   {{.count = 2, .first = "localhost:7338"}, kBad}};
  const std::vector<HeaderField> origins = {{},
                                            Field("http://localhost:7338"),
                                            Field("http://evil.example:7338"),
                                            Field("null"),
                                            {.count = 2, .first = "http://localhost:7338"}};
  int cases = 0;
  for (const LocalPolicy policy : {LocalPolicy::kNoKeyNeeded, LocalPolicy::kKeyNeeded}) {
    const Keyring keyring = Ring(std::string("projects: {dev: {keys: [alpha]}}\ndefault_policy:\n"
                                             "  allow_localhost_without_auth: ") +
                                 (policy == LocalPolicy::kNoKeyNeeded ? "true" : "false"));
    for (const bool insecure : {false, true}) {
      for (const Fact& key : keys) {
        for (const PeerFact& peer : peers) {
          for (const Fact& forwarded : forwards) {
            for (const Fact& host : hosts) {
              for (const HeaderField& origin : origins) {
                // Own is what equals the Host, whatever that is.
                const bool own = origin.count == 1 && host.field.count >= 1 &&
                                 origin.first == "http://" + std::string(host.field.first);
                const Fact origin_fact{origin, origin.count == 0 ? kAbsent : own ? kGood : kBad};
                const RequestFacts facts{.channel = peer.channel,
                                         .address = peer.address,
                                         .authorization = key.field,
                                         .host = host.field,
                                         .origin = origin,
                                         .forwarded_for = forwarded.field};
                const AccessRules rules{.insecure = insecure};
                EXPECT_EQ(Decide(facts, keyring, rules),
                          Expected(key, peer, forwarded, host, origin_fact, policy, rules))
                    << "key=" << key.field.first << " peer=" << peer.address
                    << " forwarded=" << forwarded.field.first << " host=" << host.field.first
                    << " x" << host.field.count << " origin=" << origin.first
                    << " insecure=" << insecure;
                ++cases;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 2 * 2 * 4 * 6 * 4 * 4 * 5);
}

// ---- The values one by one ----

TEST(AccessTest, TheKeyMayBeWrittenAsHttpAllows) {
  const struct {
    std::string field;
    std::string decision;
  } kCases[] = {
      {"Bearer alpha", "key dev"},
      {"bearer alpha", "key dev"},
      {"BEARER alpha", "key dev"},
      {"bEaReR   alpha  ", "key dev"},
      {" Bearer\talpha\t", "key dev"},
      {"Bearer beta", "key web"},
      {"Bearer two words", "key web"},
      {"Bearer Alpha", "unauthorized"},
      {"Bearer alpha,", "unauthorized"},
      {"Bearer alpha alpha", "unauthorized"},
      {"Bearer \"alpha\"", "unauthorized"},
      {"Bearer Bearer alpha", "unauthorized"},
      {"Bearer", "unauthorized"},
      {"Bearer ", "unauthorized"},
      {"Beareralpha", "unauthorized"},
      {"Bearer:alpha", "unauthorized"},
      {"Bearer=alpha", "unauthorized"},
      {"alpha", "unauthorized"},
      {"Basic YWxwaGE6", "unauthorized"},
      {"Token alpha", "unauthorized"},
      {std::string("Bearer alpha\0", 13), "unauthorized"},
      {"Bearer \xFF\xFE", "unauthorized"},
      {"Bearer " + std::string(100'000, 'a'), "unauthorized"},
      {"Bearer sha256:f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753",
       "unauthorized"},
      {"Bearer f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753", "unauthorized"},
  };
  for (const auto& c : kCases) {
    for (RequestFacts facts : {Local(), Remote()}) {
      facts.authorization = Field(c.field);
      EXPECT_EQ(Decide(facts), c.decision) << c.field.substr(0, 60);
    }
  }
}

TEST(AccessTest, ABlankAuthorizationIsNone) {
  for (const char* blank : {"", " ", "\t"}) {
    RequestFacts facts = Local();
    facts.authorization = Field(blank);
    EXPECT_EQ(Decide(facts), "local");
    facts = Remote();
    facts.authorization = Field(blank);
    EXPECT_EQ(Decide(facts), "unauthorized");
  }
}

TEST(AccessTest, AKeyNeedsNoLocalOriginOrHost) {
  RequestFacts facts = Local();
  facts.authorization = Field("Bearer alpha");
  facts.host = Field("intermute.example");
  facts.origin = Field("https://dashboard.example");
  facts.forwarded_for = Field("203.0.113.9");
  EXPECT_EQ(Decide(facts), "key dev");
}

TEST(AccessTest, LoopbackIsWhatTheKernelNeverRoutes) {
  for (const char* yes :
       {"127.0.0.1", "127.0.0.0", "127.255.255.255", "127.1.2.3", "::1", "0:0:0:0:0:0:0:1",
        "::ffff:127.0.0.1", "::FFFF:127.9.9.9", "::ffff:7f00:1"}) {
    EXPECT_TRUE(IsLoopbackAddress(yes)) << yes;
  }
  for (const std::string& no : {std::string(),
                                std::string("126.255.255.255"),
                                std::string("128.0.0.1"),
                                std::string("0.0.0.0"),
                                std::string("::"),
                                std::string("::2"),
                                std::string("1::1"),
                                std::string("::127.0.0.1"),
                                std::string("::ffff:10.0.0.1"),
                                std::string("127.1"),
                                std::string("127.0.0.1:80"),
                                std::string("127.0.0.01"),
                                std::string("0x7f.0.0.1"),
                                std::string("2130706433"),
                                std::string("localhost"),
                                std::string("[::1]"),
                                std::string(" 127.0.0.1"),
                                std::string("127.0.0.1 "),
                                std::string("127.0.0.1\0x", 11),
                                std::string("::1%lo"),
                                std::string("127.0.0.1.evil.example")}) {
    EXPECT_FALSE(IsLoopbackAddress(no)) << no;
  }
}

TEST(AccessTest, ForwardedRequestsAreLocalOnlyWhenEveryHopWasHere) {
  const struct {
    std::string field;
    std::string decision;
  } kCases[] = {
      {"127.0.0.1", "local"},
      {" ::1 ", "local"},
      {"localhost", "local"},
      {"LocalHost", "local"},
      {"127.0.0.1, ::1,localhost", "local"},
      {"203.0.113.9", "unauthorized"},
      {"203.0.113.9, 127.0.0.1", "unauthorized"},
      // A remote client claims to be local, and an honest proxy appends what it saw.
      {"127.0.0.1, 203.0.113.9", "unauthorized"},
      {"", "unauthorized"},
      {",", "unauthorized"},
      {"127.0.0.1,", "unauthorized"},
      {",127.0.0.1", "unauthorized"},
      {"unknown", "unauthorized"},
      {"localhost.evil.example", "unauthorized"},
      {"127.0.0.1:4000", "unauthorized"},
      {"\"127.0.0.1\"", "unauthorized"},
      {"for=127.0.0.1", "unauthorized"},
  };
  for (const auto& c : kCases) {
    RequestFacts facts = Local();
    facts.forwarded_for = Field(c.field);
    EXPECT_EQ(Decide(facts), c.decision) << c.field;
    facts.channel = RequestFacts::Channel::kUnix;
    facts.address = "";
    EXPECT_EQ(Decide(facts), c.decision) << "unix " << c.field;
    facts = Remote();
    facts.forwarded_for = Field(c.field);
    EXPECT_EQ(Decide(facts), "unauthorized") << "remote " << c.field;
  }
  RequestFacts twice = Local();
  twice.forwarded_for = {.count = 2, .first = "127.0.0.1"};
  EXPECT_EQ(Decide(twice), "unauthorized");
}

TEST(AccessTest, TheHostMustBeANameOrAddressOfThisMachine) {
  for (const char* yes :
       {"localhost", "localhost:7338", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1:80",
        "127.8.9.10:7338", "[::1]", "[::1]:7338", "[::ffff:127.0.0.1]:7338", "[0:0:0:0:0:0:0:1]",
        " localhost:7338 ", "localhost:0", "localhost:65535"}) {
    RequestFacts facts = Local();
    facts.host = Field(yes);
    EXPECT_EQ(Decide(facts), "local") << yes;
  }
  for (const std::string& no : {std::string(),
                                std::string(" "),
                                std::string("evil.example"),
                                std::string("evil.example:7338"),
                                std::string("localhost.evil.example"),
                                std::string("evil.localhost"),
                                std::string("localhosts"),
                                std::string("10.0.0.1:7338"),
                                std::string("0.0.0.0:7338"),
                                std::string("[::]:7338"),
                                std::string("[::2]"),
                                std::string("::1"),
                                std::string("[::1"),
                                std::string("[::1]x"),
                                std::string("[::1]7338"),
                                std::string("[127.0.0.1]:7338"),
                                std::string("127.0.0.1.evil.example"),
                                std::string("127.1"),
                                std::string("2130706433"),
                                std::string("localhost:"),
                                std::string("localhost:x"),
                                std::string("localhost:65536"),
                                std::string("localhost:-1"),
                                std::string("localhost:80:80"),
                                std::string("x@localhost"),
                                std::string("localhost/evil"),
                                std::string("localhost\0.evil", 15),
                                std::string("localhost evil"),
                                std::string(":7338"),
                                std::string("["),
                                std::string("[]")}) {
    RequestFacts facts = Local();
    facts.host = Field(no);
    EXPECT_EQ(Decide(facts), "forbidden_origin") << no;
    facts.channel = RequestFacts::Channel::kUnix;
    EXPECT_EQ(Decide(facts), "forbidden_origin") << "unix " << no;
  }
}

// An image or a link of a page says nothing of its origin, only of whose it is.
TEST(AccessTest, WhatAPageOfAnotherSiteFetchesNeedsAKey) {
  for (const char* own : {"same-origin", "none", "None", " none "}) {
    RequestFacts facts = Local();
    facts.fetch_site = Field(own);
    EXPECT_EQ(Decide(facts), "local") << own;
  }
  for (const HeaderField& foreign : {Field("cross-site"), Field("same-site"), Field(""), Field("?"),
                                     HeaderField{.count = 2, .first = "none"}}) {
    RequestFacts facts = Local();
    facts.fetch_site = foreign;
    EXPECT_EQ(Decide(facts), "forbidden_origin") << foreign.first;
    EXPECT_EQ(Decide(facts, Ring(), {.insecure = true}), "forbidden_origin") << foreign.first;
    facts.authorization = Field("Bearer alpha");
    EXPECT_EQ(Decide(facts), "key dev") << foreign.first;
  }
}

TEST(AccessTest, WhoComesFromElsewhereIsKnownAsSuchWithAKeyToo) {
  const auto from_here = [](RequestFacts facts) {
    facts.authorization = Field("Bearer alpha");
    return Admit(facts, Ring(), {.insecure = true}).value().from_here;
  };
  EXPECT_TRUE(from_here(Local()));
  EXPECT_TRUE(from_here({.channel = RequestFacts::Channel::kUnix}));
  EXPECT_FALSE(from_here(Remote()));
  RequestFacts forwarded = Local();
  forwarded.forwarded_for = Field("203.0.113.9");
  EXPECT_FALSE(from_here(forwarded));
}

TEST(AccessTest, OnlyTheServersOwnPagesMayCallWithoutAKey) {
  const struct {
    std::string host;
    std::string origin;
    std::string decision;
  } kCases[] = {
      {"localhost:7338", "http://localhost:7338", "local"},
      {"LOCALHOST:7338", "http://localhost:7338", "local"},
      {"127.0.0.1:7338", "http://127.0.0.1:7338", "local"},
      {"[::1]:7338", "http://[::1]:7338", "local"},
      {"localhost", "http://localhost", "local"},
      {"localhost:80", "http://localhost", "local"},
      {"localhost", "http://localhost:80", "local"},
      {"localhost:7338", "null", "forbidden_origin"},
      {"localhost:7338", "", "forbidden_origin"},
      {"localhost:7338", "https://localhost:7338", "forbidden_origin"},
      {"localhost:7338", "http://localhost", "forbidden_origin"},
      {"localhost:7338", "http://localhost:7339", "forbidden_origin"},
      {"localhost:7338", "http://127.0.0.1:7338", "forbidden_origin"},
      {"localhost:7338", "http://localhost:7338.evil.example", "forbidden_origin"},
      {"localhost:7338", "http://localhost:7338/", "forbidden_origin"},
      {"localhost:7338", "http://localhost:7338@evil.example", "forbidden_origin"},
      {"localhost:7338", "http://evil.example", "forbidden_origin"},
      {"localhost:7338", "http://evil.example:7338", "forbidden_origin"},
      {"localhost:7338", "localhost:7338", "forbidden_origin"},
      {"localhost:7338", "ws://localhost:7338", "forbidden_origin"},
      {"localhost:7338", "file://", "forbidden_origin"},
      {"localhost:7338", "chrome-extension://abcdef", "forbidden_origin"},
      {"localhost:7338", "http://", "forbidden_origin"},
      {"localhost:7338", "http://localhost:7338 http://evil.example", "forbidden_origin"},
      // A name that was bent to this machine: the page is its own origin.
      {"evil.example:7338", "http://evil.example:7338", "forbidden_origin"},
  };
  for (const auto& c : kCases) {
    RequestFacts facts = Local();
    facts.host = Field(c.host);
    facts.origin = Field(c.origin);
    EXPECT_EQ(Decide(facts), c.decision) << c.host << " " << c.origin;
  }
  RequestFacts hostless = Local();
  hostless.host = {};
  EXPECT_EQ(Decide(hostless), "local") << "HTTP/1.0 without Host";
  hostless.origin = Field("http://localhost:7338");
  EXPECT_EQ(Decide(hostless), "forbidden_origin");
}

TEST(AccessTest, InsecureLetsOthersInByAnyNameButKeepsWebPagesOut) {
  const AccessRules insecure{.insecure = true};
  RequestFacts facts = Remote();
  EXPECT_EQ(Decide(facts, Ring(), insecure), "local");
  facts.host = Field("buildbox:7338");
  EXPECT_EQ(Decide(facts, Ring(), insecure), "local");
  facts.origin = Field("http://buildbox:7338");
  EXPECT_EQ(Decide(facts, Ring(), insecure), "local");
  facts.origin = Field("http://evil.example");
  EXPECT_EQ(Decide(facts, Ring(), insecure), "forbidden_origin");
  facts = Local();
  facts.host = Field("evil.example");
  EXPECT_EQ(Decide(facts, Ring(), insecure), "forbidden_origin") << "a page of this machine";
  facts = Remote();
  facts.authorization = Field("Bearer wrong");
  EXPECT_EQ(Decide(facts, Ring(), insecure), "unauthorized");
}

TEST(AccessTest, RefusalsSayWhatToDoAndNeverShowTheKey) {
  RequestFacts facts = Remote();
  EXPECT_THAT(Admit(facts, Ring(), {}).error().message(), HasSubstr("intermute init"));
  facts.authorization = Field("Bearer sesame");
  const Error wrong = Admit(facts, Ring(), {}).error();
  EXPECT_EQ(wrong.http_status(), 401);
  EXPECT_THAT(wrong.message(), ::testing::Not(HasSubstr("sesame")));
  facts = Local();
  facts.origin = Field("http://evil.example");
  const Error origin = Admit(facts, Ring(), {}).error();
  EXPECT_EQ(origin.http_status(), 403);
  EXPECT_THAT(origin.message(), HasSubstr("http://evil.example"));
  EXPECT_THAT(origin.message(), HasSubstr("Authorization: Bearer <key>"));
  facts.origin = {};
  facts.host = Field("evil.example");
  EXPECT_THAT(Admit(facts, Ring(), {}).error().message(), HasSubstr("127.0.0.1"));
}

// ---- The agent ----

TEST(AccessTest, XAgentIdIsAClaim) {
  RequestFacts facts = Local();
  Caller caller = Admit(facts, Ring(), {}).value();
  EXPECT_EQ(caller.identity, Caller::Identity::kNone);
  EXPECT_EQ(caller.agent, "");
  for (const char* blank : {"", " ", "\t "}) {
    facts.agent_id = blank;
    EXPECT_EQ(Admit(facts, Ring(), {})->identity, Caller::Identity::kNone);
  }
  facts.agent_id = " amber-fox ";
  for (const char* authorization : {"", "Bearer alpha"}) {
    facts.authorization = Field(authorization);
    caller = Admit(facts, Ring(), {}).value();
    EXPECT_EQ(caller.identity, Caller::Identity::kClaimed);
    EXPECT_EQ(caller.agent, "amber-fox");
  }
}

TEST(AccessTest, ATokenSuppliesTheIdentityAndMustNotContradictTheClaim) {
  const Caller nobody{.mode = Caller::Mode::kKey, .project = "dev"};
  const Caller proved = WithToken(nobody, "amber-fox").value();
  EXPECT_EQ(proved.identity, Caller::Identity::kProved);
  EXPECT_EQ(proved.agent, "amber-fox");
  EXPECT_EQ(proved.mode, Caller::Mode::kKey);
  EXPECT_EQ(proved.project, "dev");

  Caller claimed;
  claimed.identity = Caller::Identity::kClaimed;
  claimed.agent = "amber-fox";
  EXPECT_EQ(WithToken(claimed, "amber-fox")->identity, Caller::Identity::kProved);
  const Error mismatch = WithToken(claimed, "grey-owl").error();
  EXPECT_EQ(mismatch.http_status(), 403);
  EXPECT_EQ(mismatch.slug(), "agent identity mismatch");
}

TEST(AccessTest, WhoWasLetInStaysSoOnlyAsLongAsTheKeysWouldLetItInAgain) {
  const auto keys = [](const char* text) { return Keyring::Parse(text).value(); };
  const Keyring first = keys("projects: {dev: {keys: [alpha, beta]}}");
  const RequestFacts facts{.address = "127.0.0.1", .authorization = {1, "Bearer alpha"}};
  const Caller with_key = Admit(facts, first, {}).value();
  const Caller local = Admit({.address = "127.0.0.1"}, first, {}).value();
  EXPECT_TRUE(StillAdmitted(with_key, first));
  EXPECT_TRUE(StillAdmitted(local, first));
  EXPECT_TRUE(StillAdmitted(with_key, keys("projects: {dev: {keys: [alpha]}}")));
  EXPECT_FALSE(StillAdmitted(with_key, keys("projects: {dev: {keys: [beta]}}")));
  EXPECT_FALSE(StillAdmitted(with_key, keys("projects: {other: {keys: [alpha]}}")));
  EXPECT_FALSE(StillAdmitted(with_key, Keyring()));
  EXPECT_TRUE(StillAdmitted(local, Keyring()));
  const Keyring closed = keys(
      "default_policy: {allow_localhost_without_auth: false}\n"
      "projects: {dev: {keys: [alpha]}}");
  EXPECT_FALSE(StillAdmitted(local, closed));
  EXPECT_TRUE(StillAdmitted(with_key, closed));
}

TEST(AccessTest, OnlyWithRequireAgentTokenIsAProofNeededToWriteInAName) {
  const Caller none;
  Caller claimed;
  claimed.identity = Caller::Identity::kClaimed;
  claimed.agent = "amber-fox";
  Caller proved = claimed;
  proved.identity = Caller::Identity::kProved;
  for (const Caller& caller : {none, claimed, proved}) {
    for (const char* agent : {"amber-fox", "grey-owl"}) {
      EXPECT_TRUE(MayActAs(caller, agent, {}).ok());
      const bool may = MayActAs(caller, agent, {.require_agent_token = true}).ok();
      EXPECT_EQ(may, caller.identity == Caller::Identity::kProved && caller.agent == agent);
    }
  }
  const Error refused = MayActAs(claimed, "amber-fox", {.require_agent_token = true}).error();
  EXPECT_EQ(refused.http_status(), 403);
  EXPECT_EQ(refused.slug(), "agent_token_required");
  EXPECT_THAT(refused.message(), HasSubstr("X-Agent-Token"));
}

}  // namespace
}  // namespace interlock::auth
