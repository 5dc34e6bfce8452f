#include "ask.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/git_tree.h"
#include "base/time_text.h"
#include "glob/pattern.h"
#include "http/exchange.h"
#include "json/value.h"
#include "json/write.h"
#include "table.h"

namespace interlock::app {
namespace {

namespace fs = std::filesystem;
using Fit = Table::Fit;

constexpr std::string_view kWildcards = "*?[{\\";
// Characters that a pattern must hide to mean itself: with a backslash, or in a class where a
// backslash could be taken for a separator of directories, or the character for a form of a shell.
constexpr std::string_view kEscaped = "[{},(";
constexpr std::string_view kInClass = "\\*?";
constexpr std::string_view kInClassFirst = "~$! \t\n\v\f\r";

// ---- What the server says. A member that is missing counts as "", 0 or false: a newer or older
// server must not be the end of a command that only shows things.

const json::Value* Member(const json::Value& object, std::string_view name) {
  const json::Object* const members = object.if_object();
  return members != nullptr ? members->if_contains(name) : nullptr;
}
std::string Text(const json::Value& object, std::string_view name) {
  const json::Value* const value = Member(object, name);
  if (value == nullptr || !value->is_string()) return "";
  return std::string(json::View(value->get_string()));
}
std::int64_t Number(const json::Value& object, std::string_view name) {
  const json::Value* const value = Member(object, name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}
bool Flag(const json::Value& object, std::string_view name) {
  const json::Value* const value = Member(object, name);
  return value != nullptr && value->is_bool() && value->get_bool();
}
std::optional<Timestamp> Time(const json::Value& object, std::string_view name) {
  const auto time = ParseRfc3339(Text(object, name));
  if (!time.ok()) return std::nullopt;
  return *time;
}

// ---- How it is said.

// "12m ago"; of a time to come "in 12m".
std::string Relative(std::optional<Timestamp> time, Timestamp now) {
  if (!time) return "";
  if (*time > now) return "in " + Roughly(*time - now);
  return Roughly(now - *time) + " ago";
}

class Asking {
 public:
  Asking(const AskOptions& options, const Screen& screen, const Client& client)
      : options_(options),
        columns_(std::max<std::size_t>(screen.columns, 20)),
        on_terminal_(screen.is_terminal),
        as_json_(options.json || !on_terminal_),
        client_(client) {}

  Result<std::string> Answer() {
    IL_TRY(status_, client_.Get("/api/status", Scope()));
    const auto now = Time(status_, "time");
    if (!now || Text(status_, "version").empty()) return Strange("version");
    now_ = *now;
    switch (options_.question) {
      case AskOptions::Question::kStatus:
        return Status();
      case AskOptions::Question::kAgents:
        return Agents();
      case AskOptions::Question::kWho:
        break;
    }
    return Who();
  }

 private:
  Client::Parameters Scope() const {
    if (options_.project.empty()) return {};
    return {{"project", options_.project}};
  }
  // With a key the server says which project it is.
  std::string Project() const { return Text(status_, "project"); }
  bool IsUnknownProject() const {
    return Number(status_, "agents_registered") == 0 &&
           Number(status_, "reservations_active") == 0 && Number(status_, "mail_unread") == 0;
  }
  Error UnknownProject() const {
    return {Errc::kNotFound,
            fmt::format("project '{}' is unknown at {}: no agent is registered and nothing is "
                        "reserved in it; 'intermute agents' lists the projects",
                        Project(), options_.server.url)};
  }
  std::string Where() const { return Project().empty() ? "" : " in " + Printable(Project()); }

  Error Strange(std::string_view name) const {
    return client_.NotIntermute(fmt::format("the answer has no proper `{}`", name));
  }
  // A list of objects. Anything else is not ours, and must not look like an empty list.
  Result<json::Array> List(json::Value& object, std::string_view name) const {
    json::Object* const members = object.if_object();
    json::Value* const value = members != nullptr ? members->if_contains(name) : nullptr;
    if (value == nullptr || !value->is_array()) return Strange(name);
    const bool objects = std::ranges::all_of(
        value->get_array(), [](const json::Value& one) { return one.is_object(); });
    if (!objects) return Strange(name);
    return std::move(value->get_array());
  }

  std::string AsJson(const json::Value& value) const {
    const std::string text = json::Write(value);
    return (on_terminal_ ? PrintableJson(text) : text) + "\n";
  }

  Result<std::string> Status() const {
    if (!options_.project.empty() && IsUnknownProject()) return UnknownProject();
    if (as_json_) return AsJson(status_);
    const auto number = [this](std::string_view name) { return Number(status_, name); };
    std::string text =
        fmt::format("intermute {} at {}{}, up {}\n", Printable(Text(status_, "version")),
                    Printable(options_.server.url), Where(),
                    Roughly(std::chrono::seconds(number("uptime_seconds"))));
    text += fmt::format("  agents        {} alive of {} registered\n", number("agents_alive"),
                        number("agents_registered"));
    text += fmt::format("  reservations  {} held\n", number("reservations_active"));
    text += fmt::format("  waiting       {}\n", number("waiting"));
    text += fmt::format("  unread mail   {}\n", number("mail_unread"));
    text += fmt::format("  breaker       {}\n", Breaker());
    text += fmt::format("  last event    {}\n", number("cursor"));
    return text;
  }

  // One word while reads and writes fare alike.
  std::string Breaker() const {
    const std::string read = Text(status_, "circuit_breaker_read");
    const std::string write = Text(status_, "circuit_breaker_write");
    if (read == write) return Printable(Text(status_, "circuit_breaker"));
    return fmt::format("{} for reads, {} for writes", Printable(read), Printable(write));
  }

  Result<std::string> Agents() const {
    IL_TRY(json::Value answer, client_.Get("/api/agents", Scope()));
    IL_TRY(json::Array agents, List(answer, "agents"));
    for (json::Value& agent : agents) {
      agent.get_object()["alive"] = IsAlive(Time(agent, "last_seen"));
    }
    if (as_json_) return AsJson(json::Object{{"agents", std::move(agents)}});
    if (agents.empty()) return fmt::format("no agents are registered{}\n", Where());
    const bool one_project = !Project().empty();
    std::vector<Table::Column> columns = {{"AGENT", Fit::kCut}, {"ALIVE"}, {"SEEN"}};
    if (!one_project) columns.push_back({"PROJECT", Fit::kCut});
    columns.push_back({"ID"});
    Table table(std::move(columns));
    for (const json::Value& agent : agents) {
      std::vector<std::string> cells = {Text(agent, "name"), Flag(agent, "alive") ? "yes" : "no",
                                        Relative(Time(agent, "last_seen"), now_)};
      if (!one_project) cells.push_back(Text(agent, "project"));
      cells.push_back(Text(agent, "agent_id"));
      table.Add(std::move(cells));
    }
    return table.Text(columns_);
  }

  Result<std::string> Who() const {
    std::error_code error;
    const fs::path here = fs::current_path(error);
    if (error) return Error(Errc::kIo, "cannot find the current directory: " + error.message());
    IL_TRY(const Place place, PlaceOf(options_, here));
    IL_TRY(const json::Array holders, Holders(place));
    if (holders.empty() && IsUnknownProject()) return UnknownProject();
    if (as_json_) {
      return AsJson(json::Object{{"path", options_.path},
                                 {"pattern", place.pattern},
                                 {"literal", place.literal},
                                 {"project", Project()},
                                 {"holders", holders}});
    }
    const std::string path = Printable(place.pattern);
    if (holders.empty()) return fmt::format("nobody holds {}{}\n", path, Where());
    Table table({{"AGENT", Fit::kCut},
                 {"ALIVE"},
                 {"ACCESS"},
                 {"SINCE"},
                 {"UNTIL"},
                 {"PATTERN", Fit::kCut},
                 {"REASON", Fit::kWrap}});
    for (const json::Value& holder : holders) {
      table.Add({Text(holder, "held_by"), Alive(holder),
                 Flag(holder, "exclusive") ? "exclusive" : "shared",
                 Relative(Time(holder, "since"), now_), Relative(Time(holder, "expires_at"), now_),
                 Text(holder, "pattern"), Text(holder, "reason")});
    }
    return fmt::format("{}{} is held by\n\n", path, Where()) + table.Text(columns_);
  }

  // The conflicts that a claim of the place would have, with the time of their grant as `since`.
  Result<json::Array> Holders(const Place& place) const {
    Client::Parameters query = Scope();
    query.emplace_back("pattern", place.pattern);
    if (place.literal) query.emplace_back("literal", "true");
    IL_TRY(json::Value answer, client_.Get("/api/reservations/check", query));
    json::Array holders;
    IL_TRY(json::Array conflicts, List(answer, "conflicts"));
    for (json::Value& conflict : conflicts) {
      const std::string id = Text(conflict, "reservation_id");
      const auto reservation = client_.Get("/api/reservations/" + http::EncodeSegment(id), {});
      if (!reservation.ok()) {
        if (reservation.error().code() == Errc::kNotFound) continue;  // let go meanwhile
        return reservation.error();
      }
      conflict.get_object()["since"] = Text(*reservation, "created_at");
      holders.push_back(std::move(conflict));
    }
    return holders;
  }

  bool IsAlive(std::optional<Timestamp> last_seen) const {
    const auto grace = std::chrono::seconds(Number(status_, "heartbeat_grace_seconds"));
    return last_seen && *last_seen > now_ - grace;
  }
  // "no (2h05m)" was last seen two hours ago; nobody registered who is unknown.
  std::string Alive(const json::Value& holder) const {
    const std::string state = Text(holder, "holder_state");
    if (state == "active") return "yes";
    const auto seen = Time(holder, "last_seen");
    return seen ? fmt::format("no ({})", Roughly(now_ - *seen)) : state;
  }

  const AskOptions& options_;
  const std::size_t columns_;
  const bool on_terminal_;
  const bool as_json_;
  const Client& client_;
  json::Value status_;
  Timestamp now_;  // of the server: its times are compared with it, not with our clock
};

std::string Escaped(std::string_view path) {
  std::string escaped;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (kInClass.contains(c) || (i == 0 && kInClassFirst.contains(c)) || (i == 1 && c == ':')) {
      escaped += c == '\\' || c == '!' ? "[\\" : "[";
      escaped += c;
      escaped += ']';
    } else {
      if (kEscaped.contains(c)) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::optional<std::string> BelowAsWritten(const fs::path& root, const fs::path& path) {
  const fs::path inside =
      path.lexically_normal().lexically_relative((root / "").lexically_normal().parent_path());
  if (inside.empty() || *inside.begin() == "..") return std::nullopt;
  return inside == "." ? "" : inside.string();
}

// `path` as a path below `root`, "" for the root itself; nothing when it lies elsewhere. Symbolic
// links are followed only if the path lies elsewhere without that: a link inside the root is a path
// of its own.
std::optional<std::string> Below(const fs::path& root, const fs::path& path) {
  if (auto inside = BelowAsWritten(root, path)) return inside;
  std::error_code error;
  const fs::path real_root = fs::weakly_canonical(root, error);
  if (error) return std::nullopt;
  const fs::path real_path = fs::weakly_canonical(path, error);
  if (error) return std::nullopt;
  return BelowAsWritten(real_root, real_path);
}

// A path from the root of the project in two parts: `before` was not typed and holds no wildcards.
struct Seen {
  std::string before;
  std::string rest;
};

// `path` as typed in the directory `at`, which is relative to the root.
Result<Seen> SeenFrom(fs::path at, std::string_view path) {
  const std::string typed(path);
  while (path == "." || path == ".." || path.starts_with("./") || path.starts_with("../")) {
    const std::size_t end = path.find('/');
    if (path.starts_with("..")) {
      if (at.empty()) {
        return Error(Errc::kInvalidArgument,
                     fmt::format("{} lies outside the repository; name a path inside it", typed));
      }
      at = at.parent_path();
    }
    path = end == std::string_view::npos ? "" : path.substr(end + 1);
    while (path.starts_with('/')) path.remove_prefix(1);
  }
  return Seen{.before = at.empty() ? "" : at.string() + "/", .rest = std::string(path)};
}

Result<Seen> See(const AskOptions& options, const fs::path& here) {
  const std::optional<fs::path> root =
      options.project.starts_with('/') ? fs::path(options.project) : FindGitRoot(here);
  if (!root) return Seen{.before = "", .rest = options.path};
  const bool absolute = options.path.starts_with('/');
  const auto inside = Below(*root, absolute ? fs::path(options.path) : here);
  if (!inside) return Seen{.before = "", .rest = options.path};
  if (!absolute) return SeenFrom(*inside, options.path);
  return Seen{.before = "", .rest = *inside};
}

// Refuses what the server refuses of a pattern, before the directory we are in is put in front.
Result<void> RefuseForeign(std::string_view typed) {
  const auto pattern = glob::Pattern::Parse(typed);
  if (pattern.ok() || pattern.error().code() != Errc::kInvalidPattern) return {};
  return Error(Errc::kInvalidPattern,
               fmt::format("{}; here literal:true is --literal", pattern.error().message()));
}

}  // namespace

Screen Screen::Find() {
  Screen screen{.is_terminal = ::isatty(STDOUT_FILENO) == 1};
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    screen.columns = size.ws_col;
  }
  return screen;
}

Result<Place> PlaceOf(const AskOptions& options, const fs::path& here) {
  IL_TRY(const Seen seen, See(options, here));
  std::string path = seen.before + seen.rest;
  if (options.literal) return Place{.pattern = std::move(path)};
  std::error_code ignored;  // a path that cannot be looked at does not exist for us
  const fs::file_status found = fs::status(here / options.path, ignored);
  if (fs::is_directory(found)) {
    if (path.empty()) return Place{.pattern = "**", .literal = false};
    return Place{.pattern = Escaped(path) + (path.ends_with('/') ? "" : "/"), .literal = false};
  }
  if (!fs::exists(found)) {
    IL_TRY_VOID(RefuseForeign(seen.rest));
    const bool wild = seen.rest.find_first_of(kWildcards) != std::string::npos;
    if (wild || path.ends_with('/')) {
      return Place{.pattern = Escaped(seen.before) + seen.rest, .literal = false};
    }
  }
  return Place{.pattern = std::move(path)};
}

std::string Roughly(Duration duration) {
  constexpr std::int64_t kHourMinutes = 60;
  constexpr std::int64_t kDayMinutes = 24 * kHourMinutes;
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  if (seconds < 60) return fmt::format("{}s", std::max<std::int64_t>(seconds, 0));
  const std::int64_t minutes = seconds / 60;
  if (minutes < kHourMinutes) return fmt::format("{}m", minutes);
  if (minutes < 2 * kDayMinutes) {
    return fmt::format("{}h{:02}m", minutes / kHourMinutes, minutes % kHourMinutes);
  }
  return fmt::format("{}d", minutes / kDayMinutes);
}

Done Ask(const AskOptions& options, const Screen& screen) {
  const bool keyed = !options.server.api_key.empty();
  if (options.question == AskOptions::Question::kWho && options.project.empty() && !keyed) {
    return {1, "intermute: in which project? Name it with --project or INTERMUTE_PROJECT\n"};
  }
  const auto client = Client::For(options.server);
  Result<std::string> text =
      client.ok() ? Asking(options, screen, *client).Answer() : Result<std::string>(client.error());
  if (text.ok()) return {0, *std::move(text)};
  return Failed(text.error());
}

}  // namespace interlock::app
