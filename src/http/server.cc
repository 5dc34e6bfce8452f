#include "http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <exception>
#include <future>
#include <iterator>
#include <list>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "http/session.h"

namespace interlock::http {
namespace {

namespace asio = boost::asio;

using Protocol = asio::generic::stream_protocol;
using Acceptor = asio::basic_socket_acceptor<Protocol>;

// How long accepting rests when the process is out of descriptors or memory.
constexpr std::chrono::milliseconds kAcceptRest{100};

// Of a connection that is refused, or told to go.
constexpr std::uint64_t kNoNewcomer = 0;

Peer PeerOf(int fd, ListeningSocket::Kind kind) {
  if (kind == ListeningSocket::Kind::kUnix) return {Peer::Kind::kUnix, ""};
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return {Peer::Kind::kTcp, ""};
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const bytes =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&address)->sin_addr);
  ::inet_ntop(address.ss_family, bytes, text.data(), text.size());
  return {Peer::Kind::kTcp, text.data()};
}

std::string What(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

}  // namespace

class Server::Impl {
 public:
  Impl(RequestHandler& handler, Logger& log, LimitedLog& events, Clock& clock, Options options)
      : options_(options), context_{handler, log, events, clock, options_.limits, unsent_bytes_} {
    IL_CHECK(options_.io_threads > 0);
    for (int i = 0; i < options_.io_threads; ++i) loops_.emplace_back();
  }

  void Listen(ListeningSocket socket) {
    IL_CHECK(threads_.empty());
    const int family = socket.kind == ListeningSocket::Kind::kUnix ? AF_UNIX : AF_INET;
    listeners_.emplace_back(Acceptor(loops_.front().executor()), socket.kind,
                            std::move(socket.file));
    listeners_.back().acceptor.assign(Protocol(family, 0), socket.fd.Release());
  }

  void Start() {
    IL_CHECK(threads_.empty());
    for (Listener& listener : listeners_) {
      asio::co_spawn(listener.acceptor.get_executor(), Accept(listener),
                     [this](const std::exception_ptr& exception) { Escaped(exception); });
    }
    for (Loop& loop : loops_) threads_.emplace_back([&loop] { loop.io.run(); });
  }

  void StopAccepting() {
    for (const auto kind : {ListeningSocket::Kind::kUnix, ListeningSocket::Kind::kTcp}) {
      for (Listener& listener : listeners_) {
        if (listener.kind != kind) continue;
        // While it is served nobody else takes the path, and the number of its inode is ours.
        listener.file.Remove();
        std::promise<void> closed;
        asio::post(listener.acceptor.get_executor(), [&] {
          boost::system::error_code ignored;
          listener.acceptor.close(ignored);
          listener.rest.cancel();
          closed.set_value();
        });
        closed.get_future().wait();
      }
    }
  }

