#include "service/mail.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "db/connection.h"
#include "domain/contact_policy.h"
#include "domain/text.h"
#include "service/address.h"
#include "service/await.h"
#include "service/shared_work.h"
#include "service/storage.h"
#include "store/agents.h"
#include "store/contacts.h"
#include "store/messages.h"

namespace interlock::service {
namespace {

using domain::Addresses;
using domain::Message;
using store::Outgoing;
using store::RecipientFacts;
using Delivery = Mail::Delivery;

// A message on its way to the writer, which shares it with the coroutine that waits: a write may be
// repeated, or outlast the wait.
struct Sending {
  Outgoing outgoing;                   // as it was sent: its texts are ids or names
  std::vector<std::string> everybody;  // outgoing.message.addresses.All()
  bool id_chosen = false;              // by the sender
  Mail::Sight sight = Mail::Sight::kEveryProject;
  Mail::Contact contact = Mail::Contact::kMail;
  Mail::Also also = nullptr;
};

bool IsBlank(std::string_view text) { return domain::Trim(text).empty(); }

Error Wrong(std::string_view field, std::string message) {
  return Error(Errc::kInvalidArgument, std::move(message)).WithDetail("field", std::string(field));
}

Result<void> RefuseBlank(std::string_view field, std::string_view text) {
  if (!IsBlank(text)) return {};
  return Wrong(field, fmt::format("`{}` is empty; say who or what it is.", field));
}

// A name is a key: it must fit one, and must be one that a path can say.
Result<void> CheckName(std::string_view field, std::string_view name, std::size_t bytes_max) {
  if (name.size() > bytes_max) {
    return Wrong(field, fmt::format("`{}` has {} bytes and may have {}; choose a shorter one.",
                                    field, name.size(), bytes_max));
  }
  if (domain::HasNul(name)) {
    return Wrong(field,
                 fmt::format("`{}` holds a NUL byte, which no path can name; remove it.", field));
  }
  return {};
}

Result<void> CheckSubject(std::string_view subject) {
  if (!domain::HasNul(subject)) return {};
  return Wrong("subject", "`subject` holds a NUL byte; remove it.");
}

// A message is acknowledged by its path, which has no such segments.
Result<void> CheckId(std::string_view id) {
  const std::string framed = fmt::format("/{}/", id);
  for (const std::string_view lost : {"//", "/./", "/../"}) {
    if (id.empty() || framed.find(lost) == std::string::npos) continue;
    return Wrong("id",
                 "`id` has a slash at an end, two in a row, or a segment of dots, which no "
                 "path can name; choose another one.");
  }
  return {};
}

Result<void> Check(const Mail::Draft& draft, const Mail::Options& options) {
  IL_TRY_VOID(RefuseBlank("from", draft.from));
  const std::array<std::pair<std::string_view, const std::string*>, 5> names = {
      {{"from", &draft.from},
       {"project", &draft.project},
       {"id", &draft.id},
       {"thread_id", &draft.thread_id},
       {"topic", &draft.topic}}};
  for (const auto& [field, name] : names) {
    IL_TRY_VOID(CheckName(field, *name, options.name_bytes_max));
  }
  IL_TRY_VOID(CheckSubject(draft.subject));
  IL_TRY_VOID(CheckId(draft.id));
  const Addresses& addresses = draft.addresses;
  if (addresses.to.empty()) {
    return Wrong("to", "`to` names nobody; a message needs at least one recipient there.");
  }
  if (addresses.size() > options.addresses_max) {
    return Wrong("to", fmt::format("The message names {} recipients and may name {}; send it in "
                                   "parts, or broadcast it to the whole project.",
                                   addresses.size(), options.addresses_max))
        .WithSlug("too_many_recipients");
  }
  const std::array<std::pair<std::string_view, const std::vector<std::string>*>, 3> kinds = {
      {{"to", &addresses.to}, {"cc", &addresses.cc}, {"bcc", &addresses.bcc}}};
  for (const auto& [field, list] : kinds) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (IsBlank((*list)[i])) {
        return Wrong(field,
                     fmt::format("`{}[{}]` is empty; name an agent or leave it out.", field, i));
      }
      IL_TRY_VOID(CheckName(field, (*list)[i], options.name_bytes_max));
    }
  }
  return {};
}

bool MayDeliver(const RecipientFacts& facts, std::string_view sender, Mail::Contact contact) {
  const bool live = contact == Mail::Contact::kLive;
  return domain::MayDeliver({.policy = live ? facts.policies.live : facts.policies.mail,
                             .sender_is_contact = facts.sender_is_contact,
                             .recipient_posted_in_thread = facts.posted_in_thread,
                             .sender_is_in_thread = facts.sender_is_in_thread,
                             .holds_overlap = facts.holds_overlap,
                             .to_itself = facts.agent == sender});
}

