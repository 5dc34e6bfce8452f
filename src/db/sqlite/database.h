#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "db/database.h"
#include "db/sqlite/connection.h"
#include "db/sqlite/files.h"
#include "db/sqlite/gathering_vfs.h"
#include "db/sqlite/group_writer.h"
#include "db/sqlite/read_pool.h"

namespace interlock::sqlite {

struct DatabaseOptions {
  std::filesystem::path path = {};  // made when missing, see files.h
  Durability durability = Durability::kFull;
  std::chrono::milliseconds busy_timeout{250};
  std::size_t write_queue_max = 4096;
  std::size_t batch_max = 256;
  int log_pages_max = GroupWriter::Options().log_pages_max;  // tests have a shorter log
  std::size_t read_queue_max = 4096;
  std::size_t readers = 4;  // threads and connections
  Drive drive = Drive::kThreads;
  GroupWriter::OnReopened on_reopened = {};
  GroupWriter::OnCommitted on_committed = {};
  std::string vfs = {};  // empty = SQLite's own
};

// One SQLite file as a db::Database: writes through a GroupWriter, reads through a ReadPool.
//
// Thread-safe. After Close() there is one file on disk, no -wal and no -shm, unless another process
// has the database open.
class Database final : public db::Database {
 public:
  // REQUIRES: `clock` outlives the database.
  static Result<std::unique_ptr<Database>> Open(const DatabaseOptions& options, Clock& clock);
  ~Database() override;  // Close()

  Result<Ticket> Read(ReadFn fn, Done done) override;
  Result<Ticket> Write(WriteFn fn, Done done) override;
  bool Cancel(Ticket ticket) override;
  Result<void> Close() override;

  // For simulation; see GroupWriter::StepOnce and ReadPool::StepOnce.
  bool StepWriter() { return writer_.StepOnce(); }
  bool StepReader() { return readers_.StepOnce(); }

  // False: the file was no longer where it was opened when a read or write last looked.
  bool in_place() const { return in_place_.load(std::memory_order_relaxed); }

  GroupWriter::Stats writer_stats() { return writer_.stats(); }
  ReadPool::Stats reader_stats() { return readers_.stats(); }

 private:
  Database(const DatabaseOptions& options, Clock& clock, std::unique_ptr<GatheringVfs> gathering,
           std::unique_ptr<Connection> writer, std::vector<std::unique_ptr<Connection>> readers);

  const std::unique_ptr<GatheringVfs> gathering_;  // of the writer; null: it has none
  const std::optional<FileId> file_;               // that was opened first
  std::atomic<bool> in_place_ = true;              // both executors set it
  GroupWriter writer_;
  ReadPool readers_;
};

}  // namespace interlock::sqlite
