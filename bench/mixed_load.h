#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::bench {

// What agents ask of a server. Of 100 requests 50 read the inbox, 20 are heartbeats, 15 send a
// message, 10 reserve a file or release it again, and 5 look what is in the way of a claim.
enum class Kind : std::uint8_t { kInbox, kHeartbeat, kSend, kReserve, kRelease, kCheck };
inline constexpr std::size_t kKinds = 6;

// Registers so many agents with the server on `port`; their ids.
std::vector<std::string> RegisterAgents(std::uint16_t port, int count);

// The work of many agents. Each has a connection of its own that stays open, one request under way
// at a time, and asks for the mail that came after what it has read. One thread asks, in one epoll
// loop, on the same processors as the server: what it uses is part of every figure, so only ratios
// within one run mean anything. What is asked follows from a seed. An answer that is neither 200
// nor 201, or a lost connection, ends the program with a message.
//
// Used by one thread.
class MixedLoad {
 public:
  struct Options {
    double requests_per_s = 0;  // of all agents together; 0 = each asks as soon as it was answered
    int reconnect_every = 0;    // an agent's connection is closed and made anew; 0 = never
  };
  // An answer without what the server puts around its body.
  struct Answer {
    int status = 0;
    std::string body;
  };
  struct Measured {
    double seconds = 0;          // of the time that is measured
    double answers = 0;          // that came in that time
    double all_answers = 0;      // before and after it, too
    double bytes = 0;            // of those that were asked in that time, headers included
    std::vector<double> reads;   // how long each of these took, in µs, the shortest first
    std::vector<double> writes;  // the same
    double sends = 0;            // among the writes
    double reconnects = 0;

    double requests() const { return static_cast<double>(reads.size() + writes.size()); }
    // Neither the first answers, which nobody competes for, nor the wait for the last ones count.
    double per_s() const { return answers / seconds; }
  };

  // `agents` are the ids of those who ask.
  MixedLoad(const std::vector<std::string>& agents, const Options& options);
  explicit MixedLoad(const std::vector<std::string>& agents) : MixedLoad(agents, Options{}) {}
  ~MixedLoad();
  MixedLoad(const MixedLoad&) = delete;
  MixedLoad& operator=(const MixedLoad&) = delete;

  // Asks the server on `port`: the one that registered the agents, or one that gives such answers.
  // Ends when all that was asked is answered. `warm_up` comes before the time that is measured.
  Measured Run(std::uint16_t port, std::chrono::milliseconds warm_up,
               std::chrono::milliseconds measured);

  // Answers to each kind, the first thousand that were measured.
  const std::array<std::vector<Answer>, kKinds>& samples() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

// Of sorted values; 0 when there are none.
double Percentile(const std::vector<double>& sorted, double part);

}  // namespace interlock::bench
