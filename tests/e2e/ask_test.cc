// What people ask a server with: intermute status, who, agents; on a terminal and elsewhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api_test.h"

namespace interlock::e2e {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Texts = std::vector<std::string>;
using namespace std::string_literals;

constexpr unsigned short kColumns = 80;

// A variable of the environment, which programs that the test starts see.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

class AskTest : public ApiTest {
 protected:
  explicit AskTest(Texts flags = {"--durability", "fast"}) : ApiTest(std::move(flags)) {
    for (const char* name :
         {"INTERMUTE_URL", "INTERMUTE_SOCKET", "INTERMUTE_API_KEY", "INTERMUTE_PROJECT"}) {
      ::unsetenv(name);
    }
  }

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  Texts Command(Texts arguments) const {
    arguments.insert(arguments.end(), {"--url", Url()});
    return arguments;
  }
  // The one line of JSON that a command prints.
  json::Value Answered(const Texts& arguments) const {
    const auto done = Run(Command(arguments));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(std::ranges::count(done.out, '\n'), 1) << done.out;
    auto value = json::Parse(done.out);
    EXPECT_TRUE(value.ok()) << done.out;
    return value.ok() ? *std::move(value) : json::Value(json::Object());
  }
  // What a command shows on a terminal of 80 columns.
  std::string Shown(const Texts& arguments) const {
    int terminal = -1;
    int its_end = -1;
    const winsize size{.ws_row = 24, .ws_col = kColumns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::openpty(&terminal, &its_end, nullptr, nullptr, &size), 0);
    Texts command = Command(arguments);
    command.insert(command.begin(), ServerProcess::Program("intermute"));
    ChildProcess child({.arguments = command, .directory = Directory(), .stdout_fd = its_end});
    ::close(its_end);
    std::string shown;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) {
      shown.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(terminal);
    EXPECT_EQ(child.Wait(ServerProcess::kPatience), 0) << child.Stderr();
    std::erase(shown, '\r');  // the terminal's own
    return shown;
  }
  static Texts Lines(const std::string& text) {
    Texts lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  // Of texts in which every character takes one.
  static std::ptrdiff_t Columns(const std::string& line) {
    return std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
  }
  std::string Reserve(const std::string& agent, const std::string& pattern,
                      const std::string& more = "") {
    const HttpAnswer answer =
        Ask("POST", "/api/reservations",
            R"({"project":"web","agent_id":")" + agent + R"(","path_pattern":")" + pattern +
                R"(","exclusive":true)" + more + "}");
    EXPECT_EQ(answer.status, 201) << answer.body;
    const auto value = json::Parse(answer.body);
    return value.ok() ? Text(*value, "id") : "";
  }
};

TEST_F(AskTest, StatusCountsWhatThereIsInAProjectAndInAll) {
  const std::string ann = Register("web", "ann");
  const std::string bob = Register("web", "bob");
  Register("other", "eve");
  Reserve(ann, "src/**");
  Post("/api/messages",
       R"({"project":"web","from":")" + ann + R"(","to":[")" + bob + R"("],"body":"hi"})");
  const json::Value web = Get("/api/status?project=web");
  EXPECT_EQ(Text(web, "project"), "web");
  EXPECT_EQ(web.at("agents_alive"), 2);
  EXPECT_EQ(web.at("agents_registered"), 2);
  EXPECT_EQ(web.at("reservations_active"), 1);
  EXPECT_EQ(web.at("waiting"), 0);
  EXPECT_EQ(web.at("mail_unread"), 1);
  EXPECT_EQ(web.at("heartbeat_grace_seconds"), 300);
  EXPECT_EQ(Text(web, "circuit_breaker"), "closed");
  EXPECT_EQ(web.at("cursor"), 5);
  EXPECT_EQ(Get("/api/status").at("agents_alive"), 3);
  EXPECT_FALSE(Get("/api/status").as_object().contains("project"));
}

TEST_F(AskTest, StatusSaysWhoWaits) {
  const std::string ann = Register("web", "ann");
  Reserve(ann, "src/**");
  HttpClient waiter = server_->Connect();
  waiter.Request("POST", "/api/reservations",
                 R"({"project":"web","agent_id":"b","path_pattern":"src/x","exclusive":true,)"
                 R"("wait_seconds":20})");
  while (Get("/api/status?project=web").at("waiting") != 1) {
  }
  EXPECT_EQ(Get("/api/status?project=other").at("waiting"), 0);
  EXPECT_EQ(Get("/api/status").at("waiting"), 1);
  waiter.Reset();
}

