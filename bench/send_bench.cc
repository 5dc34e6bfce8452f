// What a durable send costs: POST /api/messages over 64 connections that stay open, against the
// same statements by SQLite's C interface alone, one thread, 64 messages per transaction: the look
// for what the recipient allows, then the INSERTs. The server does more that has no counterpart
// there: HTTP, JSON, ids, and the read of the log's end for those who follow it. Both with the same
// settings (synchronous=FULL, cache, how long the log may grow, no locks within a connection,
// db/sqlite/library.h) and the same malloc, on fresh files in one directory, as many messages each,
// in turns, so that a disk that slows down slows both. The load generator runs beside the server on
// the same processors and is part of its figure; processor time is told without it.
//
// The files lie in the current directory, or in the one given as the first argument. A tmpfs has no
// fsync and would make the comparison meaningless: it is refused.

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/id.h"
#include "db/migrate.h"
#include "db/sqlite/connection.h"
#include "db/sqlite/group_writer.h"
#include "db/sqlite/library.h"
#include "http_load.h"
#include "on_disk.h"
#include "process_use.h"
#include "report.h"
#include "store/contacts.h"
#include "store/events.h"
#include "store/mailboxes.h"
#include "store/messages.h"
#include "store/schema.h"
#include "testing/server_process.h"
#include "turns.h"

namespace interlock::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kConnections = 64;
constexpr int kPerTransaction = 64;
constexpr int kSends = 16'000;
constexpr std::size_t kTurns = 11;
constexpr int kAgents = 16;
constexpr int kThreads = 100;
const std::string kBody(500, 'x');

std::string Agent(int number) { return "agent-" + std::to_string(number % kAgents); }

// The i-th message: from one agent to another, in one of some threads.
domain::Message MessageOf(int i) {
  domain::Message message;
  message.project = "bench";
  message.sender = Agent(i);
  message.thread_id = "thread-" + std::to_string(i % kThreads);
  message.subject = "About the tests";
  message.body = kBody;
  message.addresses.to = {Agent(i + 1 + i % 7)};
  return message;
}

std::string RequestFor(int i) {
  const domain::Message message = MessageOf(i);
  const std::string json = R"({"project":")" + message.project + R"(","from":")" + message.sender +
                           R"(","to":[")" + message.addresses.to[0] + R"("],"thread_id":")" +
                           message.thread_id + R"(","subject":")" + message.subject +
                           R"(","body":")" + message.body + "\"}";
  return "POST /api/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(json.size()) + "\r\n\r\n" + json;
}

struct Measured {
  double sends_per_s = 0;
  double cpu_micros = 0;  // of one send
  double per_commit = 0;
};

// One statement of the store, run by hand.
class Statement {
 public:
  Statement(sqlite3* db, std::span<const db::NamedSql> of, std::string_view name) {
    const auto found = std::ranges::find(of, name, &db::NamedSql::name);
    IL_CHECK(found != of.end(), name);
    const std::string_view text = found->sql.text();
    IL_CHECK(sqlite3_prepare_v2(db, text.data(), static_cast<int>(text.size()), &statement_,
                                nullptr) == SQLITE_OK);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Runs it to its end.
  template <typename... Values>
  void Run(const Values&... values) {
    int index = 0;
    (Bind(++index, values), ...);
    int code = SQLITE_ROW;
    while (code == SQLITE_ROW) code = sqlite3_step(statement_);
    IL_CHECK(code == SQLITE_DONE);
    sqlite3_reset(statement_);
  }

 private:
  void Bind(int index, std::int64_t value) { sqlite3_bind_int64(statement_, index, value); }
  void Bind(int index, std::string_view text) {
    sqlite3_bind_text(statement_, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }
  void Bind(int index, std::nullptr_t) { sqlite3_bind_null(statement_, index); }

  sqlite3_stmt* statement_ = nullptr;
};

// What service::Mail does with the database for a message in a thread, to one agent.
class RawSender {
 public:
  explicit RawSender(sqlite3* db)
      : db_(db),
        policies_(db, store::ContactStatements(), "kPoliciesOfOne"),
        append_(db, store::EventStatements(), "kAppend"),
        message_(db, store::MessageStatements(), "kInsertMessage"),
        deliver_(db, store::MessageStatements(), "kDeliver"),
        mailbox_(db, store::MailboxStatements(), "kOneMore"),
        first_(db, store::MailboxStatements(), "kFirst"),
        abroad_(db, store::MailboxStatements(), "kAddAbroad"),
        count_(db, store::MessageStatements(), "kCountInThread") {}

  void Send(const store::Outgoing& outgoing) {
    const domain::Message& m = outgoing.message;
    const std::int64_t none = 0;
    const std::string& to = m.addresses.to[0];
    policies_.Run(to);
    append_.Run(outgoing.event.type, m.project, m.id, m.sender, m.created_at.micros,
                outgoing.event.data);
    const std::int64_t cursor = sqlite3_last_insert_rowid(db_);
    message_.Run(cursor, m.project, m.id, m.sender, m.thread_id, nullptr, m.subject, m.body,
                 m.importance, none, outgoing.recipients, m.created_at.micros);
    deliver_.Run(m.project, to, cursor, std::string_view("to"), none);
    mailbox_.Run(m.project, to);
    if (sqlite3_changes(db_) == 0) first_.Run(m.project, to);
    abroad_.Run(m.project, to, cursor);
    count_.Run(m.project, m.thread_id, m.sender, cursor, std::int64_t{1});
    if (to != m.sender) count_.Run(m.project, m.thread_id, to, cursor, none);
  }

 private:
  sqlite3* db_;
  Statement policies_;
  Statement append_;
  Statement message_;
  Statement deliver_;
  Statement mailbox_;
  Statement first_;
  Statement abroad_;
  Statement count_;
};

void MakeSchema(const fs::path& path, Clock& clock) {
  auto connection =
      sqlite::Connection::Open({.path = path, .access = sqlite::Access::kReadWriteOrCreate})
          .value();
  IL_CHECK(db::Migrator(store::ServerSchema(), {.database = path}, clock).Run(*connection).ok());
}

Measured Raw(const fs::path& directory) {
  IL_CHECK(sqlite::SetUpLibrary());
  SystemClock clock;
  Csprng random;
  UuidMaker ids(clock, random);
  const fs::path path = directory / "raw.db";
  MakeSchema(path, clock);
  std::vector<store::Outgoing> all;
  all.reserve(kSends);
  for (int i = 0; i < kSends; ++i) {
    domain::Message message = MessageOf(i);
    message.id = ids.Next().Text();
    message.created_at = clock.Now();
    all.push_back(store::MakeOutgoing(std::move(message)));
  }
  sqlite3* db = nullptr;
  IL_CHECK(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                           nullptr) == SQLITE_OK);
  const auto run = [&](const char* text) {
    IL_CHECK(sqlite3_exec(db, text, nullptr, nullptr, nullptr) == SQLITE_OK, text);
  };
  // As the server has it (sqlite::Connection, GroupWriter); SQLite moves the log within a COMMIT.
  run("PRAGMA synchronous=FULL");
  run("PRAGMA cache_size=-16384");
  run("PRAGMA temp_store=MEMORY");
  run("PRAGMA foreign_keys=ON");
  const int log_pages_max = sqlite::GroupWriter::Options().log_pages_max;
  IL_CHECK(sqlite3_wal_autocheckpoint(db, log_pages_max) == SQLITE_OK);
  Measured measured{.per_commit = kPerTransaction};
  {
    RawSender sender(db);
    const double cpu = CpuSeconds(::getpid());
    const Duration begin = clock.Monotonic();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % kPerTransaction == 0) run("BEGIN IMMEDIATE");
      sender.Send(all[i]);
      if ((i + 1) % kPerTransaction == 0 || i + 1 == all.size()) run("COMMIT");
    }
    const std::chrono::duration<double> took = clock.Monotonic() - begin;
    measured.sends_per_s = kSends / took.count();
    measured.cpu_micros = (CpuSeconds(::getpid()) - cpu) / kSends * 1e6;
  }
  sqlite3_close(db);
  return measured;
}

