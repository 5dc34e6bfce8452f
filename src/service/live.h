#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "auth/rate_limit.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/result.h"
#include "domain/agent.h"
#include "domain/message.h"
#include "domain/window.h"
#include "service/injector.h"
#include "service/mail.h"

namespace interlock {
class Logger;
}

namespace interlock::service {

class Storage;

// Mail that is put before its recipients at once, where they sit at their prompt in a terminal that
// the server knows of.
//
// `both`: the message and, for each recipient in `to`, a pending poke are committed together; then
// the text is put before those who are ready; then what became of it is committed. Who is busy, or
// cannot be reached, finds the poke later. If the server dies in between, the poke is still
// pending: a message may come before its recipient's eyes twice, never not at all.
// `live`: the text is put before everybody in `to`, or before nobody if one is busy; nothing is
// kept but the events of the attempts.
//
// Thread-safe. The coroutines run on the caller's strand and own what they are given. From the
// commit on, an attempt and the write that tells of it come to their end also when the caller is
// gone.
class Live {
 public:
  struct Options {
    std::int64_t pokes_max = 10;  // of one sender to one recipient, within the window
    std::chrono::seconds window{60};
  };

  // All must outlive it; the injector is stopped before the storage.
  Live(Storage& storage, Clock& clock, UuidMaker& ids, Mail& mail, Injector& injector, Logger& log)
      : Live(storage, clock, ids, mail, injector, log, Options{}) {}
  Live(Storage& storage, Clock& clock, UuidMaker& ids, Mail& mail, Injector& injector, Logger& log,
       Options options);

  struct Draft {
    Mail::Draft message;
    std::string transport;  // as sent; see domain::ParseTransport()
    // The window to speak to, which must be the recipient's; empty = the one last active.
    std::string target_window = {};
  };

  // By recipient, in the order to, cc, bcc.
  using States = std::vector<std::pair<std::string, domain::DeliveryState>>;
  struct Outcome {
    // Its message_id is empty when nothing was kept: nobody wants it, or it was `live`.
    Mail::Delivery delivery = {};
    States states = {};

    // A `live` message did not reach somebody.
    bool failed() const;
    // How many of `states` are of recipients in `to`.
    std::size_t to_states() const;
  };

  // Besides what Mail::Send() says:
  //   kInvalidArgument "invalid transport"   it is none
  //   kRateLimited "rate_limit"              too many to one of the recipients
  //   kUnavailable "recipient_busy"          `live`, and a recipient in `to` is not ready
  // While the live transport is turned off, every transport, also one that is none, is `async`.
  // It is checked, numbered and dated by this call, not when it is awaited.
  boost::asio::awaitable<Result<Outcome>> Send(Draft draft);

 private:
  // A recipient in `to`, and how it can be reached.
  struct Seat {
    std::string agent;
    domain::FocusState focus = domain::FocusState::kUnknown;
    std::string tmux_target = {};
    std::string why_not = {};  // empty = it is ready
  };
  using Seats = std::vector<Seat>;
  using SeatsByAgent = std::map<std::string, Seat>;
  class Attempts;

  static SeatsByAgent ByAgent(Seats seats);
  boost::asio::awaitable<Result<bool>> IsOn();
  boost::asio::awaitable<Result<Seats>> FindSeats(std::string project,
                                                  std::vector<std::string> agents,
                                                  std::string target_window);
  boost::asio::awaitable<Result<Outcome>> SendAsync(
      boost::asio::awaitable<Result<Mail::Sent>> sending);
  // Of transport live or both, or of one that is not known.
  boost::asio::awaitable<Result<Outcome>> SendAtOnce(Draft draft,
                                                     std::optional<domain::Transport> transport);
  // `delivery`: what is known of it before anybody was spoken to.
  boost::asio::awaitable<Result<Outcome>> SendLive(Mail::Draft draft, Seats seats,
                                                   Mail::Delivery delivery);
  // `sender`: its id, whatever the draft calls it.
  boost::asio::awaitable<Result<Outcome>> SendBoth(Mail::Draft draft, std::string sender,
                                                   Seats seats);
  boost::asio::awaitable<Result<Outcome>> AnswerAgain(Mail::Delivery first);
  Result<void> CountPokes(const std::string& sender, const std::vector<std::string>& recipients);
  // `cursor`: of the message, 0 for one that is not kept.
  boost::asio::awaitable<Result<States>> Attempt(const Mail::Draft& draft, const Seats& ready,
                                                 domain::Cursor cursor);

  Storage& storage_;
  Clock& clock_;
  UuidMaker& ids_;
  Mail& mail_;
  Injector& injector_;
  Logger& log_;
  const Options options_;
  auth::RateLimit pokes_;
};

}  // namespace interlock::service
