#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "api/metrics.h"
#include "api/routes.h"
#include "testing/fake_clock.h"

// docs/http-api.md against what it describes. An operation is a heading, "### GET /api/agents"; the
// parameters of its query are a list below the line "Query:".
namespace interlock::api {
namespace {

using Names = std::set<std::string>;
using Operations = std::map<std::string, Names>;  // "GET /api/agents" → its query parameters

std::string DocumentText() {
  std::ifstream file(INTERLOCK_HTTP_API_MD);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Operations Documented(const std::string& text) {
  constexpr std::string_view kParameter = "- `";
  constexpr std::string_view kHeading = "### ";
  Operations operations;
  Names* query = nullptr;  // of the operation that is being read
  bool in_query = false;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with(kHeading)) {
      const auto [entry, is_new] = operations.try_emplace(line.substr(kHeading.size()));
      EXPECT_TRUE(is_new) << line << " stands there twice";
      query = &entry->second;
      in_query = false;
    } else if (line.starts_with("## ")) {
      query = nullptr;
    } else if (line == "Query:") {
      in_query = true;
    } else if (in_query && !line.empty() && !line.starts_with("- ") && !line.starts_with("  ")) {
      in_query = false;
    }
    if (query != nullptr && in_query && line.starts_with(kParameter)) {
      const auto end = line.find('`', kParameter.size());
      const auto name = line.substr(kParameter.size(), end - kParameter.size());
      EXPECT_TRUE(query->insert(name).second) << line << " stands there twice";
    }
  }
  return operations;
}

Operations Served() {
  Operations operations;
  for (const Route& route : Routes()) {
    Names& query =
        operations[std::string(MethodName(route.method)) + " " + std::string(route.path)];
    for (const QueryParameter& parameter : route.query) query.emplace(parameter.name);
    if (route.project == ProjectFrom::kQuery || route.project == ProjectFrom::kQueryChecked) {
      query.emplace("project");
    }
  }
  return operations;
}

TEST(RoutesDocumentedTest, TheDocumentHasEveryOperationWithItsQueryAndNoOther) {
  const Operations documented = Documented(DocumentText());
  const Operations served = Served();
  for (const auto& [name, query] : served) {
    const auto found = documented.find(name);
    if (found == documented.end()) {
      ADD_FAILURE() << name << " is not in docs/http-api.md";
    } else {
      EXPECT_EQ(found->second, query) << "the query of " << name << " in docs/http-api.md";
    }
  }
  for (const auto& [name, query] : documented) {
    EXPECT_TRUE(served.contains(name)) << name << " is in docs/http-api.md, but not in the table";
  }
}

TEST(RoutesDocumentedTest, ADocumentIsReadAsItIsWritten) {
  const std::string text =
      "## Things\n\n### GET /api/things\n\nText with `code`.\n\nQuery:\n\n- `a` — one\n"
      "  that goes on\n- `b_c` — two\n\n```sh\n- `d` no\n```\n\n### PUT /api/things\n\n- `e` no\n";
  EXPECT_EQ(Documented(text),
            (Operations{{"GET /api/things", {"a", "b_c"}}, {"PUT /api/things", {}}}));
}

TEST(RoutesDocumentedTest, TheDocumentNamesEveryMetric) {
  testing::FakeClock clock;
  ServerNumbers numbers;
  numbers.process = {.resident_bytes = 1, .open_files = 1, .cpu_seconds = 1};
  Metrics metrics(Routes(), clock, [&] { return numbers; });
  const std::string document = DocumentText();
  std::istringstream lines(metrics.Text({.agents_alive = 1, .reservations_active = 1}));
  std::string line;
  int families = 0;
  while (std::getline(lines, line)) {
    constexpr std::string_view kType = "# TYPE ";
    if (!line.starts_with(kType)) continue;
    const std::string name = line.substr(kType.size(), line.rfind(' ') - kType.size());
    EXPECT_NE(document.find("`" + name + "`"), std::string::npos) << name;
    ++families;
  }
  EXPECT_GT(families, 20);
}

}  // namespace
}  // namespace interlock::api
