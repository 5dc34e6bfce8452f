// Attacks on every route there is: with the key of another project, with the token of another
// agent, from a web page, from elsewhere. The routes are those of the server's own description, and
// one without a recipe here fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "e2e_test.h"
#include "json/parse.h"
#include "json/value.h"
#include "testing/db_dump.h"
#include "testing/random.h"
#include "testing/ws_client.h"

namespace interlock::e2e {
namespace {

using testing::DbDump;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::WsClient;

// What one route is asked for, and what the owner gets. {names} stand for what the project bravo
// holds (see Bravo), or for what nobody holds. In the order in which the owner can ask.
struct Recipe {
  std::string_view route;
  std::string_view target;
  std::string_view body;
  int owner;               // the status that the owner gets
  std::string_view shows;  // what the owner sees, and nobody else; "" = nothing of the project
};

constexpr std::string_view kNone;

constexpr auto kRecipes = std::to_array<Recipe>({
    // The server itself.
    {"GET /health", "/health", kNone, 200, kNone},
    {"GET /metrics", "/metrics", kNone, 200, kNone},
    {"GET /openapi.json", "/openapi.json", kNone, 200, kNone},
    {"GET /api/status", "/api/status", kNone, 200, R"("project":"bravo")"},
    {"GET /api/events", "/api/events?since_cursor=0", kNone, 200, "{message}"},
    {"GET /ws/agents/{agent}", "/ws/agents/{agent}?since_cursor=0", kNone, 101, kNone},
    {"GET /ws/events", "/ws/events?since_cursor=0", kNone, 101, kNone},

    // What agents plan by.
    {"POST /api/specs", "/api/specs", R"({"id":"{spec}","title":"t"})", 409, kNone},
    {"GET /api/specs", "/api/specs?status=draft", kNone, 200, "{spec}"},
    {"GET /api/specs/{id}", "/api/specs/{spec}", kNone, 200, "canary-spec-title"},
    {"PUT /api/specs/{id}", "/api/specs/{spec}", R"({"version":1,"title":"t"})", 200, "{spec}"},
    {"PATCH /api/specs/{id}", "/api/specs/{spec}", R"({"version":2,"title":"t"})", 200, "{spec}"},
    {"POST /api/epics", "/api/epics", R"({"id":"{epic}","title":"t"})", 409, kNone},
    {"GET /api/epics", "/api/epics?spec={spec}", kNone, 200, "{epic}"},
    {"GET /api/epics/{id}", "/api/epics/{epic}", kNone, 200, "canary-epic-title"},
    {"PUT /api/epics/{id}", "/api/epics/{epic}", R"({"version":1,"title":"t"})", 200, "{epic}"},
    {"PATCH /api/epics/{id}", "/api/epics/{epic}", R"({"version":2,"title":"t"})", 200, "{epic}"},
    {"POST /api/stories", "/api/stories", R"({"id":"{story}","epic_id":"{epic}","title":"t"})", 409,
     kNone},
    {"GET /api/stories", "/api/stories?epic={epic}", kNone, 200, "{story}"},
    {"GET /api/stories/{id}", "/api/stories/{story}", kNone, 200, "canary-story-title"},
    {"PUT /api/stories/{id}", "/api/stories/{story}", R"({"version":1,"title":"t"})", 200,
     "{story}"},
    {"PATCH /api/stories/{id}", "/api/stories/{story}", R"({"version":2,"title":"t"})", 200,
     "{story}"},
    {"POST /api/tasks", "/api/tasks", R"({"id":"{task}","title":"t"})", 409, kNone},
    {"GET /api/tasks", "/api/tasks?agent={agent}", kNone, 200, "{task}"},
    {"GET /api/tasks/{id}", "/api/tasks/{task}", kNone, 200, "canary-task-title"},
    {"PUT /api/tasks/{id}", "/api/tasks/{task}", R"({"version":1,"title":"t"})", 200, "{task}"},
    {"PATCH /api/tasks/{id}", "/api/tasks/{task}", R"({"version":2,"title":"t"})", 200, "{task}"},
    {"POST /api/tasks/{id}/claim", "/api/tasks/{task}/claim", R"({"agent":"{agent}"})", 200,
     "{task}"},
    {"POST /api/tasks/{id}/assign", "/api/tasks/{task}/assign", R"({"agent":"{me}"})", 200,
     "{task}"},
    {"POST /api/insights", "/api/insights",
     R"({"id":"{insight}","source":"s","category":"c","title":"t"})", 409, kNone},
    {"GET /api/insights", "/api/insights?spec={spec}", kNone, 200, "{insight}"},
    {"GET /api/insights/{id}", "/api/insights/{insight}", kNone, 200, "canary-insight-title"},
    {"POST /api/insights/{id}/link", "/api/insights/{insight}/link", R"({"spec_id":"x"})", 200,
     kNone},
    {"POST /api/sessions", "/api/sessions", R"({"id":"{work}","name":"n","agent":"{agent}"})", 409,
     kNone},
    {"GET /api/sessions", "/api/sessions?status=running", kNone, 200, "{work}"},
    {"GET /api/sessions/{id}", "/api/sessions/{work}", kNone, 200, "canary-work-name"},
    {"PUT /api/sessions/{id}", "/api/sessions/{work}", R"({"status":"idle"})", 200, "{work}"},
    {"PATCH /api/sessions/{id}", "/api/sessions/{work}", R"({"status":"idle"})", 200, "{work}"},
    {"POST /api/cujs", "/api/cujs", R"({"id":"{cuj}","spec_id":"{spec}","title":"t"})", 409, kNone},
    {"GET /api/cujs", "/api/cujs?spec={spec}", kNone, 200, "{cuj}"},
    {"GET /api/cujs/{id}", "/api/cujs/{cuj}", kNone, 200, "canary-cuj-title"},
    {"PUT /api/cujs/{id}", "/api/cujs/{cuj}", R"({"version":1,"title":"t"})", 200, "{cuj}"},
    {"PATCH /api/cujs/{id}", "/api/cujs/{cuj}", R"({"version":2,"title":"t"})", 200, "{cuj}"},
    {"GET /api/cujs/{id}/links", "/api/cujs/{cuj}/links", kNone, 200, "{feature}"},
    {"POST /api/cujs/{id}/link", "/api/cujs/{cuj}/link", R"({"feature_id":"x"})", 200, kNone},
    {"POST /api/cujs/{id}/unlink", "/api/cujs/{cuj}/unlink", R"({"feature_id":"{feature}"})", 200,
     kNone},
    {"DELETE /api/specs/{id}", "/api/specs/{spec}", kNone, 204, kNone},
    {"DELETE /api/epics/{id}", "/api/epics/{epic}", kNone, 204, kNone},
    {"DELETE /api/stories/{id}", "/api/stories/{story}", kNone, 204, kNone},
    {"DELETE /api/tasks/{id}", "/api/tasks/{task}", kNone, 204, kNone},
    {"DELETE /api/insights/{id}", "/api/insights/{insight}", kNone, 204, kNone},
    {"DELETE /api/sessions/{id}", "/api/sessions/{work}", kNone, 204, kNone},
    {"DELETE /api/cujs/{id}", "/api/cujs/{cuj}", kNone, 204, kNone},

    // Windows, and what waits to be surfaced.
    {"POST /api/windows", "/api/windows",
     R"({"window_uuid":"{window}","agent_id":"{agent}","registration_token":"{token}"})", 200,
     "{window}"},
    {"GET /api/windows", "/api/windows", kNone, 200, "{window}"},
    {"GET /api/inbox/pokes", "/api/inbox/pokes?agent={agent}", kNone, 200, "canary-body"},
    {"POST /api/inbox/pokes/{id}", "/api/inbox/pokes/{message}?agent={agent}", kNone, 400, kNone},
    {"POST /api/inbox/pokes/{id}/ack", "/api/inbox/pokes/{message}/ack?agent={agent}", kNone, 200,
     kNone},
    {"DELETE /api/windows/{uuid}", "/api/windows/{window}", kNone, 200, kNone},

    // Mail.
    {"POST /api/messages", "/api/messages",
     R"({"id":"{message}","from":"{agent}","to":["{other}"],"transport":"both","body":"b",)"
     R"("thread_id":"{thread}","target_window_uuid":"{window}"})",
     409, kNone},
    {"POST /api/messages", "/api/messages",
     R"({"from":"{agent}","to":["{other}"],"body":"b","thread_id":"{thread}"})", 200, kNone},
    {"POST /api/broadcast", "/api/broadcast", R"({"from":"{other}","topic":"{topic}","body":"b"})",
     200, kNone},
    {"GET /api/inbox/{agent}", "/api/inbox/{agent}", kNone, 200, "canary-subject"},
    {"GET /api/inbox/{agent}/counts", "/api/inbox/{agent}/counts", kNone, 200, R"({"total":2,)"},
    {"GET /api/inbox/{agent}/stale-acks", "/api/inbox/{agent}/stale-acks?ttl_seconds=0", kNone, 200,
     "{message}"},
    {"GET /api/threads", "/api/threads?agent={agent}", kNone, 200, "{thread}"},
    {"GET /api/threads/{id}", "/api/threads/{thread}", kNone, 200, "canary-body"},
    {"GET /api/topics/{project}/{topic}", "/api/topics/bravo/{topic}", kNone, 200, "canary-body"},
    {"POST /api/messages/{id}/read", "/api/messages/{message}/read?agent={agent}", kNone, 200,
     kNone},
    {"POST /api/messages/{id}/ack", "/api/messages/{message}/ack", R"({"agent":"{agent}"})", 200,
     kNone},

    // Reservations.
    {"POST /api/reservations", "/api/reservations",
     R"({"agent_id":"{other}","path_pattern":"{path}/x","exclusive":true})", 409, "canary-reason"},
    {"GET /api/reservations", "/api/reservations?agent={agent}", kNone, 200, "{reservation}"},
    {"GET /api/reservations/check", "/api/reservations/check?pattern={path}/x&agent={other}", kNone,
     200, "{reservation}"},
    {"GET /api/reservations/{id}", "/api/reservations/{reservation}", kNone, 200, "canary-reason"},
    {"POST /api/reservations/{id}/renew", "/api/reservations/{reservation}/renew",
     R"({"ttl_minutes":60})", 200, "canary-reason"},
    {"POST /api/reservations/{id}/transfer", "/api/reservations/{reservation}/transfer",
     R"({"to_agent":"{other}"})", 200, "canary-reason"},
    {"DELETE /api/reservations/{id}", "/api/reservations/{reservation}?force=true&reason=mine",
     kNone, 409, kNone},
    {"DELETE /api/reservations/{id}", "/api/reservations/{reservation2}", kNone, 200, kNone},

    // Agents.
    {"POST /api/agents", "/api/agents", R"({"name":"n","session_id":"{session}"})", 409, kNone},
    {"GET /api/agents", "/api/agents?capability=canary-capability", kNone, 200, "canary-name"},
    {"GET /api/agents/{id}", "/api/agents/{agent}", kNone, 200, "canary-name"},
    {"GET /api/agents/presence", "/api/agents/presence?repo=canary-repo", kNone, 200, "{agent}"},
    {"POST /api/agents/{id}/heartbeat", "/api/agents/{agent}/heartbeat", R"({"renew_minutes":9})",
     200, "{agent}"},
    {"PATCH /api/agents/{id}/metadata", "/api/agents/{agent}/metadata", R"({"metadata":{"x":"y"}})",
     200, "canary-name"},
    {"GET /api/agents/{id}/policy", "/api/agents/{agent}/policy", kNone, 200, "contacts_only"},
    {"POST /api/agents/{id}/policy", "/api/agents/{agent}/policy", R"({"policy":"open"})", 200,
     "{agent}"},
    {"PUT /api/agents/{id}/policy", "/api/agents/{agent}/policy", R"({"policy":"block_all"})", 200,
     "{agent}"},
    {"GET /api/agents/{id}/contacts", "/api/agents/{agent}/contacts", kNone, 200, "{other}"},
    {"POST /api/agents/{id}/contacts", "/api/agents/{agent}/contacts", R"({"contact":"{me}"})", 200,
     "{other}"},
    {"DELETE /api/agents/{id}/contacts/{contact}", "/api/agents/{agent}/contacts/{other}", kNone,
     200, kNone},
    {"DELETE /api/agents/{id}", "/api/agents/{agent}", kNone, 204, kNone},
});

using Names = std::map<std::string, std::string, std::less<>>;

// The text with every {name} filled in.
std::string Fill(std::string_view text, const Names& names) {
  std::string filled;
  while (!text.empty()) {
    const std::size_t end = text.starts_with('{') ? text.find('}') : std::string_view::npos;
    const auto name =
        end == std::string_view::npos ? names.end() : names.find(text.substr(1, end - 1));
    filled += name == names.end() ? std::string(text.substr(0, 1)) : name->second;
    text.remove_prefix(name == names.end() ? 1 : end + 1);
  }
  return filled;
}

// The answer with what differs between two that mean the same left out: the names that were filled
// in, what the server makes up, and times.
std::string Meaning(std::string answer, const Names& names) {
  for (const auto& [name, value] : names) {
    for (std::size_t at = 0; (at = answer.find(value, at)) != std::string::npos;) {
      answer.replace(at, value.size(), "{" + name + "}");
    }
  }
  std::string meaning;
  for (std::size_t at = 0; at < answer.size();) {
    const auto part_of_word = [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ':' || c == '.';
    };
    std::size_t end = at;
    // A token may begin with a dash and have no digit.
    const bool is_token = meaning.ends_with("token\":\"");
    const bool begins_word = is_token || std::isalnum(static_cast<unsigned char>(answer[at])) != 0;
    while (begins_word && end < answer.size() && part_of_word(answer[end])) ++end;
    const std::string word = answer.substr(at, std::max<std::size_t>(end - at, 1));
    const bool counts = meaning.ends_with("cursor\":") || meaning.ends_with("fence\":") ||
                        meaning.ends_with("_seconds\":");
    const bool made_up =
        word.size() >= 19 && (is_token || word.find_first_of("0123456789") != std::string::npos);
    const bool number = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    meaning += (counts && number) || made_up ? "#" : word;
    at += word.size();
  }
  return meaning;
}

// A member of a JSON object, with this text in front of the others.
std::string With(std::string_view member, std::string_view body) {
  if (body.empty()) return "";
  return "{" + std::string(member) + (body == "{}" ? "" : ",") + std::string(body.substr(1));
}

std::string WithQuery(const std::string& target, std::string_view query) {
  if (query.empty()) return target;
  return target + (target.find('?') == std::string::npos ? "?" : "&") + std::string(query);
}

std::string MethodOf(const Recipe& recipe) {
  return std::string(recipe.route.substr(0, recipe.route.find(' ')));
}

constexpr const char* kAlphaKey = "Authorization: Bearer alpha-key-4f1c9a77\r\n";
constexpr const char* kBravoKey = "Authorization: Bearer bravo-key-b2d68e05\r\n";

class EscapeTest : public E2eTest {
 protected:
  void Begin(std::vector<std::string> more = {}) {
    std::ofstream(File("keys.yaml")) << "projects:\n  alpha: {keys: [alpha-key-4f1c9a77]}\n"
                                     << "  bravo: {keys: [bravo-key-b2d68e05]}\n";
    std::filesystem::permissions(File("keys.yaml"), std::filesystem::perms::owner_read |
                                                        std::filesystem::perms::owner_write);
    std::vector<std::string> flags = {"--keys-file=keys.yaml", "--durability=fast",
                                      "--sweep-interval=1h"};
    flags.insert(flags.end(), more.begin(), more.end());
    server_ = Start(std::move(flags));
    FillBravo();
    const json::Value me =
        Make("/api/agents", R"({"project":"alpha","name":"mallory"})", "", kAlphaKey);
    for (Names* names : {&bravo_, &nobody_}) (*names)["me"] = Text(me, "agent_id");
    my_token_ = Text(me, "token");
  }

