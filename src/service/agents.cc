#include "service/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "auth/sha256.h"
#include "domain/event.h"
#include "domain/names.h"
#include "domain/text.h"
#include "service/address.h"
#include "service/await.h"
#include "service/grant.h"
#include "service/storage.h"
#include "store/agents.h"
#include "store/contacts.h"
#include "store/events.h"
#include "store/reservations.h"

namespace interlock::service {
namespace {

using boost::asio::awaitable;
namespace event_type = domain::event_type;
using ContactIds = std::vector<std::string>;

db::Blob Bytes(const auth::Digest& digest) { return std::as_bytes(std::span(digest)); }

// The limits of what an agent says of itself.

Result<void> CheckText(std::string_view field, std::string_view text, std::size_t bytes_max) {
  if (domain::HasNul(text)) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} holds a NUL byte; remove \\u0000 from it", field))
        .WithDetail("field", std::string(field));
  }
  if (text.size() <= bytes_max) return {};
  return Error(Errc::kInvalidArgument,
               fmt::format("{} has {} bytes; send at most {}", field, text.size(), bytes_max))
      .WithDetail("field", std::string(field));
}

Result<void> CheckCount(std::string_view field, std::size_t count, std::size_t max) {
  if (count <= max) return {};
  return Error(Errc::kInvalidArgument,
               fmt::format("{} has {} entries; send at most {}", field, count, max))
      .WithDetail("field", std::string(field));
}

Result<void> CheckMetadata(const domain::Metadata& metadata, const Limits& limits) {
  IL_TRY_VOID(CheckCount("metadata", metadata.size(), limits.metadata_entries_max));
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata) bytes += key.size() + value.size();
  if (bytes <= limits.metadata_bytes_max) return {};
  return Error(Errc::kInvalidArgument,
               fmt::format("metadata has {} bytes of keys and values; keep at most {}", bytes,
                           limits.metadata_bytes_max))
      .WithDetail("field", "metadata");
}

// The start of what somebody sent, short enough for an answer, cut between characters.
std::string Excerpt(std::string_view text) {
  constexpr std::size_t kBytesMax = 100;
  if (text.size() <= kBytesMax) return std::string(text);
  std::size_t end = kBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "…";
}

Error InvalidSession(std::string_view session_id) {
  return Error(Errc::kInvalidArgument,
               fmt::format("session_id \"{}\" is no UUID: send 8-4-4-4-12 hexadecimal digits, or "
                           "leave it out and one is made",
                           Excerpt(session_id)))
      .WithSlug("invalid session_id: must be a valid UUID")
      .WithDetail("code", "invalid_session_id");
}

Error SessionInUse(domain::SessionProof proof) {
  const bool by_age = proof == domain::SessionProof::kAge;
  return Error(Errc::kConflict,
               by_age ? "an agent of this session was seen within the last five minutes, or still "
                        "holds reservations: send its token as X-Agent-Token, deregister it, wait, "
                        "or register without session_id"
                      : "the session has an agent, and this server gives it to nobody without that "
                        "agent's token (--require-agent-token): send it as X-Agent-Token, or "
                        "register without session_id")
      .WithSlug("session_id is in use by an active agent")
      .WithDetail("code", "active_session_conflict");
}

Error NoSuchAgent(std::string_view id) {
  return {Errc::kNotFound,
          fmt::format("there is no agent {} here: register it with POST /api/agents", Excerpt(id))};
}

bool InProject(const domain::Agent& agent, const AgentRef& ref) {
  return !ref.project || *ref.project == agent.project;
}

// The agent that `ref` means, living or not; nothing when it means nobody.
Result<std::optional<domain::Agent>> FindRegistered(db::Connection& connection, AddressBook& book,
                                                    const AgentRef& ref, Timestamp now) {
  IL_TRY(std::optional<domain::Agent> agent, store::FindAgent(connection, ref.id));
  if (!agent) {
    IL_TRY(const auto named, book.FindNamed(connection, ref.project, ref.id, now));
    if (named) {
      IL_TRY(agent, store::FindAgent(connection, named->id));
    }
  }
  if (agent && !InProject(*agent, ref)) agent.reset();
  return agent;
}

