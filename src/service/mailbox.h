#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "domain/mailbox.h"

namespace interlock::service {

class Storage;

// Reading mail, and saying that it was read.
//
// Thread-safe. The coroutines run on the caller's strand; what they are given they own. A sink is
// filled on a storage thread while the coroutine waits; it is the caller's again after success, and
// to be left alone after an error, for a read that took too long may still be filling it.
class Mailbox {
 public:
  using Sink = std::shared_ptr<domain::MessageSink>;
  template <typename T>
  using Awaitable = boost::asio::awaitable<Result<T>>;

  // Both must outlive it.
  Mailbox(Storage& storage, Clock& clock) : storage_(storage), clock_(clock) {}

  // The time by which receipts are stamped, and ages of messages reckoned.
  Timestamp Now() { return clock_.Now(); }

  // An `agent` here is an id or a name, which means an agent as AddressBook says; kConflict
  // (ambiguous_recipient). What was stored under the name of an agent before it registered is in
  // its inbox and among its threads, too.
  Awaitable<void> ReadInbox(domain::InboxQuery query, Sink sink);
  Awaitable<domain::InboxCounts> CountInbox(std::string project, std::string agent);
  Awaitable<void> ReadStaleAcks(domain::StaleAcksQuery query, Sink sink);
  Awaitable<void> ReadThread(domain::ThreadQuery query, Sink sink);
  Awaitable<void> ReadTopic(domain::TopicQuery query, Sink sink);
  Awaitable<std::vector<domain::ThreadSummary>> ListThreads(domain::ThreadsQuery query);

  // `receipt.at` is not looked at: it becomes Now().
  Awaitable<domain::ReceiptOutcome> Record(domain::Receipt receipt);

 private:
  // Runs read(connection, query, sink) of the store.
  template <typename Query, typename Read>
  Awaitable<void> Fill(Query query, Sink sink, Read read);

  Storage& storage_;
  Clock& clock_;
};

}  // namespace interlock::service
