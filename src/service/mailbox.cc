#include "service/mailbox.h"

#include <optional>
#include <string>
#include <utility>

#include "service/await.h"
#include "service/storage.h"
#include "store/inbox.h"
#include "store/mailboxes.h"
#include "store/receipts.h"
#include "store/threads.h"
#include "store/topics.h"

namespace interlock::service {

namespace {

// A read of an inbox, and what it found besides the messages.
struct InboxAsked {
  const domain::InboxQuery& query;
  const std::optional<InboxNames::Boxes>& known;
  Timestamp now;
};
struct InboxRead {
  std::optional<domain::InboxEnd> end;
  InboxNames::Boxes boxes;
  bool may_change = false;
};

Result<InboxRead> ReadInboxNow(db::Connection& connection, AddressBook& book,
                               const InboxAsked& asked, domain::MessageSink& sink) {
  domain::InboxQuery query = asked.query;
  InboxRead read;
  if (asked.known) {
    query.agent = asked.known->agent;
    const std::string& name = asked.known->bare_name;
    if (!name.empty()) query.also = {query.project.value(), name};
  } else {
    IL_TRY(AddressBook::Owner owner,
           book.OwnerOf(connection, query.project, query.agent, asked.now));
    query.agent = std::move(owner.agent);
    query.also = std::move(owner.also);
    read.may_change = owner.may_change;
  }
  IL_TRY(read.end, store::ReadInbox(connection, query, sink));
  read.boxes = {.agent = query.agent, .bare_name = query.also ? query.also->name : ""};
  return read;
}

}  // namespace

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
  InboxNames& names = storage_.inbox_names();
  std::optional<InboxNames::Boxes> known;
  if (query.project) known = names.Find(*query.project, query.agent);
  if (known && storage_.in_place() && marks.EndsBy(*query.project, known->agent, query.after) &&
      (known->bare_name.empty() || marks.EndsBy(*query.project, known->bare_name, query.after))) {
    sink->Restart();
    co_return Result<void>();
  }
  auto read = [this, query, known, sink = std::move(sink),
               now = clock_.Now()](db::Connection& connection) {
    return ReadInboxNow(connection, storage_.addresses(), {query, known, now}, *sink);
  };
  IL_CO_TRY(const InboxRead found, co_await AwaitRead<InboxRead>(storage_, std::move(read)));
  if (!found.end || !query.project) co_return Result<void>();
  const std::string& project = *query.project;
  const InboxNames::Boxes& boxes = found.boxes;
  if (!known && !found.may_change) names.Learn(project, query.agent, boxes, found.end->seen);
  marks.Learn(project, boxes.agent, *found.end);
  if (!boxes.bare_name.empty()) marks.Learn(project, boxes.bare_name, *found.end);
  co_return Result<void>();
}

Mailbox::Awaitable<void> Mailbox::ReadStaleAcks(domain::StaleAcksQuery query, Sink sink) {
  auto read = [this, now = clock_.Now()](db::Connection& connection, domain::StaleAcksQuery asked,
                                         domain::MessageSink& page) -> Result<void> {
    IL_TRY(AddressBook::Owner owner,
           storage_.addresses().OwnerOf(connection, asked.project, asked.agent, now));
    asked.agent = std::move(owner.agent);
    asked.also = std::move(owner.also);
    return store::ReadStaleAcks(connection, asked, page);
  };
  return Fill(std::move(query), std::move(sink), std::move(read));
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
    auto count = [this, project = std::move(project), agent = std::move(agent),
                  now = clock_.Now()](db::Connection& connection) -> Result<Counts> {
      IL_TRY(const AddressBook::Owner owner,
             storage_.addresses().OwnerOf(connection, project, agent, now));
      return store::CountInbox(connection, project, owner.agent,
                               owner.also ? owner.also->name : "");
    };
    return storage_.Read<Counts>(std::move(count), std::move(done));
  };
  return Await<Counts>(std::move(start));
}

Mailbox::Awaitable<std::vector<domain::ThreadSummary>> Mailbox::ListThreads(
    domain::ThreadsQuery query) {
  using Threads = std::vector<domain::ThreadSummary>;
  auto start = [this, query = std::move(query)](Storage::DoneWith<Threads> done) mutable {
    auto list = [this, query = std::move(query),
                 now = clock_.Now()](db::Connection& connection) -> Result<Threads> {
      domain::ThreadsQuery by_id = query;
      IL_TRY(AddressBook::Owner owner,
             storage_.addresses().OwnerOf(connection, query.project, query.agent, now));
      by_id.agent = std::move(owner.agent);
      if (owner.also) by_id.or_name = std::move(owner.also->name);
      return store::ListThreads(connection, by_id);
    };
    return storage_.Read<Threads>(std::move(list), std::move(done));
  };
  return Await<Threads>(std::move(start));
}

Mailbox::Awaitable<domain::ReceiptOutcome> Mailbox::Record(domain::Receipt receipt) {
  using Outcome = domain::ReceiptOutcome;
  receipt.at = clock_.Now();
  auto start = [this, receipt = std::move(receipt)](Storage::DoneWith<Outcome> done) mutable {
    auto record = [this, receipt = std::move(receipt)](db::Transaction& tx) -> Result<Outcome> {
      IL_TRY(const Outcome outcome, store::RecordReceipt(tx, receipt));
      if (outcome != Outcome::kNotARecipient || receipt.agent.empty()) return outcome;
      IL_TRY(const AddressBook::Owner owner,
             storage_.addresses().OwnerOf(tx.connection(), receipt.project, receipt.agent,
                                          receipt.at));
      domain::Receipt other = receipt;
      other.agent = owner.agent;
      IL_TRY(const Outcome by_id, store::RecordReceipt(tx, other));
      if (by_id != Outcome::kNotARecipient || !owner.also) return by_id;
      other.agent = owner.also->name;
      return store::RecordReceipt(tx, other);
    };
    return storage_.Write<Outcome>(std::move(record), std::move(done));
  };
  return Await<Outcome>(std::move(start));
}

}  // namespace interlock::service