// The living agent that `ref` means; kNotFound.
Result<domain::Agent> Living(db::Connection& connection, AddressBook& book, const AgentRef& ref,
                             Timestamp now) {
  IL_TRY(std::optional<domain::Agent> agent, FindRegistered(connection, book, ref, now));
  if (!agent || agent->deregistered_at) return NoSuchAgent(ref.id);
  return *std::move(agent);
}

// A registration with all that is made outside the transaction, which may run several times.
struct Draft {
  domain::Agent agent;                      // with an id and times for the case that it is new
  std::array<std::uint64_t, 8> names = {};  // to choose from when it brings no name
  auth::Digest token_hash = {};
  std::optional<auth::Digest> shown_token_hash = {};
  domain::SessionProof proof = {};
};

// Numbers as they come from one source of bytes.
std::array<std::uint64_t, 8> DrawNames(RandomSource& random) {
  std::array<std::uint8_t, 32> bytes = {};
  random.Fill(bytes);
  std::array<std::uint64_t, 8> names = {};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    names[i / 4] = (names[i / 4] << 8U | bytes[i]) % domain::kPlainNames;
  }
  return names;
}

// A name that no living agent of the project has: one of those drawn or, in a project so full that
// all of them are taken, one of those with the lowest number behind it that is free.
Result<std::string> FreeName(db::Connection& connection, const Draft& draft) {
  for (std::uint64_t round = 0;; ++round) {
    for (const std::uint64_t drawn : draft.names) {
      std::string name = domain::GeneratedName(drawn + (round * domain::kPlainNames));
      IL_TRY(const bool taken, store::IsNameTaken(connection, draft.agent.project, name));
      if (!taken) return name;
    }
  }
}

// The event of an agent that comes or goes is written.
Result<void> TellNames(db::Transaction& tx, const domain::Agent& agent, InboxNames& names) {
  IL_TRY(const domain::Cursor cursor, store::NewestCursor(tx.connection()));
  names.Changed(agent.project, agent.id, agent.name, cursor);
  return {};
}

// Whether the agent, which is registered, is the only one that its name means.
Result<bool> HasNameAlone(db::Connection& connection, const domain::Agent& agent) {
  IL_TRY(const store::TextUse use, store::FindTextUse(connection, agent.name));
  if (use.is_id) return false;
  IL_TRY(const auto named, store::FindByName(connection, agent.project, agent.name, 2));
  return named.size() == 1;
}

struct Joined {
  domain::Agent agent;
  bool took_holds = false;  // that were under its bare name
};
Result<Joined> WriteRegistration(db::Transaction& tx, const Draft& draft,
                                 const domain::Sightings& sightings, InboxNames& names) {
  domain::Agent agent = draft.agent;
  std::optional<db::Blob> shown;
  if (draft.shown_token_hash) shown = Bytes(*draft.shown_token_hash);
  IL_TRY(const auto owner,
         store::FindSession(tx.connection(), agent.project, agent.session_id, shown));
  if (owner) {
    const domain::Agent& before = owner->agent;
    IL_TRY(const bool holds_files,
           store::HoldsAnything(tx.connection(), before.id, agent.last_seen));
    const Timestamp seen = sightings.Newest(before.id, before.last_seen);
    const domain::SessionFacts facts = {.last_seen = seen,
                                        .deregistered = before.deregistered_at.has_value(),
                                        .holds_files = holds_files,
                                        .token_shown = owner->token_matches,
                                        .proof = draft.proof};
    if (!domain::MayTakeOver(facts, agent.last_seen)) return SessionInUse(draft.proof);
    agent.id = before.id;
    agent.created_at = before.created_at;
    agent.policies = before.policies;
  }
  if (agent.name.empty()) {
    IL_TRY(agent.name, FreeName(tx.connection(), draft));
  }
  const auto put = owner ? store::ReplaceAgent : store::InsertAgent;
  IL_TRY_VOID(put(tx, agent, Bytes(draft.token_hash)));
  IL_TRY_VOID(store::AppendAgentEvent(tx, event_type::kAgentRegistered, agent, agent.last_seen,
                                      store::AgentJson(agent)));
  IL_TRY_VOID(TellNames(tx, agent, names));
  IL_TRY(const bool alone, HasNameAlone(tx.connection(), agent));
  if (!alone) return Joined{.agent = std::move(agent)};
  IL_TRY(const auto taken, TakeHeldUnderName(tx, agent, agent.last_seen));
  return Joined{.agent = std::move(agent), .took_holds = !taken.empty()};
}

