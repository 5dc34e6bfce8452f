// A byte that picks the method and who asks, a request target, and after a newline a body: what
// happens to a request before its handler runs.
//
// - A path that is understood is UTF-8 without NUL; cleaning it once is enough, leaves no "..", and
//   what a Location says of it reads back as the same path, on this server.
// - A query reads back from what we would write of it. Numbers are what a slow reading says.
// - The router finds what trying every template finds, and the most literal of these; its
// parameters
//   put into the template are the path. A redirect to a slash leads to a route.
// - With a key, a request that is let through works in the key's project or in none.
// - No field that a route knows is refused as misspelt.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/misspelt.h"
#include "api/prepare.h"
#include "api/route_table.h"
#include "api/routes.h"
#include "auth/access.h"
#include "base/check.h"
#include "base/utf8.h"
#include "domain/text.h"
#include "http/exchange.h"
#include "http/path.h"
#include "http/query.h"
#include "http/router.h"
#include "json/value.h"
#include "targets.h"

namespace interlock::fuzz {
namespace {

using api::Request;
using api::Route;
using api::RouteTable;
using http::Method;
using http::Router;
using Kind = Router::Match::Kind;
using Segments = std::vector<std::string_view>;

constexpr std::array kMethods = {Method::kGet,    Method::kPost, Method::kPut,     Method::kPatch,
                                 Method::kDelete, Method::kHead, Method::kOptions, Method::kOther};

Segments Split(std::string_view path) {
  Segments segments;
  path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

// ---- Paths ----

std::string CheckClean(const std::string& path) {
  std::string clean = http::CleanPath(path);
  IL_CHECK(clean.starts_with('/') && !clean.starts_with("//"), clean);
  IL_CHECK(http::CleanPath(clean) == clean, clean);
  IL_CHECK(path.ends_with('/') ? clean.ends_with('/') : clean == "/" || !clean.ends_with('/'));
  const Segments segments = Split(clean);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    IL_CHECK(segments[i] != "." && segments[i] != "..", clean);
    IL_CHECK(!segments[i].empty() || i + 1 == segments.size(), clean);
  }
  const std::string location = http::EncodePath(clean);
  IL_CHECK(std::ranges::all_of(location, [](char c) { return c > ' ' && c < 127; }), location);
  const auto back = http::ParseTarget(location);
  IL_CHECK(back.ok() && back->path == clean && back->query.empty(), location);
  IL_CHECK(http::DecodePercent(http::EncodeSegment(path)) == path);
  return clean;
}

// ---- Queries ----

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> SlowDecimal(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, IsDigit)) return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  const std::string_view most = "9223372036854775807";
  if (text.size() > most.size() || (text.size() == most.size() && text > most)) return std::nullopt;
  std::int64_t number = 0;
  for (const char c : text) number = number * 10 + (c - '0');
  return number;
}

void CheckQuery(const std::string& query) {
  const auto fields = http::ParseQuery(query);
  if (!fields.ok()) {
    IL_CHECK(fields.error().code() == Errc::kInvalidArgument);
    IL_CHECK(IsUtf8(fields.error().message()) && fields.error().message().size() < 400);
    return;
  }
  const auto again = http::ParseQuery(http::EncodeQuery(*fields));
  IL_CHECK(again.ok() && *again == *fields, query);
  http::Request sent;
  Request request(sent);
  request.query_fields = *fields;
  for (const auto& [name, value] : *fields) {
    IL_CHECK(IsUtf8(name) && IsUtf8(value));
    IL_CHECK(name.find('\0') == std::string::npos && value.find('\0') == std::string::npos);
    IL_CHECK(http::ParseDecimal(value) == SlowDecimal(value), value);
    const auto first =
        std::ranges::find(*fields, name, &std::pair<std::string, std::string>::first);
    IL_CHECK(request.Query(name) == first->second);
    IL_CHECK(request.QueryNumber(name) == SlowDecimal(domain::Trim(first->second)));
  }
}

// ---- Routes ----

enum class Part : std::uint8_t { kLiteral, kOne, kRest };

Part PartOf(std::string_view segment) {
  if (!segment.starts_with('{')) return Part::kLiteral;
  return segment.ends_with("...}") ? Part::kRest : Part::kOne;
}

bool Fits(std::span<const std::string_view> wanted, std::span<const std::string_view> given) {
  if (wanted.empty() || given.empty()) return wanted.empty() && given.empty();
  const Part part = PartOf(wanted[0]);
  if (part == Part::kLiteral && wanted[0] != given[0]) return false;
  if (Fits(wanted.subspan(1), given.subspan(1))) return true;
  return part == Part::kRest && Fits(wanted, given.subspan(1));
}

// Whether all of the path is what the template asks for.
bool FitsWhole(std::string_view pattern, std::string_view path) {
  const Segments wanted = Split(pattern);
  Segments given = Split(path);
  const bool literal = pattern.find('{') == std::string_view::npos;
  if (!literal && given.back().empty()) given.pop_back();
  return Fits(wanted, given);
}

bool AtLeastAsLiteral(std::string_view a, std::string_view b) {
  const Segments left = Split(a);
  const Segments right = Split(b);
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (PartOf(left[i]) != PartOf(right[i])) return PartOf(left[i]) < PartOf(right[i]);
  }
  return left.size() >= right.size();
}

