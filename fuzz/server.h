#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace interlock::fuzz {

// The server as one connection sees it: the real session, routes, services and database behind one
// end of a socket pair, on virtual time, without threads. What is stored when it is built is all
// there ever is: a write runs, SQL and all, and is then refused as a conflict, so that every
// conversation begins with the same state.
//
// One thread. Fails a check when a conversation does not come to its end, when a handler throws or
// answers 500, and when a conversation leaves anything behind.
class FuzzServer {
 public:
  static constexpr int kEvents = 3;  // in the log, of the project "p", cursors from 1

  // Small, so that inputs reach them.
  static Limits SmallLimits();

  FuzzServer();
  ~FuzzServer();
  FuzzServer(const FuzzServer&) = delete;
  FuzzServer& operator=(const FuzzServer&) = delete;

  // All that the server says to a client that sends `bytes`, says no more, and reads to the end.
  std::string Converse(std::string_view bytes);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace interlock::fuzz
