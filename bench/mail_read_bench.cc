// What mail costs as it piles up: a page of an inbox and a send with a thousand to a million
// messages there. What reading mail costs: a page of an inbox, a thread and a topic with ten and
// with a million messages in the project, which must be the same; and a page of fifty messages over
// HTTP against the same bytes from memory, sent by our own server (what reading costs) and by a
// bare loop (what all of it costs).
//
// The million lies in the directory for temporary files, or in the one given as the first argument,
// and is removed at the end; it takes about 700 MB.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/message_page.h"
#include "base/check.h"
#include "base/clock.h"
#include "db/migrate.h"
#include "db/sqlite/connection.h"
#include "domain/mailbox.h"
#include "http_load.h"
#include "memory_server.h"
#include "report.h"
#include "store/inbox.h"
#include "store/messages.h"
#include "store/schema.h"
#include "store/threads.h"
#include "store/topics.h"
#include "testing/deaf_listener.h"
#include "testing/http_client.h"
#include "testing/server_process.h"

namespace interlock::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFew = 10;
constexpr std::int64_t kMany = 1'000'000;
constexpr std::int64_t kPage = 10;  // what the small project has, so that both pages are equal

// `count` messages, all of them to agent a, in thread t and under topic x of project p: the worst
// that a project of that size can be. Of `body_bytes` each.
std::unique_ptr<sqlite::Connection> Fill(const fs::path& path, std::int64_t count, int body_bytes) {
  SystemClock clock;
  auto connection =
      sqlite::Connection::Open({.path = path, .access = sqlite::Access::kReadWriteOrCreate})
          .value();
  IL_CHECK(db::Migrator(store::ServerSchema(), {.database = path}, clock).Run(*connection).ok());
  const std::string numbers =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
      "WHERE i < " +
      std::to_string(count) + ") ";
  const std::string body = "substr(hex(zeroblob(" + std::to_string(body_bytes) + ")), 1, " +
                           std::to_string(body_bytes) + ")";
  const std::string script =
      "BEGIN;"
      "INSERT INTO messages (cursor, project, id, sender, thread_id, topic, subject, body, "
      "importance, ack_required, recipients, created_at) " +
      numbers + "SELECT i, 'p', 'm' || i, 's', 't', 'x', 'subject', " + body +
      ", '', 0, '{\"to\":[\"a\"]}', 1767323045000000 + i FROM n;"
      "INSERT INTO inbox (project, agent, cursor, kind, ack_required) " +
      numbers +
      "SELECT 'p', 'a', i, 'to', 0 FROM n;"
      "INSERT INTO mailboxes VALUES ('p', 'a', " +
      std::to_string(count) + ", " + std::to_string(count) +
      ", 1);"
      "INSERT INTO thread_members VALUES ('p', 't', 'a', " +
      std::to_string(count) + ", " + std::to_string(count) +
      ", 0);"
      "INSERT INTO events (cursor, type, project, entity_id, created_at) VALUES (" +
      std::to_string(count) +
      ", 'message.created', 'p', 'm', 1767323045000000);"
      "COMMIT";
  const Result<void> filled = connection->RunScript(script);
  IL_CHECK(filled.ok(), filled.ok() ? "" : filled.error().message());
  return connection;
}

using ReadPage =
    std::function<Result<void>(db::Connection&, domain::Cursor after, domain::MessageSink&)>;

ReadPage InboxOf(std::optional<std::string> project) {
  return [project = std::move(project)](db::Connection& connection, domain::Cursor after,
                                        domain::MessageSink& sink) -> Result<void> {
    IL_TRY_VOID(store::ReadInbox(
        connection, {.project = project, .agent = "a", .after = after, .limit = kPage}, sink));
    return {};
  };
}

// What this thread has used of a processor, so that other people's work is not counted.
double CpuMicros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// For one page, of one round. The pages follow each other through the second half of the mail, as a
// client reads it; a small project has only the one.
double MicrosPerPage(sqlite::Connection& connection, std::int64_t count, std::int64_t round,
                     const ReadPage& read) {
  constexpr std::int64_t kPages = 2000;
  api::MessagePage page({.viewer = "a", .messages_max = kPage});
  const double start = CpuMicros();
  for (std::int64_t i = 0; i < kPages; ++i) {
    domain::Cursor after = 0;
    if (count > kPage) after = count / 2 + (round * kPages + i) * kPage % (count / 2 - kPage);
    IL_CHECK(read(connection, after, page).ok());
    IL_CHECK(page.count() == kPage);
  }
  return (CpuMicros() - start) / static_cast<double>(kPages);
}