TEST_F(AskTest, StatusIsATableOnATerminalAndJsonElsewhereOrWhenAskedFor) {
  Register("web", "ann");
  const std::string shown = Shown({"status", "--project", "web"});
  EXPECT_THAT(shown, StartsWith("intermute "));
  EXPECT_THAT(shown,
              AllOf(HasSubstr(" in web, up "), HasSubstr("\n  agents        1 alive of 1"),
                    HasSubstr("\n  reservations  0 held\n"), HasSubstr("\n  waiting       0\n"),
                    HasSubstr("\n  unread mail   0\n"), HasSubstr("\n  breaker       closed\n")));
  EXPECT_EQ(Answered({"status", "--project", "web"}).at("agents_alive"), 1);
  EXPECT_THAT(Shown({"status", "--json"}), StartsWith(R"({"version":)"));
}

TEST_F(AskTest, WhoSaysWhoSinceWhenWhyUntilWhenAndWhetherAlive) {
  const std::string ann = Register("web", "ann");
  const std::string id = Reserve(ann, "src/**", R"(,"reason":"refactoring the parser")");
  const json::Value who = Answered({"who", "src/a/main.cc", "--project", "web"});
  ASSERT_EQ(who.at("holders").as_array().size(), 1U);
  const json::Value& holder = who.at("holders").as_array()[0];
  EXPECT_EQ(Text(holder, "held_by"), "ann");
  EXPECT_EQ(Text(holder, "agent_id"), ann);
  EXPECT_EQ(Text(holder, "reservation_id"), id);
  EXPECT_EQ(Text(holder, "reason"), "refactoring the parser");
  EXPECT_EQ(Text(holder, "holder_state"), "active");
  EXPECT_THAT(Text(holder, "since"), EndsWith("Z"));
  EXPECT_LT(Text(holder, "since"), Text(holder, "expires_at"));
  const std::string shown = Shown({"who", "src/a/main.cc", "--project", "web"});
  EXPECT_THAT(Lines(shown),
              ::testing::ElementsAre(
                  "src/a/main.cc in web is held by", "",
                  "AGENT  ALIVE  ACCESS     SINCE   UNTIL   PATTERN  REASON",
                  MatchesRegex("ann    yes    exclusive  [0-9]s ago  in [23][0-9]m  src/\\*\\*   "
                               "refactoring the parser")))
      << shown;
  EXPECT_EQ(Shown({"who", "docs/x", "--project", "web"}), "nobody holds docs/x in web\n");
}

TEST_F(AskTest, WhoSaysSinceWhenTheNewHolderHoldsWhatWasHandedOn) {
  const std::string id = Reserve("ann", "src/**");
  const auto since = [&] {
    const json::Value who = Answered({"who", "src/x", "--project", "web"});
    return Text(who.at("holders").as_array().at(0), "since");
  };
  const std::string before = since();
  ASSERT_EQ(Ask("POST", "/api/reservations/" + id + "/transfer", R"({"to_agent":"bob"})",
                "X-Agent-ID: ann\r\n")
                .status,
            200);
  EXPECT_NE(since(), before);
}

TEST_F(AskTest, WhoTakesDirectoriesAndPatternsAndPathsThatLookLikePatterns) {
  const std::string ann = Register("web", "ann");
  Reserve(ann, "app/[id]/page.tsx", R"(,"literal":true)");
  const auto holders = [this](Texts arguments) {
    arguments.insert(arguments.begin(), "who");
    arguments.insert(arguments.end(), {"--project", "web"});
    return Answered(arguments).at("holders").as_array().size();
  };
  EXPECT_EQ(holders({"app/"}), 1U);
  EXPECT_EQ(holders({"app"}), 1U);
  EXPECT_EQ(holders({"**/*.tsx"}), 1U);
  EXPECT_EQ(holders({"app/[id]/page.tsx"}), 0U) << "a class: app/i or app/d";
  EXPECT_EQ(holders({"app/[id]/page.tsx", "--literal"}), 1U);
  EXPECT_EQ(holders({"./app//[id]/page.tsx", "--literal"}), 1U);
}

TEST_F(AskTest, WhatAnAgentWritesCannotSteerTheTerminal) {
  const std::string ann = Register("web", R"(an\u001b[2Jn\u202e)");
  Reserve(ann, "src/**",
          R"(,"reason":"\u001b]0;title\u0007 first\nsecond \u009b31m and a long story about why )"
          R"(this has to be held for such a long time, with every detail")");
  for (const Texts& command :
       {Texts{"who", "src/x", "--project", "web"}, Texts{"agents", "--project", "web"}}) {
    const std::string shown = Shown(command);
    EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
    EXPECT_THAT(shown, Not(HasSubstr("\x07")));
    EXPECT_THAT(shown, Not(HasSubstr("\u009b")));
    EXPECT_THAT(shown, Not(HasSubstr("\u202e")));
  }
  const Texts lines = Lines(Shown({"who", "src/x", "--project", "web"}));
  ASSERT_GT(lines.size(), 4U) << "the reason goes on in further lines";
  const std::size_t column = lines[2].find("REASON");
  for (std::size_t i = 4; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].find_first_not_of(' '), column) << lines[i];
    EXPECT_LE(Columns(lines[i]), kColumns) << lines[i];
  }
}

