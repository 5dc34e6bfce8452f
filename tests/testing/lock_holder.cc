#include "testing/lock_holder.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/check.h"

namespace interlock::testing {
namespace {

struct Pipe {
  int read_end;
  int write_end;
};

Pipe MakePipe() {
  std::array<int, 2> ends{};
  IL_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
  return {ends[0], ends[1]};
}

}  // namespace

LockHolder::LockHolder(const std::filesystem::path& database) {
  const Pipe in = MakePipe();
  const Pipe out = MakePipe();
  posix_spawn_file_actions_t actions;
  IL_CHECK(posix_spawn_file_actions_init(&actions) == 0);
  IL_CHECK(posix_spawn_file_actions_adddup2(&actions, in.read_end, STDIN_FILENO) == 0);
  IL_CHECK(posix_spawn_file_actions_adddup2(&actions, out.write_end, STDOUT_FILENO) == 0);
  std::string program = INTERLOCK_LOCK_HOLDER;
  std::string path = database.string();
  std::array<char*, 3> arguments = {program.data(), path.data(), nullptr};
  IL_CHECK(posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ) == 0,
           program);
  posix_spawn_file_actions_destroy(&actions);
  close(in.read_end);
  close(out.write_end);
  to_child_ = in.write_end;
  from_child_ = out.read_end;
}

LockHolder::~LockHolder() {
  close(to_child_);
  close(from_child_);
  int status = 0;
  IL_CHECK(waitpid(pid_, &status, 0) == pid_);
  IL_CHECK(status == 0, "the lock holder failed");
}

void LockHolder::Lock() {
  Send('l');
  Await('l');
}
void LockHolder::Commit() {
  Send('c');
  Await('c');
}
void LockHolder::StartFight() { Send('f'); }
void LockHolder::FinishFight() { Await('f'); }

void LockHolder::Send(char command) const { IL_CHECK(write(to_child_, &command, 1) == 1); }

void LockHolder::Await(char answer) const {
  char got = 0;
  IL_CHECK(read(from_child_, &got, 1) == 1, "the lock holder died");
  IL_CHECK(got == answer);
}

}  // namespace interlock::testing