  HttpAnswer Ask(std::string_view method, const std::string& target, const std::string& body,
                 const std::string& headers) {
    if (!client_) Connect();
    client_->Request(method, target, body, headers);
    const auto answer = client_->Read();
    if (!answer || answer->status == 101 || answer->Header("Connection") == "close") {
      client_.reset();
    }
    return answer.value_or(HttpAnswer{});
  }

  // From here on answers are not written down: they are thousands, and the owner's were.
  void StopRecording() {
    recorded_ = false;
    Connect();
  }

  // As the owner: the key of bravo, which the body names too, and in the name of {agent}.
  HttpAnswer AskAsOwner(const Recipe& recipe, const std::string& headers) {
    if (recipe.owner == 101)
      return WsClient(server_->Connect(), Fill(recipe.target, bravo_), headers).answer();
    return Ask(MethodOf(recipe), Fill(recipe.target, bravo_),
               With(R"("project":"bravo")", Fill(recipe.body, bravo_)), headers);
  }

  DbDump::Rows Dump() const { return DbDump::Of(File("test.db")); }

  // "GET /api/agents" and whether it acts in the name of an agent, of every route there is.
  std::map<std::string, bool> Described() {
    std::map<std::string, bool> routes;
    const auto document = json::Parse(Ask("GET", "/openapi.json", "", "").body);
    EXPECT_TRUE(document.ok());
    for (const auto& [path, item] : document->get_object().at("paths").get_object()) {
      for (const auto& [method, operation] : item.get_object()) {
        std::string name(json::View(method));
        std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
        name.append(" ").append(json::View(path));
        routes[name] = operation.get_object().contains("x-acts-as-agent");
      }
    }
    return routes;
  }