TEST_F(AskTest, AgentsAreListedByNameAndFitTheTerminal) {
  const std::string ann = Register("web", "ann with a name that is longer than it should be");
  const std::string eve = Register("other", "eve");
  const json::Value all = Answered({"agents"});
  ASSERT_EQ(all.at("agents").as_array().size(), 2U);
  EXPECT_EQ(all.at("agents").as_array()[0].at("alive"), true);
  const std::string shown = Shown({"agents"});
  EXPECT_THAT(shown, AllOf(HasSubstr("AGENT"), HasSubstr("PROJECT"), HasSubstr(ann), HasSubstr(eve),
                           HasSubstr("…  yes    "), HasSubstr("eve")));
  for (const std::string& line : Lines(shown)) EXPECT_LE(Columns(line), kColumns) << line;
  const std::string web = Shown({"agents", "--project", "web"});
  EXPECT_THAT(web, AllOf(HasSubstr(ann), Not(HasSubstr("eve")), Not(HasSubstr("PROJECT"))));
  EXPECT_EQ(Shown({"agents", "--project", "none"}), "no agents are registered in none\n");
}

TEST_F(AskTest, TheEnvironmentNamesServerAndProject) {
  Register("web", "ann");
  const Variable url("INTERMUTE_URL", Url());
  const Variable project("INTERMUTE_PROJECT", "web");
  const auto done = Run({"status"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, StartsWith(R"({"project":"web",)"));
  EXPECT_EQ(Run({"who", "x"}).exit_code, 0);
}

TEST_F(AskTest, WhoSeesPathsFromTheCurrentDirectoryOfAGitRepository) {
  Reserve(Register("web", "ann"), "src/http/**");
  std::filesystem::create_directories(File("repo/src/http"));
  const std::string git = "/usr/bin/git";
  ASSERT_EQ(testing::RunProgram({git, "init", "-q", "repo"}, Directory()).exit_code, 0);
  const std::string intermute = ServerProcess::Program("intermute");
  const auto pattern = [&](const std::string& path, const std::string& directory) {
    const auto done = testing::RunProgram({intermute, "who", path, "--project=web", "--url", Url()},
                                          File(directory));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const auto value = json::Parse(done.out);
    return value.ok() ? std::pair(Text(*value, "pattern"), value->at("holders").as_array().size())
                      : std::pair(done.out, std::size_t{0});
  };
  EXPECT_EQ(pattern("router.cc", "repo/src/http"), std::pair("src/http/router.cc"s, 1UZ));
  EXPECT_EQ(pattern("../http", "repo/src/http"), std::pair("src/http/"s, 1UZ));
  EXPECT_EQ(pattern("..", "repo/src/http"), std::pair("src/"s, 1UZ));
  EXPECT_EQ(pattern(".", "repo"), std::pair("**"s, 1UZ));
  EXPECT_EQ(pattern("router.cc", "repo/src"), std::pair("src/router.cc"s, 0UZ));
}

TEST_F(AskTest, WhoRefusesAnUnknownProject) {
  Register("web", "ann");
  EXPECT_EQ(Run(Command({"who", "x", "--project", "web"})).exit_code, 0);
  const auto unknown = Run(Command({"who", "x", "--project", "wbe"}));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err, AllOf(StartsWith("intermute: project 'wbe' is unknown at "),
                                 HasSubstr("intermute agents")));
  Reserve("nobody", "src/**");
  EXPECT_EQ(Run(Command({"who", "x", "--project", "web"})).exit_code, 0);
}

TEST_F(AskTest, StatusRefusesAnUnknownProject) {
  Register("web", "ann");
  const auto unknown = Run(Command({"status", "--project", "nope"}));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err, StartsWith("intermute: project 'nope' is unknown at "));
  EXPECT_EQ(Run(Command({"status"})).exit_code, 0) << "all projects";
}

TEST_F(AskTest, ExitCodesTellARefusalFromAnAbsentServer) {
  auto done = Run({"status", "--url", "http://127.0.0.1:1"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, AllOf(HasSubstr("no server at http://127.0.0.1:1"),
                              HasSubstr("start one with 'intermute serve'")));
  done = Run(Command({"who", "x"}));
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("--project"));
  done = Run(Command({"who", "/absolute", "--project", "web"}));
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("absolute_pattern"));
  const Variable key("INTERMUTE_API_KEY", "wrong");
  done = Run(Command({"status"}));
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, AllOf(HasSubstr("401"), HasSubstr("INTERMUTE_API_KEY")));
  EXPECT_THAT(done.err, Not(HasSubstr("wrong")));
}

class AskSocketTest : public AskTest {
 protected:
  AskSocketTest() : AskTest({"--durability", "fast", "--socket", "i.sock"}) {}
};

TEST_F(AskSocketTest, TheSocketServesAsWell) {
  const Variable socket("INTERMUTE_SOCKET", File("i.sock").string());
  const auto done = Run({"status"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, StartsWith(R"({"version":)"));
}

}  // namespace
}  // namespace interlock::e2e
