#include "domain/planning.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/app.h"
#include "api/body.h"
#include "api/message_page.h"
#include "api/plan_codec.h"
#include "api/routes.h"
#include "base/limits.h"
#include "json/schema.h"
#include "service/planning.h"

namespace interlock::api {
namespace {

using Answer = boost::asio::awaitable<Result<Response>>;
using domain::InfoOf;
using domain::PlanInfo;
using domain::PlanKind;
using domain::PlanRef;

constexpr char kNotice[] = "X-Intermute-Notice";
constexpr std::int64_t kListedMax = Limits().plans_listed_max;

PlanRef RefOf(const Request& request, PlanKind kind) {
  return {.kind = kind, .project = request.project.value_or(""), .id = request.Param("id")};
}

// One handler per verb, for every kind.

struct WithId {
  std::optional<std::string> id;
};
IL_JSON_FIELDS(WithId, id)

Answer PostPlan(App& app, Request& request, PlanKind kind) {
  IL_CO_TRY(WithId body, DecodeBody<WithId>(request));
  PlanRef ref = {
      .kind = kind, .project = request.project.value_or(""), .id = std::move(body.id).value_or("")};
  IL_CO_TRY(domain::PlanChange change, DecodePlan(kind, *request.json, PlanBody::kWhole));
  IL_CO_TRY(std::string json,
            co_await app.planning.Create(std::move(ref), std::move(change), request.actor));
  co_return Response::Json(201, std::move(json));
}

Answer GetPlans(App& app, Request& request, PlanKind kind) {
  domain::PlanQuery query = {.kind = kind,
                             .project = request.project,
                             .limit = LimitFrom(request, kListedMax, kListedMax),
                             .offset = request.QueryInt("offset", 0)};
  const auto filters = InfoOf(kind).filters;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    std::string wanted = request.Query(filters[i].parameter);
    if (!wanted.empty()) query.filters[i] = std::move(wanted);
  }
  const std::int64_t offset = query.offset;
  IL_CO_TRY(domain::PlanPage page, co_await app.planning.List(std::move(query)));
  Response response = Response::Json(200, std::move(page.json));
  if (page.cut) {
    response.headers.Add(
        kNotice, fmt::format("the page was too long; go on with offset={}", offset + page.count));
  }
  co_return response;
}

Answer GetPlan(App& app, Request& request, PlanKind kind) {
  PlanRef ref = RefOf(request, kind);
  IL_CO_TRY(std::string json, co_await app.planning.Find(std::move(ref)));
  co_return Response::Json(200, std::move(json));
}

// PUT and PATCH, which differ in what an absent field means.
Answer ChangePlan(App& app, Request& request, PlanKind kind, PlanBody as) {
  PlanRef ref = RefOf(request, kind);
  IL_CO_TRY(domain::PlanChange change, DecodePlan(kind, *request.json, as));
  IL_CO_TRY(std::string json,
            co_await app.planning.Update(std::move(ref), std::move(change), request.actor));
  co_return Response::Json(200, std::move(json));
}

Answer DeletePlan(App& app, Request& request, PlanKind kind) {
  PlanRef ref = RefOf(request, kind);
  IL_CO_TRY_VOID(co_await app.planning.Remove(std::move(ref), request.actor));
  Response response;
  response.status = 204;
  co_return response;
}

// What a row of the table can point to.
template <PlanKind kKind>
struct Of {
  static Answer Post(App& app, Request& request) { return PostPlan(app, request, kKind); }
  static Answer List(App& app, Request& request) { return GetPlans(app, request, kKind); }
  static Answer Get(App& app, Request& request) { return GetPlan(app, request, kKind); }
  static Answer Put(App& app, Request& request) {
    return ChangePlan(app, request, kKind, PlanBody::kWhole);
  }
  static Answer Patch(App& app, Request& request) {
    return ChangePlan(app, request, kKind, PlanBody::kPatch);
  }
  static Answer Delete(App& app, Request& request) { return DeletePlan(app, request, kKind); }
  static json::Value Schema() { return PlanSchema(kKind); }
  static json::Value ListSchema() { return json::ArraySchema(PlanSchema(kKind)); }
  static json::Value NewSchema() { return NewPlanSchema(kKind); }
  static json::Value PutSchema() { return PlanChangeSchema(kKind, PlanBody::kWhole); }
  static json::Value PatchSchema() { return PlanChangeSchema(kKind, PlanBody::kPatch); }
};

// Actions.

struct AssignBody {
  std::optional<std::string> agent;
};
IL_JSON_FIELDS(AssignBody, agent)

Answer PostAssign(App& app, Request& request) {
  IL_CO_TRY(AssignBody body, DecodeBody<AssignBody>(request));
  PlanRef task = RefOf(request, PlanKind::kTask);
  std::string agent = std::move(body.agent).value_or("");
  IL_CO_TRY(std::string json,
            co_await app.planning.Assign(std::move(task), std::move(agent), request.actor));
  co_return Response::Json(200, std::move(json));
}

struct ClaimBody {
  std::optional<std::string> agent;
  std::optional<std::int64_t> version;
};
IL_JSON_FIELDS(ClaimBody, agent, version)

Answer PostClaim(App& app, Request& request) {
  IL_CO_TRY(ClaimBody body, DecodeBody<ClaimBody>(request));
  PlanRef task = RefOf(request, PlanKind::kTask);
  IL_CO_TRY(std::string json,
            co_await app.planning.Claim(std::move(task), request.actor, body.version));
  co_return Response::Json(200, std::move(json));
}

struct SpecBody {
  std::string spec_id;
};
IL_JSON_FIELDS(SpecBody, spec_id)

Answer PostInsightLink(App& app, Request& request) {
  IL_CO_TRY(SpecBody body, DecodeBody<SpecBody>(request));
  PlanRef insight = RefOf(request, PlanKind::kInsight);
  IL_CO_TRY(const bool there, co_await app.planning.LinkInsight(
                                  std::move(insight), std::move(body.spec_id), request.actor));
  Response response;
  // Clients count on a 200 here; the header tells who looks.
  if (!there) response.headers.Add(kNotice, "nothing was linked: there is no such insight");
  co_return response;
}

struct FeatureBody {
  std::string feature_id;
};
IL_JSON_FIELDS(FeatureBody, feature_id)

domain::CujLink LinkOf(const Request& request, FeatureBody body) {
  return {.project = request.project.value_or(""),
          .cuj_id = request.Param("id"),
          .feature_id = std::move(body.feature_id)};
}

Answer PostCujLink(App& app, Request& request) {
  IL_CO_TRY(FeatureBody body, DecodeBody<FeatureBody>(request));
  domain::CujLink link = LinkOf(request, std::move(body));
  IL_CO_TRY_VOID(co_await app.planning.LinkCuj(std::move(link), request.actor));
  co_return Response{};
}

Answer PostCujUnlink(App& app, Request& request) {
  IL_CO_TRY(FeatureBody body, DecodeBody<FeatureBody>(request));
  domain::CujLink link = LinkOf(request, std::move(body));
  IL_CO_TRY_VOID(co_await app.planning.UnlinkCuj(std::move(link), request.actor));
  co_return Response{};
}

Answer GetCujLinks(App& app, Request& request) {
  PlanRef cuj = RefOf(request, PlanKind::kCuj);
  const std::int64_t limit = LimitFrom(request, kListedMax, kListedMax);
  IL_CO_TRY(std::string json,
            co_await app.planning.CujLinks(std::move(cuj), limit, request.QueryInt("offset", 0)));
  co_return Response::Json(200, std::move(json));
}

json::Value CujLinksSchema() {
  const json::Value text = json::StringSchema();
  return json::ArraySchema(json::ObjectSchema({{"cuj_id", text},
                                               {"feature_id", text},
                                               {"project", text},
                                               {"linked_at", json::TimeSchema()}}));
}

// The rows.

using Type = QueryParameter::Type;
constexpr QueryParameter kOneProject = {"project", Type::kText,
                                        "Its project, where no key says it."};
constexpr QueryParameter kLimit = {"limit", Type::kInteger,
                                   "How many at most; default and highest 1 000."};
constexpr QueryParameter kOffset = {"offset", Type::kInteger, "How many to leave out first."};
constexpr std::array kItemQuery = {kOneProject};
constexpr std::array kClaimQuery = {
    kOneProject,
    QueryParameter{"agent", Type::kText,
                   "The agent, if the body names none; without either it is X-Agent-ID."}};
constexpr std::array kLinksQuery = {kOneProject, kLimit, kOffset};
constexpr std::array kPostFailures = {
    Failure{409, "`already_exists`: there is one of this id in the project."}};
constexpr std::array kChangeFailures = {
    Failure{409, "`version_conflict`: it has another version by now, which `version` names."}};

constexpr std::array kNameFailures = {
    Failure{409, "`ambiguous_recipient` with `agent_ids`: several active agents have the name."}};
constexpr std::array kClaimFailures = {
    Failure{409,
            "`task_claimed`: another agent has it, `holder`, by name `holder_name`; `task_done`; "
            "`version_conflict`: it has another version, which `version` names; "
            "`ambiguous_recipient` with `agent_ids`: several active agents have the name."}};

// The table, with the texts that it points to.
class Rows {
 public:
  Rows() {
    Add<PlanKind::kSpec>("/api/specs", "/api/specs/{id...}");
    Add<PlanKind::kEpic>("/api/epics", "/api/epics/{id...}");
    Add<PlanKind::kStory>("/api/stories", "/api/stories/{id...}");
    Add<PlanKind::kTask>("/api/tasks", "/api/tasks/{id}");
    Add<PlanKind::kInsight>("/api/insights", "/api/insights/{id}");
    Add<PlanKind::kSession>("/api/sessions", "/api/sessions/{id...}");
    Add<PlanKind::kCuj>("/api/cujs", "/api/cujs/{id}");
    AddAction("/api/tasks/{id}/assign", PostAssign, "Gives a task to an agent and lets it run.",
              json::SchemaOf<AssignBody>);
    routes_.back().answer_schema = Of<PlanKind::kTask>::Schema;
    routes_.back().failures = kNameFailures;
    AddAction("/api/tasks/{id}/claim", PostClaim, "An agent takes a task that nobody has.",
              json::SchemaOf<ClaimBody>);
    routes_.back().actor = ActorFrom::kRecipient;
    routes_.back().body = BodyKind::kOptionalJson;  // the query or the header may name the agent
    routes_.back().answer_schema = Of<PlanKind::kTask>::Schema;
    routes_.back().query = kClaimQuery;
    routes_.back().failures = kClaimFailures;
    AddAction("/api/insights/{id}/link", PostInsightLink,
              "Lets an insight belong to a spec; with an empty one, to none.",
              json::SchemaOf<SpecBody>);
    AddAction("/api/cujs/{id}/link", PostCujLink, "A critical user journey touches a feature.",
              json::SchemaOf<FeatureBody>);
    AddAction("/api/cujs/{id}/unlink", PostCujUnlink, "It no longer does.",
              json::SchemaOf<FeatureBody>);
    routes_.push_back({.method = Method::kGet,
                       .path = "/api/cujs/{id}/links",
                       .handler = GetCujLinks,
                       .summary = "The features that a critical user journey touches.",
                       .project = ProjectFrom::kQuery,
                       .answer_schema = CujLinksSchema,
                       .query = kLinksQuery});
  }