  static std::string Text(const json::Value& object, std::string_view field) {
    const json::Value* const value = object.get_object().if_contains(field);
    return value == nullptr || !value->is_string() ? ""
                                                   : std::string(json::View(value->get_string()));
  }

  std::unique_ptr<ServerProcess> server_;
  std::optional<HttpClient> client_;
  Names bravo_;                        // what bravo holds
  Names nobody_;                       // the same names for what nobody holds
  std::vector<std::string> canaries_;  // texts that bravo alone knows
  std::string token_;                  // of {agent}
  std::string other_token_;            // of {other}
  std::string my_token_;               // of {me}, an agent of alpha
  bool recorded_ = true;

 private:
  void Connect() {
    client_.emplace(server_->Connect());
    if (!recorded_) client_->StopRecording();
  }

  json::Value Make(const std::string& target, const std::string& body, const std::string& headers,
                   const std::string& key = kBravoKey) {
    const HttpAnswer answer = Ask("POST", target, Fill(body, bravo_), key + headers);
    EXPECT_LT(answer.status, 300) << target << answer.body;
    auto value = json::Parse(answer.body.empty() ? "{}" : answer.body);
    return value.ok() && value->is_object() ? *std::move(value) : json::Value(json::Object());
  }

  void FillBravo() {
    for (const char* name : {"message", "thread", "topic", "window", "spec", "epic", "story",
                             "task", "insight", "work", "cuj", "feature", "path"}) {
      bravo_[name] = std::string("canary-") + name;
      nobody_[name] = std::string("ghost-") + name;
    }
    bravo_["session"] = "6f0f8a04-55b5-4c0e-9a41-0c3a5f3f9b01";
    nobody_["session"] = "6f0f8a04-55b5-4c0e-9a41-0c3a5f3f9b02";
    for (const char* name : {"agent", "other", "reservation", "reservation2"}) {
      nobody_[name] =
          "019a8b6e-0000-7000-8000-" + std::string(12 - std::string(name).size(), '0') + name;
    }
    MakeAgents();
    MakeMail();
    MakePlans();
    canaries_ = {"canary-name",
                 "canary-capability",
                 "canary-repo",
                 "canary-status",
                 "canary-subject",
                 "canary-body",
                 "canary-reason",
                 "canary-display",
                 "canary-spec-title",
                 "canary-epic-title",
                 "canary-story-title",
                 "canary-task-title",
                 "canary-insight-title",
                 "canary-work-name",
                 "canary-cuj-title",
                 token_,
                 other_token_};
    for (const auto& [name, value] : bravo_) canaries_.push_back(value);
  }

