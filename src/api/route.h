#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <span>
#include <string_view>

#include "api/request.h"
#include "base/result.h"
#include "json/value_fwd.h"

namespace interlock::api {

struct App;

// Runs on the connection's thread; may suspend, must not block. An Error becomes the answer by the
// one table of base/error.h. `request` is the connection's, which keeps it until this has ended: it
// is too large to be moved about.
using Handler = boost::asio::awaitable<Result<Response>> (*)(App& app, Request& request);

// Who may call at all.
enum class Access : std::uint8_t {
  kAnyone,      // no key, no check: /health
  kKeyOrLocal,  // a key, or a request from this machine where the keys file allows it
};

// Which project a request works in. The dispatcher finds it, holds it against the caller's key and
// puts it into Request::project before the handler runs; no handler looks at `project` itself, so
// none can forget the check. domain::ProjectName() says what counts of a name.
enum class ProjectFrom : std::uint8_t {
  kNone,          // none: it is about the server
  kKey,           // the key's; in local mode nothing, which is every project
  kQuery,         // the key's, whatever `project` says; in local mode `project`, blank = nothing
  kQueryChecked,  // as kQuery, but with a key another `project` is 403
  kBody,          // the body's `project`; with a key blank means the key's, and another one is 403
  kPath,          // the path's {project}; with a key another one is 403
};

// The agent in whose name a request acts. The dispatcher finds it, puts it into Request::actor and,
// with --require-agent-token, refuses (403) who has not shown that agent's token.
enum class ActorFrom : std::uint8_t {
  kNobody,       // reads, and writes that name no agent
  kBodyFrom,     // the body's `from`
  kBodyAgentId,  // the body's `agent_id`
  kPathId,       // the path's {id}
  kCaller,       // the caller's own: X-Agent-ID
  kRecipient,    // the body's `agent`, else the query's, else the caller's own; trimmed
  kAuthor,       // the caller's own if it names one: what is written tells by whom, or by nobody
  kPathAgent,    // the path's {agent}; trimmed
  kQueryAgent,   // the query's `agent`; trimmed
  kNewAgent,     // one that is not there yet, whoever the caller says it is
};

// What the request's body must be. The dispatcher parses it into Request::json.
enum class BodyKind : std::uint8_t {
  kNone,          // not looked at
  kJson,          // one JSON object; empty or broken is 400
  kOptionalJson,  // the same, but empty and null count as {}
};

// A parameter of the query. The dispatcher refuses a value of another type (400) before the handler
// runs; handlers read it with Request::Query() and its like.
struct QueryParameter {
  enum class Type : std::uint8_t {
    kText,
    kInteger,  // a whole number from 0 to 2^63 - 1; blank counts as absent
    kBoolean,  // see Request::QueryBool(); blank counts as absent
  };
  std::string_view name;
  Type type;
  std::string_view meaning;
};

// A status, besides those that every route can answer (400, 401, 403, 404, 405, 413, 5xx), and why.
struct Failure {
  int status;
  std::string_view meaning;
};

// A failure of every read that takes a cursor.
inline constexpr Failure kCursorAhead = {
    409,
    "`cursor_ahead`: the cursor is beyond the end of the log, which `newest` names; the database "
    "is another one or was restored."};

// Makes the JSON Schema of a body: json::SchemaOf<T> of json/schema.h.
using SchemaFn = json::Value (*)();

// One operation of the server. What is not in the table does not exist: dispatch, the checks of who
// may call, /openapi.json, the metrics and the documentation are made from the same rows.
struct Route {
  Method method;
  // Segments are literal, "{name}" (one segment), or "{name...}" (one or more, slashes included;
  // at most once per template). "/api/inbox/pokes/{id...}/ack"
  std::string_view path;
  Handler handler;
  std::string_view summary;  // one line, for people

  Access access = Access::kKeyOrLocal;
  ProjectFrom project = ProjectFrom::kNone;
  ActorFrom actor = ActorFrom::kNobody;
  // The agent in whose name a row without an actor is asked. It needs no proof; see
  // http/speaker.h.
  ActorFrom asker = ActorFrom::kNobody;
  BodyKind body = BodyKind::kNone;
  std::string_view bad_json = {};  // what clients of this route know as the error of a broken body

  int success = 200;
  SchemaFn body_schema = nullptr;     // of the request; null = it takes none
  SchemaFn answer_schema = nullptr;   // of the success; null = it has no JSON body
  std::string_view answer_type = {};  // of a success whose body is not JSON: "text/plain"
  std::span<const QueryParameter> query = {};
  std::span<const Failure> failures = {};
};

}  // namespace interlock::api
