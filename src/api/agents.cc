#include "service/agents.h"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/agent_page.h"
#include "api/app.h"
#include "api/body.h"
#include "api/routes.h"
#include "base/limited_log.h"
#include "base/limits.h"
#include "base/log.h"
#include "domain/agent.h"
#include "domain/text.h"
#include "json/object_text.h"
#include "json/schema.h"

namespace interlock::api {
namespace {

using Answer = boost::asio::awaitable<Result<Response>>;
using service::AgentRef;
using Texts = std::vector<std::string>;

constexpr std::size_t kListBytesMax = Limits().page_bytes_max;

// The agent of the path; in a write, the one in whose name it acts.
AgentRef RefOf(const Request& request) {
  AgentRef ref = {.id = request.actor.empty() ? request.Param("id") : request.actor,
                  .project = request.project};
  if (request.caller.mode == auth::Caller::Mode::kKey) ref.holds_in = request.caller.project;
  return ref;
}

// Coming and going.

struct RegisterBody {
  std::optional<std::string> name;
  std::optional<std::string> session_id;
  std::optional<std::string> project;  // the dispatcher's to look at
  std::optional<domain::Capabilities> capabilities;
  std::optional<domain::Metadata> metadata;
  std::optional<std::string> status;
};
IL_JSON_FIELDS(RegisterBody, name, session_id, project, capabilities, metadata, status)

json::Value RegisteredSchema() {
  return json::ObjectSchema({{"agent_id", json::StringSchema()},
                             {"session_id", json::StringSchema()},
                             {"name", json::StringSchema()},
                             {"token", json::StringSchema()},
                             {"cursor", json::IntegerSchema()},
                             {"log_id", json::StringSchema()}});
}

// The token that came with the request. To one who registers again it also proves a session whose
// agent has deregistered, though it is good for nothing else any more.
Secret ShownToken(const Request& request) {
  return Secret(std::string(domain::Trim(request.sent.headers.Find("X-Agent-Token").value_or(""))));
}

Answer PostAgent(App& app, Request& request) {
  IL_CO_TRY(RegisterBody body, DecodeBody<RegisterBody>(request));
  service::Agents::Registration registration = {
      .project = request.project.value_or(""),
      .name = std::move(body.name).value_or(""),
      .session_id = std::move(body.session_id).value_or(""),
      .capabilities = std::move(body.capabilities),
      .metadata = std::move(body.metadata),
      .status = std::move(body.status).value_or(""),
      .shown_token = ShownToken(request),
      .proof = app.access.require_agent_token ? domain::SessionProof::kToken
                                              : domain::SessionProof::kAge};
  const bool nowhere = registration.project.empty();
  IL_CO_TRY(const auto made, co_await app.agents.Register(std::move(registration)));
  app.events.Info(
      "agent registered",
      {{"agent", made.agent.id}, {"name", made.agent.name}, {"project", made.agent.project}});
  if (nowhere && app.agent_without_project.Take()) {
    app.log.Warn(
        "an agent registered without a project; name one, or it meets no agent that has "
        "one (logged once)",
        {{"agent", made.agent.id}, {"name", made.agent.name}});
  }
  co_return Response::Json(200, json::ObjectText()
                                    .Add("agent_id", made.agent.id)
                                    .Add("session_id", made.agent.session_id)
                                    .Add("name", made.agent.name)
                                    .Add("token", made.token.Reveal())
                                    .Add("cursor", 0)
                                    .Add("log_id", app.log_id)
                                    .Text());
}

Answer DeleteAgent(App& app, Request& request) {
  AgentRef ref = RefOf(request);
  IL_CO_TRY(const auto left, co_await app.agents.Deregister(std::move(ref)));
  app.events.Info("agent left",
                  {{"agent", left.id}, {"name", left.name}, {"project", left.project}});
  Response response;
  response.status = 204;
  co_return response;
}

struct HeartbeatBody {
  std::optional<std::string> focus_state;
  std::optional<std::int64_t> renew_minutes;
};
IL_JSON_FIELDS(HeartbeatBody, focus_state, renew_minutes)

json::Value HeartbeatSchema() { return json::ObjectSchema({{"agent_id", json::StringSchema()}}); }

Answer PostHeartbeat(App& app, Request& request) {
  IL_CO_TRY(HeartbeatBody body, DecodeBody<HeartbeatBody>(request));
  AgentRef ref = RefOf(request);
  service::Agents::Pulse pulse{.focus_state = std::move(body.focus_state).value_or(""),
                               .renew_minutes = body.renew_minutes.value_or(0)};
  IL_CO_TRY(const std::string id, co_await app.agents.Heartbeat(std::move(ref), std::move(pulse)));
  co_return Response::Json(200, json::ObjectText().Add("agent_id", id).Text());
}

// Who is there.

json::Value AgentSchema() {
  return json::ObjectSchema(
      {{"agent_id", json::StringSchema()},
       {"session_id", json::StringSchema()},
       {"name", json::StringSchema()},
       {"project", json::StringSchema()},
       {"capabilities", json::NullableSchema(json::ArraySchema(json::StringSchema()))},
       {"metadata", json::NullableSchema(json::MapSchema(json::StringSchema()))},
       {"status", json::StringSchema()},
       {"last_seen", json::TimeSchema()},
       {"created_at", json::TimeSchema()}});
}

json::Value AgentListSchema() {
  return json::ObjectSchema({{"agents", json::ArraySchema(AgentSchema())},
                             {"more", json::BooleanSchema(), json::Need::kOptional}});
}

// The items of "a, b,,c", trimmed; blank ones do not count.
Texts CommaList(std::string_view text) {
  Texts items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = domain::Trim(text.substr(0, comma));
    if (!item.empty()) items.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

Answer GetAgents(App& app, Request& request) {
  service::Agents::Filter filter = {.project = request.project,
                                    .capabilities = CommaList(request.Query("capability"))};
  const auto page = std::make_shared<AgentPage>(service::AgentJson, kListBytesMax);
  IL_CO_TRY_VOID(co_await app.agents.List(std::move(filter), page));
  co_return Response::Json(200, page->TakeAnswer());
}

Answer GetAgent(App& app, Request& request) {
  AgentRef ref = RefOf(request);
  IL_CO_TRY(const auto agent, co_await app.agents.Get(std::move(ref)));
  co_return Response::Json(200, service::AgentJson(agent));
}

json::Value PresenceSchema() {
  const json::Value text = json::StringSchema();
  json::Value agent = json::ObjectSchema({{"agent_id", text},
                                          {"kind", text},
                                          {"status", text},
                                          {"last_seen", json::TimeSchema()},
                                          {"repo", text},
                                          {"files", json::ArraySchema(text)},
                                          {"objective", text},
                                          {"confidence", text},
                                          {"active_bead_id", text},
                                          {"thread_id", text}});
  return json::ObjectSchema({{"agents", json::ArraySchema(std::move(agent))},
                             {"more", json::BooleanSchema(), json::Need::kOptional}});
}

Answer GetPresence(App& app, Request& request) {
  service::Agents::Filter filter = {
      .project = request.project,
      .repo = std::string(domain::Trim(request.Query("repo"))),
      .active_bead_id = std::string(domain::Trim(request.Query("active_bead_id")))};
  const auto page = std::make_shared<AgentPage>(PresenceJson, kListBytesMax);
  IL_CO_TRY_VOID(co_await app.agents.List(std::move(filter), page));
  co_return Response::Json(200, page->TakeAnswer());
}

// What one is.

struct MetadataBody {
  std::optional<domain::Metadata> metadata;
};
IL_JSON_FIELDS(MetadataBody, metadata)

json::Value MetadataSchema() {
  return json::ObjectSchema({{"metadata", json::MapSchema(json::StringSchema())}});
}

Answer PatchMetadata(App& app, Request& request) {
  IL_CO_TRY(MetadataBody body, DecodeBody<MetadataBody>(request));
  AgentRef ref = RefOf(request);
  domain::Metadata entries = std::move(body.metadata).value_or(domain::Metadata());
  IL_CO_TRY(const auto agent,
            co_await app.agents.MergeMetadata(std::move(ref), std::move(entries)));
  co_return Response::Json(200, service::AgentJson(agent));
}

// Who may write to one.

struct PolicyBody {
  std::optional<std::string> policy;
  std::optional<std::string> live_contact_policy;
};
IL_JSON_FIELDS(PolicyBody, policy, live_contact_policy)

json::Value OnePolicySchema() {
  return json::EnumSchema({"open", "auto", "contacts_only", "block_all"});
}

json::Value PolicyBodySchema() {
  return json::ObjectSchema({{"policy", OnePolicySchema(), json::Need::kOptional},
                             {"live_contact_policy", OnePolicySchema(), json::Need::kOptional}});
}

json::Value PolicySchema() {
  return json::ObjectSchema({{"agent_id", json::StringSchema()},
                             {"policy", OnePolicySchema()},
                             {"live_contact_policy", OnePolicySchema()}});
}

Answer GetPolicy(App& app, Request& request) {
  AgentRef ref = RefOf(request);
  IL_CO_TRY(const auto found, co_await app.agents.PoliciesOf(std::move(ref)));
  co_return Response::Json(200, service::PoliciesJson(found.agent_id, found.policies));
}

Answer SetPolicy(App& app, Request& request) {
  IL_CO_TRY(PolicyBody body, DecodeBody<PolicyBody>(request));
  AgentRef ref = RefOf(request);
  service::Agents::PolicyChange change = {.mail = std::move(body.policy).value_or(""),
                                          .live = std::move(body.live_contact_policy).value_or("")};
  IL_CO_TRY(const auto set, co_await app.agents.SetPolicies(std::move(ref), std::move(change)));
  co_return Response::Json(200, service::PoliciesJson(set.agent_id, set.policies));
}

struct ContactBody {
  std::optional<std::string> contact;
};
IL_JSON_FIELDS(ContactBody, contact)

json::Value ContactBodySchema() { return json::ObjectSchema({{"contact", json::StringSchema()}}); }

json::Value ContactsSchema() {
  return json::ObjectSchema({{"contacts", json::ArraySchema(json::StringSchema())}});
}

Response ContactsAnswer(const Texts& contacts) {
  return Response::Json(200, json::ObjectText().Add("contacts", contacts).Text());
}

Answer GetContacts(App& app, Request& request) {
  AgentRef ref = RefOf(request);
  IL_CO_TRY(const auto contacts, co_await app.agents.ContactsOf(std::move(ref)));
  co_return ContactsAnswer(contacts);
}

Answer PostContact(App& app, Request& request) {
  IL_CO_TRY(ContactBody body, DecodeBody<ContactBody>(request));
  AgentRef ref = RefOf(request);
  std::string contact = std::move(body.contact).value_or("");
  IL_CO_TRY(const auto contacts,
            co_await app.agents.AddContact(std::move(ref), std::move(contact)));
  co_return ContactsAnswer(contacts);
}

Answer DeleteContact(App& app, Request& request) {
  AgentRef ref = RefOf(request);
  std::string contact = request.Param("contact");
  IL_CO_TRY(const auto contacts,
            co_await app.agents.RemoveContact(std::move(ref), std::move(contact)));
  co_return ContactsAnswer(contacts);
}

constexpr QueryParameter kProjectParameter = {
    "project", QueryParameter::Type::kText,
    "Only this project; without it, and without a key, every project."};
constexpr std::array kListQuery = {
    kProjectParameter,
    QueryParameter{"capability", QueryParameter::Type::kText,
                   "Comma-separated; only agents that have at least one of them."},
};
constexpr std::array kPresenceQuery = {
    kProjectParameter,
    QueryParameter{"repo", QueryParameter::Type::kText, "Only agents at work in this repository."},
    QueryParameter{"active_bead_id", QueryParameter::Type::kText,
                   "Only agents at work on this bead."},
};
constexpr std::array kOneQuery = {
    QueryParameter{"project", QueryParameter::Type::kText,
                   "Only an agent of this project; without it, and without a key, of any."},
};
constexpr std::array kOneFailures = {
    Failure{409, "`ambiguous_recipient` with `agent_ids`: several active agents have the name"},
};
constexpr std::array kRegisterFailures = {
    Failure{409, "The session has an agent that was seen within the last five minutes."},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kPost,
          .path = "/api/agents",
          .handler = PostAgent,
          .summary = "Registers an agent, or takes the agent of a session up again.",
          .project = ProjectFrom::kBody,
          .asker = ActorFrom::kNewAgent,
          .body = BodyKind::kJson,
          .body_schema = json::SchemaOf<RegisterBody>,
          .answer_schema = RegisteredSchema,
          .failures = kRegisterFailures},
    Route{.method = Method::kGet,
          .path = "/api/agents",
          .handler = GetAgents,
          .summary = "Lists the agents, the last seen first; at most 10 000.",
          .project = ProjectFrom::kQueryChecked,
          .answer_schema = AgentListSchema,
          .query = kListQuery},
    Route{.method = Method::kGet,
          .path = "/api/agents/presence",
          .handler = GetPresence,
          .summary = "Says who is at work on what, as the agents' metadata has it.",
          .project = ProjectFrom::kQueryChecked,
          .answer_schema = PresenceSchema,
          .query = kPresenceQuery},
    Route{.method = Method::kGet,
          .path = "/api/agents/{id}",
          .handler = GetAgent,
          .summary = "One agent, by its id or its name.",
          .project = ProjectFrom::kQueryChecked,
          .answer_schema = AgentSchema,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kDelete,
          .path = "/api/agents/{id}",
          .handler = DeleteAgent,
          .summary = "Deregisters an agent: it is listed no more, its mail is kept.",
          .project = ProjectFrom::kQueryChecked,
          .actor = ActorFrom::kPathId,
          .success = 204,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kPost,
          .path = "/api/agents/{id}/heartbeat",
          .handler = PostHeartbeat,
          .summary = "Shows that an agent lives and, if it says so, what it does right now.",
          .project = ProjectFrom::kQueryChecked,
          .actor = ActorFrom::kPathId,
          .body = BodyKind::kOptionalJson,
          .body_schema = json::SchemaOf<HeartbeatBody>,
          .answer_schema = HeartbeatSchema,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kPatch,
          .path = "/api/agents/{id}/metadata",
          .handler = PatchMetadata,
          .summary = "Adds entries to an agent's metadata; those it does not name stay.",
          .project = ProjectFrom::kQueryChecked,
          .actor = ActorFrom::kPathId,
          .body = BodyKind::kJson,
          .body_schema = MetadataSchema,
          .answer_schema = AgentSchema,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kGet,
          .path = "/api/agents/{id}/policy",
          .handler = GetPolicy,
          .summary = "Who may write to an agent; of one that is unknown, the defaults.",
          .project = ProjectFrom::kQueryChecked,
          .answer_schema = PolicySchema,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kPost,
          .path = "/api/agents/{id}/policy",
          .handler = SetPolicy,
          .summary = "Sets who may write to an agent: policy, live_contact_policy or both.",
          .project = ProjectFrom::kQueryChecked,
          .actor = ActorFrom::kPathId,
          .body = BodyKind::kJson,
          .body_schema = PolicyBodySchema,
          .answer_schema = PolicySchema,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kPut,
          .path = "/api/agents/{id}/policy",
          .handler = SetPolicy,
          .summary = "The same as POST.",
          .project = ProjectFrom::kQueryChecked,
          .actor = ActorFrom::kPathId,
          .body = BodyKind::kJson,
          .body_schema = PolicyBodySchema,
          .answer_schema = PolicySchema,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kGet,
          .path = "/api/agents/{id}/contacts",
          .handler = GetContacts,
          .summary = "Lists whom an agent lets write to it, whatever its policy but block_all.",
          .project = ProjectFrom::kQueryChecked,
          .answer_schema = ContactsSchema,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kPost,
          .path = "/api/agents/{id}/contacts",
          .handler = PostContact,
          .summary = "Lets another agent write to this one.",
          .project = ProjectFrom::kQueryChecked,
          .actor = ActorFrom::kPathId,
          .body = BodyKind::kJson,
          .body_schema = ContactBodySchema,
          .answer_schema = ContactsSchema,
          .query = kOneQuery,
          .failures = kOneFailures},
    Route{.method = Method::kDelete,
          .path = "/api/agents/{id}/contacts/{contact...}",
          .handler = DeleteContact,
          .summary = "Takes that back.",
          .project = ProjectFrom::kQueryChecked,
          .actor = ActorFrom::kPathId,
          .answer_schema = ContactsSchema,
          .query = kOneQuery,
          .failures = kOneFailures},
};

}  // namespace

std::span<const Route> AgentRoutes() { return kRoutes; }

}  // namespace interlock::api