  void MakeAgents() {
    const json::Value agent =
        Make("/api/agents",
             R"({"project":"bravo","name":"canary-name","session_id":"{session}","status":)"
             R"("canary-status","capabilities":["canary-capability"],"metadata":)"
             R"({"repo":"canary-repo"}})",
             "");
    bravo_["agent"] = Text(agent, "agent_id");
    token_ = Text(agent, "token");
    const json::Value other = Make("/api/agents", R"({"project":"bravo"})", "");
    bravo_["other"] = Text(other, "agent_id");
    other_token_ = Text(other, "token");
    const std::string proof = "X-Agent-Token: " + token_ + "\r\n";
    const std::string mine = Fill("/api/agents/{agent}", bravo_);
    Make(mine + "/contacts", R"({"contact":"{other}"})", proof);
    Make(mine + "/policy", R"({"policy":"contacts_only"})", proof);
    for (const char* name : {"reservation", "reservation2"}) {
      const json::Value made =
          Make("/api/reservations",
               R"({"agent_id":"{agent}","exclusive":true,"reason":"canary-reason",)"
               R"("path_pattern":"{path})" +
                   std::string(name == std::string("reservation") ? "" : "-two") + "/**\"}",
               proof);
      bravo_[name] = Text(made, "id");
    }
    Make("/api/windows",
         R"({"project":"bravo","window_uuid":"{window}","agent_id":"{agent}",)"
         R"("display_name":"canary-display","registration_token":")" +
             token_ + "\"}",
         proof);
  }

