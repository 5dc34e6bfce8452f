#include "api/agent_page.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/time_text.h"
#include "domain/text.h"
#include "json/object_text.h"
#include "json/parse.h"
#include "json/value.h"

namespace interlock::api {
namespace {

constexpr std::string_view kStart = R"({"agents":[)";

// What an agent's metadata calls files_touched: a JSON array of strings, as text. Trimmed, without
// the blank ones; what is anything else holds none.
std::vector<std::string> FilesOf(const domain::Agent& agent) {
  const auto parsed = json::Parse(domain::MetadataText(agent, "files_touched"));
  if (!parsed.ok() || !parsed->is_array()) return {};
  std::vector<std::string> files;
  for (const json::Value& item : parsed->get_array()) {
    if (item.is_null()) continue;
    if (!item.is_string()) return {};
    const std::string_view file = domain::Trim(json::View(item.get_string()));
    if (!file.empty()) files.emplace_back(file);
  }
  return files;
}

}  // namespace

void AgentPage::Restart() {
  text_ = kStart;
  more_ = false;
}

void AgentPage::Add(const domain::Agent& agent) {
  if (more_) return;
  const std::string added = to_json_(agent);
  const bool first = text_.size() == kStart.size();
  more_ = !first && text_.size() + added.size() > bytes_max_;
  if (more_) return;
  if (!first) text_ += ',';
  text_ += added;
}

std::string AgentPage::TakeAnswer() {
  text_ += more_ ? R"(],"more":true})" : "]}";
  return std::exchange(text_, {});
}

std::string PresenceJson(const domain::Agent& agent) {
  const auto text = [&agent](const char* key, std::string_view otherwise) {
    const std::string_view value = domain::MetadataText(agent, key);
    return value.empty() ? otherwise : value;
  };
  json::ObjectText presence;
  presence.Add("agent_id", agent.id)
      .Add("kind", text("agent_kind", ""))
      .Add("status", text("status", domain::Trim(agent.status)))
      .Add("last_seen", FormatRfc3339(agent.last_seen, Fraction::kNone))
      .Add("repo", text("repo", ""))
      .Add("files", FilesOf(agent))
      .Add("objective", text("objective", ""))
      .Add("confidence", text("active_bead_confidence", "unknown"))
      .Add("active_bead_id", text("active_bead_id", ""))
      .Add("thread_id", text("thread_id", ""));
  return presence.Text();
}

}  // namespace interlock::api
