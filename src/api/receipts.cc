#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "api/app.h"
#include "api/message_schemas.h"
#include "api/routes.h"
#include "base/check.h"
#include "service/mailbox.h"

namespace interlock::api {
namespace {

using boost::asio::awaitable;
using domain::ReceiptKind;
using domain::ReceiptOutcome;

// Clients that cannot name the recipient count on a 200 here; the header tells who looks.
Response Unmarked(std::string_view why) {
  Response response;
  response.headers.Add("X-Intermute-Notice", "nothing was marked: " + std::string(why) +
                                                 "; send {\"agent\":id} or X-Agent-ID");
  return response;
}

Result<Response> AnswerOf(ReceiptOutcome outcome, const domain::Receipt& receipt) {
  switch (outcome) {
    case ReceiptOutcome::kRecorded:
    case ReceiptOutcome::kAlreadyThere:
      return Response{};
    case ReceiptOutcome::kNobodyNamed:
      return Unmarked("the request does not say who");
    case ReceiptOutcome::kNoSuchMessage:
      return Error(Errc::kNotFound, "There is no message " + receipt.message_id +
                                        " in the project \"" + receipt.project +
                                        "\"; check its id, and name its project with ?project=.");
    case ReceiptOutcome::kNotARecipient:
      return Unmarked("the agent is no recipient of the message");
  }
  IL_CHECK(false);
}

awaitable<Result<Response>> Record(App& app, Request& request, ReceiptKind kind) {
  const domain::Receipt receipt{.kind = kind,
                                .project = request.project.value_or(""),
                                .message_id = request.Param("id"),
                                .agent = request.actor,
                                .at = {}};
  IL_CO_TRY(const ReceiptOutcome outcome, co_await app.mailbox.Record(receipt));
  co_return AnswerOf(outcome, receipt);
}

awaitable<Result<Response>> PostAck(App& app, Request& request) {
  return Record(app, request, ReceiptKind::kAck);
}

awaitable<Result<Response>> PostRead(App& app, Request& request) {
  return Record(app, request, ReceiptKind::kRead);
}

using Type = QueryParameter::Type;
constexpr std::array kQuery = {
    QueryParameter{"project", Type::kText, "The message's project, where no key says it."},
    QueryParameter{"agent", Type::kText,
                   "The recipient, if the body names none; else X-Agent-ID, else the only one."},
};
constexpr std::array kFailures = {
    Failure{404, "There is no such message in the project."},
    Failure{409, "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
};

constexpr Route RowOf(std::string_view path, Handler handler, std::string_view summary) {
  return Route{.method = Method::kPost,
               .path = path,
               .handler = handler,
               .summary = summary,
               .project = ProjectFrom::kQuery,
               .actor = ActorFrom::kRecipient,
               .body = BodyKind::kOptionalJson,
               .body_schema = ReceiptBodySchema,
               .query = kQuery,
               .failures = kFailures};
}

constexpr std::array kRoutes = {
    RowOf("/api/messages/{id...}/ack", PostAck,
          "A recipient acknowledges a message. The first time stays."),
    RowOf("/api/messages/{id...}/read", PostRead,
          "A recipient has read a message. The first time stays."),
};

}  // namespace

std::span<const Route> ReceiptRoutes() { return kRoutes; }

}  // namespace interlock::api
