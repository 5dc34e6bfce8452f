#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/sqlite/connection.h"
#include "testing/child_process.h"
#include "testing/temp_db.h"

namespace interlock::testing {

// The time of day as `ic` counts it: whole seconds since 1970.
std::int64_t UnixNow();

// One call of the real `ic`.
struct IcCall {
  std::vector<std::string> arguments = {};
  std::string input = {};  // what it reads from stdin, to its end
  std::vector<std::string> environment =
      {};                      // "NAME=value"; ours is passed on but INTERCORE_*, IC_*
  std::string directory = {};  // below the place's directory; empty = that one
  // As somebody whom file modes bind, also when the test runs as root. What it is to write must be
  // given to him first: IcPlace::GiveAway().
  bool unprivileged = false;
  std::optional<std::size_t> file_bytes_max = {};  // larger files cannot be written
  std::string output = {};   // a file that is its stdout; "closed" = it has none
  std::string program = {};  // empty = the built `ic`
};

// Holds back processes until it is opened, so that they start at the same moment.
class StartGate {
 public:
  StartGate();
  ~StartGate() { Open(); }
  StartGate(const StartGate&) = delete;
  StartGate& operator=(const StartGate&) = delete;
  void Open();
  void Wait() const;  // in the forked child; async-signal-safe

 private:
  int read_ = -1;
  int write_ = -1;
};

// A process of `ic` that may still run.
class IcProcess {
 public:
  // Starts it; with a gate it does nothing until that is opened.
  IcProcess(const IcCall& call, const std::filesystem::path& place,
            const StartGate* gate = nullptr);
  ~IcProcess();  // kills it if it still runs
  IcProcess(const IcProcess&) = delete;
  IcProcess& operator=(const IcProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  // Waits for its end. exit_code is 128 + the signal that ended it.
  Finished Finish();
  // False when it still runs after `limit`.
  bool EndsWithin(std::chrono::microseconds limit) const;

 private:
  std::filesystem::path out_;
  std::filesystem::path err_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
};

// What a process has open, as the kernel names it, in order: paths, "anon_inode:inotify", ….
std::vector<std::string> OpenFilesOf(pid_t pid);

// A new directory in which `ic` is called as hooks call it.
class IcPlace {
 public:
  IcPlace() { std::filesystem::create_directory(path()); }
  // Beside it, not in it, lies what is kept of the calls.
  std::filesystem::path path() const { return directory_.path() / "work"; }
  std::filesystem::path database() const { return path() / ".clavain" / "intercore.db"; }
  static std::filesystem::path program();  // the built `ic`

  Finished Ic(std::vector<std::string> arguments, std::string input = {}) const {
    return Run({.arguments = std::move(arguments), .input = std::move(input)});
  }
  Finished Run(const IcCall& call) const;
  std::unique_ptr<IcProcess> Start(const IcCall& call) const;
  // Starts `count` at the same moment; waits for all.
  std::vector<Finished> RunAtOnce(std::size_t count,
                                  const std::function<IcCall(std::size_t)>& call) const;
  // Makes everything in the place belong to who an unprivileged call is.
  void GiveAway() const;
  // Calls `ic init`; fails the test when that does.
  void Init() const;
  // The file itself, past `ic`. REQUIRES: it is there.
  std::unique_ptr<sqlite::Connection> OpenFile() const;
  // Runs SQL on the file, as a person with the sqlite3 program would.
  void Sql(const std::string& script) const;
  std::string Text(const db::Sql& sql) const;  // the first column of the first row
  std::int64_t Int(const db::Sql& sql) const;

 private:
  TempDir directory_;
};

}  // namespace interlock::testing
