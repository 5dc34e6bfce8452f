#include "serve_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace interlock::app {
namespace {

using std::chrono::milliseconds;

std::variant<ServeOptions, InitOptions, AskOptions, InboxOptions, Done> Parse(
    std::initializer_list<const char*> arguments, const Environment& environment = {}) {
  std::vector<const char*> argv = {"intermute"};
  argv.insert(argv.end(), arguments);
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data(), environment);
}

ServeOptions Serve(std::initializer_list<const char*> arguments,
                   const Environment& environment = {}) {
  auto parsed = Parse(arguments, environment);
  const auto* done = std::get_if<Done>(&parsed);
  EXPECT_EQ(done, nullptr) << (done != nullptr ? done->text : "");
  return done == nullptr ? std::get<ServeOptions>(parsed) : ServeOptions{};
}

TEST(ServeOptionsTest, DefaultsAreLocalAndSafe) {
  const ServeOptions options = Serve({"serve"});
  EXPECT_EQ(options.host, "127.0.0.1");
  EXPECT_EQ(options.port, 7338);
  EXPECT_EQ(options.database, "intermute.db");
  EXPECT_TRUE(options.socket.empty());
  EXPECT_EQ(options.durability, sqlite::Durability::kFull);
  EXPECT_EQ(options.log_format, LogFormat::kText);
  EXPECT_EQ(options.log_level, LogLevel::kInfo);
  EXPECT_EQ(options.network_fs, ServeOptions::NetworkFs::kRefuse);
  EXPECT_EQ(options.limits.body_bytes_max, 1024U * 1024U);
  EXPECT_EQ(options.limits.header_bytes_max, 16U * 1024U);
  EXPECT_EQ(options.limits.drain_timeout, std::chrono::seconds(5));
}

