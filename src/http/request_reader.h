#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/limits.h"
#include "base/result.h"
#include "http/message.h"

namespace interlock::http {

// Makes requests out of the bytes of one connection. Does no I/O: whoever owns the socket reads
// into Prepare() and asks Advance(). Bytes of the next request that came along are kept, so
// pipelined requests come out one by one.
//
// It is strict where two readers of the same bytes could disagree about where a request ends (both
// Content-Length and Transfer-Encoding, codings other than plain chunked, no or several Hosts):
// 400. The bounds hold whatever is sent: a header beyond its limit is 431, a body 413 as soon as
// its length is declared or passed. After an error the connection has no meaning any more.
//
// Fields sent after a chunked body are dropped: they must not pass for checked headers.
//
// Used by one thread at a time.
class RequestReader {
 public:
  enum class Step : std::uint8_t {
    kNeedMore,    // Prepare(), read, Commit(), and again
    kHeaderDone,  // told once per request, if a body follows
    kDone,        // Take() it
  };

  explicit RequestReader(const Limits& limits);
  ~RequestReader();

  // Room for at least `size` bytes, valid until the next call; Commit() says how many were read.
  std::span<char> Prepare(std::size_t size);
  void Commit(std::size_t size);

  // True: no byte of a next request is here, so the peer may be called idle. Blank lines that
  // Advance() has passed are none.
  bool idle() const;

  Result<Step> Advance();

  // After kHeaderDone: the client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;

  // After kDone. Begins the next request.
  struct Taken {
    Request request;
    Persistence persistence;
  };
  Taken Take();

  // After Take(): the bytes that came behind the request, for whoever reads on in another way. The
  // reader is empty then, and keeps no buffer.
  std::string TakeRest();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace interlock::http