  Drained Drain() IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      draining_ = true;
    }
    ForEachSession([](Session& session) { session.Drain(); });
    if (WaitUntilEmpty(options_.limits.drain_timeout)) return Drained::kAll;
    ForEachSession([](Session& session) { session.Abort(); });
    return Drained::kSomeAborted;
  }

  void RecheckCallers() {
    ForEachSession([](Session& session) { session.Recheck(); });
  }

  void Join() {
    for (Loop& loop : loops_) loop.work.reset();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::size_t connections() const IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return serving_;
  }

  bool joined() const { return threads_.empty(); }

 private:
  // What one io thread runs. A connection belongs to one of them for good: what happens to it
  // happens on one thread, so it needs no lock, and wakes nobody else.
  struct Loop {
    // Makes the event queue, which needs file descriptors, here: on the thread that uses it first
    // its failure would end the program.
    Loop() { const Acceptor first_use(io); }

    asio::any_io_executor executor() { return io.get_executor(); }

    asio::io_context io{1};  // one thread
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  };

  // Each in turn.
  Loop& NextLoop() {
    const std::size_t turn = turn_.fetch_add(1, std::memory_order_relaxed) % loops_.size();
    return *std::next(loops_.begin(), static_cast<std::ptrdiff_t>(turn));
  }

  struct Listener {
    Listener(Acceptor a, ListeningSocket::Kind k, SocketFile f)
        : acceptor(std::move(a)), rest(acceptor.get_executor()), kind(k), file(std::move(f)) {}

    Acceptor acceptor;  // on the first loop, with `rest`
    asio::steady_timer rest;
    ListeningSocket::Kind kind;
    SocketFile file;
  };

  // A coroutine of ours must not end by an exception: sessions catch per request, so what comes
  // here is a bug or a lack of memory, and the connection is lost.
  void Escaped(const std::exception_ptr& exception) {
    if (!exception) return;
    context_.log.Error("a connection ended by an exception", {{"what", What(exception)}});
  }

  // Ends when the acceptor is closed, and for no other reason: after a failure, be it a lack of
  // descriptors or of memory, it rests and tries again. A row of failures is logged once.
  asio::awaitable<void> Accept(Listener& listener) {
    constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
    std::string failure;  // of the last attempt; "" = none
    while (listener.acceptor.is_open()) {
      try {
        if (!failure.empty()) {
          if (!accept_failing_.exchange(true)) {
            context_.log.Warn("accepting connections fails; trying again until it works",
                              {{"what", failure}});
          }
          failure.clear();
          listener.rest.expires_after(kAcceptRest);
          co_await listener.rest.async_wait(kAwait);
          if (!listener.acceptor.is_open()) break;
        }
        const asio::any_io_executor home = NextLoop().executor();
        auto [error, socket] = co_await listener.acceptor.async_accept(home, kAwait);
        if (!error) {
          Admit(std::move(socket), listener.kind);
          if (accept_failing_.exchange(false)) {
            context_.log.Info("accepting connections again");
          }
          continue;
        }
        if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) break;
        if (error != asio::error::connection_aborted) failure = error.message();
      } catch (...) {
        failure = What(std::current_exception());
      }
    }
  }

  void Admit(Socket socket, ListeningSocket::Kind kind) IL_EXCLUDES(mutex_) {
    Peer peer = PeerOf(socket.native_handle(), kind);
    auto session = std::make_shared<Session>(std::move(socket), std::move(peer), context_);
    std::size_t* count = nullptr;
    std::shared_ptr<Session> slowest;
    {
      MutexLock lock(mutex_);
      if (draining_) return;
      if (serving_ >= options_.limits.connections_max) slowest = TakeSlowest();
      if (slowest || serving_ < options_.limits.connections_max) {
        count = &serving_;
      } else if (refusing_ < options_.limits.refusals_max) {
        count = &refusing_;
      } else {
        return;
      }
      sessions_.emplace(session, count == &serving_ ? ++arrivals_ : kNoNewcomer);
      ++*count;
    }
    const bool serve = count == &serving_;
    auto ended = [this, session, serve](const std::exception_ptr& exception) {
      Escaped(exception);
      Remove(session, serve);
    };
    Session& living = *session;
    try {
      asio::co_spawn(living.executor(), serve ? living.Run() : living.Refuse(),
                     asio::bind_cancellation_slot(living.cancellation_slot(), std::move(ended)));
    } catch (...) {
      Remove(session, serve);
      throw;
    }
    if (!slowest) return;
    asio::post(slowest->executor(), [slowest] {
      if (slowest->fresh()) slowest->Abort();  // else its request came meanwhile, and is answered
    });
  }

  // When every place is taken: the connection that has been here longest without sending a whole
  // request, which gives its place to one that may; null when there is none. Who holds sockets open
  // and says nothing thus keeps nobody out. The place is free once the old one has ended; as many
  // as may be refused at a time may be on their way out as well. Those that are refused, and
  // linger, take nothing of that: else a crowd that comes at once would keep others out as long.
  std::shared_ptr<Session> TakeSlowest() IL_REQUIRES(mutex_) {
    const Limits& limits = options_.limits;
    if (serving_ >= limits.connections_max + limits.refusals_max) return nullptr;
    auto slowest = sessions_.end();
    for (auto one = sessions_.begin(); one != sessions_.end(); ++one) {
      if (one->second == kNoNewcomer || !one->first->fresh()) continue;
      if (slowest == sessions_.end() || one->second < slowest->second) slowest = one;
    }
    if (slowest == sessions_.end()) return nullptr;
    slowest->second = kNoNewcomer;  // it goes already
    return slowest->first;
  }

  void Remove(const std::shared_ptr<Session>& session, bool served) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    sessions_.erase(session);
    --(served ? serving_ : refusing_);
    if (sessions_.empty()) empty_.NotifyAll();
  }

  template <typename Fn>
  void ForEachSession(Fn fn) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (const auto& [one, arrival] : sessions_) {
      const std::shared_ptr<Session>& session = one;
      asio::post(session->executor(), [session, fn] { fn(*session); });
    }
  }

  bool WaitUntilEmpty(Duration limit) IL_EXCLUDES(mutex_) {
    const Duration end = context_.clock.Monotonic() + limit;
    MutexLock lock(mutex_);
    while (!sessions_.empty()) {
      const Duration left = end - context_.clock.Monotonic();
      if (left <= Duration::zero()) return false;
      empty_.WaitFor(mutex_, left);
    }
    return true;
  }

  const Options options_;
  std::atomic<std::size_t> unsent_bytes_ = 0;
  const SessionContext context_;
  std::list<Loop> loops_;  // one per io thread; addresses stay
  std::atomic<std::size_t> turn_ = 0;
  std::atomic<bool> accept_failing_ = false;  // descriptors lack to all listeners at once
  std::list<Listener> listeners_;             // addresses stay

  mutable Mutex mutex_;
  CondVar empty_;
  // Each with its place in the order of coming, or kNoNewcomer.
  std::unordered_map<std::shared_ptr<Session>, std::uint64_t> sessions_ IL_GUARDED_BY(mutex_);
  std::uint64_t arrivals_ IL_GUARDED_BY(mutex_) = 0;
  std::size_t serving_ IL_GUARDED_BY(mutex_) = 0;
  std::size_t refusing_ IL_GUARDED_BY(mutex_) = 0;
  bool draining_ IL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;  // main's; each runs one of loops_
};

Server::Server(RequestHandler& handler, Logger& log, LimitedLog& events, Clock& clock,
               Options options)
    : impl_(std::make_unique<Impl>(handler, log, events, clock, options)) {}
Server::~Server() { IL_CHECK(impl_->joined()); }

void Server::Listen(ListeningSocket socket) { impl_->Listen(std::move(socket)); }
void Server::Start() { impl_->Start(); }
void Server::StopAccepting() { impl_->StopAccepting(); }
Server::Drained Server::Drain() { return impl_->Drain(); }
void Server::Join() { impl_->Join(); }
void Server::RecheckCallers() { impl_->RecheckCallers(); }
std::size_t Server::connections() const { return impl_->connections(); }

}  // namespace interlock::http