bool Wanted(const domain::Agent& agent, const Agents::Filter& filter) {
  if (!filter.capabilities.empty() && !domain::HasAnyCapability(agent, filter.capabilities)) {
    return false;
  }
  if (!filter.repo.empty() && domain::MetadataText(agent, "repo") != filter.repo) return false;
  return filter.active_bead_id.empty() ||
         domain::MetadataText(agent, "active_bead_id") == filter.active_bead_id;
}

// The keys of `entries` that `metadata` lacks, or has with another value.
std::vector<std::string> NewIn(const domain::Metadata& entries, const domain::Metadata& metadata) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : entries) {
    const auto old = metadata.find(key);
    if (old == metadata.end() || old->second != value) keys.push_back(key);
  }
  return keys;
}

// What a name of a policy says; an empty one keeps `now`.
Result<domain::ContactPolicy> ReadPolicy(std::string_view field, std::string_view name,
                                         domain::ContactPolicy now) {
  if (name.empty()) return now;
  if (const auto policy = domain::ParseContactPolicy(name)) return *policy;
  const bool live = field == "live_contact_policy";
  return Error(Errc::kInvalidArgument,
               fmt::format("{} is not one of open, auto, contacts_only, block_all", field))
      .WithSlug(live
                    ? "invalid live_contact_policy: must be open, auto, contacts_only, or block_all"
                    : "invalid policy: must be open, auto, contacts_only, or block_all");
}

Result<void> AppendContactEvent(db::Transaction& tx, std::string_view type,
                                const domain::Agent& agent, const std::string& contact,
                                Timestamp at) {
  return store::AppendAgentEvent(tx, type, agent, at, store::ContactJson(contact));
}

// The contact of a request, trimmed.
Result<std::string> ReadContact(std::string_view text, const Limits& limits) {
  std::string contact(domain::Trim(text));
  if (contact.empty()) {
    return Error(Errc::kInvalidArgument, "contact is blank: send the id of an agent")
        .WithDetail("field", "contact");
  }
  IL_TRY_VOID(CheckText("contact", contact, limits.agent_id_bytes_max));
  return contact;
}

}  // namespace