// For one message that is kept, without its share of a commit: it is undone.
double MicrosPerSend(sqlite::Connection& connection, std::int64_t round) {
  constexpr int kSends = 500;
  std::vector<store::Outgoing> all;
  all.reserve(kSends);
  for (int i = 0; i < kSends; ++i) {
    all.push_back(store::MakeOutgoing({.id = fmt::format("new {} {}", round, i),
                                       .project = "p",
                                       .sender = "s",
                                       .thread_id = "t",
                                       .subject = "subject",
                                       .body = std::string(100, 'x'),
                                       .addresses = {.to = {"a"}},
                                       .created_at = {1'767'323'045'000'000}}));
  }
  IL_CHECK(connection.BeginExclusive().ok());
  db::Transaction tx(connection);
  const double start = CpuMicros();
  testing::DeafListener listener;
  for (const store::Outgoing& outgoing : all) {
    IL_CHECK(store::InsertMessage(tx, outgoing, listener).ok());
  }
  const double took = (CpuMicros() - start) / kSends;
  connection.Rollback();
  return took;
}

// From a thousand messages to a million, in turns.
void ReportBySize(const fs::path& directory, sqlite::Connection& million) {
  struct Size {
    std::int64_t count;
    std::unique_ptr<sqlite::Connection> connection;
    double page = 1e9;
    double send = 1e9;
  };
  std::vector<Size> sizes;
  for (const std::int64_t count : {1'000, 10'000, 100'000, 1'000'000}) {
    auto& size = sizes.emplace_back(Size{.count = count, .connection = nullptr});
    if (count < kMany) size.connection = Fill(directory / fmt::format("{}.db", count), count, 100);
  }
  const ReadPage inbox = InboxOf("p");
  for (std::int64_t round = 0; round < 5; ++round) {
    for (Size& size : sizes) {
      sqlite::Connection& connection = size.connection ? *size.connection : million;
      size.page = std::min(size.page, MicrosPerPage(connection, size.count, round, inbox));
      size.send = std::min(size.send, MicrosPerSend(connection, round));
    }
  }
  for (const Size& size : sizes) {
    const std::string there = fmt::format("by messages: {}", size.count);
    Report(
        {there + ", inbox page of 10", size.page, "us", "1000 messages there", sizes.front().page});
    Report({there + ", send, inside its transaction", size.send, "us", "1000 messages there",
            sizes.front().send});
  }
}

void ReportGrowth(const fs::path& directory) {
  const fs::path few_path = directory / "few.db";
  const fs::path many_path = directory / "many.db";
  const auto few = Fill(few_path, kFew, 100);
  const auto many = Fill(many_path, kMany, 100);
  ReportBySize(directory, *many);
  const std::pair<std::string, ReadPage> kReads[] = {
      {"inbox", InboxOf("p")},
      {"inbox of all projects", InboxOf(std::nullopt)},
      {"thread",
       [](db::Connection& connection, domain::Cursor after, domain::MessageSink& sink) {
         return store::ReadThread(
             connection, {.project = "p", .thread_id = "t", .after = after, .limit = kPage}, sink);
       }},
      {"topic",
       [](db::Connection& connection, domain::Cursor after, domain::MessageSink& sink) {
         return store::ReadTopic(
             connection, {.project = "p", .topic = "x", .after = after, .limit = kPage}, sink);
       }},
  };
  for (const auto& [name, read] : kReads) {
    double small = 1e9;
    double large = 1e9;
    for (std::int64_t round = 0; round < 7; ++round) {  // in turns: a busy moment meets both
      small = std::min(small, MicrosPerPage(*few, kFew, round, read));
      large = std::min(large, MicrosPerPage(*many, kMany, round, read));
    }
    Report({name + ", page of 10, a million messages there", large, "us", "ten messages there",
            small});
  }
}

// Fifty messages of 500 bytes, the usual size of one.
int ReportHttp(const std::string& directory) {
  Fill(fs::path(directory) / "test.db", 50, 500);
  testing::ServerProcess server(directory);
  if (!server.ready()) {
    std::fprintf(stderr, "mail_read_bench: %s", server.process().Stderr().c_str());
    return 1;
  }
  const std::string target = "/api/inbox/a?project=p&limit=50";
  const auto answer = server.Connect().Get(target);
  IL_CHECK(answer && answer->status == 200);
  IL_CHECK(answer->body.find("\"id\":\"m50\"") != std::string::npos);
  ReportRate("inbox page of 50 messages", server.port(), target);
  {
    const MemoryServer memory(answer->body.substr(0, answer->body.size() - 1));  // it ends the line
    const auto copy = testing::HttpClient::Tcp(memory.port()).Get("/memory");
    IL_CHECK(copy && copy->body == answer->body);
    Report({"inbox page of 50 messages", AnswersPerSecond(server.port(), GetRequest(target)),
            "answers/s", "the same bytes from memory, our own server",
            AnswersPerSecond(memory.port(), GetRequest("/memory"))});
  }
  server.Stop();
  return 0;
}

int Run(const fs::path& where) {
  std::string directory = where / "mail_read_bench.XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::fprintf(stderr, "mail_read_bench: cannot make a directory in %s\n", where.c_str());
    return 2;
  }
  const int code = ReportHttp(directory);
  ReportGrowth(directory);
  fs::remove_all(directory);
  return code;
}

}  // namespace
}  // namespace interlock::bench

int main(int argc, char** argv) {
  return interlock::bench::Run(argc > 1 ? argv[1] : std::filesystem::temp_directory_path());
}