  void MakeMail() {
    const std::string proof = "X-Agent-Token: " + other_token_ + "\r\n";
    Make("/api/messages",
         R"({"project":"bravo","id":"{message}","from":"{other}","to":["{agent}"],)"
         R"("subject":"canary-subject","body":"canary-body","thread_id":"{thread}",)"
         R"("topic":"{topic}","ack_required":true,"transport":"both"})",
         proof);
  }

  void MakePlans() {
    Make("/api/specs", R"({"project":"bravo","id":"{spec}","title":"canary-spec-title"})", "");
    Make("/api/epics",
         R"({"project":"bravo","id":"{epic}","spec_id":"{spec}","title":"canary-epic-title"})", "");
    Make("/api/stories",
         R"({"project":"bravo","id":"{story}","epic_id":"{epic}","title":"canary-story-title"})",
         "");
    Make("/api/tasks",
         R"({"project":"bravo","id":"{task}","agent":"{agent}","title":"canary-task-title"})", "");
    Make("/api/insights",
         R"({"project":"bravo","id":"{insight}","spec_id":"{spec}","source":"s","category":"c",)"
         R"("title":"canary-insight-title"})",
         "");
    Make("/api/sessions",
         R"({"project":"bravo","id":"{work}","agent":"{agent}","name":"canary-work-name"})", "");
    Make("/api/cujs",
         R"({"project":"bravo","id":"{cuj}","spec_id":"{spec}","title":"canary-cuj-title"})", "");
    Make("/api/cujs/canary-cuj/link", R"({"feature_id":"{feature}"})", "");
  }
};

TEST_F(EscapeTest, EveryRouteHasARecipeAndEveryRecipeIsARoute) {
  Begin();
  std::set<std::string> with_recipe;
  for (const Recipe& recipe : kRecipes) with_recipe.emplace(recipe.route);
  std::set<std::string> described;
  for (const auto& [route, acts] : Described()) described.insert(route);
  EXPECT_EQ(with_recipe, described) << "write down in kRecipes how a new route would be attacked";
}