awaitable<Result<Agents::Registered>> Agents::Register(Registration registration) {
  const std::string_view session = domain::Trim(registration.session_id);
  if (!session.empty() && !domain::IsSessionId(session)) co_return InvalidSession(session);
  IL_CO_TRY_VOID(CheckText("name", registration.name, limits_.agent_text_bytes_max));
  IL_CO_TRY_VOID(CheckText("status", registration.status, limits_.agent_text_bytes_max));
  IL_CO_TRY_VOID(CheckText("project", registration.project, limits_.project_bytes_max));
  if (registration.capabilities) {
    const domain::Capabilities& all = *registration.capabilities;
    IL_CO_TRY_VOID(CheckCount("capabilities", all.size(), limits_.capabilities_max));
    for (const std::string& one : all) {
      IL_CO_TRY_VOID(CheckText("capabilities", one, limits_.capability_bytes_max));
    }
  }
  if (registration.metadata) IL_CO_TRY_VOID(CheckMetadata(*registration.metadata, limits_));

  std::array<std::uint8_t, 24> random = {};
  random_.Fill(random);
  Secret token(Base64Url(random));
  const Timestamp now = clock_.Now();
  Draft draft;
  draft.agent = {.id = uuids_.Next().Text(),
                 .project = std::move(registration.project),
                 .session_id = session.empty() ? uuids_.Next().Text() : std::string(session),
                 .name = std::string(domain::Trim(registration.name)),
                 .capabilities = std::move(registration.capabilities),
                 .metadata = std::move(registration.metadata),
                 .status = std::move(registration.status),
                 .created_at = now,
                 .last_seen = now};
  draft.names = DrawNames(random_);
  draft.proof = registration.proof;
  draft.token_hash = auth::Sha256(token.Reveal());
  if (!registration.shown_token.empty()) {
    draft.shown_token_hash = auth::Sha256(registration.shown_token.Reveal());
  }
  auto write = [this, draft = std::move(draft)](db::Transaction& tx) {
    return WriteRegistration(tx, draft, storage_.signs(), storage_.inbox_names());
  };
  IL_CO_TRY(Joined joined, co_await AwaitWrite<Joined>(storage_, std::move(write)));
  // Agents that wait for these must look again: they have another holder.
  if (joined.took_holds && on_left_) on_left_(joined.agent.name, {});
  co_return Registered{.agent = std::move(joined.agent), .token = std::move(token)};
}

awaitable<Result<std::string>> Agents::Heartbeat(AgentRef ref, Pulse pulse) {
  if (pulse.renew_minutes < 0) {
    co_return Error(Errc::kInvalidArgument,
                    "renew_minutes is below 0; say for how many minutes to keep what is held")
        .WithDetail("field", "renew_minutes");
  }
  std::optional<domain::FocusState> focus;
  if (!pulse.focus_state.empty()) {
    focus = domain::ParseFocusState(pulse.focus_state);
    if (!focus) {
      co_return Error(Errc::kInvalidArgument,
                      "focus_state is not one of at-prompt, tool-use, thinking, unknown")
          .WithSlug("invalid focus_state");
    }
  }
  auto write = [this, ref = std::move(ref), focus,
                minutes = pulse.renew_minutes](db::Transaction& tx) -> Result<std::string> {
    const Timestamp now = clock_.Now();
    std::string id = ref.id;
    const auto record = [&] {
      return store::RecordSighting(tx,
                                   {.id = id, .project = ref.project, .focus = focus, .at = now});
    };
    IL_TRY(bool seen, record());
    if (!seen) {  // no id, then perhaps a name
      IL_TRY(domain::Agent named, Living(tx.connection(), storage_.addresses(), ref, now));
      id = std::move(named.id);
      IL_TRY(seen, record());
    }
    if (!seen) return NoSuchAgent(ref.id);
    if (minutes > 0) {
      glob::Budget budget(kStepsUnderLock);
      IL_TRY_VOID(RenewAllHeldBy(tx, ref.holds_in, id, domain::LeaseFor(minutes), now, budget));
    }
    return id;
  };
  co_return co_await AwaitWrite<std::string>(storage_, std::move(write));
}

awaitable<Result<domain::Agent>> Agents::Get(AgentRef ref) {
  auto read = [this, ref = std::move(ref)](db::Connection& connection) -> Result<domain::Agent> {
    IL_TRY(domain::Agent agent, Living(connection, storage_.addresses(), ref, clock_.Now()));
    agent.last_seen = storage_.signs().Newest(agent.id, agent.last_seen);
    return agent;
  };
  co_return co_await AwaitRead<domain::Agent>(storage_, std::move(read));
}

