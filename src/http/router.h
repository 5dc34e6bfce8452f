#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/route.h"

namespace interlock::http {

// Finds the route of a request. Of several templates that fit a path the most literal one counts,
// segment by segment from the left, whatever the order of the table.
//
// Immutable once built, so any thread may use it. Building fails a check on a malformed template
// and on two routes that no request could tell apart.
class Router {
 public:
  explicit Router(std::span<const Route> routes);

  struct Match {
    const Route* route = nullptr;  // null: nothing there (allow empty) or not with this method
    std::vector<std::pair<std::string_view, std::string>> params;
    std::string allow;  // "GET, POST": the methods of the path, when route is null
  };
  // REQUIRES: `path` is decoded and begins with '/'.
  Match Find(Method method, std::string_view path) const;

  std::span<const Route> routes() const { return routes_; }

 private:
  struct Segment {
    enum class Kind : std::uint8_t { kLiteral, kOne, kRest };  // from most to least literal
    Kind kind;
    std::string_view text;  // the literal, or the name
  };
  struct Entry {
    const Route* route;
    std::vector<Segment> segments;
  };
  using Params = std::vector<std::pair<std::string_view, std::string>>;

  static Entry Parse(const Route& route);
  static bool MoreLiteral(const Entry& a, const Entry& b);
  static bool Fits(const Entry& entry, std::span<const std::string_view> path);
  static Params Take(const Entry& entry, std::span<const std::string_view> path);

  std::span<const Route> routes_;
  std::vector<Entry> entries_;  // most literal first
};

}  // namespace interlock::http