// Else a recipe that is refused for its form would pass for one that is refused for its key.
TEST_F(EscapeTest, TheOwnerGetsWhatEachRecipeAsksFor) {
  Begin();
  bravo_["token"] = token_;
  for (const Recipe& recipe : kRecipes) {
    const HttpAnswer answer =
        AskAsOwner(recipe, kBravoKey + Fill("X-Agent-ID: {agent}\r\n", bravo_));
    EXPECT_EQ(answer.status, recipe.owner) << recipe.route << "\n" << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(Fill(recipe.shows, bravo_))) << recipe.route;
  }
}

// One request of an attacker: what a recipe asks for, in one of its disguises.
struct Attempt {
  std::string method;
  std::string target;
  std::string body;
  std::string headers;

  bool Says(const std::string& text) const {
    return (target + body + headers).find(text) != std::string::npos;
  }
};

// With the project named in the body, in the query and in headers, or not at all.
std::vector<Attempt> Disguises(const Recipe& recipe, const Names& names) {
  std::vector<Attempt> attempts;
  const std::string body = Fill(recipe.body, names);
  std::vector<std::string> bodies = {body};
  if (!body.empty()) {
    bodies.push_back(With(R"("project":"alpha")", body));
    bodies.push_back(With(R"("project":"bravo")", body));
    bodies.push_back(With(R"("project":"bravo","Project":"alpha","project":"alpha")", body));
  }
  std::vector<const char*> queries = {"", "project=bravo", "project=alpha&project=bravo"};
  if (testing::kSlowBuild) queries.pop_back();
  attempts.reserve(bodies.size() * queries.size() * 2);
  for (const std::string& one : bodies) {
    for (const char* query : queries) {
      for (const char* headers :
           {"", "X-Agent-ID: {agent}\r\nX-Project: bravo\r\nX-Intermute-Project: bravo\r\n"}) {
        attempts.push_back({.method = MethodOf(recipe),
                            .target = WithQuery(Fill(recipe.target, names), query),
                            .body = one,
                            .headers = kAlphaKey + Fill(headers, names)});
      }
    }
  }
  return attempts;
}

// What reads first, and what makes something last: it is made in alpha, under bravo's names, and
// would be found there by what comes after.
std::vector<Recipe> InOrderOfAttack() {
  const auto rank = [](const Recipe& recipe) {
    if (recipe.route.starts_with("GET ")) return 0;
    return recipe.route.find('{') != std::string_view::npos ? 1 : 2;
  };
  std::vector<Recipe> recipes;
  recipes.reserve(kRecipes.size());
  for (const int now : {0, 1, 2}) {
    std::ranges::copy_if(kRecipes, std::back_inserter(recipes),
                         [&](const Recipe& recipe) { return rank(recipe) == now; });
  }
  return recipes;
}

// Whoever has a key of alpha learns nothing of bravo, not even whether something is there, and
// changes nothing of it, whichever route it tries and however it names what it is after.
TEST_F(EscapeTest, AForeignKeyNeitherReadsNorChangesNorCanTellWhatAnotherProjectHolds) {
  Begin();
  StopRecording();
  for (Names* names : {&bravo_, &nobody_}) (*names)["token"] = my_token_;
  const auto of_alpha = [](const std::string& row) {
    return row.find("project='alpha'") != std::string::npos;
  };
  DbDump::Rows before = Dump();
  std::erase_if(before, of_alpha);
  for (const Recipe& recipe : InOrderOfAttack()) {
    if (recipe.owner == 101) continue;  // AForeignKeyFollowsItsOwnProjectOnly
    SCOPED_TRACE(recipe.route);
    const std::vector<Attempt> attempts = Disguises(recipe, bravo_);
    const std::vector<Attempt> ghosts = Disguises(recipe, nobody_);
    std::vector<HttpAnswer> answers;
    answers.reserve(attempts.size());
    for (const Attempt& a : attempts) {
      answers.push_back(Ask(a.method, a.target, a.body, a.headers));
      const HttpAnswer& answer = answers.back();
      const std::string shown = a.target + " " + a.body + "\n" + a.headers + answer.body;
      EXPECT_TRUE(answer.status >= 200 && answer.status < 500) << answer.status << " " << shown;
      for (const std::string& canary : canaries_) {
        if (a.Says(canary)) continue;
        EXPECT_THAT(answer.body, Not(HasSubstr(canary))) << shown;
      }
    }
    for (std::size_t i = 0; i < ghosts.size(); ++i) {
      const Attempt& a = ghosts[i];
      const HttpAnswer answer = Ask(a.method, a.target, a.body, a.headers);
      EXPECT_EQ(answers[i].status, answer.status) << a.target << " " << a.body << a.headers;
      if (recipe.shows.empty() && recipe.route.find("/api/") == std::string_view::npos) continue;
      EXPECT_EQ(Meaning(answers[i].body, bravo_), Meaning(answer.body, nobody_)) << a.target;
    }
    DbDump::Rows after = Dump();
    std::erase_if(after, of_alpha);
    // An agent of alpha may call whom it likes its contact; the row is its own.
    std::erase_if(after, [&](const std::string& row) {
      return row.starts_with("contacts agent_id='" + bravo_["me"] + "'");
    });
    EXPECT_EQ(after, before);
  }
}

