#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/message.h"

namespace interlock::http {

// Finds the row of a request. Of several templates that fit a path the most literal one counts,
// segment by segment from the left, whatever the order of the table; a method that it does not take
// is not looked for among the others.
//
// Where a template has parameters, a slash at the end of the path does not count. A path that ends
// where only parameters are missing still finds its route, with these empty: it is the request that
// is incomplete, not the path that is unknown.
//
// Immutable once built, so any thread may use it. Building fails a check on a malformed template
// and on two rows that no request could tell apart.
class Router {
 public:
  struct Row {
    Method method;
    // Segments are literal, "{name}" (one segment), or "{name...}" (one or more, slashes included;
    // at most once per template). "/api/inbox/pokes/{id...}/ack". Must outlive the router.
    std::string_view path;
    bool is_upgrade = false;  // a WebSocket, which HEAD cannot ask for
  };

  explicit Router(std::vector<Row> rows);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  struct Match {
    enum class Kind : std::uint8_t {
      kFound,
      kNothing,      // no template fits
      kWrongMethod,  // … but not with this method: `allow` has those of the path
      kAddSlash,     // only parameters would follow: "/api/inbox" for "/api/inbox/{agent...}"
    };
    Kind kind = Kind::kNothing;
    std::size_t row = 0;  // of kFound: its index
    std::vector<std::pair<std::string_view, std::string>> params = {};
    std::string allow = {};  // "GET, HEAD, POST"
  };
  // HEAD finds the row of GET, unless that is a WebSocket.
  // REQUIRES: `text` is a path, decoded and clean.
  Match Find(Method method, std::string_view text) const;

 private:
  struct Segment {
    enum class Kind : std::uint8_t { kLiteral, kOne, kRest };  // from most to least literal
    Kind kind;
    std::string_view text;  // the literal, or the name
  };
  struct Entry {
    std::size_t row;
    std::vector<Segment> segments;
    std::string_view lead;  // "/api/messages": what each path that fits begins with, see Lead()
    std::size_t tail;       // where the parameters begin that nothing literal follows
    bool literal;           // no parameters at all
  };
  using Entries = std::vector<const Entry*>;
  // A path as both sorts of templates see it.
  struct Path {
    std::vector<std::string_view> segments;   // "/a/" has an empty one at its end
    std::span<const std::string_view> named;  // without that
  };
  enum class Fit : std::uint8_t { kNone, kWhole, kIncomplete, kWithoutSlash };
  using Params = std::vector<std::pair<std::string_view, std::string>>;

  static Entry Parse(const Row& row, std::size_t index);
  static bool MoreLiteral(const Entry& a, const Entry& b);
  static Fit HowFits(const Entry& entry, const Path& path);
  const Entries& Candidates(std::string_view text) const;
  static Params Take(const Entry& entry, std::span<const std::string_view> path);
  Match FindAmong(const Entries& entries, Fit fit, Method method, const Path& path) const;

  const std::vector<Row> rows_;
  std::vector<Entry> entries_;  // most literal first
  // Of each lead: the entries that have it, or a beginning of it, in the same order.
  std::unordered_map<std::string_view, Entries> by_lead_;
};

}  // namespace interlock::http