void CheckFound(const Route& route, const Router::Match& match, std::string_view path) {
  std::string rebuilt;
  std::size_t next = 0;
  for (const std::string_view segment : Split(route.path)) {
    if (PartOf(segment) == Part::kLiteral) {
      rebuilt.append("/").append(segment);
      continue;
    }
    IL_CHECK(next < match.params.size());
    const auto& [name, value] = match.params[next++];
    IL_CHECK(segment.substr(1).starts_with(name), name);
    if (!value.empty()) rebuilt.append("/").append(value);
  }
  IL_CHECK(next == match.params.size());
  const bool whole = FitsWhole(route.path, path);
  const bool missing =
      std::ranges::any_of(match.params, [](const auto& p) { return p.second.empty(); });
  IL_CHECK(whole != missing, path);
  IL_CHECK(rebuilt == path || rebuilt + "/" == path, path);
}

void CheckRoute(const RouteTable& table, Method method, const std::string& path) {
  const Router& router = table.router();
  const Router::Match match = router.Find(method, path);
  const Route& found = table.routes()[match.row];
  if (match.kind == Kind::kFound) {
    IL_CHECK(found.method == method || (method == Method::kHead && found.method == Method::kGet));
    CheckFound(found, match, path);
  } else if (match.kind == Kind::kAddSlash) {
    const Kind there = router.Find(method, path + "/").kind;
    IL_CHECK(there == Kind::kFound || there == Kind::kWrongMethod, path);
  } else if (match.kind == Kind::kWrongMethod) {
    IL_CHECK(!match.allow.empty());
    for (const Method other : kMethods) {
      const bool allowed = router.Find(other, path).kind == Kind::kFound;
      const std::string name = " " + std::string(http::MethodName(other)) + ",";
      IL_CHECK(allowed == ((" " + match.allow + ",").find(name) != std::string::npos), path);
    }
  }
  for (const Route& route : table.routes()) {
    if (!FitsWhole(route.path, path)) continue;
    IL_CHECK(match.kind == Kind::kFound || match.kind == Kind::kWrongMethod, path);
    if (match.kind != Kind::kFound) continue;
    IL_CHECK(AtLeastAsLiteral(found.path, route.path), path);
  }
}

// ---- What the row asks for ----

// A field that the schema names is never taken for a misspelt one.
void CheckMisspelt(const json::Value& body, const json::Value& schema) {
  const Result<void> checked = api::RefuseMisspelt(body, schema);
  if (checked.ok()) return;
  IL_CHECK(checked.error().slug() == "unknown_field" && IsUtf8(checked.error().message()));
  const json::Object& known = schema.get_object().at("properties").get_object();
  const auto field = std::get<std::string>(checked.error().details().at(0).second);
  IL_CHECK(!known.contains(field), field);
}

void CheckPrepared(const RouteTable& table, Request request, auth::Caller::Mode mode) {
  Router::Match match = table.router().Find(request.sent.method, request.path);
  if (match.kind != Kind::kFound) return;
  const Route& route = table.routes()[match.row];
  request.params = std::move(match.params);
  request.caller = {.mode = mode, .project = "mine"};
  const Result<void> prepared = api::Prepare(route, request, {});
  if (!prepared.ok()) {
    const int status = prepared.error().http_status();
    IL_CHECK(status == 400 || status == 403, prepared.error().message());
    IL_CHECK(IsUtf8(prepared.error().message()));
    return;
  }
  for (const api::QueryParameter& parameter : route.query) {
    if (parameter.type != api::QueryParameter::Type::kInteger) continue;
    const std::string value = request.Query(parameter.name);
    IL_CHECK(domain::Trim(value).empty() || request.QueryNumber(parameter.name), value);
  }
  IL_CHECK((request.json == nullptr) == (route.body == api::BodyKind::kNone));
  if (request.json != nullptr) CheckMisspelt(*request.json, *table.BodySchema(route));
  for (const auto& [name, value] : request.params) IL_CHECK(!domain::Trim(value).empty(), name);
  if (request.project) {
    IL_CHECK(domain::ProjectName(*request.project) == *request.project);
    IL_CHECK(request.project->find('\0') == std::string::npos);
  }
  if (mode != auth::Caller::Mode::kKey) return;
  const bool none = route.project == api::ProjectFrom::kNone;
  IL_CHECK(none ? !request.project : request.project == "mine");
}

}  // namespace

void FuzzTarget(std::string_view input) {
  static const RouteTable kTable(api::Routes());
  if (input.empty()) return;
  const auto pick = static_cast<std::uint8_t>(input[0]);
  input.remove_prefix(1);
  const std::size_t end = std::min(input.find('\n'), input.size());
  http::Request sent;
  sent.method = kMethods.at(pick % kMethods.size());
  sent.target = input.substr(0, end);
  sent.body = input.substr(std::min(end + 1, input.size()));
  CheckQuery(sent.target);
  const auto target = http::ParseTarget(sent.target);
  if (!target.ok()) {
    IL_CHECK(target.error().code() == Errc::kInvalidArgument);
    return;
  }
  IL_CHECK(target->path.starts_with('/') && IsUtf8(target->path));
  IL_CHECK(target->path.find('\0') == std::string::npos);
  CheckQuery(target->query);
  Request request(sent);
  request.path = CheckClean(target->path);
  request.query = target->query;
  CheckRoute(kTable, sent.method, request.path);
  const auto mode = pick >= 128 ? auth::Caller::Mode::kKey : auth::Caller::Mode::kLocal;
  CheckPrepared(kTable, std::move(request), mode);
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzTarget);
