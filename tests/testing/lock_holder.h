#pragma once

#include <sys/types.h>

#include <filesystem>

namespace interlock::testing {

inline constexpr int kFightInserts = 50;

// For tests: another process that takes the write lock of a database when told to (see
// lock_holder_main.cc). Commands and answers go through pipes, so nobody has to guess a time.
//
// One thread.
class LockHolder {
 public:
  explicit LockHolder(const std::filesystem::path& database);
  ~LockHolder();  // ends the process; fails a check if it did not exit with 0
  LockHolder(const LockHolder&) = delete;
  LockHolder& operator=(const LockHolder&) = delete;

  void Lock();    // begins a transaction and inserts a row; returns once it holds the lock
  void Commit();  // returns once it let go

  // Inserts kFightInserts rows in as many transactions; the first does not wait, the second does.
  void StartFight();
  void FinishFight();

 private:
  void Send(char command) const;
  void Await(char answer) const;

  pid_t pid_ = 0;
  int to_child_ = -1;
  int from_child_ = -1;
};

}  // namespace interlock::testing