awaitable<Result<std::string>> Agents::IdOf(std::optional<std::string> project, std::string text) {
  auto read = [this, project = std::move(project),
               text = std::move(text)](db::Connection& connection) {
    return storage_.addresses().IdOf(connection, project, text, clock_.Now());
  };
  co_return co_await AwaitRead<std::string>(storage_, std::move(read));
}

awaitable<std::optional<std::string>> Agents::Find(Speaker speaker) {
  using Id = std::optional<std::string>;
  AddressBook& book = storage_.addresses();
  if (const auto project = book.ProjectIfRemembered(speaker.agent)) {
    if (speaker.only_in && *speaker.only_in != *project) co_return std::nullopt;
    co_return std::move(speaker.agent);
  }
  auto read = [this, &book,
               speaker = std::move(speaker)](db::Connection& connection) -> Result<Id> {
    IL_TRY(auto found, book.Find(connection, speaker.named_in, speaker.agent, clock_.Now()));
    if (!found || (speaker.only_in && *speaker.only_in != found->project)) return Id();
    return Id(std::move(found->id));
  };
  Result<Id> found = co_await AwaitRead<Id>(storage_, std::move(read));
  co_return found.ok() ? *std::move(found) : std::nullopt;
}

awaitable<void> Agents::Saw(Speaker speaker) {
  const std::optional<std::string> id = co_await Find(std::move(speaker));
  if (id) storage_.signs().Seen(*id);
}

awaitable<SignsOfLife::Stream> Agents::OpenStream(Speaker speaker) {
  const std::optional<std::string> id = co_await Find(std::move(speaker));
  co_return id ? storage_.signs().Open(*id) : SignsOfLife::Stream();
}

awaitable<Result<void>> Agents::List(Filter filter, std::shared_ptr<domain::AgentSink> sink) {
  if (filter.capabilities.size() > limits_.capabilities_wanted_max) {
    co_return Error(Errc::kInvalidArgument,
                    fmt::format("a list by {} capabilities is too much; ask for at most {} at once",
                                filter.capabilities.size(), limits_.capabilities_wanted_max))
        .WithDetail("field", "capability");
  }
  std::ranges::sort(filter.capabilities);
  auto read =
      [this, filter = std::move(filter), sink = std::move(sink),
       max = static_cast<std::int64_t>(limits_.agents_listed_max)](db::Connection& connection) {
        sink->Restart();
        const auto take = [&](const domain::Agent& agent) {
          if (Wanted(agent, filter)) sink->Add(agent);
        };
        return store::ListAgents(connection, filter.project, max, storage_.signs(), take);
      };
  auto start = [this, &read](Storage::Done done) {
    return storage_.Read(std::move(read), std::move(done));
  };
  co_return co_await Await<void>(start);
}

awaitable<Result<domain::Agent>> Agents::MergeMetadata(AgentRef ref, domain::Metadata entries) {
  if (entries.empty()) {
    co_return Error(Errc::kInvalidArgument,
                    "send the entries to add as {\"metadata\":{\"key\":\"value\"}}")
        .WithSlug("metadata map required");
  }
  auto write = [&book = storage_.addresses(), ref = std::move(ref), entries = std::move(entries),
                limits = limits_,
                now = clock_.Now()](db::Transaction& tx) -> Result<domain::Agent> {
    IL_TRY(domain::Agent agent, Living(tx.connection(), book, ref, now));
    if (!agent.metadata) agent.metadata.emplace();
    const std::vector<std::string> changed = NewIn(entries, *agent.metadata);
    for (const auto& [key, value] : entries) agent.metadata->insert_or_assign(key, value);
    IL_TRY_VOID(CheckMetadata(*agent.metadata, limits));
    agent.last_seen = now;
    IL_TRY_VOID(store::SetMetadata(tx, agent.id, *agent.metadata, now));
    if (changed.empty()) return agent;
    IL_TRY_VOID(store::AppendAgentEvent(tx, event_type::kAgentUpdated, agent, now,
                                        store::MetadataChangeJson(agent.id, changed)));
    return agent;
  };
  co_return co_await AwaitWrite<domain::Agent>(storage_, std::move(write));
}