TEST_F(EscapeTest, AForeignKeyFollowsItsOwnProjectOnly) {
  Begin();
  for (const Recipe& recipe : kRecipes) {
    if (recipe.owner != 101) continue;
    const std::string target = Fill(recipe.target, bravo_);
    EXPECT_EQ(WsClient(server_->Connect(), target + "&project=bravo", kAlphaKey).answer().status,
              403);
    WsClient client(server_->Connect(), target, kAlphaKey);
    ASSERT_TRUE(client.open());
    client.SendText(R"({"type":"subscribe","project":"bravo","event_types":["message.created"]})");
    client.SendText(R"({"type":"subscribe","project":"bravo","event_types":["agent.registered"]})");
    Ask("POST", "/api/messages",
        Fill(R"({"project":"bravo","from":"{other}","to":["{agent}"]})", bravo_), kBravoKey);
    Ask("POST", "/api/messages",
        Fill(R"({"project":"alpha","from":"{me}","to":["{agent}"]})", bravo_), kAlphaKey);
    // What came for it in alpha is the last that it hears; bravo's came before.
    std::optional<std::string> text;
    do {
      text = client.ReadText();
      ASSERT_TRUE(text) << recipe.route;
      EXPECT_THAT(*text, Not(HasSubstr("bravo")));
      EXPECT_THAT(*text, Not(HasSubstr("canary")));
    } while (text->find("message.created") == std::string::npos);
  }
}

// ---- The door of every route ----

struct Door {
  const char* attack;
  std::string host;
  std::string headers;
  int status;
};