  std::span<const Route> routes() const { return routes_; }

 private:
  // The operations that every kind has; insights have neither PUT nor PATCH.
  template <PlanKind kKind>
  void Add(std::string_view all, std::string_view one) {
    const PlanInfo& info = InfoOf(kKind);
    routes_.push_back({.method = Method::kPost,
                       .path = all,
                       .handler = Of<kKind>::Post,
                       .summary = Summary("Adds one to the {}.", info),
                       .project = ProjectFrom::kBody,
                       .actor = ActorFrom::kAuthor,
                       .body = BodyKind::kJson,
                       .success = 201,
                       .body_schema = Of<kKind>::NewSchema,
                       .answer_schema = Of<kKind>::Schema,
                       .failures = kPostFailures});
    routes_.push_back({.method = Method::kGet,
                       .path = all,
                       .handler = Of<kKind>::List,
                       .summary = Summary("Lists the {}.", info),
                       .project = ProjectFrom::kQuery,
                       .answer_schema = Of<kKind>::ListSchema,
                       .query = ListQuery(info)});
    if (kKind == PlanKind::kTask) routes_.back().failures = kNameFailures;
    routes_.push_back({.method = Method::kGet,
                       .path = one,
                       .handler = Of<kKind>::Get,
                       .summary = Summary("One of the {}.", info),
                       .project = ProjectFrom::kQuery,
                       .answer_schema = Of<kKind>::Schema,
                       .query = kItemQuery});
    if (kKind != PlanKind::kInsight) AddChanges<kKind>(one);
    routes_.push_back({.method = Method::kDelete,
                       .path = one,
                       .handler = Of<kKind>::Delete,
                       .summary = Summary("Removes one of the {}, if it is there.", info),
                       .project = ProjectFrom::kQuery,
                       .actor = ActorFrom::kAuthor,
                       .success = 204,
                       .query = kItemQuery});
  }

