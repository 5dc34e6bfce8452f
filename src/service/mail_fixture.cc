#include "service/mail_fixture.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "db/migrate.h"
#include "db/wait.h"
#include "store/agents.h"
#include "store/contacts.h"
#include "store/schema.h"

namespace interlock::service {
namespace {

namespace asio = boost::asio;

template <typename T>
asio::awaitable<void> Store(asio::awaitable<T> coroutine, std::optional<T>& result) {
  result.emplace(co_await std::move(coroutine));
}

// Runs a coroutine to its end on a loop of this thread's own.
template <typename T>
T RunHere(asio::awaitable<T> coroutine) {
  asio::io_context io;
  std::optional<T> result;
  asio::co_spawn(io, Store(std::move(coroutine), result), [](const std::exception_ptr& e) {
    if (e) std::rethrow_exception(e);
  });
  io.run();
  IL_CHECK(result.has_value());
  return *std::move(result);
}

class IdSink final : public domain::MessageSink {
 public:
  void Restart() override { ids_.clear(); }
  domain::Flow Add(const domain::MessageView& message) override {
    ids_.emplace_back(message.id);
    return domain::Flow::kGoOn;
  }
  const std::vector<std::string>& ids() const { return ids_; }

 private:
  std::vector<std::string> ids_;
};

}  // namespace

MailTest::MailTest() {
  {
    auto connection = file_.Open();
    db::Migrator migrator(store::ServerSchema(), {.database = file_.path()}, clock_);
    IL_CHECK(migrator.Run(*connection).ok());
  }
  // What a power cut does is not asked here.
  sqlite_ = sqlite::Database::Open({.path = file_.path(), .durability = sqlite::Durability::kFast},
                                   system_clock_)
                .value();
  database_ = std::make_unique<BentDatabase>(*sqlite_);
  storage_ = std::make_unique<Storage>(*database_, system_clock_);
  mail_ = std::make_unique<Mail>(*storage_, clock_, ids_);
  mailbox_ = std::make_unique<Mailbox>(*storage_, clock_);
}

MailTest::~MailTest() {
  storage_->Stop();
  EXPECT_TRUE(sqlite_->Close().ok());
}

Result<Mail::Delivery> MailTest::Send(Mail::Draft draft) {
  return RunHere(mail_->Send(std::move(draft)));
}

Result<Mail::Delivery> MailTest::Broadcast(Mail::Announcement announcement) {
  return RunHere(mail_->Broadcast(std::move(announcement)));
}

Result<MailTest::Texts> MailTest::TryReadInbox(domain::InboxQuery query) {
  const auto sink = std::make_shared<IdSink>();
  IL_TRY_VOID(RunHere(mailbox_->ReadInbox(std::move(query), sink)));
  return sink->ids();
}

MailTest::Texts MailTest::ReadInbox(domain::InboxQuery query) {
  const Result<Texts> read = TryReadInbox(std::move(query));
  EXPECT_TRUE(read.ok()) << read.error();
  return read.ok() ? *read : Texts();
}

void MailTest::Write(const std::function<Result<void>(db::Transaction&)>& fn) {
  const Result<void> written = db::WriteAndWait(*sqlite_, fn);
  IL_CHECK(written.ok(), written.ok() ? "" : written.error().message());
}

void MailTest::RegisterAll(const std::vector<NewAgent>& agents) {
  Write([&](db::Transaction& tx) -> Result<void> {
    for (const NewAgent& agent : agents) {
      IL_TRY(const auto known, store::FindAgent(tx.connection(), agent.id));
      if (known) {
        IL_TRY_VOID(store::SetPolicies(tx, agent.id, {.mail = agent.policy}));
      } else {
        const auto hash = std::as_bytes(std::span(agent.id));
        IL_TRY_VOID(store::InsertAgent(tx,
                                       {.id = agent.id,
                                        .project = agent.project,
                                        .session_id = agent.id,
                                        .name = agent.name.empty() ? agent.id : agent.name,
                                        .policies = {.mail = agent.policy},
                                        .last_seen = agent.last_seen},
                                       hash));
      }
      storage_->inbox_names().Changed(agent.project, agent.id,
                                      agent.name.empty() ? agent.id : agent.name, 0);
      for (const std::string& contact : agent.contacts) {
        IL_TRY_VOID(store::AddContact(tx, agent.id, contact, {}));
      }
    }
    return {};
  });
}

void MailTest::Deregister(std::string_view id) {
  Write([&](db::Transaction& tx) -> Result<void> {
    IL_TRY(const auto agent, store::FindCard(tx.connection(), id));
    storage_->inbox_names().Changed(agent->project, id, agent->name, 0);
    return store::SetDeregistered(tx, id, {1});
  });
}

MailTest::Texts MailTest::Rows(const db::Sql& sql, const std::vector<db::Value>& values) {
  Texts rows;
  const auto take = [&](const db::Row& row) -> Result<void> {
    rows.push_back(row.String(0));
    return {};
  };
  const auto read = db::ReadAndWait(*sqlite_, [&](db::Connection& connection) -> Result<void> {
    IL_TRY_VOID(connection.Execute(sql, values, take));
    return {};
  });
  EXPECT_TRUE(read.ok());
  return rows;
}

std::int64_t MailTest::Count(const db::Sql& sql) {
  std::int64_t count = -1;
  const auto read = db::ReadAndWait(*sqlite_, [&](db::Connection& connection) -> Result<void> {
    IL_TRY_VOID(connection.ForEach(sql, [&](const db::Row& row) { count = row.Int(0); }));
    return {};
  });
  EXPECT_TRUE(read.ok());
  return count;
}

}  // namespace interlock::service