awaitable<Result<Agents::AgentPolicies>> Agents::PoliciesOf(AgentRef ref) {
  auto read = [this, ref = std::move(ref)](db::Connection& connection) -> Result<AgentPolicies> {
    IL_TRY(const std::optional<domain::Agent> agent,
           FindRegistered(connection, storage_.addresses(), ref, clock_.Now()));
    // Whether another project has such an agent must not show.
    if (!agent) return AgentPolicies{.agent_id = ref.id, .policies = {}};
    return AgentPolicies{.agent_id = agent->id, .policies = agent->policies};
  };
  co_return co_await AwaitRead<AgentPolicies>(storage_, std::move(read));
}

awaitable<Result<Agents::AgentPolicies>> Agents::SetPolicies(AgentRef ref, PolicyChange change) {
  if (change.mail.empty() && change.live.empty()) {
    co_return Error(
        Errc::kInvalidArgument,
        "send policy, live_contact_policy or both: open, auto, contacts_only, block_all")
        .WithSlug("policy or live_contact_policy required");
  }
  // What is no policy is refused before anything is looked up.
  IL_CO_TRY_VOID(ReadPolicy("policy", change.mail, {}));
  IL_CO_TRY_VOID(ReadPolicy("live_contact_policy", change.live, {}));
  auto write = [&book = storage_.addresses(), ref = std::move(ref), change = std::move(change),
                now = clock_.Now()](db::Transaction& tx) -> Result<AgentPolicies> {
    IL_TRY(const domain::Agent agent, Living(tx.connection(), book, ref, now));
    domain::Policies policies;
    IL_TRY(policies.mail, ReadPolicy("policy", change.mail, agent.policies.mail));
    IL_TRY(policies.live, ReadPolicy("live_contact_policy", change.live, agent.policies.live));
    AgentPolicies set = {.agent_id = agent.id, .policies = policies};
    if (policies == agent.policies) return set;
    IL_TRY_VOID(store::SetPolicies(tx, agent.id, policies));
    IL_TRY_VOID(store::AppendAgentEvent(tx, event_type::kPolicyUpdated, agent, now,
                                        store::PoliciesJson(agent.id, policies)));
    return set;
  };
  co_return co_await AwaitWrite<AgentPolicies>(storage_, std::move(write));
}

awaitable<Result<ContactIds>> Agents::ContactsOf(AgentRef ref) {
  auto read = [this, ref = std::move(ref)](db::Connection& connection) -> Result<ContactIds> {
    IL_TRY(const domain::Agent agent, Living(connection, storage_.addresses(), ref, clock_.Now()));
    return store::ListContacts(connection, agent.id);
  };
  co_return co_await AwaitRead<ContactIds>(storage_, std::move(read));
}

awaitable<Result<ContactIds>> Agents::AddContact(AgentRef ref, std::string contact) {
  IL_CO_TRY(std::string asked, ReadContact(contact, limits_));
  auto write = [&book = storage_.addresses(), ref = std::move(ref), text = std::move(asked),
                max = limits_.contacts_max,
                now = clock_.Now()](db::Transaction& tx) -> Result<ContactIds> {
    IL_TRY(const domain::Agent agent, Living(tx.connection(), book, ref, now));
    IL_TRY(const std::string added, book.IdOf(tx.connection(), agent.project, text, now));
    IL_TRY(const bool changed, store::AddContact(tx, agent.id, added, now));
    IL_TRY(ContactIds contacts, store::ListContacts(tx.connection(), agent.id));
    if (!changed) return contacts;
    if (contacts.size() > max) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("an agent may have {} contacts: remove one first", max))
          .WithSlug("too_many_contacts");
    }
    IL_TRY_VOID(AppendContactEvent(tx, event_type::kContactAdded, agent, added, now));
    return contacts;
  };
  co_return co_await AwaitWrite<ContactIds>(storage_, std::move(write));
}