  template <PlanKind kKind>
  void AddChanges(std::string_view one) {
    const PlanInfo& info = InfoOf(kKind);
    Route route = {
        .method = Method::kPut,
        .path = one,
        .handler = Of<kKind>::Put,
        .summary = Summary("Replaces one of the {}: an absent optional field is emptied.", info),
        .project = ProjectFrom::kBody,
        .actor = ActorFrom::kAuthor,
        .body = BodyKind::kJson,
        .body_schema = Of<kKind>::PutSchema,
        .answer_schema = Of<kKind>::Schema};
    if (info.locking == PlanInfo::Locking::kVersion) route.failures = kChangeFailures;
    routes_.push_back(route);
    route.method = Method::kPatch;
    route.handler = Of<kKind>::Patch;
    route.summary = Summary("Changes the named fields of one of the {} (RFC 7396).", info);
    route.body_schema = Of<kKind>::PatchSchema;
    routes_.push_back(route);
  }

  std::string_view Summary(fmt::format_string<const std::string_view&> text, const PlanInfo& info) {
    return summaries_.emplace_back(fmt::format(text, info.plural));
  }

  void AddAction(std::string_view path, Handler handler, std::string_view summary,
                 SchemaFn body_schema) {
    routes_.push_back({.method = Method::kPost,
                       .path = path,
                       .handler = handler,
                       .summary = summary,
                       .project = ProjectFrom::kQuery,
                       .actor = ActorFrom::kAuthor,
                       .body = BodyKind::kJson,
                       .body_schema = body_schema,
                       .query = kItemQuery});
  }

  std::span<const QueryParameter> ListQuery(const PlanInfo& info) {
    std::vector<QueryParameter>& query = queries_.emplace_back();
    query.push_back({"project", Type::kText,
                     "Only this project's; without it, and without a key, those of all."});
    for (const domain::PlanFilter& filter : info.filters) {
      query.push_back({filter.parameter, Type::kText, filter.meaning});
    }
    query.push_back(kLimit);
    query.push_back(kOffset);
    return query;
  }

  std::vector<Route> routes_;
  std::deque<std::string> summaries_;
  std::deque<std::vector<QueryParameter>> queries_;
};

}  // namespace

std::span<const Route> PlanningRoutes() {
  static const Rows kRows;
  return kRows.routes();
}

}  // namespace interlock::api
