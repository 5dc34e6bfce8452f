#pragma once

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "service/feed.h"
#include "service/mail.h"
#include "service/reservations.h"
#include "sim/promises.h"
#include "sim/world.h"

namespace interlock::sim {

// What happened, as one number: equal runs have equal ones.
class Trace {
 public:
  void Add(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) Mix(static_cast<unsigned char>(value >> (8U * i)));
  }
  void Add(std::string_view text) {
    for (const char c : text) Mix(static_cast<unsigned char>(c));
    Mix(0);
  }
  std::uint64_t hash() const { return hash_; }

  // For people: printed when IL_SIM_TRACE is set, and no part of the number.
  template <typename... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) const {
    if (loud_) fmt::print(stderr, "{}\n", fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void Mix(unsigned char byte) { hash_ = (hash_ ^ byte) * 1'099'511'628'211U; }
  const bool loud_ = std::getenv("IL_SIM_TRACE") != nullptr;
  std::uint64_t hash_ = 14'695'981'039'346'656'037U;
};

// Agents that do at random what agents do: they register, show that they live, reserve, wait,
// renew, release, hand on, write, read, acknowledge, follow the log and fall behind, hang up, and
// die. Each answer that they hear is held against what the promises say.
//
// For one thread. REQUIRES: whatever it begins, the world ends: Stopped() is called before a server
// is destroyed, and by then everybody has been answered.
class Crowd {
 public:
  struct Counts {
    std::map<std::string, std::uint64_t> asked;     // by operation
    std::map<std::string, std::uint64_t> answered;  // by operation and outcome: "reserve conflict"
  };

  Crowd(World& world, Promises& promises, std::mt19937_64& rng, Trace& trace);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // Somebody does something. `step` is the time by which promises reckon.
  void Act(std::uint64_t step);
  // Somebody who waits for its turn hangs up; false when nobody does.
  bool HangUp();
  // Somebody is gone, and comes back one day knowing nothing but its session.
  void Die();
  void Stopped();

  // Everybody who follows the log goes on; false when all of them wait for what comes.
  bool ListenAll();
  // When all is quiet and false came: they have heard everything.
  void CheckAllHeard();

  std::size_t open() const { return open_; }  // operations that are not answered yet
  const Counts& counts() const { return counts_; }

 private:
  // Who follows the log, from one connection to the next.
  struct Watcher {
    FollowPromise promise;
    std::string agent = {};                            // empty: of the whole project
    std::unique_ptr<service::Follower> follower = {};  // none: not connected
    bool busy = false;                                 // an operation is under way
    bool closing = false;
  };
  struct Client {
    std::string project;
    std::string session;
    std::string agent = {};  // empty: not registered
    Secret token = {};
    std::vector<std::string> holds = {};  // what it believes to hold
    Cursor inbox = 0;                     // read up to here
    std::vector<std::string> letters = {};
    std::vector<service::Mail::Draft> unsure = {};  // sent, perhaps
    std::unique_ptr<Watcher> watcher = {};
    std::unique_ptr<FollowPromise> pages = {};
    bool paging = false;
  };
  using Op = std::uint64_t;
  using Cancel = std::shared_ptr<boost::asio::cancellation_signal>;
  using Action = void (Crowd::*)(Client& client);
  struct Choice {
    int weight;
    Action action;
  };
  static std::span<const Choice> Choices();

  // Begins an operation; `answered` hears its end.
  template <typename T>
  void Launch(std::string name, boost::asio::awaitable<Result<T>> call,
              std::function<void(Result<T>)> answered, const Cancel& cancel = nullptr);
  template <typename T>
  static boost::asio::awaitable<void> Run(boost::asio::awaitable<Result<T>> call,
                                          std::function<void(Result<T>)> answered);
  void Note(const std::string& name, const Error* error);
  static TagsPromise::Outcome OutcomeOf(const Error& error);

  std::size_t Below(std::size_t bound) { return static_cast<std::size_t>(rng_() % bound); }
  std::string NewTag(std::string_view prefix);
  Client& AnyClient() { return clients_.at(Below(clients_.size())); }
  // Somebody else's agent in the client's project; empty when there is none.
  std::string AnyAgentBeside(const Client& client);
  Timestamp Now() { return world_.clock().Now(); }

  // Agents.
  void Register(Client& client);
  void Heartbeat(Client& client);
  void Deregister(Client& client);
  // Mail.
  void Send(Client& client);
  void SendAgain(Client& client);
  void SendDraft(Client& client, const service::Mail::Draft& draft);
  void Broadcast(Client& client);
  void ReadInbox(Client& client);
  void GiveReceipt(Client& client);
  // Reservations (crowd_reservations.cc).
  void Reserve(Client& client);
  void Renew(Client& client);
  void Release(Client& client);
  void Transfer(Client& client);
  void ForceRelease(Client& client);
  void Check(Client& client);
  void ListHolds(Client& client);
  void HearReserve(Client& client, const TurnsPromise::Claim& claim, const std::string& tag,
                   Result<service::Reservations::Verdict> verdict);
  // Who asks for what a reservation holds already; of no paths when it is gone.
  TurnsPromise::Claim ClaimTo(const std::string& id, const std::string& agent);
  void HearRefusal(const std::string& name, const TurnsPromise::Claim& claim,
                   const service::Reservations::Verdict& verdict);
  void CheckGranted(const TurnsPromise::Claim& claim,
                    const service::Reservations::Granted& granted);
  void CheckRefused(const TurnsPromise::Claim& claim,
                    const service::Reservations::Refused& refused);
  std::vector<std::string> ActiveIds(const std::string& project, Timestamp now,
                                     const std::function<bool(const HoldRow&)>& counts);
  // The log (crowd_follow.cc).
  void Watch(Client& client);
  void Connect(Client& client);
  void Listen(Client& client);
  void HearFrames(Client& client, Result<std::vector<service::Frame>> frames);
  void ReadPage(Client& client);

  World& world_;
  Promises& promises_;
  std::mt19937_64& rng_;
  Trace& trace_;
  std::vector<Client> clients_;  // never changes in size
  std::map<Op, Cancel> waits_;   // for their turns
  std::map<std::string, std::string> agent_of_session_;
  std::set<std::string> heard_of_;  // reservations that somebody was granted
  Counts counts_;
  std::size_t open_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t last_tag_ = 0;
  Op last_op_ = 0;
};

template <typename T>
boost::asio::awaitable<void> Crowd::Run(boost::asio::awaitable<Result<T>> call,
                                        std::function<void(Result<T>)> answered) {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  Result<T> result = co_await std::move(call);
  answered(std::move(result));
}

template <typename T>
void Crowd::Launch(std::string name, boost::asio::awaitable<Result<T>> call,
                   std::function<void(Result<T>)> answered, const Cancel& cancel) {
  ++open_;
  ++counts_.asked[name];
  auto hear = [this, name = std::move(name), answered = std::move(answered)](Result<T> result) {
    --open_;
    Note(name, result.ok() ? nullptr : &result.error());
    answered(std::move(result));
  };
  auto ended = [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  };
  auto coroutine = Run<T>(std::move(call), std::move(hear));
  if (cancel) {
    boost::asio::co_spawn(world_.io(), std::move(coroutine),
                          boost::asio::bind_cancellation_slot(cancel->slot(), ended));
  } else {
    boost::asio::co_spawn(world_.io(), std::move(coroutine), ended);
  }
}

}  // namespace interlock::sim
