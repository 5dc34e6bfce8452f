#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/app.h"
#include "api/routes.h"
#include "base/time_text.h"
#include "domain/event.h"
#include "domain/text.h"
#include "json/object_text.h"
#include "json/schema.h"
#include "service/feed.h"

namespace interlock::api {
namespace {

constexpr std::int64_t kLimitDefault = 100;

// "a, b" is a and b; what is blank is nothing.
std::vector<std::string> SplitTypes(std::string_view text) {
  std::vector<std::string> types;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view type = domain::Trim(text.substr(0, comma));
    if (!type.empty()) types.emplace_back(type);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return types;
}

json::ObjectText EventText(const domain::Event& event) {
  json::ObjectText text;
  text.Add("cursor", event.cursor)
      .Add("type", event.type)
      .Add("project", event.project)
      .Add("entity_id", event.entity_id);
  if (event.agent) text.Add("agent", *event.agent);
  text.Add("created_at", FormatRfc3339(event.created_at))
      .AddRaw("data", event.data.empty() ? "null" : event.data);
  return text;
}

boost::asio::awaitable<Result<Response>> GetEvents(App& app, Request& request) {
  constexpr std::int64_t kLimitMax = service::Feed::kPageMax;
  const std::int64_t limit = request.QueryInt("limit", kLimitDefault);
  service::EventPageRequest query{
      .project = request.project,
      .since = request.QueryCursor("since_cursor"),
      .limit = static_cast<std::size_t>(limit == 0 ? kLimitDefault : std::min(limit, kLimitMax)),
      .types = SplitTypes(request.Query("types"))};
  IL_CO_TRY(const service::EventPage page, co_await app.feed.Page(std::move(query)));
  json::ArrayText events;
  for (const domain::Event& event : page.events) events.Add(EventText(event));
  co_return Response::Json(
      200, json::ObjectText().Add("events", events).Add("cursor", page.cursor).Text());
}

json::Value EventsSchema() {
  return json::ObjectSchema({{"events", json::ArraySchema(json::ObjectSchema(
                                            {{"cursor", json::IntegerSchema(1)},
                                             {"type", json::StringSchema()},
                                             {"project", json::StringSchema()},
                                             {"entity_id", json::StringSchema()},
                                             {"agent", json::StringSchema(), json::Need::kOptional},
                                             {"created_at", json::TimeSchema()},
                                             {"data", json::AnySchema()}}))},
                             {"cursor", json::IntegerSchema()}});
}

constexpr std::array kQuery = {
    QueryParameter{"project", QueryParameter::Type::kText,
                   "Only events of this project. Without a key, none means every project."},
    QueryParameter{"since_cursor", QueryParameter::Type::kInteger,
                   "Events after this one; 0 is from the oldest one kept."},
    QueryParameter{"limit", QueryParameter::Type::kInteger, "At most so many, 100; up to 1000."},
    QueryParameter{"types", QueryParameter::Type::kText, "Only these, separated by commas."},
};

constexpr std::array kFailures = {
    kCursorAhead,
    Failure{410,
            "cursor_expired: events after since_cursor are no longer kept; oldest_cursor is "
            "the first one that is."},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kGet,
          .path = "/api/events",
          .handler = GetEvents,
          .summary = "What happened, in order; go on with the returned cursor until it stands.",
          .project = ProjectFrom::kQueryChecked,
          .answer_schema = EventsSchema,
          .query = kQuery,
          .failures = kFailures},
};

}  // namespace

std::span<const Route> EventRoutes() { return kRoutes; }

}  // namespace interlock::api
