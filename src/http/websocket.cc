#include "http/websocket.h"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <chrono>
#include <exception>

#include "base/check.h"
#include "base/utf8.h"
#include "http/request_id.h"

namespace interlock::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr Duration kNever = Duration::max();
constexpr std::size_t kDropChunk = 2048;
constexpr std::size_t kKeptBufferMax = 4096;  // a consumer that rests keeps no more
constexpr std::size_t kReasonMax = 123;       // what a close frame has room for
constexpr std::uint16_t kCodesEnd = 5000;     // RFC 6455, 7.4.2: no close code from here on

// A socket whose first bytes have been read already.
class Connection {
 public:
  using next_layer_type = WebSocket::Socket;  // NOLINT(readability-identifier-naming): Beast's
  using executor_type = next_layer_type::executor_type;

  Connection(next_layer_type socket, std::string already_read)
      : socket_(std::move(socket)), already_read_(std::move(already_read)) {}

  executor_type get_executor() noexcept { return socket_.get_executor(); }
  next_layer_type& next_layer() noexcept { return socket_; }
  const next_layer_type& next_layer() const noexcept { return socket_; }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    auto initiate = [this](auto handler, const Buffers& room) {
      if (already_read_.empty()) return socket_.async_read_some(room, std::move(handler));
      const std::size_t size = asio::buffer_copy(room, asio::buffer(already_read_));
      already_read_.erase(0, size);
      if (already_read_.empty()) already_read_.shrink_to_fit();
      asio::post(get_executor(), beast::bind_front_handler(std::move(handler), error_code(), size));
    };
    return asio::async_initiate<Token, void(error_code, std::size_t)>(std::move(initiate), token,
                                                                      buffers);
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return socket_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  next_layer_type socket_;
  std::string already_read_;
};

// Beast calls this between the last frame and the end. It does nothing: WebSocket::Impl::Linger()
// follows, which unlike Beast's own bounds what it reads, and reads enough of it not to lose our
// close frame to a reset.
template <typename Handler>
void async_teardown(beast::role_type /*role*/, Connection& connection, Handler&& handler) {
  asio::post(connection.get_executor(),
             beast::bind_front_handler(std::forward<Handler>(handler), error_code()));
}

using Stream = websocket::stream<Connection, /*deflateSupported=*/false>;

}  // namespace

