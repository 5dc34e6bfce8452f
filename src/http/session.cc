#include "http/session.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/limited_log.h"
#include "base/log.h"
#include "http/request_handler.h"
#include "http/request_id.h"
#include "http/websocket.h"

namespace interlock::http {
namespace {

namespace asio = boost::asio;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr Duration kNever = Duration::max();
constexpr std::chrono::milliseconds kCancelAgain{50};
constexpr std::chrono::milliseconds kTalkingPeerInterval{200};
constexpr std::size_t kReadChunk = 4096;  // idle connections keep one, so it stays small
constexpr std::size_t kBodyChunk = std::size_t{64} * 1024;

Error TooSlow() {
  return {Errc::kRequestTimeout,
          "The request did not arrive in time; send it faster, or check the network."};
}

Error NoRoom() {
  return {Errc::kUnavailable,
          "The server has all the connections it takes; close idle ones and try again."};
}

Error TooMuchUnsent() {
  return {Errc::kUnavailable,
          "Clients that do not read have left no room for an answer of this size; try again, or "
          "ask for less with limit or max_bytes."};
}

// Counts a body among those that are still to be sent, as long as it lives.
class Unsent {
 public:
  Unsent(std::atomic<std::size_t>& total, std::size_t bytes) : total_(total), bytes_(bytes) {
    total_ += bytes_;
  }
  ~Unsent() { total_ -= bytes_; }
  Unsent(const Unsent&) = delete;
  Unsent& operator=(const Unsent&) = delete;

  bool fits(const Limits& limits) const {
    return bytes_ <= limits.small_answer_bytes || total_ <= limits.unsent_bytes_max;
  }

 private:
  std::atomic<std::size_t>& total_;
  const std::size_t bytes_;
};

}  // namespace

Session::Session(Socket socket, Peer peer, const SessionContext& context)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      context_(context),
      reader_(context.limits),
      timer_(socket_.get_executor()),
      peer_timer_(socket_.get_executor()),
      deadline_(kNever),
      armed_until_(kNever) {}

Session::~Session() = default;

asio::awaitable<void> Session::Run() {
  co_await asio::this_coro::throw_if_cancelled(false);
  bool open = true;
  while (open && !draining_) {
    Incoming incoming = co_await ReadRequest();
    ClearDeadline();
    if (!incoming) break;
    if (!incoming->ok()) {
      const Response refusal = Refusal(incoming->error());
      const bool written = co_await Answer(refusal, Method::kOther, Persistence::kClose);
      if (written) co_await Linger();
      break;
    }
    fresh_ = false;
    RequestReader::Taken taken = reader_.Take();  // here it stays: it is large
    const Method method = taken.request.method;
    taken.request.peer = peer_;
    taken.request.watch_peer = [this] { WatchPeer(); };
    taken.request.id = RequestIdOf(taken.request.headers);
    std::string id = taken.request.id;
    Response response = co_await context_.handler.Answer(taken.request);
    StopWatching();
    // What follows may last, and needs nothing of it. To assign would leave texts their memory.
    (void)std::exchange(taken.request, Request());
    if (response.upgrade) {
      response.upgrade->request_id = std::move(id);
      co_await Converse(std::move(response.upgrade));
      break;
    }
    const Persistence persistence = draining_ ? Persistence::kClose : taken.persistence;
    const Unsent unsent(context_.unsent_bytes, response.body.size());
    // What a write has done is told in any case; of a refused one nothing is there to be told.
    const bool reads = method == Method::kGet || method == Method::kHead;
    const bool may_be_left_out = reads || response.status >= 400;
    if (may_be_left_out && !unsent.fits(context_.limits)) {
      response = ErrorResponse(TooMuchUnsent());
    }
    response.headers.Add(std::string(kRequestIdField), std::move(id));
    open = co_await Answer(response, method, persistence);
    served_one_ = true;
    if (open && persistence == Persistence::kClose) {
      co_await Linger();
      break;
    }
  }
  Close();
}

// Neither the route of such a request is known, nor when it began, nor the id that it may bring.
Response Session::Refusal(const Error& error) {
  Response refusal = ErrorResponse(error);
  const std::string id = NewRequestId();
  refusal.headers.Add(std::string(kRequestIdField), id);
  context_.handler.OnRefusal(refusal.status);
  context_.log.Debug("refused a connection or what came on it",
                     {{"request_id", id}, {"status", refusal.status}, {"error", error}});
  return refusal;
}

asio::awaitable<void> Session::Refuse() {
  co_await asio::this_coro::throw_if_cancelled(false);
  const Response refusal = Refusal(NoRoom());
  context_.events.Info("connection refused, too many are open", {{"peer", peer_.address}});
  const bool written = co_await Answer(refusal, Method::kOther, Persistence::kClose);
  if (written) co_await Linger();
  Close();
}

asio::awaitable<void> Session::Converse(std::shared_ptr<Upgrade> upgrade) {
  timer_.cancel();
  websocket_ = std::make_unique<WebSocket>(std::move(socket_), reader_.TakeRest(), context_.limits,
                                           context_.clock);
  if (draining_) websocket_->Drain();
  co_await websocket_->Run(std::move(upgrade));
}

void Session::Close() {
  timer_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

asio::awaitable<Session::Incoming> Session::ReadRequest() {
  enum class Phase { kBuffered, kIdle, kHeader, kBody } phase = Phase::kBuffered;
  while (true) {
    auto step = reader_.Advance();
    if (!step.ok()) co_return std::move(step).error();
    if (*step == RequestReader::Step::kDone) co_return Result<void>();
    if (*step == RequestReader::Step::kHeaderDone) {
      phase = Phase::kBody;
      if (reader_.expects_continue()) {
        const bool written = co_await WriteText("HTTP/1.1 100 Continue\r\n\r\n", "");
        if (!written) co_return std::nullopt;
      }
      SetDeadline(context_.limits.body_timeout);
      continue;
    }
    if (reader_.idle()) {
      // A blank line after a body leaves the peer as idle as it was.
      if (std::exchange(phase, Phase::kIdle) != Phase::kIdle) SetDeadline(IdleTime());
      const ReadOutcome read = co_await ReadHeaderBytes();
      if (read != ReadOutcome::kSome) co_return std::nullopt;
      continue;
    }
    if (phase < Phase::kHeader) {
      phase = Phase::kHeader;
      SetDeadline(context_.limits.header_timeout);
    }
    ReadOutcome read{};  // if and else: g++ 12 destroys both sides of a ?: that awaits
    if (phase == Phase::kBody) {
      read = co_await ReadSome(kBodyChunk);
    } else {
      read = co_await ReadHeaderBytes();
    }
    if (read == ReadOutcome::kPeerGone) co_return std::nullopt;
    if (read == ReadOutcome::kTimedOut) co_return TooSlow();
  }
}

// A fresh connection must speak as soon as a slow one must finish its header; between requests a
// client may rest longer.
Duration Session::IdleTime() const {
  return served_one_ ? context_.limits.idle_timeout : context_.limits.header_timeout;
}

// Until its header is whole there is no request: a server that stops has nothing to answer here.
asio::awaitable<Session::ReadOutcome> Session::ReadHeaderBytes() {
  if (draining_) co_return ReadOutcome::kPeerGone;
  before_request_ = true;
  const ReadOutcome read = co_await ReadSome(kReadChunk);
  before_request_ = false;
  co_return read;
}

asio::awaitable<Session::ReadOutcome> Session::ReadSome(std::size_t chunk) {
  const std::span<char> room = reader_.Prepare(chunk);
  const auto buffer = asio::buffer(room.data(), room.size());
  const auto [error, size] = co_await socket_.async_read_some(buffer, kAwait);
  if (std::exchange(timed_out_, false)) co_return ReadOutcome::kTimedOut;
  if (error) co_return ReadOutcome::kPeerGone;
  reader_.Commit(size);
  co_return ReadOutcome::kSome;
}

asio::awaitable<bool> Session::WriteText(std::string_view head, std::string_view body) {
  SetDeadline(context_.limits.write_timeout);
  const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head), asio::buffer(body)};
  const auto [error, size] = co_await asio::async_write(socket_, buffers, kAwait);
  ClearDeadline();
  co_return !std::exchange(timed_out_, false) && !error;
}

