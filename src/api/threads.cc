#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/app.h"
#include "api/message_page.h"
#include "api/message_schemas.h"
#include "api/routes.h"
#include "base/time_text.h"
#include "domain/text.h"
#include "json/object_text.h"
#include "service/mailbox.h"

namespace interlock::api {
namespace {

using boost::asio::awaitable;

std::string ListText(const std::vector<domain::ThreadSummary>& threads, domain::Cursor asked) {
  json::ArrayText list;
  for (const domain::ThreadSummary& thread : threads) {
    list.Add(json::ObjectText()
                 .Add("thread_id", thread.thread_id)
                 .Add("last_cursor", thread.last_cursor)
                 .Add("message_count", thread.message_count)
                 .Add("last_from", thread.last_from)
                 .Add("last_body", thread.last_body)
                 .Add("last_at", FormatRfc3339(thread.last_at, Fraction::kNone)));
  }
  const domain::Cursor cursor = threads.empty() ? asked : threads.back().last_cursor;
  return json::ObjectText().Add("threads", list).Add("cursor", cursor).Text();
}

awaitable<Result<Response>> GetThreads(App& app, Request& request) {
  domain::ThreadsQuery query{.project = request.project.value_or(""),
                             .agent = std::string(domain::Trim(request.Query("agent"))),
                             .limit = LimitFrom(request, 50, 1000)};
  if (query.agent.empty()) {
    co_return Error(Errc::kInvalidArgument,
                    "Whose threads? Name the agent in the query: /api/threads?agent=id.")
        .WithDetail("field", "agent");
  }
  const domain::Cursor cursor = request.QueryCursor("cursor");
  if (cursor > 0) query.before = cursor;
  IL_CO_TRY(const std::vector<domain::ThreadSummary> threads,
            co_await app.mailbox.ListThreads(std::move(query)));
  co_return Response::Json(200, ListText(threads, cursor));
}

awaitable<Result<Response>> GetThread(App& app, Request& request) {
  const std::int64_t limit = LimitFrom(request, 1000, 1000);
  domain::ThreadQuery query{.project = request.project.value_or(""),
                            .thread_id = request.Param("id"),
                            .after = request.QueryCursor("cursor"),
                            .limit = limit + 1};  // one more shows whether there is more
  std::string head = json::ObjectText().Add("thread_id", query.thread_id).Text();
  head = head.substr(1, head.size() - 2) + ",";  // the member alone
  auto page =
      std::make_shared<MessagePage>(MessagePage::Options{.head = std::move(head),
                                                         .viewer = request.caller.agent,
                                                         .messages_max = limit,
                                                         .bytes_max = BytesMaxFrom(request)});
  const domain::Cursor after = query.after;
  IL_CO_TRY_VOID(co_await app.mailbox.ReadThread(std::move(query), page));
  co_return Response::Json(200, page->TakeAnswer(after));
}

using Type = QueryParameter::Type;
constexpr QueryParameter kProject = {"project", Type::kText,
                                     "The project to read, where no key says it."};
constexpr std::array kListQuery = {
    QueryParameter{"agent", Type::kText, "Whose threads; required."},
    kProject,
    QueryParameter{"cursor", Type::kInteger,
                   "Only threads whose last message came before this; default 0 = all."},
    QueryParameter{"limit", Type::kInteger, "Threads at most; default 50, highest 1000."},
};
constexpr std::array kThreadQuery = {
    kProject,
    QueryParameter{"cursor", Type::kInteger, "Only what came after this; default 0."},
    QueryParameter{"limit", Type::kInteger,
                   "Messages at most; default and highest 1000. Says \"more\":true if it cut."},
    QueryParameter{
        "max_bytes", Type::kInteger,
        "End the page before its messages are longer than this; it then says \"more\":true."},
};

constexpr std::array kFailures = {kCursorAhead};
constexpr std::array kListFailures = {
    Failure{409,
            "`cursor_ahead` with `newest`: the cursor is beyond the end of the log; "
            "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kGet,
          .path = "/api/threads",
          .handler = GetThreads,
          .summary = "The threads that an agent takes part in, newest first.",
          .project = ProjectFrom::kQuery,
          .answer_schema = ThreadListSchema,
          .query = kListQuery,
          .failures = kListFailures},
    Route{.method = Method::kGet,
          .path = "/api/threads/{id...}",
          .handler = GetThread,
          .summary = "The messages of a thread, oldest first.",
          .project = ProjectFrom::kQuery,
          .answer_schema = ThreadSchema,
          .query = kThreadQuery,
          .failures = kFailures},
};

}  // namespace

std::span<const Route> ThreadRoutes() { return kRoutes; }

}  // namespace interlock::api