struct Judged {
  Addresses received;
  Addresses denied;
};

// `facts` stand in the order to, cc, bcc.
Judged JudgeAll(const Message& message, std::span<const RecipientFacts> facts,
                Mail::Contact to_contact) {
  Judged judged;
  auto fact = facts.begin();
  for (auto kind : {&Addresses::to, &Addresses::cc, &Addresses::bcc}) {
    const auto contact = kind == &Addresses::to ? to_contact : Mail::Contact::kMail;
    for (const std::string& address : message.addresses.*kind) {
      const bool willing = MayDeliver(*fact++, message.sender, contact);
      ((willing ? judged.received : judged.denied).*kind).push_back(address);
    }
  }
  return judged;
}

// Writes messages into the database and tells of them.
struct Post {
  db::Transaction& tx;
  domain::DeliveryListener& listener;
};

// The outcome of a message that is kept.
struct Outcome {
  Judged judged;
  std::vector<domain::KnownRecipient> known;
  std::vector<domain::UnknownRecipient> unknown;
};

Result<Delivery> Keep(const Post& post, const Outgoing& outgoing, Outcome outcome,
                      const Mail::Also& also) {
  IL_TRY(const domain::Cursor cursor, store::InsertMessage(post.tx, outgoing, post.listener));
  if (also) {
    Message kept = outgoing.message;
    kept.cursor = cursor;
    IL_TRY_VOID(also(post.tx, kept));
  }
  return Delivery{.message_id = outgoing.message.id,
                  .cursor = cursor,
                  .received = outgoing.message.addresses.All(),
                  .to_received = outgoing.message.addresses.to.size(),
                  .denied = outcome.judged.denied.All(),
                  .known = std::move(outcome.known),
                  .unknown = std::move(outcome.unknown)};
}

// Keeps the message for those who want it.
Result<Delivery> KeepForTheWilling(const Post& post, const Outgoing& outgoing, Outcome outcome,
                                   const Mail::Also& also = nullptr) {
  const Judged& judged = outcome.judged;
  if (judged.denied.empty()) return Keep(post, outgoing, std::move(outcome), also);
  if (judged.received.empty()) {
    return Delivery{.denied = judged.denied.All(), .known = std::move(outcome.known)};
  }
  const Outgoing fewer = store::WithDenied(outgoing, judged.received, judged.denied);
  return Keep(post, fewer, std::move(outcome), also);
}

// A repeated message, its texts understood as they were when it came first.
Message AsUnderstood(Message message, const store::SentMessage& first) {
  if (message.sender == first.resolution.from) message.sender = first.message.sender;
  std::unordered_map<std::string_view, std::string_view> ids;
  for (const auto& known : first.resolution.known) ids.emplace(known.to, known.agent_id);
  for (auto kind : {&Addresses::to, &Addresses::cc, &Addresses::bcc}) {
    for (std::string& text : message.addresses.*kind) {
      const auto id = ids.find(text);
      if (id != ids.end()) text = id->second;
    }
  }
  message.addresses = domain::OnceEach(std::move(message.addresses));
  return message;
}

// Those who received the first message and were no living agents of its project then.
std::vector<domain::UnknownRecipient> UnknownOf(const store::SentMessage& first,
                                                Mail::Sight sight) {
  std::unordered_set<std::string_view> known;
  for (const auto& one : first.resolution.known) known.insert(one.agent_id);
  std::unordered_map<std::string_view, std::string_view> projects;
  for (const auto& one : first.resolution.elsewhere) projects.emplace(one.to, *one.project);
  const std::unordered_set<std::string_view> left(first.resolution.left.begin(),
                                                  first.resolution.left.end());
  std::vector<domain::UnknownRecipient> unknown;
  for (std::string& text : first.received.All()) {
    if (known.contains(text)) continue;
    const auto project = projects.find(text);
    const bool abroad = project != projects.end();
    const bool told = !abroad || sight == Mail::Sight::kEveryProject;
    unknown.push_back({.to = text, .left = told && left.contains(text)});
    if (abroad && told) unknown.back().project = project->second;
  }
  return unknown;
}

