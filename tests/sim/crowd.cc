#include "sim/crowd.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "service/agents.h"
#include "service/mailbox.h"

namespace interlock::sim {
namespace {

using service::Mail;

constexpr std::size_t kOpenMax = 48;  // operations at once, of all
constexpr std::size_t kInP = 8;       // clients; the others work in q
constexpr std::size_t kClients = 11;

// Never heard in a world where only disks and clocks fail.
bool IsOurFault(Errc code) {
  switch (code) {
    case Errc::kInternal:
    case Errc::kCorrupt:
    case Errc::kNotADatabase:
    case Errc::kConstraint:
    case Errc::kInvalidArgument:
    case Errc::kPatternTooComplex:
    case Errc::kTooBig:
    case Errc::kOutOfMemory:
      return true;
    default:
      return false;
  }
}

// Keeps what an inbox shows.
class Letters final : public domain::MessageSink {
 public:
  void Restart() override {
    cursors.clear();
    ids.clear();
  }
  domain::Flow Add(const domain::MessageView& message) override {
    cursors.push_back(message.cursor);
    ids.emplace_back(message.id);
    return domain::Flow::kGoOn;
  }
  std::vector<Cursor> cursors;
  std::vector<std::string> ids;
};

}  // namespace

Crowd::Crowd(World& world, Promises& promises, std::mt19937_64& rng, Trace& trace)
    : world_(world), promises_(promises), rng_(rng), trace_(trace) {
  clients_.reserve(kClients);
  for (std::size_t i = 0; i < kClients; ++i) {
    clients_.push_back({.project = i < kInP ? "p" : "q",
                        .session = fmt::format("00000000-0000-4000-8000-{:012}", i)});
  }
}

Crowd::~Crowd() { IL_CHECK(open_ == 0, "somebody was never answered"); }

std::span<const Crowd::Choice> Crowd::Choices() {
  static constexpr std::array kChoices = {
      Choice{14, &Crowd::Heartbeat},  Choice{30, &Crowd::Reserve},  Choice{10, &Crowd::Renew},
      Choice{18, &Crowd::Release},    Choice{6, &Crowd::Transfer},  Choice{3, &Crowd::ForceRelease},
      Choice{6, &Crowd::Check},       Choice{4, &Crowd::ListHolds}, Choice{16, &Crowd::Send},
      Choice{6, &Crowd::SendAgain},   Choice{1, &Crowd::Broadcast}, Choice{10, &Crowd::ReadInbox},
      Choice{8, &Crowd::GiveReceipt}, Choice{20, &Crowd::Watch},    Choice{5, &Crowd::ReadPage},
      Choice{1, &Crowd::Deregister},
  };
  return kChoices;
}

void Crowd::Act(std::uint64_t step) {
  step_ = step;
  if (open_ >= kOpenMax) return;
  Client& client = AnyClient();
  if (client.agent.empty()) {
    // Who has no token must wait until its session is old, and asks now and then.
    if (!client.token.empty() || last_tag_ == 0 || Below(10) == 0) Register(client);
    return;
  }
  world_.server().signs().Seen(client.agent);  // as http/dispatch.cc has it done
  promises_.holds.Heard(client.agent, Now());
  int all = 0;
  for (const Choice& choice : Choices()) all += choice.weight;
  auto drawn = static_cast<int>(Below(static_cast<std::size_t>(all)));
  for (const Choice& choice : Choices()) {
    drawn -= choice.weight;
    if (drawn < 0) return (this->*choice.action)(client);
  }
}

bool Crowd::HangUp() {
  if (waits_.empty()) return false;
  auto wait = waits_.begin();
  std::advance(wait, static_cast<std::ptrdiff_t>(Below(waits_.size())));
  promises_.turns.HangUp(wait->first);
  const Cancel cancel = wait->second;
  waits_.erase(wait);
  cancel->emit(boost::asio::cancellation_type::terminal);
  return true;
}

void Crowd::Die() {
  Client& client = AnyClient();
  client.agent.clear();
  client.token = Secret();
  client.holds.clear();
  client.unsure.clear();
  Watcher* watcher = client.watcher.get();
  if (watcher == nullptr || watcher->follower == nullptr) return;
  watcher->follower->Close();
  if (watcher->busy) {
    watcher->closing = true;
  } else {
    watcher->follower.reset();
  }
}

void Crowd::Stopped() {
  IL_CHECK(open_ == 0, "a server stopped and left somebody without an answer");
  for (Client& client : clients_) {
    if (client.watcher) client.watcher->follower.reset();
  }
  waits_.clear();
  promises_.turns.Clear();
}

std::string Crowd::NewTag(std::string_view prefix) {
  return fmt::format("{}{}", prefix, ++last_tag_);
}

std::string Crowd::AnyAgentBeside(const Client& client) {
  std::vector<const Client*> others;
  for (const Client& other : clients_) {
    const bool counts = !other.agent.empty() && other.project == client.project;
    if (counts && &other != &client) others.push_back(&other);
  }
  return others.empty() ? std::string() : others.at(Below(others.size()))->agent;
}

void Crowd::Note(const std::string& name, const Error* error) {
  trace_.Add(name);
  trace_.Add(error == nullptr ? "ok" : error->slug());
  trace_.Say("  {}: {}", name, error == nullptr ? "ok" : error->slug());
  ++counts_.answered[name + " " + (error == nullptr ? "ok" : std::string(error->slug()))];
  if (error != nullptr && IsOurFault(error->code())) {
    promises_.violations.Add(fmt::format("{}: {} {}", name, error->slug(), error->message()));
  }
}

TagsPromise::Outcome Crowd::OutcomeOf(const Error& error) {
  const bool unknown = error.code() == Errc::kOutcomeUnknown || error.code() == Errc::kCancelled;
  return unknown ? TagsPromise::Outcome::kUnknown : TagsPromise::Outcome::kNotDone;
}

// ---- Agents

void Crowd::Register(Client& client) {
  using Registered = service::Agents::Registered;
  auto call = world_.server().agents.Register({.project = client.project,
                                               .name = "someone",
                                               .session_id = client.session,
                                               .shown_token = client.token});
  Launch<Registered>("register", std::move(call), [this, &client](Result<Registered> registered) {
    if (!registered.ok()) return;
    client.agent = registered->agent.id;
    client.token = registered->token;
    const auto [known, is_new] = agent_of_session_.emplace(client.session, client.agent);
    if (known->second != client.agent) {
      promises_.violations.Add("agents: the session has another agent now");
    }
  });
}

void Crowd::Heartbeat(Client& client) {
  const std::int64_t minutes = Below(2) == 0 ? 0 : static_cast<std::int64_t>(1 + Below(3));
  auto call = world_.server().agents.Heartbeat({.id = client.agent, .project = client.project},
                                               {.renew_minutes = minutes});
  const HoldsPromise::Renewal renewal{
      .project = client.project, .agent = client.agent, .lease = std::chrono::minutes(minutes)};
  using Seen = Result<std::string>;
  Launch<std::string>("heartbeat", std::move(call), [this, &client, renewal](const Seen& seen) {
    const bool renews = renewal.lease > Duration(0);
    if (seen.ok() && renews) promises_.holds.Renewed(renewal, world_.write_began_at(), Now());
    if (seen.ok()) return;
    if (seen.error().code() == Errc::kNotFound && client.agent == renewal.agent) {
      client.agent.clear();
    }
  });
}

void Crowd::Deregister(Client& client) {
  auto call = world_.server().agents.Deregister({.id = client.agent, .project = client.project});
  using Gone = domain::Agent;
  Launch<Gone>("deregister", std::move(call), [this, agent = client.agent](Result<Gone> gone) {
    if (!gone.ok()) return;
    for (const auto& [id, row] : promises_.holds.rows()) {
      // Another write of the same commit may have given it something again.
      const bool before = promises_.holds.rows_before().contains(id);
      if (row.agent == agent && row.expires_at > Now() && before) {
        promises_.violations.Add("agents: it is gone and holds " + id);
      }
    }
  });
  client.agent.clear();
  client.holds.clear();
}

// ---- Mail

void Crowd::Send(Client& client) {
  Mail::Draft draft{.project = client.project, .from = client.agent};
  draft.id = NewTag("m");
  draft.subject = draft.id;
  draft.body = "x";
  draft.ack_required = Below(2) == 0;
  for (std::size_t i = 1 + Below(3); i > 0; --i) {
    std::string to = AnyAgentBeside(client);
    if (!to.empty()) (i == 1 ? draft.addresses.to : draft.addresses.bcc).push_back(std::move(to));
  }
  if (!draft.addresses.to.empty()) SendDraft(client, draft);
}

void Crowd::SendAgain(Client& client) {
  if (client.unsure.empty()) return Send(client);
  const Mail::Draft draft = client.unsure.back();
  client.unsure.pop_back();
  SendDraft(client, draft);
}

void Crowd::SendDraft(Client& client, const Mail::Draft& draft) {
  promises_.tags.Asked(draft.subject);
  Launch<Mail::Delivery>(
      "send", world_.server().mail.Send(draft),
      [this, &client, draft](Result<Mail::Delivery> sent) {
        if (!sent.ok()) {
          promises_.tags.Answered(draft.subject, OutcomeOf(sent.error()));
          if (client.agent == draft.from) client.unsure.push_back(draft);
          return;
        }
        const bool kept = !sent->received.empty();
        promises_.tags.Answered(
            draft.subject, kept ? TagsPromise::Outcome::kDone : TagsPromise::Outcome::kNotDone);
        if (!kept) return;
        promises_.mail.Answered({sent->message_id, sent->cursor, sent->received});
        if (Below(8) == 0 && client.agent == draft.from) client.unsure.push_back(draft);
      });
}

void Crowd::Broadcast(Client& client) {
  const std::string tag = NewTag("b");
  promises_.tags.Asked(tag);
  auto call = world_.server().mail.Broadcast({.project = client.project,
                                              .from = client.agent,
                                              .topic = "news",
                                              .subject = tag,
                                              .body = "x"});
  Launch<Mail::Delivery>("broadcast", std::move(call), [this, tag](Result<Mail::Delivery> sent) {
    if (!sent.ok()) return promises_.tags.Answered(tag, OutcomeOf(sent.error()));
    const bool kept = !sent->received.empty();
    promises_.tags.Answered(tag,
                            kept ? TagsPromise::Outcome::kDone : TagsPromise::Outcome::kNotDone);
    if (kept) promises_.mail.Answered({sent->message_id, sent->cursor, sent->received});
  });
}

void Crowd::ReadInbox(Client& client) {
  auto letters = std::make_shared<Letters>();
  MailPromise::Page page{.agent = client.agent, .after = client.inbox, .limit = 1 + Below(5)};
  auto call = world_.server().mailbox.ReadInbox({.project = client.project,
                                                 .agent = client.agent,
                                                 .after = page.after,
                                                 .limit = static_cast<std::int64_t>(page.limit)},
                                                letters);
  Launch<void>("inbox", std::move(call), [this, &client, letters, page](Result<void> read) mutable {
    if (!read.ok()) return;
    page.cursors = letters->cursors;
    promises_.mail.Read(page, promises_.log.pruned_through());
    if (page.cursors.empty() || client.inbox != page.after || client.agent != page.agent) return;
    client.inbox = page.cursors.back();
    client.letters = letters->ids;
  });
}

void Crowd::GiveReceipt(Client& client) {
  if (client.letters.empty()) return ReadInbox(client);
  const MailPromise::Receipt receipt{
      .message_id = client.letters.at(Below(client.letters.size())),
      .agent = client.agent,
      .kind = Below(2) == 0 ? domain::ReceiptKind::kRead : domain::ReceiptKind::kAck};
  promises_.mail.ReceiptAsked(receipt);
  auto call = world_.server().mailbox.Record({.kind = receipt.kind,
                                              .project = client.project,
                                              .message_id = receipt.message_id,
                                              .agent = receipt.agent,
                                              .at = {}});
  Launch<domain::ReceiptOutcome>("receipt", std::move(call),
                                 [this, receipt](Result<domain::ReceiptOutcome> outcome) {
                                   if (!outcome.ok()) return;
                                   promises_.mail.ReceiptAnswered(receipt, *outcome);
                                 });
}

}  // namespace interlock::sim
