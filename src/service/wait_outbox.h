#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "events/outbox.h"

namespace interlock::service {

// Waits until the outbox has something to tell, and resumes on the coroutine's own executor. A
// coroutine that is cancelled meanwhile closes the outbox. The wait counts as work of the execution
// context: it ends at the latest when the hub closes.
//
// REQUIRES: the coroutine runs on a strand, and its cancellation is emitted there.
boost::asio::awaitable<void> WaitFor(std::shared_ptr<events::Outbox> outbox);

}  // namespace interlock::service
