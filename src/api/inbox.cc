#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "api/app.h"
#include "api/message_page.h"
#include "api/message_schemas.h"
#include "api/routes.h"
#include "json/object_text.h"
#include "service/mailbox.h"

namespace interlock::api {
namespace {

using boost::asio::awaitable;

constexpr std::int64_t kStaleTtlSeconds = 1800;
// About 3000 years: old enough for any message, and far from the end of a number.
constexpr std::int64_t kStaleTtlSecondsMax = 100'000'000'000;

awaitable<Result<Response>> GetInbox(App& app, Request& request) {
  domain::InboxQuery query{.project = request.project,
                           .agent = request.Param("agent"),
                           .after = request.QueryCursor("since_cursor"),
                           .limit = LimitFrom(request, 100, 1000)};
  auto page = std::make_shared<MessagePage>(MessagePage::Options{
      .viewer = query.agent, .messages_max = query.limit, .bytes_max = BytesMaxFrom(request)});
  const domain::Cursor after = query.after;
  IL_CO_TRY_VOID(co_await app.mailbox.ReadInbox(std::move(query), page));
  co_return Response::Json(200, page->TakeAnswer(after));
}

awaitable<Result<Response>> GetCounts(App& app, Request& request) {
  std::string project = request.project.value_or("");
  IL_CO_TRY(const domain::InboxCounts counts,
            co_await app.mailbox.CountInbox(std::move(project), request.Param("agent")));
  json::ObjectText answer;
  answer.Add("total", counts.total).Add("unread", counts.unread);
  co_return Response::Json(200, answer.Text());
}

awaitable<Result<Response>> GetStaleAcks(App& app, Request& request) {
  const std::int64_t ttl =
      std::min(request.QueryInt("ttl_seconds", kStaleTtlSeconds), kStaleTtlSecondsMax);
  const Timestamp now = app.mailbox.Now();
  domain::StaleAcksQuery query{.project = request.project.value_or(""),
                               .agent = request.Param("agent"),
                               .limit = LimitFrom(request, 20, 1000)};
  if (ttl > 0) query.created_until = now - std::chrono::seconds(ttl);
  json::ObjectText answer;
  answer.Add("project", query.project).Add("agent", query.agent).Add("ttl_seconds", ttl);
  auto page =
      std::make_shared<MessagePage>(MessagePage::Options{.shape = MessagePage::Shape::kStaleAck,
                                                         .messages_max = query.limit,
                                                         .bytes_max = BytesMaxFrom(request),
                                                         .now = now});
  IL_CO_TRY_VOID(co_await app.mailbox.ReadStaleAcks(std::move(query), page));
  answer.Add("count", page->count()).AddRaw("messages", "[" + std::string(page->text()) + "]");
  if (page->more()) answer.Add("more", true);
  co_return Response::Json(200, answer.Text());
}

using Type = QueryParameter::Type;
constexpr QueryParameter kProject = {"project", Type::kText,
                                     "The project to read, where no key says it."};
constexpr QueryParameter kMaxBytes = {
    "max_bytes", Type::kInteger,
    "End the page before its messages are longer than this; it then says \"more\":true."};

constexpr std::array kInboxQuery = {
    QueryParameter{"project", Type::kText,
                   "The project to read, where no key says it; without one all projects are read."},
    QueryParameter{"since_cursor", Type::kInteger, "Only what came after this; default 0."},
    QueryParameter{"limit", Type::kInteger, "Messages at most; default 100, highest 1000."},
    kMaxBytes,
};
constexpr std::array kCountsQuery = {kProject};
constexpr std::array kStaleAcksQuery = {
    kProject,
    QueryParameter{"ttl_seconds", Type::kInteger,
                   "How old a message must be; default 1800, 0 = any age."},
    QueryParameter{"limit", Type::kInteger, "Messages at most; default 20, highest 1000."},
    kMaxBytes,
};

constexpr std::array kPageFailures = {
    Failure{409,
            "`cursor_ahead` with `newest`: the cursor is beyond the end of the log; "
            "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
};
constexpr std::array kFailures = {
    Failure{409, "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kGet,
          .path = "/api/inbox/{agent...}",
          .handler = GetInbox,
          .summary = "A page of the mail that came to an agent, oldest first.",
          .project = ProjectFrom::kQuery,
          .asker = ActorFrom::kPathAgent,
          .answer_schema = MessagePageSchema,
          .query = kInboxQuery,
          .failures = kPageFailures},
    Route{.method = Method::kGet,
          .path = "/api/inbox/{agent...}/counts",
          .handler = GetCounts,
          .summary = "How many messages an agent has, and how many it has not read.",
          .project = ProjectFrom::kQuery,
          .asker = ActorFrom::kPathAgent,
          .answer_schema = InboxCountsSchema,
          .query = kCountsQuery,
          .failures = kFailures},
    Route{.method = Method::kGet,
          .path = "/api/inbox/{agent...}/stale-acks",
          .handler = GetStaleAcks,
          .summary = "Messages that still wait for an agent's acknowledgement, oldest first.",
          .project = ProjectFrom::kQuery,
          .asker = ActorFrom::kPathAgent,
          .answer_schema = StaleAcksSchema,
          .query = kStaleAcksQuery,
          .failures = kFailures},
};

}  // namespace

std::span<const Route> InboxRoutes() { return kRoutes; }

}  // namespace interlock::api