awaitable<Result<ContactIds>> Agents::RemoveContact(AgentRef ref, std::string contact) {
  IL_CO_TRY(std::string asked, ReadContact(contact, limits_));
  auto write = [&book = storage_.addresses(), ref = std::move(ref), text = std::move(asked),
                now = clock_.Now()](db::Transaction& tx) -> Result<ContactIds> {
    IL_TRY(const domain::Agent agent, Living(tx.connection(), book, ref, now));
    std::string removed = text;
    IL_TRY(bool changed, store::RemoveContact(tx, agent.id, removed));
    if (!changed) {
      IL_TRY(removed, book.IdOf(tx.connection(), agent.project, text, now));
      IL_TRY(changed, store::RemoveContact(tx, agent.id, removed));
    }
    if (changed) {
      IL_TRY_VOID(AppendContactEvent(tx, event_type::kContactRemoved, agent, removed, now));
    }
    return store::ListContacts(tx.connection(), agent.id);
  };
  co_return co_await AwaitWrite<ContactIds>(storage_, std::move(write));
}

awaitable<Result<domain::Agent>> Agents::Deregister(AgentRef ref) {
  struct Left {
    domain::Agent agent;
    std::vector<domain::Reservation> released;
  };
  const std::string text = ref.id;
  auto write = [this, ref = std::move(ref)](db::Transaction& tx) -> Result<Left> {
    const Timestamp now = clock_.Now();
    IL_TRY(domain::Agent agent, Living(tx.connection(), storage_.addresses(), ref, now));
    IL_TRY(auto released, ReleaseAllHeldBy(tx, ref.holds_in, agent.id, now));
    IL_TRY_VOID(store::SetDeregistered(tx, agent.id, now));
    agent.status = domain::kDeregistered;
    IL_TRY_VOID(store::AppendAgentEvent(tx, event_type::kAgentDeregistered, agent, now,
                                        store::AgentJson(agent)));
    IL_TRY_VOID(TellNames(tx, agent, storage_.inbox_names()));
    return Left{.agent = std::move(agent), .released = std::move(released)};
  };
  auto left = co_await AwaitWrite<Left>(storage_, std::move(write));
  const bool unknown = !left.ok() && left.error().code() == Errc::kOutcomeUnknown;
  if (on_left_ && left.ok()) on_left_(left->agent.id, left->released);
  if (on_left_ && unknown) on_left_(text, {});
  if (!left.ok()) co_return left.error();
  co_return std::move(left->agent);
}

awaitable<Result<std::optional<Agents::TokenOwner>>> Agents::OfToken(Secret token) {
  using Found = std::optional<TokenOwner>;
  auto read = [hash = auth::Sha256(token.Reveal())](db::Connection& connection) -> Result<Found> {
    IL_TRY(auto owner, store::FindAgentByToken(connection, Bytes(hash)));
    if (!owner) return Found();
    return Found(TokenOwner{.id = std::move(owner->id), .name = std::move(owner->name)});
  };
  co_return co_await AwaitRead<Found>(storage_, std::move(read));
}

awaitable<Result<std::int64_t>> Agents::CountActive() {
  const Timestamp since = clock_.Now() - domain::kStaleAfter;
  auto read = [this, since](db::Connection& connection) {
    return store::CountAgentsSeen(connection, since, storage_.signs());
  };
  auto start = [this, read](Storage::DoneWith<std::int64_t> done) {
    return storage_.Peek<std::int64_t>(limits_.ping_timeout, read, std::move(done));
  };
  co_return co_await Await<std::int64_t>(start);
}

std::string AgentJson(const domain::Agent& agent) { return store::AgentJson(agent); }

std::string PoliciesJson(std::string_view id, domain::Policies policies) {
  return store::PoliciesJson(id, policies);
}

}  // namespace interlock::service