TEST(ServeOptionsTest, FlagsTakeTheirValueWithASpaceOrAnEqualsSign) {
  const ServeOptions spaced =
      Serve({"serve", "--host",        "::1",   "--port",           "0",     "--db",
             "x.db",  "--socket",      "s",     "--durability",     "fast",  "--log-format",
             "json",  "--log-level",   "debug", "--idle-timeout",   "1m30s", "--max-connections",
             "7",     "--retain-days", "7",     "--sweep-interval", "5s"});
  const ServeOptions joined =
      Serve({"serve", "--host=::1", "--port=0", "--db=x.db", "--socket=s", "--durability=fast",
             "--log-format=json", "--log-level=debug", "--idle-timeout=90s", "--max-connections=7",
             "--retain-days=7", "--sweep-interval=5s", "--allow-network-fs"});
  for (const ServeOptions& options : {spaced, joined}) {
    EXPECT_EQ(options.host, "::1");
    EXPECT_EQ(options.port, 0);
    EXPECT_EQ(options.database, "x.db");
    EXPECT_EQ(options.socket, "s");
    EXPECT_EQ(options.durability, sqlite::Durability::kFast);
    EXPECT_EQ(options.log_format, LogFormat::kJson);
    EXPECT_EQ(options.log_level, LogLevel::kDebug);
    EXPECT_EQ(options.limits.idle_timeout, milliseconds(90'000));
    EXPECT_EQ(options.retain_days, 7);
    EXPECT_EQ(options.sweep_interval, milliseconds(5'000));
    EXPECT_EQ(options.limits.connections_max, 7U);
  }
  EXPECT_EQ(joined.network_fs, ServeOptions::NetworkFs::kAllow);
}

TEST(ServeOptionsTest, ReservationsAreMirroredOnlyWhenThatIsAskedFor) {
  EXPECT_TRUE(Serve({"serve"}).intercore_db.empty());
  EXPECT_FALSE(Serve({"serve"}).coordination_dual_write);
  EXPECT_EQ(Serve({"serve", "--intercore-db", "i.db"}).intercore_db, "i.db");
  EXPECT_TRUE(Serve({"serve", "--coordination-dual-write"}).coordination_dual_write);
}

AskOptions AskFor(std::initializer_list<const char*> arguments,
                  const Environment& environment = {}) {
  auto parsed = Parse(arguments, environment);
  const auto* done = std::get_if<Done>(&parsed);
  EXPECT_EQ(done, nullptr) << (done != nullptr ? done->text : "");
  return done == nullptr ? std::get<AskOptions>(parsed) : AskOptions{};
}

TEST(AskOptionsTest, EachCommandIsAQuestion) {
  using Question = AskOptions::Question;
  EXPECT_EQ(AskFor({"status"}).question, Question::kStatus);
  EXPECT_EQ(AskFor({"agents"}).question, Question::kAgents);
  const AskOptions who = AskFor({"who", "src/x", "--project", " web/ ", "--literal", "--json"});
  EXPECT_EQ(who.question, Question::kWho);
  EXPECT_EQ(who.path, "src/x");
  EXPECT_EQ(who.project, "web");
  EXPECT_TRUE(who.literal);
  EXPECT_TRUE(who.json);
  EXPECT_FALSE(AskFor({"status"}).json);
}

TEST(AskOptionsTest, FlagsGoBeforeTheEnvironmentAndTheUrlBeforeTheSocket) {
  EXPECT_EQ(AskFor({"status"}).server.url, "http://127.0.0.1:7338");
  Environment environment;
  environment.socket = " /run/i.sock ";
  environment.api_key = " k ";
  environment.project = " web/";
  const AskOptions options = AskFor({"status"}, environment);
  EXPECT_EQ(options.server.url, "unix:/run/i.sock");
  EXPECT_EQ(options.server.api_key.Reveal(), "k");
  EXPECT_EQ(options.project, "web");
  environment.url = "http://h:1";
  EXPECT_EQ(AskFor({"status"}, environment).server.url, "http://h:1");
  EXPECT_EQ(AskFor({"status", "--url", "http://h:2"}, environment).server.url, "http://h:2");
  EXPECT_EQ(AskFor({"status", "--project=x"}, environment).project, "x");
}

TEST(AskOptionsTest, HelpHasExamplesAndMistakesNameIt) {
  for (const char* command : {"status", "agents", "who"}) {
    const auto parsed = Parse({command, "--help"});
    const Done& done = std::get<Done>(parsed);
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_THAT(done.text, ::testing::HasSubstr("Examples:"));
    EXPECT_THAT(done.text, ::testing::HasSubstr("INTERMUTE_API_KEY"));
  }
  const auto parsed = Parse({"who"});
  const Done& done = std::get<Done>(parsed);
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(done.text, "intermute: PATH is required\nTry: intermute who --help\n");
}

TEST(ServeOptionsTest, OfARepeatedFlagTheLastOneCounts) {
  const ServeOptions options =
      Serve({"serve", "--port=1", "--port", "2", "--durability=fast", "--durability=full"});
  EXPECT_EQ(options.port, 2);
  EXPECT_EQ(options.durability, sqlite::Durability::kFull);
}

TEST(ServeOptionsTest, HelpNamesEveryDefault) {
  const auto parsed = Parse({"serve", "--help"});
  const Done& done = std::get<Done>(parsed);
  EXPECT_EQ(done.exit_code, 0);
  for (const char* text : {"127.0.0.1", "7338", "intermute.db", "full|fast", "text|json", "5s",
                           "10s", "30s", "1m", "1024", "Examples:"}) {
    EXPECT_THAT(done.text, ::testing::HasSubstr(text));
  }
}

TEST(ServeOptionsTest, TheKeysFileIsTheFlagsThenTheEnvironmentsThenOneOfThisDirectory) {
  EXPECT_EQ(Serve({"serve"}).keys_file, "intermute.keys.yaml");
  EXPECT_EQ(Serve({"serve"}, {.keys_file = " \t"}).keys_file, "intermute.keys.yaml");
  EXPECT_EQ(Serve({"serve"}, {.keys_file = " /etc/i/keys \n"}).keys_file, "/etc/i/keys");
  EXPECT_EQ(Serve({"serve", "--keys-file= k "}, {.keys_file = "/etc/keys"}).keys_file, "k");
  EXPECT_EQ(Serve({"serve", "--keys-file=a", "--keys-file", "b"}).keys_file, "b");
}

TEST(ServeOptionsTest, NobodyIsLetInOrProvedUnlessAskedFor) {
  EXPECT_FALSE(Serve({"serve"}).access.insecure);
  EXPECT_FALSE(Serve({"serve"}).access.require_agent_token);
  EXPECT_TRUE(Serve({"serve", "--insecure"}).access.insecure);
  EXPECT_TRUE(Serve({"serve", "--require-agent-token"}).access.require_agent_token);
}

TEST(ServeOptionsTest, AnEmptyNameOfTheFileOfIcIsAMistake) {
  const auto refusal = [](std::vector<const char*> argv) {
    const auto parsed = ParseCommandLine(static_cast<int>(argv.size()), argv.data(), {});
    const auto* const done = std::get_if<Done>(&parsed);
    return done == nullptr || done->exit_code != 1 ? ""
                                                   : done->text.substr(0, done->text.find('\n'));
  };
  EXPECT_EQ(refusal({"intermute", "serve", "--intercore-db", ""}),
            "intermute: --intercore-db: name a file, or leave the flag out");
  EXPECT_EQ(refusal({"intermute", "serve", "--intercore-db="}),
            "intermute: --intercore-db: 1 required PATH missing");
}

TEST(ServeOptionsTest, InitNeedsAProject) {
  const auto parsed = Parse({"init", "--project", " web/ ", "--keys-file=k"}, {.keys_file = "e"});
  EXPECT_EQ(std::get<InitOptions>(parsed).project, "web");
  EXPECT_EQ(std::get<InitOptions>(parsed).keys_file, "k");
  const auto by_environment = Parse({"init", "--project=web"}, {.keys_file = " e "});
  EXPECT_EQ(std::get<InitOptions>(by_environment).keys_file, "e");
  EXPECT_EQ(std::get<InitOptions>(Parse({"init", "--project=x"})).keys_file, "intermute.keys.yaml");
  const std::vector<std::vector<const char*>> mistakes = {
      {"init"},
      {"init", "--project"},
      {"init", "--project", "  "},
      {"init", "--project="},
      {"init", "--project=web", "--keys-file= "},
      {"init", "--project=a\nb"},
      {"init", "--project=\xFF"},
      {"init", "--project=web", "extra"},
      {"init", "--project=web", "--insecure"}};
  for (const auto& mistake : mistakes) {
    std::vector<const char*> argv = {"intermute"};
    argv.insert(argv.end(), mistake.begin(), mistake.end());
    const auto refused = ParseCommandLine(static_cast<int>(argv.size()), argv.data(), {});
    ASSERT_TRUE(std::holds_alternative<Done>(refused)) << mistake.back();
    EXPECT_EQ(std::get<Done>(refused).exit_code, 1);
    EXPECT_THAT(std::get<Done>(refused).text,
                ::testing::AllOf(::testing::StartsWith("intermute: "),
                                 ::testing::EndsWith("\nTry: intermute init --help\n")));
  }
}

TEST(InboxOptionsTest, FlagsGoBeforeTheEnvironment) {
  const Environment environment = {.keys_file = "",
                                   .url = " http://box:1 ",
                                   .socket = "/run/i.sock",
                                   .api_key = "key",
                                   .project = "web"};
  const auto parse = [&](std::initializer_list<const char*> arguments, const Environment& env) {
    auto parsed = Parse(arguments, env);
    const auto* done = std::get_if<Done>(&parsed);
    EXPECT_EQ(done, nullptr) << (done != nullptr ? done->text : "");
    return done == nullptr ? std::get<InboxOptions>(parsed) : InboxOptions{};
  };
  const InboxOptions from_environment =
      parse({"inbox", "--unread-pokes", "--agent=a"}, environment);
  EXPECT_EQ(from_environment.server.url, "http://box:1");
  EXPECT_EQ(from_environment.server.api_key.Reveal(), "key");
  EXPECT_EQ(from_environment.project, "web");
  EXPECT_EQ(from_environment.mark, InboxOptions::Mark::kNothing);
  const InboxOptions from_flags = parse({"inbox", "--unread-pokes", "--agent", "a", "--project",
                                         " p ", "--url=unix:/x", "--mark-surfaced"},
                                        environment);
  EXPECT_EQ(from_flags.server.url, "unix:/x");
  EXPECT_EQ(from_flags.project, "p");
  EXPECT_EQ(from_flags.agent, "a");
  EXPECT_EQ(from_flags.mark, InboxOptions::Mark::kSurfaced);
  EXPECT_EQ(parse({"inbox", "--unread-pokes", "--agent=a", "--project=p"}, {}).server.url,
            "http://127.0.0.1:7338");
  Environment socket_only = environment;
  socket_only.url = "";
  EXPECT_EQ(parse({"inbox", "--unread-pokes", "--agent=a"}, socket_only).server.url,
            "unix:/run/i.sock");
}

TEST(InboxOptionsTest, WhatIsMissingOrBlankIsAnError) {
  const std::initializer_list<const char*> cases[] = {
      {"inbox", "--project=p", "--agent=a"},
      {"inbox", "--unread-pokes", "--agent=a"},
      {"inbox", "--unread-pokes", "--project=p"},
      {"inbox", "--unread-pokes", "--project=p", "--agent= "},
      {"inbox", "--unread-pokes", "--project= ", "--agent=a"},
  };
  for (const auto& arguments : cases) {
    const auto parsed = Parse(arguments);
    const auto* done = std::get_if<Done>(&parsed);
    ASSERT_NE(done, nullptr);
    EXPECT_EQ(done->exit_code, 1);
    EXPECT_THAT(done->text, ::testing::EndsWith("\nTry: intermute inbox --help\n"));
  }
}

}  // namespace
}  // namespace interlock::app