// What a message of that id was answered when it came first.
Result<Delivery> AnswerAgain(const store::SentMessage& first, const Sending& sending) {
  if (!domain::SaysTheSame(first.message, AsUnderstood(sending.outgoing.message, first))) {
    return Error(Errc::kConflict,
                 "Another message of this project has this id; repeat the first one unchanged, or "
                 "choose a new id.")
        .WithSlug("message_id_conflict");
  }
  return Delivery{.message_id = first.message.id,
                  .cursor = first.message.cursor,
                  .received = first.received.All(),
                  .to_received = first.received.to.size(),
                  .denied = first.denied.All(),
                  .known = first.resolution.known,
                  .unknown = UnknownOf(first, sending.sight)};
}

// The first answer, if the sender repeats itself.
Result<std::optional<Delivery>> FindFirst(db::Connection& connection, const Sending& sending) {
  const Message& message = sending.outgoing.message;
  if (!sending.id_chosen) return std::optional<Delivery>();
  IL_TRY(const auto first, store::FindSentMessage(connection, message.project, message.id));
  if (!first) return std::optional<Delivery>();
  IL_TRY(Delivery answer, AnswerAgain(*first, sending));
  return std::optional<Delivery>(std::move(answer));
}

// A message whose texts were looked up.
struct Understood {
  std::vector<RecipientFacts> facts;  // in the order to, cc, bcc
  std::vector<domain::KnownRecipient> known = {};
  std::vector<domain::UnknownRecipient> unknown = {};
  std::optional<Message> by_id = {};  // the message with ids for names; nothing = it has no names
};

// Looks up the texts of a message.
class Reader {
 public:
  Reader(db::Connection& connection, AddressBook& book, const Sending& sending)
      : connection_(connection), book_(book), sending_(sending) {}

  Result<Understood> Run() {
    const Message& message = sending_.outgoing.message;
    IL_TRY(sender_, book_.IdOf(connection_, message.project, message.sender, message.created_at));
    IL_TRY(understood_.facts, store::FindRecipientFacts(connection_, Query(), sending_.everybody));
    std::vector<std::string> ids;  // of each text, once one of them is a name
    for (std::size_t i = 0; i < sending_.everybody.size(); ++i) {
      IL_TRY(auto id, IdOf(understood_.facts[i]));
      if (!id) continue;
      if (ids.empty()) ids = sending_.everybody;
      ids[i] = *std::move(id);
    }
    if (!ids.empty() || sender_ != message.sender) IL_TRY_VOID(PutIds(std::move(ids)));
    return std::move(understood_);
  }

 private:
  store::RecipientQuery Query() const {
    const Message& message = sending_.outgoing.message;
    store::RecipientQuery query = {.project = message.project,
                                   .sender = sender_,
                                   .sender_text = message.sender,
                                   .thread_id = message.thread_id,
                                   .live = sending_.contact == Mail::Contact::kLive};
    if (sending_.sight == Mail::Sight::kOwnProject) query.agents_of = message.project;
    return query;
  }

  // The id of the agent that the text of `facts` names; nothing when it is no name.
  Result<std::optional<std::string>> IdOf(const RecipientFacts& facts) {
    using Id = std::optional<std::string>;
    const Message& message = sending_.outgoing.message;
    const std::string& text = facts.agent;
    const bool may_know_all = sending_.sight == Mail::Sight::kEveryProject;
    if (facts.is_id) {
      const bool here = facts.project == message.project;
      if (facts.living && here) {
        understood_.known.push_back({.to = text, .agent_id = text, .name = facts.name});
        return Id();
      }
      domain::UnknownRecipient unknown = {.to = text, .left = facts.registered && !facts.living};
      if (facts.registered && !here) unknown.project = facts.project;
      understood_.unknown.push_back(std::move(unknown));
      return Id();
    }
    IL_TRY(const store::TextUse use, store::FindTextUse(connection_, text));
    if (use.is_name) {
      IL_TRY(const auto named,
             book_.FindNamed(connection_, message.project, text, message.created_at));
      if (named) {
        understood_.known.push_back({.to = text, .agent_id = named->id, .name = named->name});
        return Id(named->id);
      }
    }
    understood_.unknown.push_back({.to = text});
    if (use.is_name && may_know_all) {
      IL_TRY(const auto others, store::FindByName(connection_, std::nullopt, text, 1));
      if (!others.empty()) understood_.unknown.back().project = others.front().project;
    }
    return Id();
  }

  // `ids`: of each address; empty = they are ids already.
  Result<void> PutIds(std::vector<std::string> ids) {
    Message by_id = sending_.outgoing.message;
    by_id.sender = sender_;
    if (!ids.empty()) {
      auto id = ids.begin();
      for (auto kind : {&Addresses::to, &Addresses::cc, &Addresses::bcc}) {
        for (std::string& address : by_id.addresses.*kind) address = std::move(*id++);
      }
      by_id.addresses = domain::OnceEach(std::move(by_id.addresses));
      const std::vector<std::string> everybody = by_id.addresses.All();
      IL_TRY(understood_.facts, store::FindRecipientFacts(connection_, Query(), everybody));
    }
    understood_.by_id = std::move(by_id);
    return {};
  }

