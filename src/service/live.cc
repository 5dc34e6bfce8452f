#include "service/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "base/log.h"
#include "domain/envelope.h"
#include "service/await.h"
#include "service/storage.h"
#include "store/pokes.h"
#include "store/windows.h"

namespace interlock::service {
namespace {

using boost::asio::awaitable;
using domain::DeliveryState;
using domain::FocusState;
using domain::Transport;

// Why a recipient is not spoken to; empty = it may be.
std::string WhyNot(const store::Desk& desk) {
  if (desk.focus != FocusState::kAtPrompt) {
    return fmt::format("its focus is {}", domain::Name(desk.focus));
  }
  if (!domain::ParseTmuxTarget(desk.tmux_target)) return "no window of it is known";
  return "";
}

// Leaves in the delivery only the agents that the message was put before or is denied to: nobody
// else receives one that is not kept.
void KeepReached(Mail::Delivery& delivery, const Live::States& states) {
  std::set<std::string_view> reached(delivery.denied.begin(), delivery.denied.end());
  for (const auto& [agent, state] : states) reached.insert(agent);
  std::erase_if(delivery.known, [&](const auto& one) { return !reached.contains(one.agent_id); });
  std::erase_if(delivery.unknown, [&](const auto& one) { return !reached.contains(one.to); });
}

// For an attempt, which nobody can take back.
struct Unstoppable {
  void Cancel() {}
};

}  // namespace

// The attempts of one message: puts the texts before their recipients, all at once, then writes
// down what became of them, then tells. It keeps itself alive, so the caller may go.
class Live::Attempts : public std::enable_shared_from_this<Live::Attempts> {
 public:
  using Done = Storage::DoneWith<States>;

  Attempts(Live& live, const Mail::Draft& draft, const Seats& ready, domain::Cursor cursor)
      : live_(live), cursor_(cursor) {
    attempts_.reserve(ready.size());
    orders_.reserve(ready.size());
    const std::string text = domain::Envelope(draft.from, draft.thread_id, draft.body) + "\n";
    for (const Seat& seat : ready) {
      attempts_.push_back({.project = draft.project,
                           .message_id = draft.id,
                           .sender = draft.from,
                           .recipient = seat.agent});
      orders_.push_back({.recipient = seat.agent,
                         .target = domain::ParseTmuxTarget(seat.tmux_target).value(),
                         .text = text});
    }
  }

  Unstoppable Start(Done done) {
    done_ = std::move(done);
    left_ = orders_.size();
    for (std::size_t i = 0; i < attempts_.size(); ++i) {
      live_.injector_.Inject(std::move(orders_[i]),
                             [self = shared_from_this(), i](const Result<void>& put) {
                               self->OnPut(self->attempts_[i], put);
                             });
    }
    return {};
  }

 private:
  void OnPut(store::PokeAttempt& attempt, const Result<void>& put) {
    if (put.ok()) {
      attempt.state = DeliveryState::kInjected;
    } else {
      attempt.state = cursor_ == 0 ? DeliveryState::kFailed : DeliveryState::kDeferred;
      attempt.reason = put.error().message();
    }
    if (left_.fetch_sub(1) == 1) Record();  // the last one has seen all the others
  }

  void Record() {
    auto write = [self = shared_from_this(), at = live_.clock_.Now()](db::Transaction& tx) {
      return self->Write(tx, at);
    };
    live_.storage_.Write(std::move(write), [self = shared_from_this()](const Result<void>& kept) {
      self->Tell(kept);
    });
  }

  Result<void> Write(db::Transaction& tx, Timestamp at) const {
    for (const store::PokeAttempt& attempt : attempts_) {
      if (cursor_ != 0 && attempt.state == DeliveryState::kInjected) {
        IL_TRY_VOID(store::MarkInjected(tx, cursor_, attempt.recipient, at));
      }
      IL_TRY_VOID(store::LogPoke(tx, attempt, at));
    }
    return {};
  }

  // What was put before somebody is there, whether that could be written down or not; a poke that
  // stays pending shows the message once more.
  void Tell(const Result<void>& kept) {
    if (!kept.ok()) {
      live_.log_.Warn("what became of a message that was to be typed could not be kept",
                      {{"message_id", attempts_.front().message_id}, {"error", kept.error()}});
    }
    States states;
    states.reserve(attempts_.size());
    for (const store::PokeAttempt& attempt : attempts_) {
      states.emplace_back(attempt.recipient, attempt.state);
    }
    done_(std::move(states));
  }

