#include "http/router.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"

namespace interlock::http {
namespace {

// "/a/b" → {a, b}; "/" → {""}: a trailing slash is a segment of its own, so "/a/" is not "/a".
std::vector<std::string_view> Split(std::string_view path) {
  constexpr std::size_t kUsual = 8;
  std::vector<std::string_view> segments;
  segments.reserve(kUsual);
  std::size_t begin = 1;
  while (true) {
    const std::size_t end = path.find('/', begin);
    segments.push_back(path.substr(begin, end - begin));
    if (end == std::string_view::npos) return segments;
    begin = end + 1;
  }
}

// The first `count` segments of a path, or all: "/api/inbox" of "/api/inbox/a/b" for two.
std::string_view Lead(std::string_view path, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count && end != std::string_view::npos; ++i) end = path.find('/', end + 1);
  return path.substr(0, end);
}

// HEAD is served by the route of GET; a WebSocket has nothing that it could ask for.
bool TakesHead(const Router::Row& row) { return row.method == Method::kGet && !row.is_upgrade; }

bool Serves(const Router::Row& row, Method method) {
  return row.method == method || (method == Method::kHead && TakesHead(row));
}

// So many segments tell routes apart well enough.
constexpr int kLeadMax = 2;

}  // namespace

Router::Router(std::vector<Row> rows) : rows_(std::move(rows)) {
  entries_.reserve(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) entries_.push_back(Parse(rows_[i], i));
  // Equal shapes stay in the order of the table.
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return MoreLiteral(a, b) || (!MoreLiteral(b, a) && a.row < b.row);
  });
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const bool same_shape =
          !MoreLiteral(entries_[k], entries_[i]) && !MoreLiteral(entries_[i], entries_[k]);
      const Row& row = rows_[entries_[i].row];
      const bool same_method = rows_[entries_[k].row].method == row.method;
      IL_CHECK(!same_shape || !same_method, row.path);
    }
  }
  by_lead_[""];
  for (const Entry& entry : entries_) by_lead_[entry.lead];
  for (auto& [lead, entries] : by_lead_) {
    for (const Entry& entry : entries_) {
      const bool begins = lead == entry.lead || lead.starts_with(std::string(entry.lead) + '/');
      if (entry.lead.empty() || begins) entries.push_back(&entry);
    }
  }
}

Router::Entry Router::Parse(const Row& row, std::size_t index) {
  IL_CHECK(row.path.starts_with('/'), row.path);
  Entry entry{.row = index, .segments = {}, .lead = {}, .tail = 0, .literal = true};
  int rests = 0;
  int leading = 0;  // literals before the first parameter
  for (const std::string_view part : Split(row.path)) {
    if (!part.starts_with('{')) {
      IL_CHECK(part.find_first_of("{}") == std::string_view::npos, row.path);
      entry.segments.push_back({Segment::Kind::kLiteral, part});
      entry.tail = entry.segments.size();
      if (entry.literal) ++leading;
      continue;
    }
    IL_CHECK(part.ends_with('}'), row.path);
    std::string_view name = part.substr(1, part.size() - 2);
    Segment::Kind kind = Segment::Kind::kOne;
    if (name.ends_with("...")) {
      name.remove_suffix(3);
      kind = Segment::Kind::kRest;
      ++rests;
    }
    IL_CHECK(!name.empty(), row.path);
    entry.literal = false;
    entry.segments.push_back({kind, name});
  }
  IL_CHECK(rests <= 1, row.path);
  entry.lead = Lead(row.path, std::min(leading, kLeadMax));
  return entry;
}

// A strict order on shapes: kinds first, from the left; a longer template before its own prefix,
// since it asks for more; then the literals, so that equal shapes are neighbours.
bool Router::MoreLiteral(const Entry& a, const Entry& b) {
  const std::size_t common = std::min(a.segments.size(), b.segments.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (a.segments[i].kind != b.segments[i].kind) return a.segments[i].kind < b.segments[i].kind;
  }
  if (a.segments.size() != b.segments.size()) return a.segments.size() > b.segments.size();
  for (std::size_t i = 0; i < common; ++i) {
    if (a.segments[i].kind != Segment::Kind::kLiteral) continue;  // names do not tell apart
    if (a.segments[i].text != b.segments[i].text) return a.segments[i].text < b.segments[i].text;
  }
  return false;
}