  db::Connection& connection_;
  AddressBook& book_;
  const Sending& sending_;
  std::string sender_;
  Understood understood_;
};

// Judges the message as it was understood.
Result<Judged> JudgeNow(db::Connection& connection, const Sending& sending,
                        Understood& understood) {
  const Message& message = understood.by_id ? *understood.by_id : sending.outgoing.message;
  glob::Budget budget;
  IL_TRY_VOID(FindSharedWork(connection, message.project, message.sender, message.created_at,
                             understood.facts, budget));
  return JudgeAll(message, understood.facts, sending.contact);
}

// The answer that a repeated send of the message must get.
domain::Resolution ResolutionOf(const Understood& understood, const Sending& sending) {
  domain::Resolution resolution;
  if (!sending.id_chosen) return resolution;
  resolution.known = understood.known;
  std::ranges::copy_if(understood.unknown, std::back_inserter(resolution.elsewhere),
                       [](const auto& one) { return one.project.has_value(); });
  for (const auto& one : understood.unknown) {
    if (one.left) resolution.left.push_back(one.to);
  }
  const std::string& from = sending.outgoing.message.sender;
  if (understood.by_id && understood.by_id->sender != from) resolution.from = from;
  return resolution;
}

// Changes nothing of `sending` but what a run before it may have put there as well.
Result<Mail::Sent> WriteMessage(const Post& post, AddressBook& book, Sending& sending) {
  db::Connection& connection = post.tx.connection();
  IL_TRY(auto first, FindFirst(connection, sending));
  if (first) return Mail::Sent{.delivery = *std::move(first), .repeated = true};
  IL_TRY(Understood understood, Reader(connection, book, sending).Run());
  IL_TRY(Judged judged, JudgeNow(connection, sending, understood));
  std::optional<Outgoing> other;  // with ids for names
  domain::Resolution resolution = ResolutionOf(understood, sending);
  if (understood.by_id) {
    other = store::MakeOutgoing(*std::move(understood.by_id), std::move(resolution));
  } else if (!resolution.empty()) {
    store::SetResolution(sending.outgoing, std::move(resolution));
  }
  Outcome outcome = {std::move(judged), std::move(understood.known), std::move(understood.unknown)};
  IL_TRY(Delivery kept, KeepForTheWilling(post, other ? *other : sending.outgoing,
                                          std::move(outcome), sending.also));
  return Mail::Sent{.delivery = std::move(kept)};
}

Result<Mail::Judgement> ReadJudgement(db::Connection& connection, AddressBook& book,
                                      const Sending& sending) {
  Mail::Judgement judgement;
  IL_TRY(judgement.first, FindFirst(connection, sending));
  if (judgement.first) return judgement;
  IL_TRY(Understood understood, Reader(connection, book, sending).Run());
  IL_TRY(Judged judged, JudgeNow(connection, sending, understood));
  judgement.sender = understood.by_id ? understood.by_id->sender : sending.outgoing.message.sender;
  judgement.received = std::move(judged.received);
  judgement.denied = std::move(judged.denied);
  judgement.known = std::move(understood.known);
  judgement.unknown = std::move(understood.unknown);
  return judgement;
}

Result<Delivery> WriteBroadcast(const Post& post, AddressBook& book, Message message) {
  db::Connection& connection = post.tx.connection();
  const std::string sender_text = message.sender;
  IL_TRY(message.sender, book.IdOf(connection, message.project, sender_text, message.created_at));
  IL_TRY(auto facts,
         store::FindAudienceFacts(connection, message.project, message.sender, sender_text));
  if (facts.empty()) return Delivery{};
  glob::Budget budget;
  IL_TRY_VOID(FindSharedWork(connection, message.project, message.sender, message.created_at, facts,
                             budget));
  message.addresses.to.reserve(facts.size());
  for (const RecipientFacts& agent : facts) message.addresses.to.push_back(agent.agent);
  Judged judged = JudgeAll(message, facts, Mail::Contact::kMail);
  return KeepForTheWilling(post, store::MakeOutgoing(std::move(message)),
                           {.judged = std::move(judged), .known = {}, .unknown = {}});
}