  Live& live_;
  const domain::Cursor cursor_;
  std::vector<store::PokeAttempt> attempts_;
  std::vector<Injector::Order> orders_;
  std::atomic<std::size_t> left_ = 0;
  Done done_;
};

bool Live::Outcome::failed() const {
  return std::ranges::any_of(
      states, [](const auto& state) { return state.second == DeliveryState::kFailed; });
}

std::size_t Live::Outcome::to_states() const {
  const bool kept = !delivery.message_id.empty();
  return kept ? delivery.to_received : states.size();  // `live` reaches nobody but those in `to`
}

Live::Live(Storage& storage, Clock& clock, UuidMaker& ids, Mail& mail, Injector& injector,
           Logger& log, Options options)
    : storage_(storage),
      clock_(clock),
      ids_(ids),
      mail_(mail),
      injector_(injector),
      log_(log),
      options_(options),
      pokes_(clock, {.hits_max = options.pokes_max, .window = options.window}) {}

// Not a coroutine: what is only mailed, as nearly everything is, needs no frame for its draft.
awaitable<Result<Live::Outcome>> Live::Send(Draft draft) {
  const std::optional<Transport> transport = domain::ParseTransport(draft.transport);
  if (transport != Transport::kAsync) return SendAtOnce(std::move(draft), transport);
  return SendAsync(mail_.SendAlso(std::move(draft.message), nullptr));
}

awaitable<Result<Live::Outcome>> Live::SendAtOnce(Draft draft, std::optional<Transport> transport) {
  IL_CO_TRY(const bool on, co_await IsOn());
  if (!on) co_return co_await SendAsync(mail_.SendAlso(std::move(draft.message), nullptr));
  if (!transport) {
    co_return Error(Errc::kInvalidArgument, "`transport` must be async, live or both.")
        .WithSlug("invalid transport")
        .WithDetail("field", "transport");
  }

  Mail::Draft message = std::move(draft.message);
  message.contact = Mail::Contact::kLive;
  message.addresses = domain::OnceEach(std::move(message.addresses));
  if (message.id.empty()) message.id = ids_.Next().Text();
  IL_CO_TRY(Mail::Judgement judged, co_await mail_.Judge(message));
  if (judged.first) co_return co_await AnswerAgain(*std::move(judged.first));
  const bool nobody =
      transport == Transport::kLive ? judged.received.to.empty() : judged.received.empty();
  if (nobody) {
    co_return Outcome{
        .delivery = {.denied = judged.denied.All(), .known = std::move(judged.known)}};
  }
  IL_CO_TRY_VOID(CountPokes(judged.sender, judged.received.to));
  IL_CO_TRY(Seats seats, co_await FindSeats(message.project, std::move(judged.received.to),
                                            std::move(draft.target_window)));
  if (transport == Transport::kLive) {
    message.from = std::move(judged.sender);
    Mail::Delivery delivery = {.denied = judged.denied.All(),
                               .known = std::move(judged.known),
                               .unknown = std::move(judged.unknown)};
    co_return co_await SendLive(std::move(message), std::move(seats), std::move(delivery));
  }
  co_return co_await SendBoth(std::move(message), std::move(judged.sender), std::move(seats));
}

awaitable<Result<Live::Outcome>> Live::SendAsync(awaitable<Result<Mail::Sent>> sending) {
  IL_CO_TRY(Mail::Sent sent, co_await std::move(sending));
  if (sent.repeated) co_return co_await AnswerAgain(std::move(sent.delivery));
  Outcome outcome{.delivery = std::move(sent.delivery)};
  outcome.states.reserve(outcome.delivery.received.size());
  for (const std::string& agent : outcome.delivery.received) {
    outcome.states.emplace_back(agent, DeliveryState::kAsync);
  }
  co_return outcome;
}

awaitable<Result<Live::Outcome>> Live::SendLive(Mail::Draft draft, Seats seats,
                                                Mail::Delivery delivery) {
  const auto busy = std::ranges::find_if(seats, [](const Seat& s) { return !s.why_not.empty(); });
  if (busy != seats.end()) {
    co_return Error(Errc::kUnavailable,
                    fmt::format("{} cannot be spoken to now: {}; send it with transport both, "
                                "which keeps it until then.",
                                busy->agent, busy->why_not))
        .WithSlug("recipient_busy")
        .WithDetail("agent", busy->agent)
        .WithDetail("focus_state", std::string(domain::Name(busy->focus)));
  }
  IL_CO_TRY(States states, co_await Attempt(draft, seats, 0));
  KeepReached(delivery, states);
  co_return Outcome{.delivery = std::move(delivery), .states = std::move(states)};
}

Live::SeatsByAgent Live::ByAgent(Seats seats) {
  SeatsByAgent by_agent;
  for (Seat& seat : seats) {
    std::string agent = seat.agent;
    by_agent.emplace(std::move(agent), std::move(seat));
  }
  return by_agent;
}

awaitable<Result<Live::Outcome>> Live::SendBoth(Mail::Draft draft, std::string sender,
                                                Seats seats) {
  // Shared with the write, which may outlast the wait for it.
  const auto by_agent = std::make_shared<const SeatsByAgent>(ByAgent(std::move(seats)));
  auto also = [by_agent](db::Transaction& tx, const domain::Message& kept) -> Result<void> {
    for (const std::string& agent : kept.addresses.to) {
      IL_TRY_VOID(store::StagePoke(tx, kept.cursor, kept.project, agent));
      const auto seat = by_agent->find(agent);
      const bool known = seat != by_agent->end();
      if (known && seat->second.why_not.empty()) continue;  // its attempt will tell
      IL_TRY_VOID(store::LogPoke(tx,
                                 {.project = kept.project,
                                  .message_id = kept.id,
                                  .sender = kept.sender,
                                  .recipient = agent,
                                  .reason = known ? seat->second.why_not : "it was not asked"},
                                 kept.created_at));
    }
    return {};
  };
  Mail::Draft copy = draft;
  IL_CO_TRY(Mail::Sent sent, co_await mail_.SendAlso(std::move(copy), std::move(also)));
  if (sent.repeated) co_return co_await AnswerAgain(std::move(sent.delivery));
  Outcome outcome{.delivery = std::move(sent.delivery)};
  Seats ready;
  outcome.states.reserve(outcome.delivery.received.size());
  for (const std::string& agent : outcome.delivery.received) {
    const auto seat = by_agent->find(agent);
    const bool meant = seat != by_agent->end();  // in `to`, that is
    outcome.states.emplace_back(agent, meant ? DeliveryState::kDeferred : DeliveryState::kAsync);
    if (meant && seat->second.why_not.empty()) ready.push_back(seat->second);
  }
  if (ready.empty()) co_return outcome;
  draft.from = std::move(sender);
  IL_CO_TRY(States tried, co_await Attempt(draft, ready, outcome.delivery.cursor));
  // Both are in the order of `received`.
  auto next = tried.begin();
  for (auto& [agent, state] : outcome.states) {
    if (next != tried.end() && next->first == agent) state = (next++)->second;
  }
  co_return outcome;
}

awaitable<Result<Live::Outcome>> Live::AnswerAgain(Mail::Delivery first) {
  using Pokes = std::map<std::string, DeliveryState>;
  auto start = [this, cursor = first.cursor](Storage::DoneWith<Pokes> done) {
    auto read = [cursor](db::Connection& connection) { return store::PokesOf(connection, cursor); };
    return storage_.Read<Pokes>(std::move(read), std::move(done));
  };
  IL_CO_TRY(const Pokes pokes, co_await Await<Pokes>(std::move(start)));
  Outcome outcome{.delivery = std::move(first)};
  outcome.states.reserve(outcome.delivery.received.size());
  for (const std::string& agent : outcome.delivery.received) {
    const auto poke = pokes.find(agent);
    outcome.states.emplace_back(agent, poke == pokes.end() ? DeliveryState::kAsync : poke->second);
  }
  co_return outcome;
}

awaitable<Result<bool>> Live::IsOn() {
  auto start = [this](Storage::DoneWith<bool> done) {
    return storage_.Read<bool>(store::IsLiveTransportOn, std::move(done));
  };
  co_return co_await Await<bool>(std::move(start));
}

awaitable<Result<Live::Seats>> Live::FindSeats(std::string project, std::vector<std::string> agents,
                                               std::string target_window) {
  auto start = [this, project = std::move(project), agents = std::move(agents),
                window = std::move(target_window),
                now = clock_.Now()](Storage::DoneWith<Seats> done) {
    auto read = [=](db::Connection& connection) -> Result<Seats> {
      Seats seats;
      seats.reserve(agents.size());
      for (const std::string& agent : agents) {
        IL_TRY(store::Desk desk, store::FindDesk(connection, project, agent, window, now));
        std::string why_not = WhyNot(desk);
        seats.push_back({.agent = agent,
                         .focus = desk.focus,
                         .tmux_target = std::move(desk.tmux_target),
                         .why_not = std::move(why_not)});
      }
      return seats;
    };
    return storage_.Read<Seats>(std::move(read), std::move(done));
  };
  co_return co_await Await<Seats>(std::move(start));
}

awaitable<Result<Live::States>> Live::Attempt(const Mail::Draft& draft, const Seats& ready,
                                              domain::Cursor cursor) {
  auto attempts = std::make_shared<Attempts>(*this, draft, ready, cursor);
  auto start = [attempts = std::move(attempts)](Storage::DoneWith<States> done) {
    return attempts->Start(std::move(done));
  };
  return Await<States>(std::move(start));
}

Result<void> Live::CountPokes(const std::string& sender,
                              const std::vector<std::string>& recipients) {
  for (const std::string& recipient : recipients) {
    const auto wait = pokes_.Hit(fmt::format("{}:{}{}", sender.size(), sender, recipient));
    if (!wait) continue;
    return Error(Errc::kRateLimited,
                 fmt::format("An agent may speak to another {} times in {} seconds; try again in "
                             "{} s, or send {} mail.",
                             options_.pokes_max, options_.window.count(), wait->count(), recipient))
        .WithSlug("rate_limit")
        .WithDetail("retry_after", std::int64_t{wait->count()});
  }
  return {};
}

}  // namespace interlock::service
