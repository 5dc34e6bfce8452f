#pragma once

#include <memory>
#include <string>

namespace interlock::sqlite {

// A VFS like another one that writes a log in few large pieces. SQLite writes each page of a commit
// with two calls, some two hundred for a batch of ours; here what it appends to the log is gathered
// in memory and written at once when SQLite syncs the log, reads from it or asks for its size, or
// when there is much of it.
//
// What fails then may be what an earlier call, or an earlier write of the transaction, believes to
// be in the log. So a log that could not be written once takes nothing any more: the COMMIT fails,
// and whoever wants to go on opens the database anew.
//
// REQUIRES: synchronous=FULL. Then every commit syncs the log before the others are shown its
// pages, so nobody ever looks for a page that is still in memory. And whoever gives up the write
// lock without a commit asks for the size first: else what was gathered would be written later,
// over what another process has committed meanwhile.
//
// Registered with SQLite, under a name of its own, as long as it lives; it must outlive all
// connections that use it. Thread-safe; each file belongs to its connection.
class GatheringVfs {
 public:
  explicit GatheringVfs(const std::string& base);  // the name of the other
  ~GatheringVfs();
  GatheringVfs(const GatheringVfs&) = delete;
  GatheringVfs& operator=(const GatheringVfs&) = delete;

  const std::string& name() const;

 private:
  struct Registration;
  std::unique_ptr<Registration> registration_;
};

}  // namespace interlock::sqlite
