#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "testing/temp_db.h"

namespace interlock::testing {

// A real tmux of the test's own: this process and what it starts find it, as a user's would, by
// TMUX_TMPDIR, and no other tmux of this machine is touched. Ends with this object.
class TmuxServer {
 public:
  TmuxServer();
  ~TmuxServer();
  TmuxServer(const TmuxServer&) = delete;
  TmuxServer& operator=(const TmuxServer&) = delete;

  // What the program in a pane does besides keeping what is typed.
  enum class Program : std::uint8_t {
    kPlain,
    kKnowsPastes,  // it asked the terminal to bracket what is pasted
  };
  // A window, in a new session if there is none of that name, whose program keeps every byte that
  // is typed there. Returns when it does.
  void Open(const std::string& session, const std::string& window,
            Program program = Program::kPlain);

  // What was typed there so far.
  std::string Typed(const std::string& session, const std::string& window) const;
  // The same, once it ends with `end`; what there is when that takes too long.
  std::string TypedUpTo(const std::string& session, const std::string& window,
                        const std::string& end) const;

  // Runs a tmux command, which must succeed; what it prints.
  std::string Tmux(std::vector<std::string> words) const;

 private:
  std::filesystem::path FileOf(const std::string& session, const std::string& window) const;

  TempDir directory_;
};

}  // namespace interlock::testing