class WebSocket::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Socket socket, std::string already_read, const Limits& limits, Clock& clock)
      : limits_(limits),
        clock_(clock),
        stream_(std::move(socket), std::move(already_read)),
        buffer_(limits.ws_message_bytes_max + 1),  // or a full one would end without a close frame
        timer_(stream_.get_executor()) {
    error_code ignored;  // a Unix socket has no such option
    Lowest().set_option(asio::ip::tcp::no_delay(true), ignored);
    stream_.auto_fragment(false);
    stream_.read_message_max(limits.ws_message_bytes_max);
    stream_.text(true);
    websocket::stream_base::timeout timeout{};
    timeout.handshake_timeout = limits.write_timeout;
    timeout.idle_timeout = 2 * limits.ws_ping_interval;
    timeout.keep_alive_pings = true;  // at half of it
    stream_.set_option(timeout);
    stream_.control_callback([this](websocket::frame_type kind, beast::string_view /*content*/) {
      if (kind == websocket::frame_type::close) OnPeerCloses();
    });
  }

  asio::awaitable<void> Run(WebSocket& socket, std::shared_ptr<Upgrade> upgrade) {
    upgrade_ = std::move(upgrade);
    const bool accepted = co_await Accept();
    if (over_ || !accepted) upgrade_->OnEnd();
    if (!accepted) over_ = reading_ended_ = true;
    Recheck();  // the keys that let it in may be gone since
    if (!over_) Read();
    CloseReason reason = co_await upgrade_->Run(socket);
    upgrade_.reset();
    over_ = true;
    if (reason_) reason = *reason_;
    if (!reading_ended_ && !refusing_close_) co_await SayGoodbye(std::move(reason));
    co_await Linger();
    Abort();
  }

  asio::awaitable<Sent> Send(std::string_view text) {
    if (over_) co_return Sent::kOver;
    SetDeadline(limits_.write_timeout);
    const auto [error, size] = co_await stream_.async_write(asio::buffer(text), kAwait);
    ClearDeadline();
    if (error && too_slow_) co_return Sent::kTooSlow;
    co_return error || over_ ? Sent::kOver : Sent::kTaken;
  }

  void Drain() {
    limit_ = clock_.Monotonic() + limits_.linger_timeout;
    SetDeadline(limits_.linger_timeout);
    End(CloseReason{CloseCode::kGoingAway, "The server stops; connect again in a moment."});
  }

  void Recheck() {
    if (over_ || !upgrade_) return;
    if (auto refused = upgrade_->Recheck()) End(std::move(refused));
  }

  void Abort() {
    timer_.cancel();
    error_code ignored;
    Lowest().close(ignored);
  }

 private:
  Socket& Lowest() { return stream_.next_layer().next_layer(); }

  // Nothing more is to be sent but the close frame with `reason`; nothing: not even that.
  void End(std::optional<CloseReason> reason) {
    if (over_) return;
    over_ = true;
    reason_ = std::move(reason);
    if (upgrade_) upgrade_->OnEnd();
  }

  asio::awaitable<bool> Accept() {
    beast::http::request<beast::http::empty_body> request(beast::http::verb::get, "/", 11);
    request.set(beast::http::field::host, "localhost");
    request.set(beast::http::field::upgrade, "websocket");
    request.set(beast::http::field::connection, "Upgrade");
    request.set(beast::http::field::sec_websocket_version, "13");
    request.set(beast::http::field::sec_websocket_key, upgrade_->key());
    stream_.set_option(websocket::stream_base::decorator(
        [id = upgrade_->request_id](websocket::response_type& response) {
          if (!id.empty()) response.set(kRequestIdField, id);
        }));
    const auto [error] = co_await stream_.async_accept(request, kAwait);
    co_return !error;
  }

  void Read() {
    stream_.async_read(buffer_, [self = shared_from_this()](error_code error, std::size_t) {
      self->OnRead(error);
    });
  }

  void OnRead(const error_code& error) {
    if (error) {
      reading_ended_ = true;  // Beast has said why, if the peer can still hear it
      return End(std::nullopt);
    }
    if (over_) return;  // the goodbye reads what else comes
    try {
      auto refused = Hear();
      if (refused) return End(std::move(refused));
      Read();
    } catch (const std::exception&) {
      End(CloseReason{CloseCode::kInternal, "The server could not handle a message."});
    }
  }

  // Beast answers a close frame with the code it holds, and refuses all bad codes but those from
  // kCodesEnd on. A close of our own that begins here goes first, and Beast sends no other.
  void OnPeerCloses() {
    if (over_ || refusing_close_ || stream_.reason().code < kCodesEnd) return;
    refusing_close_ = true;
    const websocket::close_reason refusal(websocket::close_code::protocol_error);
    stream_.async_close(refusal, [self = shared_from_this()](error_code) {});
  }

  std::optional<CloseReason> Hear() {
    if (!stream_.got_text()) {
      return CloseReason{CloseCode::kUnsupported, "Send text, not binary messages."};
    }
    const auto bytes = buffer_.cdata();
    const std::string_view text(static_cast<const char*>(bytes.data()), bytes.size());
    // Beast looks at each frame with content, so it misses half a character before an empty last
    // one.
    if (!IsUtf8(text)) return CloseReason{CloseCode::kBadText, "Send text that is UTF-8."};
    auto refused = upgrade_->OnText(text);
    buffer_.clear();
    if (buffer_.capacity() > kKeptBufferMax) buffer_.shrink_to_fit();
    return refused;
  }

  // A slow peer may take long to read what is under way before it comes to the close frame; if it
  // is closed for being slow, it shall have that time.
  asio::awaitable<void> SayGoodbye(CloseReason reason) {
    const bool slow = reason.code == CloseCode::kTryAgainLater;
    SetDeadline(slow ? limits_.write_timeout : limits_.linger_timeout);
    const std::string_view text = std::string_view(reason.text).substr(0, kReasonMax);
    const websocket::close_reason close(static_cast<websocket::close_code>(reason.code),
                                        beast::string_view(text.data(), text.size()));
    co_await stream_.async_close(close, kAwait);
    ClearDeadline();
  }

  // Both sides have said what they had to say, or cannot. Closing with bytes unread would reset the
  // connection, and the peer could lose our last frame.
  asio::awaitable<void> Linger() {
    error_code error;
    Lowest().shutdown(Socket::shutdown_send, error);
    if (error) co_return;
    SetDeadline(limits_.linger_timeout);
    std::array<char, kDropChunk> dropped;
    std::size_t total = 0;
    while (total < limits_.linger_bytes_max) {
      const auto buffer = asio::buffer(dropped);
      const auto [failed, size] = co_await Lowest().async_read_some(buffer, kAwait);
      if (failed) break;
      total += size;
    }
    ClearDeadline();
  }

  // What is still under way at the deadline is ended by closing the socket. Moving the deadline
  // further away costs nothing: the timer looks at it when it fires.
  void SetDeadline(Duration from_now) {
    deadline_ = std::min(clock_.Monotonic() + from_now, limit_);
    if (deadline_ < armed_until_) ArmTimer(deadline_);
  }
  void ClearDeadline() { deadline_ = limit_; }
  void ArmTimer(Duration when) {
    armed_until_ = when;
    timer_.expires_after(when - clock_.Monotonic());
    timer_.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (!error && self) self->OnTimer();
    });
  }
  void OnTimer() {
    armed_until_ = kNever;
    if (deadline_ == kNever) return;
    if (deadline_ > clock_.Monotonic()) return ArmTimer(deadline_);
    too_slow_ = !over_;  // else it was over anyway, and only the goodbye took too long
    Abort();
  }

  const Limits& limits_;
  Clock& clock_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::shared_ptr<Upgrade> upgrade_;   // while it runs
  std::optional<CloseReason> reason_;  // ours, which goes before the upgrade's
  bool over_ = false;
  bool reading_ended_ = false;
  bool refusing_close_ = false;  // the peer closes with a code that is none; see OnPeerCloses()
  bool too_slow_ = false;        // the deadline passed while the upgrade was sending
  asio::steady_timer timer_;
  Duration deadline_ = kNever;
  Duration armed_until_ = kNever;
  Duration limit_ = kNever;  // no deadline is later
};

WebSocket::WebSocket(Socket socket, std::string already_read, const Limits& limits, Clock& clock)
    : impl_(std::make_shared<Impl>(std::move(socket), std::move(already_read), limits, clock)) {}
WebSocket::~WebSocket() { impl_->Abort(); }

asio::awaitable<void> WebSocket::Run(std::shared_ptr<Upgrade> upgrade) {
  return impl_->Run(*this, std::move(upgrade));
}
asio::awaitable<WebSocket::Sent> WebSocket::Send(std::string_view text) {
  return impl_->Send(text);
}
void WebSocket::Recheck() { impl_->Recheck(); }
void WebSocket::Drain() { impl_->Drain(); }
void WebSocket::Abort() { impl_->Abort(); }

}  // namespace interlock::http