asio::awaitable<bool> Session::Answer(const Response& response, Method method,
                                      Persistence persistence) {
  const std::string head = HeadText(response, persistence, context_.clock.Now());
  const bool bodiless = method == Method::kHead || response.status == 204;
  const std::string_view body = bodiless ? std::string_view() : response.body;
  const bool written = co_await WriteText(head, body);
  co_return written;
}

asio::awaitable<void> Session::Linger() {
  boost::system::error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) co_return;
  SetDeadline(context_.limits.linger_timeout);
  std::array<char, kReadChunk> dropped;
  std::size_t total = 0;
  while (total < context_.limits.linger_bytes_max) {
    const auto [failed, size] = co_await socket_.async_read_some(asio::buffer(dropped), kAwait);
    if (failed || timed_out_) break;
    total += size;
  }
  ClearDeadline();
}

void Session::WatchPeer() {
  watching_ = true;
  socket_.async_wait(Socket::wait_read, [weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (self && self->watching_ && !error) self->OnPeerReadable();
  });
}

void Session::OnPeerReadable() {
  char byte = 0;
  const ssize_t size = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (size > 0) return WatchTalkingPeer();
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return WatchPeer();
  Abort();
}

// It has sent something more, so whether it may be read says nothing: ask now and then.
void Session::WatchTalkingPeer() {
  pollfd peer{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&peer, 1, 0) > 0) return Abort();
  peer_timer_.expires_after(kTalkingPeerInterval);
  peer_timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (self && self->watching_ && !error) self->WatchTalkingPeer();
  });
}

void Session::StopWatching() {
  if (!std::exchange(watching_, false)) return;
  peer_timer_.cancel();
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void Session::Drain() {
  draining_ = true;
  boost::system::error_code ignored;
  if (before_request_) socket_.cancel(ignored);
  if (websocket_) websocket_->Drain();
}

void Session::Recheck() {
  if (websocket_) websocket_->Recheck();
}

void Session::Abort() {
  draining_ = true;
  Close();
  if (websocket_) websocket_->Abort();
  cancel_.emit(asio::cancellation_type::terminal);
}

void Session::SetDeadline(Duration from_now) {
  timed_out_ = false;
  deadline_ = context_.clock.Monotonic() + from_now;
  if (deadline_ < armed_until_) ArmTimer(deadline_);
}

void Session::ClearDeadline() { deadline_ = kNever; }

void Session::ArmTimer(Duration when) {
  armed_until_ = when;
  timer_.expires_after(when - context_.clock.Monotonic());
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    if (error) return;
    if (const auto self = weak.lock()) self->OnTimer();
  });
}

void Session::OnTimer() {
  armed_until_ = kNever;
  if (deadline_ == kNever) return;
  const Duration now = context_.clock.Monotonic();
  if (deadline_ > now) return ArmTimer(deadline_);
  timed_out_ = true;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
  // A read or write that had just ended is not cancelled, and the next part of it may already be
  // under way: ask again until the deadline is taken back.
  ArmTimer(now + kCancelAgain);
}

}  // namespace interlock::http
