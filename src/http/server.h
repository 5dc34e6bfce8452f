#pragma once

#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "base/limits.h"
#include "http/socket.h"

namespace interlock {
class LimitedLog;
class Logger;
}  // namespace interlock

namespace interlock::http {

class RequestHandler;

// Accepts connections and serves them on a few io threads, each connection on one of them.
//
// Built, started and stopped by one thread (main), in this order:
//   Listen()… → Start() → StopAccepting() → Drain() → (storage is closed) → Join()
// Storage is closed before Join() because handlers that wait for it end only when it answers; the
// io threads run until the last of them has.
class Server {
 public:
  struct Options {
    Limits limits;
    int io_threads = 2;
  };

  // All must outlive the server. `events` gets a line for each refused connection, limited in
  // number.
  Server(RequestHandler& handler, Logger& log, LimitedLog& events, Clock& clock, Options options);
  ~Server();  // REQUIRES: never started, or joined
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Listen(ListeningSocket socket);
  void Start();

  // Removes the files of the Unix sockets and closes these, then closes the TCP ones.
  void StopAccepting();

  enum class Drained : std::uint8_t { kAll, kSomeAborted };
  // Connections without a request, or with half the header of one, are closed at once; the others
  // may finish their request until limits.drain_timeout, then they are aborted. Blocks as long.
  Drained Drain();

  // Blocks until every connection has ended and the io threads are gone.
  void Join();

  // The keys have changed: WebSockets of those who would not be let in any more are closed. Does
  // not wait for it. Any thread.
  void RecheckCallers();

  std::size_t connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace interlock::http
