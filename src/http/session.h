#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/limits.h"
#include "base/result.h"
#include "http/message.h"
#include "http/request_reader.h"

namespace interlock {
class LimitedLog;
class Logger;
}  // namespace interlock

namespace interlock::http {

class RequestHandler;
class WebSocket;

using Socket = boost::asio::generic::stream_protocol::socket;  // TCP and Unix alike

// What all sessions share; outlives them.
struct SessionContext {
  RequestHandler& handler;
  Logger& log;
  LimitedLog& events;  // refused connections, limited in number
  Clock& clock;
  const Limits& limits;
  std::atomic<std::size_t>& unsent_bytes;  // of the bodies that sessions are about to send
};

// One connection: reads a request, answers it, and again, until the peer leaves, breaks the
// protocol, is too slow, or the server stops. Requests of one connection are served one after the
// other, so pipelined answers keep their order. A handler may turn the connection into a WebSocket
// (Response::upgrade); it stays one to its end.
//
// Everything runs on the socket's executor, which does one thing at a time.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Socket socket, Peer peer, const SessionContext& context);
  ~Session();

  // The whole life: serve, or say that there is no room. Call one of them once; the caller keeps a
  // shared_ptr until it ends.
  boost::asio::awaitable<void> Run();
  boost::asio::awaitable<void> Refuse();

  // The rest is to be called on the executor.
  // Answers the request under way, if any, and then closes. Half a header is no request.
  void Drain();
  // The keys have changed: a WebSocket whose peer would not be let in any more is closed.
  void Recheck();
  // Closes now. A handler that waits is cancelled.
  void Abort();

  // No whole request has come yet. Thread-safe.
  bool fresh() const { return fresh_; }

  boost::asio::any_io_executor executor() { return socket_.get_executor(); }
  boost::asio::cancellation_slot cancellation_slot() { return cancel_.slot(); }

 private:
  enum class ReadOutcome : std::uint8_t { kSome, kPeerGone, kTimedOut };
  using Incoming = std::optional<Result<void>>;  // ok: reader_ has one; nothing: the peer is gone

  boost::asio::awaitable<Incoming> ReadRequest();
  Duration IdleTime() const;
  boost::asio::awaitable<ReadOutcome> ReadHeaderBytes();
  boost::asio::awaitable<ReadOutcome> ReadSome(std::size_t chunk);
  boost::asio::awaitable<bool> WriteText(std::string_view head, std::string_view body);
  boost::asio::awaitable<bool> Answer(const Response& response, Method method,
                                      Persistence persistence);
  // The answer to what never was a whole request; counted and logged.
  Response Refusal(const Error& error);
  // Request::watch_peer, and its end. What a peer sends meanwhile stays where it is.
  void WatchPeer();
  void OnPeerReadable();
  void WatchTalkingPeer();
  void StopWatching();
  boost::asio::awaitable<void> Converse(std::shared_ptr<Upgrade> upgrade);
  boost::asio::awaitable<void> Linger();
  void Close();

  // A peer that is too slow has its read or write cancelled, again and again until the deadline is
  // cleared. Moving the deadline further away costs nothing: the timer looks at it when it fires.
  void SetDeadline(Duration from_now);
  void ClearDeadline();
  void ArmTimer(Duration when);
  void OnTimer();

  Socket socket_;  // closed once there is a websocket_
  std::unique_ptr<WebSocket> websocket_;
  const Peer peer_;
  const SessionContext& context_;
  RequestReader reader_;
  boost::asio::cancellation_signal cancel_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer peer_timer_;
  Duration deadline_;
  Duration armed_until_;
  std::atomic<bool> fresh_ = true;
  bool timed_out_ = false;
  bool before_request_ = false;  // reads, and has no whole header
  bool draining_ = false;
  bool served_one_ = false;
  bool watching_ = false;
};

}  // namespace interlock::http