std::shared_ptr<Sending> MakeSending(Mail::Draft&& draft, Clock& clock, UuidMaker& ids) {
  auto sending = std::make_shared<Sending>();
  sending->id_chosen = !draft.id.empty();
  sending->sight = draft.sight;
  sending->contact = draft.contact;
  if (draft.id.empty()) draft.id = ids.Next().Text();
  sending->outgoing = store::MakeOutgoing({
      .id = std::move(draft.id),
      .project = std::move(draft.project),
      .sender = std::move(draft.from),
      .thread_id = std::move(draft.thread_id),
      .topic = domain::TopicName(draft.topic),
      .subject = std::move(draft.subject),
      .body = std::move(draft.body),
      .importance = std::move(draft.importance),
      .ack_required = draft.ack_required,
      .addresses = std::move(draft.addresses),
      .created_at = clock.Now(),
  });
  sending->everybody = sending->outgoing.message.addresses.All();
  return sending;
}

}  // namespace

Mail::Mail(Storage& storage, Clock& clock, UuidMaker& ids, Options options)
    : storage_(storage),
      clock_(clock),
      ids_(ids),
      options_(options),
      broadcasts_(clock, {.hits_max = options.broadcasts_max, .window = options.broadcast_window}) {
}

boost::asio::awaitable<Result<Mail::Delivery>> Mail::Send(Draft draft) {
  IL_CO_TRY(Sent sent, co_await SendAlso(std::move(draft), nullptr));
  co_return std::move(sent.delivery);
}

// Not a coroutine: a draft is large, and would be moved into its frame.
boost::asio::awaitable<Result<Mail::Sent>> Mail::SendAlso(Draft draft, Also also) {
  draft.addresses = domain::OnceEach(std::move(draft.addresses));
  Result<void> checked = Check(draft, options_);
  if (!checked) return Refused<Sent>(std::move(checked).error());
  auto sending = MakeSending(std::move(draft), clock_, ids_);
  sending->also = std::move(also);
  auto write = [&storage = storage_, sending = std::move(sending)](db::Transaction& tx) {
    return WriteMessage({tx, storage.inboxes()}, storage.addresses(), *sending);
  };
  return AwaitWrite<Sent>(storage_, std::move(write));
}

boost::asio::awaitable<Result<Mail::Judgement>> Mail::Judge(Draft draft) {
  draft.addresses = domain::OnceEach(std::move(draft.addresses));
  IL_CO_TRY_VOID(Check(draft, options_));
  auto sending = MakeSending(std::move(draft), clock_, ids_);
  auto read = [&book = storage_.addresses(), sending = std::move(sending)](
                  db::Connection& connection) { return ReadJudgement(connection, book, *sending); };
  co_return co_await AwaitRead<Judgement>(storage_, std::move(read));
}

boost::asio::awaitable<Result<Mail::Delivery>> Mail::Broadcast(Announcement announcement) {
  IL_CO_TRY_VOID(RefuseBlank("from", announcement.from));
  IL_CO_TRY_VOID(RefuseBlank("topic", announcement.topic));
  IL_CO_TRY_VOID(RefuseBlank("body", announcement.body));
  IL_CO_TRY_VOID(CheckName("from", announcement.from, options_.name_bytes_max));
  IL_CO_TRY_VOID(CheckName("topic", announcement.topic, options_.name_bytes_max));
  IL_CO_TRY_VOID(CheckName("project", announcement.project, options_.name_bytes_max));
  IL_CO_TRY_VOID(CheckSubject(announcement.subject));
  IL_CO_TRY_VOID(CountBroadcast(announcement));
  auto message = std::make_shared<const Message>(Message{
      .id = ids_.Next().Text(),
      .project = std::move(announcement.project),
      .sender = std::move(announcement.from),
      .topic = domain::TopicName(announcement.topic),
      .subject = std::move(announcement.subject),
      .body = std::move(announcement.body),
      .created_at = clock_.Now(),
  });
  auto write = [&storage = storage_, message = std::move(message)](db::Transaction& tx) {
    return WriteBroadcast({tx, storage.inboxes()}, storage.addresses(), *message);
  };
  co_return co_await AwaitWrite<Delivery>(storage_, std::move(write));
}

Result<void> Mail::CountBroadcast(const Announcement& announcement) {
  const std::string& project = announcement.project;
  const auto wait =
      broadcasts_.Hit(fmt::format("{}:{}{}", project.size(), project, announcement.from));
  if (!wait) return {};
  return Error(
             Errc::kRateLimited,
             fmt::format("An agent may broadcast {} times in {} seconds; try again in {} s, or "
                         "write to the agents concerned.",
                         options_.broadcasts_max, options_.broadcast_window.count(), wait->count()))
      .WithDetail("retry_after", std::int64_t{wait->count()});
}

}  // namespace interlock::service
