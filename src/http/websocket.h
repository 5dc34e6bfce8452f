#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"

namespace interlock::http {

// The codes that we send ourselves, of RFC 6455 and one of our own. Broken framing is 1002, text
// that is not UTF-8 1007, and a message beyond Limits::ws_message_bytes_max 1009; whoever uses a
// WebSocket need not care about these.
enum class CloseCode : std::uint16_t {
  kGoingAway = 1001,    // the server stops
  kUnsupported = 1003,  // a binary message
  kBadText = 1007,      // not UTF-8, or not JSON
  kPolicy = 1008,       // what the peer asks for, or whether it may ask at all
  kInternal = 1011,
  kTryAgainLater = 1013,  // the peer was too slow; it may come back and resume
  kAhead = 4409,          // cursor_ahead, which is status 409 of other reads
};

struct CloseReason {
  CloseCode code = CloseCode::kInternal;
  std::string text;  // for a person; at most 123 bytes are sent
};

class WebSocket;

// What a connection does once it has left HTTP. A handler answers with one (Response::upgrade);
// the session then speaks WebSocket on the same socket and thread, and all of this is called there.
class Upgrade {
 public:
  // `key`: the request's Sec-WebSocket-Key, of a request that HandshakeKey() (handshake.h) let
  // pass.
  explicit Upgrade(std::string key) : key_(std::move(key)) {}
  virtual ~Upgrade() = default;
  Upgrade(const Upgrade&) = delete;
  Upgrade& operator=(const Upgrade&) = delete;

  const std::string& key() const { return key_; }

  // The id of the request, for the answer to the handshake. Set before Run().
  std::string request_id = {};

  // Sends until there is nothing more to send, and says why. Must end soon after OnEnd(), and when
  // Send() says that it is over.
  virtual boost::asio::awaitable<CloseReason> Run(WebSocket& socket) = 0;

  // A whole text message of the peer. A reason closes the connection.
  virtual std::optional<CloseReason> OnText(std::string_view text) = 0;

  // The keys have changed, or may have since the request was let in. A reason closes the
  // connection.
  virtual std::optional<CloseReason> Recheck() { return std::nullopt; }

  // The peer is gone or closes, or the server stops: nothing that is sent from now on arrives. May
  // come before Run(), and more than once.
  virtual void OnEnd() = 0;

 private:
  const std::string key_;
};

// One connection that speaks WebSocket (RFC 6455, the server's side, no extensions). Pings are
// answered; the server pings a peer that is silent for Limits::ws_ping_interval, and drops it when
// it stays silent as long again. A peer that has not taken a message within Limits::write_timeout
// is dropped. It keeps two small buffers per connection, and of what it sends nothing but the
// message under way.
//
// Everything is called on the socket's executor, which does one thing at a time. It may be
// destroyed at any time when Run() is not under way.
class WebSocket {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // `already_read`: bytes after the request that came along with it.
  WebSocket(Socket socket, std::string already_read, const Limits& limits, Clock& clock);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // The whole life: accepts the handshake, runs `upgrade`, says goodbye, closes. Called once.
  boost::asio::awaitable<void> Run(std::shared_ptr<Upgrade> upgrade);

  enum class Sent : std::uint8_t {
    kTaken,    // the system has taken it; the next one may follow
    kOver,     // the connection is over
    kTooSlow,  // it is, since the peer has not taken this one in time
  };
  // For the upgrade. One text message, after the one before has been taken. One call at a time.
  // `text` must stay as it is until then.
  boost::asio::awaitable<Sent> Send(std::string_view text);

  // The keys have changed: asks the upgrade whether the peer may stay.
  void Recheck();
  // Closes with 1001, in at most Limits::linger_timeout.
  void Drain();
  // Closes now, without a word.
  void Abort();

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;  // shared with the operations under way
};

}  // namespace interlock::http
