#include <array>
#include <memory>
#include <utility>

#include "api/app.h"
#include "api/message_page.h"
#include "api/message_schemas.h"
#include "api/routes.h"
#include "domain/text.h"
#include "service/mailbox.h"

namespace interlock::api {
namespace {

boost::asio::awaitable<Result<Response>> GetTopic(App& app, Request& request) {
  domain::TopicQuery query{.project = request.project.value_or(""),
                           .topic = domain::TopicName(request.Param("topic")),
                           .after = request.QueryCursor("since_cursor"),
                           .limit = LimitFrom(request, 100, 1000)};
  auto page =
      std::make_shared<MessagePage>(MessagePage::Options{.viewer = request.caller.agent,
                                                         .messages_max = query.limit,
                                                         .bytes_max = BytesMaxFrom(request)});
  const domain::Cursor after = query.after;
  IL_CO_TRY_VOID(co_await app.mailbox.ReadTopic(std::move(query), page));
  co_return Response::Json(200, page->TakeAnswer(after));
}

using Type = QueryParameter::Type;
constexpr std::array kQuery = {
    QueryParameter{"since_cursor", Type::kInteger, "Only what came after this; default 0."},
    QueryParameter{"limit", Type::kInteger, "Messages at most; default 100, highest 1000."},
    QueryParameter{
        "max_bytes", Type::kInteger,
        "End the page before its messages are longer than this; it then says \"more\":true."},
};

constexpr std::array kFailures = {kCursorAhead};

constexpr std::array kRoutes = {
    Route{.method = Method::kGet,
          .path = "/api/topics/{project}/{topic...}",
          .handler = GetTopic,
          .summary = "What was sent under a topic of a project, oldest first.",
          .project = ProjectFrom::kPath,
          .answer_schema = MessagePageSchema,
          .query = kQuery,
          .failures = kFailures},
};

}  // namespace

std::span<const Route> TopicRoutes() { return kRoutes; }

}  // namespace interlock::api
