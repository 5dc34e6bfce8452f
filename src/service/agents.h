#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/secret.h"

namespace interlock::service {

class Storage;

// What agents do with themselves.
//
// Thread-safe. The coroutines run on the caller's strand; what they are given they own.
class Agents {
 public:
  // Must outlive it.
  explicit Agents(Storage& storage) : storage_(storage) {}

  // The id of the living agent that this token was given to.
  boost::asio::awaitable<Result<std::optional<std::string>>> OfToken(Secret token);

 private:
  Storage& storage_;
};

}  // namespace interlock::service