TEST_F(EscapeTest, NoRouteIsOpenToWebPagesToStrangersOrToFalseKeys) {
  Begin();
  bravo_["token"] = token_;
  const std::string port = std::to_string(server_->port());
  const std::string here = "127.0.0.1:" + port;
  const std::string page = "Origin: http://evil.example\r\n";
  const std::vector<Door> doors = {
      {"a page of another site", here, page, 403},
      {"a form that needs no preflight", here, page + "Content-Type: text/plain\r\n", 403},
      {"a page of another port", here, "Origin: http://127.0.0.1:1\r\n", 403},
      {"a page of the same name, encrypted", here, "Origin: https://" + here + "\r\n", 403},
      {"a sandboxed frame", here, "Origin: null\r\n", 403},
      {"two origins", here, "Origin: http://" + here + "\r\n" + page, 403},
      {"an image or a link of another site", here, "Sec-Fetch-Site: cross-site\r\n", 403},
      {"an image of another port", here, "Sec-Fetch-Site: same-site\r\n", 403},
      {"a bent name", "evil.example:" + port, "", 403},
      {"a bent name and its own origin", "evil.example:" + port,
       "Origin: http://evil.example:" + port + "\r\n", 403},
      {"a name that begins well", "127.0.0.1.evil.example", "", 403},
      {"an address that is none", "0.0.0.0:" + port, "", 403},
      {"from elsewhere", here, "X-Forwarded-For: 203.0.113.9\r\n", 401},
      {"from elsewhere, through here", here, "X-Forwarded-For: 127.0.0.1, 203.0.113.9\r\n", 401},
      {"a false key", here, "Authorization: Bearer bravo-key-b2d68e04\r\n", 401},
      {"a part of a key", here, "Authorization: Bearer bravo-key-b2d68e0\r\n", 401},
      {"another scheme", here, "Authorization: Basic bravo-key-b2d68e05\r\n", 401},
      {"two keys", here, std::string(kBravoKey) + kAlphaKey, 401},
      {"the token of another agent", here,
       Fill("X-Agent-ID: {agent}\r\nX-Agent-Token: ", bravo_) + other_token_ + "\r\n", 403},
  };
  const DbDump::Rows before = Dump();
  for (const Recipe& recipe : kRecipes) {
    const bool open_to_all = recipe.route == "GET /health";
    const std::string body = With(R"("project":"bravo")", Fill(recipe.body, bravo_));
    HttpClient client = server_->Connect();
    client.StopRecording();
    for (const Door& door : doors) {
      client.Send(MethodOf(recipe) + " " + WithQuery(Fill(recipe.target, bravo_), "project=bravo") +
                  " HTTP/1.1\r\nHost: " + door.host + "\r\n" + door.headers +
                  "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
      const auto answer = client.Read();
      ASSERT_TRUE(answer) << recipe.route << ", " << door.attack;
      EXPECT_EQ(answer->status, open_to_all ? 200 : door.status)
          << recipe.route << ", " << door.attack << "\n"
          << answer->body;
      for (const auto& [name, value] : answer->headers) {
        EXPECT_FALSE(name.starts_with("Access-Control")) << "a page could read " << recipe.route;
      }
    }
  }
  EXPECT_EQ(Dump(), before);
}

TEST_F(EscapeTest, NoPreflightIsGranted) {
  Begin();
  const std::string asks =
      "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: authorization, x-agent-id\r\n";
  for (const Recipe& recipe : kRecipes) {
    const HttpAnswer answer = Ask("OPTIONS", Fill(recipe.target, bravo_), "", asks);
    EXPECT_EQ(answer.status, 405) << recipe.route;
    for (const auto& [name, value] : answer.headers) {
      EXPECT_FALSE(name.starts_with("Access-Control")) << recipe.route << " " << name;
    }
  }
}

// Old browsers let a page send a GET without a word of where it comes from.
TEST_F(EscapeTest, NoGetChangesAnything) {
  Begin();
  const DbDump::Rows before = Dump();
  for (const Recipe& recipe : kRecipes) {
    if (!recipe.route.starts_with("GET ") || recipe.owner == 101) continue;
    for (const char* headers : {"", "X-Agent-ID: {agent}\r\n"}) {
      const std::string target = WithQuery(Fill(recipe.target, bravo_), "project=bravo");
      EXPECT_EQ(Ask("GET", target, "", Fill(headers, bravo_)).status, 200) << recipe.route;
    }
    EXPECT_EQ(Dump(), before) << recipe.route;
  }
}

// ---- The token of another agent ----

// Whose name a recipe acts in: "agent", "other", or "" for whoever asks.
std::string_view ActsFor(const Recipe& recipe) {
  if (recipe.target.find("force=true") != std::string_view::npos) return "";
  for (const std::string_view other : {R"("from":"{other}")", R"("agent_id":"{other}")"}) {
    if (recipe.body.find(other) != std::string_view::npos) return "other";
  }
  return "agent";
}

// All that change something, but for the route by which an agent gets its token.
bool MayNeedProof(const Recipe& recipe) {
  return !recipe.route.starts_with("GET ") && recipe.route != "POST /api/agents" &&
         recipe.route != "POST /api/inbox/pokes/{id}";  // never does anything
}

// What acts in the name of an agent takes its token, and no other proves anything. A plan may be
// written in nobody's name, but not in that of an agent that did not prove itself.
TEST_F(EscapeTest, WithTokensRequiredNoWriteNamesAnAgentThatDidNotProveItself) {
  Begin({"--require-agent-token"});
  bravo_["token"] = other_token_;  // of the body, where it takes one
  std::map<std::string, bool> must_name_one = Described();
  must_name_one["POST /api/windows"] = true;  // by the token in its body
  const DbDump::Rows before = Dump();
  for (const Recipe& recipe : kRecipes) {
    if (!MayNeedProof(recipe)) continue;
    const bool for_other = ActsFor(recipe) == "other";
    const std::string claim =
        Fill(for_other ? "X-Agent-ID: {other}\r\n" : "X-Agent-ID: {agent}\r\n", bravo_);
    const std::string others = "X-Agent-Token: " + (for_other ? token_ : other_token_) + "\r\n";
    std::vector<std::pair<std::string, std::string>> false_proofs = {
        {"only a claim", claim},
        {"another's token and a claim", claim + others},
        {"nobody's token", claim + "X-Agent-Token: nobody-has-this-token\r\n"},
    };
    if (must_name_one.at(std::string(recipe.route))) {
      false_proofs.emplace_back("none", "");
      false_proofs.emplace_back("nobody's token alone", "X-Agent-Token: nobody-has-this-token\r\n");
      if (!ActsFor(recipe).empty()) {
        false_proofs.emplace_back("another's token", others);
        false_proofs.emplace_back("of another project", "X-Agent-Token: " + my_token_ + "\r\n");
      }
    }
    for (const auto& [proof, headers] : false_proofs) {
      const HttpAnswer answer = AskAsOwner(recipe, kBravoKey + headers);
      EXPECT_EQ(answer.status, 403) << recipe.route << ", proof: " << proof << "\n" << answer.body;
    }
    EXPECT_EQ(Dump(), before) << recipe.route;
  }
  bravo_["token"] = token_;
  for (const Recipe& recipe : kRecipes) {
    if (!MayNeedProof(recipe)) continue;
    const bool other = ActsFor(recipe) == "other";
    const std::string proof = "X-Agent-Token: " + (other ? other_token_ : token_) + "\r\n";
    EXPECT_EQ(AskAsOwner(recipe, kBravoKey + proof).status, recipe.owner) << recipe.route;
  }
}

}  // namespace
}  // namespace interlock::e2e
