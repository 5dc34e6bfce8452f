#include "service/mailbox.h"

#include <utility>

#include "service/await.h"
#include "service/storage.h"
#include "store/inbox.h"
#include "store/mailboxes.h"
#include "store/receipts.h"
#include "store/threads.h"
#include "store/topics.h"

namespace interlock::service {

template <typename Query, typename Read>
Mailbox::Awaitable<void> Mailbox::Fill(Query query, Sink sink, Read read) {
  auto start = [this, query = std::move(query), sink = std::move(sink),
                read](Storage::Done done) mutable {
    return storage_.Read([query = std::move(query), sink = std::move(sink), read](
                             db::Connection& connection) { return read(connection, query, *sink); },
                         std::move(done));
  };
  return Await<void>(std::move(start));
}

Mailbox::Awaitable<void> Mailbox::ReadInbox(domain::InboxQuery query, Sink sink) {
  InboxMarks& marks = storage_.inboxes();
  if (query.project && storage_.in_place() &&
      marks.EndsBy(*query.project, query.agent, query.after)) {
    sink->Restart();
    co_return Result<void>();
  }
  using End = std::optional<domain::InboxEnd>;
  const auto shared = std::make_shared<const domain::InboxQuery>(std::move(query));
  auto read = [shared, sink = std::move(sink)](db::Connection& connection) {
    return store::ReadInbox(connection, *shared, *sink);
  };
  IL_CO_TRY(const End end, co_await AwaitRead<End>(storage_, std::move(read)));
  if (end && shared->project) marks.Learn(*shared->project, shared->agent, *end);
  co_return Result<void>();
}

Mailbox::Awaitable<void> Mailbox::ReadStaleAcks(domain::StaleAcksQuery query, Sink sink) {
  return Fill(std::move(query), std::move(sink), store::ReadStaleAcks);
}

Mailbox::Awaitable<void> Mailbox::ReadThread(domain::ThreadQuery query, Sink sink) {
  return Fill(std::move(query), std::move(sink), store::ReadThread);
}

Mailbox::Awaitable<void> Mailbox::ReadTopic(domain::TopicQuery query, Sink sink) {
  return Fill(std::move(query), std::move(sink), store::ReadTopic);
}

Mailbox::Awaitable<domain::InboxCounts> Mailbox::CountInbox(std::string project,
                                                            std::string agent) {
  using Counts = domain::InboxCounts;
  auto start = [this, project = std::move(project),
                agent = std::move(agent)](Storage::DoneWith<Counts> done) mutable {
    auto count = [project = std::move(project),
                  agent = std::move(agent)](db::Connection& connection) {
      return store::CountInbox(connection, project, agent);
    };
    return storage_.Read<Counts>(std::move(count), std::move(done));
  };
  return Await<Counts>(std::move(start));
}

Mailbox::Awaitable<std::vector<domain::ThreadSummary>> Mailbox::ListThreads(
    domain::ThreadsQuery query) {
  using Threads = std::vector<domain::ThreadSummary>;
  auto start = [this, query = std::move(query)](Storage::DoneWith<Threads> done) mutable {
    auto list = [query = std::move(query)](db::Connection& connection) {
      return store::ListThreads(connection, query);
    };
    return storage_.Read<Threads>(std::move(list), std::move(done));
  };
  return Await<Threads>(std::move(start));
}

Mailbox::Awaitable<domain::ReceiptOutcome> Mailbox::Record(domain::Receipt receipt) {
  using Outcome = domain::ReceiptOutcome;
  receipt.at = clock_.Now();
  auto start = [this, receipt = std::move(receipt)](Storage::DoneWith<Outcome> done) mutable {
    auto record = [receipt = std::move(receipt)](db::Transaction& tx) {
      return store::RecordReceipt(tx, receipt);
    };
    return storage_.Write<Outcome>(std::move(record), std::move(done));
  };
  return Await<Outcome>(std::move(start));
}

}  // namespace interlock::service