Router::Fit Router::HowFits(const Entry& entry, const Path& path) {
  const auto& segments = entry.segments;
  const std::span<const std::string_view> given = entry.literal ? path.segments : path.named;
  const bool incomplete = given.size() < segments.size();
  if (incomplete && (entry.literal || given.size() < entry.tail)) return Fit::kNone;
  const std::size_t surplus = incomplete ? 0 : given.size() - segments.size();  // of the rest
  std::size_t at = 0;
  bool has_rest = false;
  for (const Segment& segment : segments) {
    if (at == given.size()) break;
    if (segment.kind == Segment::Kind::kLiteral && given[at] != segment.text) return Fit::kNone;
    if (segment.kind == Segment::Kind::kRest) {
      has_rest = true;
      at += surplus;
    }
    ++at;
  }
  if (!incomplete) return has_rest || surplus == 0 ? Fit::kWhole : Fit::kNone;
  const bool begun = given.size() > entry.tail || path.segments.size() > path.named.size();
  return begun ? Fit::kIncomplete : Fit::kWithoutSlash;
}

Router::Params Router::Take(const Entry& entry, std::span<const std::string_view> path) {
  Params params;
  const std::size_t wanted = entry.segments.size();
  const std::size_t surplus = path.size() > wanted ? path.size() - wanted : 0;
  std::size_t at = 0;
  for (const Segment& segment : entry.segments) {
    const std::size_t length = segment.kind == Segment::Kind::kRest ? surplus + 1 : 1;
    if (at >= path.size()) {
      params.emplace_back(segment.text, "");  // only parameters can be missing
    } else if (segment.kind != Segment::Kind::kLiteral) {
      // The segments of one path lie side by side in memory.
      const char* const begin = path[at].data();
      const char* const end = path[at + length - 1].data() + path[at + length - 1].size();
      params.emplace_back(segment.text, std::string(begin, end));
    }
    at += length;
  }
  return params;
}

// All entries that may fit the path in any way: whatever is missing at its end, literals are not.
const Router::Entries& Router::Candidates(std::string_view text) const {
  for (int count = kLeadMax; count > 0; --count) {
    const auto found = by_lead_.find(Lead(text, count));
    if (found != by_lead_.end()) return found->second;
  }
  return by_lead_.at("");
}

Router::Match Router::FindAmong(const Entries& entries, Fit fit, Method method,
                                const Path& path) const {
  std::vector<Method> allowed;
  bool head = false;  // allowed, too
  const Entry* best = nullptr;
  for (const Entry* const entry : entries) {
    if (HowFits(*entry, path) != fit) continue;
    if (best == nullptr) best = entry;
    if (MoreLiteral(*best, *entry)) break;  // what is less literal does not count
    const Row& row = rows_[entry->row];
    if (Serves(row, method)) {
      return {.kind = Match::Kind::kFound,
              .row = entry->row,
              .params = Take(*entry, entry->literal ? path.segments : path.named)};
    }
    head = head || TakesHead(row);
    if (std::ranges::find(allowed, row.method) == allowed.end()) allowed.push_back(row.method);
  }
  if (allowed.empty()) return {};
  std::sort(allowed.begin(), allowed.end());
  Match match{.kind = Match::Kind::kWrongMethod};
  for (const Method one : allowed) {
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += MethodName(one);
    if (one == Method::kGet && head) match.allow += ", HEAD";
  }
  return match;
}

Router::Match Router::Find(Method method, std::string_view text) const {
  IL_CHECK(text.starts_with('/'));
  Path path{.segments = Split(text), .named = {}};
  path.named = path.segments;
  if (path.named.back().empty()) path.named = path.named.first(path.named.size() - 1);
  const Entries& entries = Candidates(text);
  // A route that takes the method, though the path ends before it names everything, says better
  // what is wrong than one that fits and does not take it.
  std::optional<Match> other;
  for (const Fit fit : {Fit::kWhole, Fit::kIncomplete}) {
    Match match = FindAmong(entries, fit, method, path);
    if (match.kind == Match::Kind::kFound) return match;
    if (!other && match.kind == Match::Kind::kWrongMethod) other = std::move(match);
  }
  if (other) return *std::move(other);
  const bool add_slash = std::ranges::any_of(
      entries, [&](const Entry* entry) { return HowFits(*entry, path) == Fit::kWithoutSlash; });
  if (add_slash) return {.kind = Match::Kind::kAddSlash};
  return {};
}

}  // namespace interlock::http
