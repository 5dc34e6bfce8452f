#include "db/sqlite/database.h"

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "db/sqlite/local_vfs.h"

namespace interlock::sqlite {
namespace {

// Both executors number their requests by twos: writes are odd, reads even.
constexpr db::Database::Ticket kFirstWrite = 1;
constexpr db::Database::Ticket kFirstRead = 2;

OpenOptions OptionsFor(const DatabaseOptions& options, Access access, const GatheringVfs* vfs) {
  return {.path = options.path,
          .access = access,
          .durability = options.durability,
          .busy_timeout = options.busy_timeout,
          .upkeep = LogUpkeep::kByCallerAndClose,  // the writer, between two batches
          .vfs = vfs != nullptr ? vfs->name() : options.vfs};
}

// Opens the file that was opened first, and none that has come into its place: even a look at that
// one could change it.
auto OpenerOf(OpenOptions opening, std::optional<FileId> first) {
  return [opening = std::move(opening), first]() -> Result<std::unique_ptr<Connection>> {
    if (FileAt(opening.path) != first) return NotInPlace(opening.path);
    IL_TRY(std::unique_ptr<Connection> connection, Connection::Open(opening));
    if (connection->HasMoved() || FileAt(opening.path) != first) return NotInPlace(opening.path);
    return connection;
  };
}

std::unique_ptr<GatheringVfs> GatheringFor(const DatabaseOptions& options) {
  if (options.durability != Durability::kFull) return nullptr;
  return std::make_unique<GatheringVfs>(options.vfs.empty() ? LocalVfs() : options.vfs);
}

}  // namespace

Result<std::unique_ptr<Database>> Database::Open(const DatabaseOptions& options, Clock& clock) {
  IL_CHECK(options.readers > 0);
  std::unique_ptr<GatheringVfs> gathering = GatheringFor(options);
  IL_TRY(std::unique_ptr<Connection> writer,
         Connection::Open(OptionsFor(options, Access::kReadWriteOrCreate, gathering.get())));
  std::vector<std::unique_ptr<Connection>> readers(options.readers);
  for (std::unique_ptr<Connection>& reader : readers) {
    IL_TRY(reader, Connection::Open(OptionsFor(options, Access::kReadOnly, nullptr)));
  }
  if (writer->HasMoved()) return NotInPlace(options.path);
  try {
    return std::unique_ptr<Database>(
        new Database(options, clock, std::move(gathering), std::move(writer), std::move(readers)));
  } catch (const std::system_error& failed) {
    return Error(Errc::kUnavailable,
                 std::string("cannot start the storage threads; raise the limit of processes: ") +
                     failed.what());
  }
}

// A file that vanished is not made anew on reopening: an empty database would hide the loss.
Database::Database(const DatabaseOptions& options, Clock& clock,
                   std::unique_ptr<GatheringVfs> gathering, std::unique_ptr<Connection> writer,
                   std::vector<std::unique_ptr<Connection>> readers)
    : gathering_(std::move(gathering)),
      file_(FileAt(options.path)),
      writer_(std::move(writer),
              OpenerOf(OptionsFor(options, Access::kReadWrite, gathering_.get()), file_),
              {.queue_max = options.write_queue_max,
               .batch_max = options.batch_max,
               .log_pages_max = options.log_pages_max,
               .drive = options.drive,
               .first_ticket = kFirstWrite,
               .in_place = &in_place_,
               .on_reopened = options.on_reopened,
               .on_committed = options.on_committed},
              clock),
      readers_(std::move(readers), OpenerOf(OptionsFor(options, Access::kReadOnly, nullptr), file_),
               {.queue_max = options.read_queue_max,
                .drive = options.drive,
                .first_ticket = kFirstRead,
                .in_place = &in_place_}) {}

Database::~Database() {
  const Result<void> closed = Close();  // who cares for the result calls Close() before
}

Result<db::Database::Ticket> Database::Read(ReadFn fn, Done done) {
  return readers_.Submit(std::move(fn), std::move(done));
}

Result<db::Database::Ticket> Database::Write(WriteFn fn, Done done) {
  return writer_.Submit(std::move(fn), std::move(done));
}

bool Database::Cancel(Ticket ticket) {
  if (ticket == 0) return false;
  return ticket % 2 == kFirstWrite % 2 ? writer_.Cancel(ticket) : readers_.Cancel(ticket);
}

Result<void> Database::Close() {
  writer_.Refuse();
  readers_.Close();  // a reader that closes last would leave the log behind
  return writer_.Close();
}

}  // namespace interlock::sqlite