// The value of a line of /metrics.
double Metric(const testing::ServerProcess& server, const std::string& name) {
  const auto answer = server.Connect().Get("/metrics");
  IL_CHECK(answer && answer->status == 200);
  const std::size_t at = answer->body.find("\n" + name + " ");
  IL_CHECK(at != std::string::npos, name);
  return std::atof(answer->body.c_str() + at + name.size() + 2);
}

Measured Served(const fs::path& directory) {
  testing::ServerProcess server(directory);
  if (!server.ready()) {
    std::fprintf(stderr, "send_bench: %s", server.process().Stderr().c_str());
    std::exit(1);
  }
  const std::string batches = "intermute_storage_batch_writes";
  const double writes = Metric(server, batches + "_sum");
  const double commits = Metric(server, batches + "_count");
  // Made beforehand, as what raw SQLite is given.
  std::vector<std::string> requests;
  requests.reserve(kSends);
  for (int i = 0; i < kSends; ++i) requests.push_back(RequestFor(i));
  const double cpu = CpuSeconds(server.process().pid());
  const double took = SecondsFor(server.port(), kConnections, requests);
  const double used = CpuSeconds(server.process().pid()) - cpu;
  const double committed = Metric(server, batches + "_sum") - writes;
  IL_CHECK(committed >= kSends);
  const double per_commit = committed / (Metric(server, batches + "_count") - commits);
  server.Stop();
  return {kSends / took, used / kSends * 1e6, per_commit};
}

std::vector<double> Values(const std::vector<Measured>& turns, double Measured::* member) {
  std::vector<double> values;
  values.reserve(turns.size());
  for (const Measured& turn : turns) values.push_back(turn.*member);
  return values;
}

int Run(const fs::path& where) {
  std::string directory = where / "send_bench.XXXXXX";
  if (!IsOnDisk(where)) return 2;
  if (::mkdtemp(directory.data()) == nullptr) {
    std::perror(directory.c_str());
    return 2;
  }
  std::vector<Measured> raw;
  std::vector<Measured> served;
  const Turns turns(kTurns, [&] {
    const fs::path own = fs::path(directory) / std::to_string(raw.size());
    fs::create_directory(own);
    raw.push_back(Raw(own));
    served.push_back(Served(own));
    fs::remove_all(own);
  });
  fs::remove_all(directory);
  turns.ReportRates("durable send, 64 connections, 500 bytes",
                    Values(served, &Measured::sends_per_s), "sends/s", "raw SQLite, batches of 64",
                    Values(raw, &Measured::sends_per_s));
  turns.ReportStolen("durable send");
  const auto middle = [&](const std::vector<Measured>& of, double Measured::* member) {
    return Middle(turns.Counted(Values(of, member)));
  };
  Report({"durable send, processor time of the server", middle(served, &Measured::cpu_micros), "us",
          "raw SQLite, batches of 64", middle(raw, &Measured::cpu_micros)});
  Report(
      {"durable send, batch size", middle(served, &Measured::per_commit), "sends/commit", "", 0});
  return 0;
}

}  // namespace
}  // namespace interlock::bench

int main(int argc, char** argv) {
  return interlock::bench::Run(argc > 1 ? argv[1] : std::filesystem::current_path());
}
