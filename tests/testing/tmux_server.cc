#include "testing/tmux_server.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>

#include "testing/child_process.h"

namespace interlock::testing {
namespace {

// Looks again and again, until it is so or it takes too long.
void Await(const std::function<bool()>& so) {
  for (int tries = 0; tries < 2000 && !so(); ++tries) ::poll(nullptr, 0, 10);
}

std::string Content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TmuxServer::TmuxServer() {
  ::unsetenv("TMUX");  // it would go before the other
  ::setenv("TMUX_TMPDIR", directory_.path().c_str(), 1);
}

TmuxServer::~TmuxServer() {
  // Without a server there is nothing to end.
  RunProgram({"/usr/bin/env", "tmux", "kill-server"}, directory_.path());
  ::unsetenv("TMUX_TMPDIR");
}

std::string TmuxServer::Tmux(std::vector<std::string> words) const {
  words.insert(words.begin(), {"/usr/bin/env", "tmux", "-f", "/dev/null"});
  const Finished finished = RunProgram(words, directory_.path());
  EXPECT_EQ(finished.exit_code, 0) << words[4] << ": " << finished.err;
  return finished.out;
}

void TmuxServer::Open(const std::string& session, const std::string& window, Program program) {
  const std::filesystem::path file = FileOf(session, window);
  const std::string bracket =
      program == Program::kKnowsPastes ? "printf '\\033[?2004h\\033]2;asked\\007'; " : "";
  const std::string shell = "stty raw -echo; " + bracket + "exec cat > '" + file.string() + "'";
  const bool is_there =
      RunProgram({"/usr/bin/env", "tmux", "has-session", "-t", "=" + session}, directory_.path())
          .exit_code == 0;
  if (is_there) {
    Tmux({"new-window", "-d", "-t", "=" + session + ":", "-n", window, shell});
  } else {
    Tmux({"new-session", "-d", "-x", "200", "-y", "50", "-s", session, "-n", window, shell});
  }
  // The shell makes the file, and then becomes the program.
  const std::string running = "\n" + window + ":cat\n";
  Await([&] {
    const std::vector<std::string> list = {
        "list-panes", "-s", "-t", "=" + session, "-F", "#{window_name}:#{pane_current_command}"};
    return ("\n" + Tmux(list)).find(running) != std::string::npos;
  });
  // tmux knows the program's wish when it knows the title that was set after it.
  if (program == Program::kKnowsPastes) {
    Await([&] { return Tmux({"list-panes", "-a", "-F", "#{pane_title}"}) == "asked\n"; });
  }
}

std::string TmuxServer::Typed(const std::string& session, const std::string& window) const {
  return Content(FileOf(session, window));
}

std::string TmuxServer::TypedUpTo(const std::string& session, const std::string& window,
                                  const std::string& end) const {
  const std::filesystem::path file = FileOf(session, window);
  Await([&] { return Content(file).ends_with(end); });
  return Content(file);
}

std::filesystem::path TmuxServer::FileOf(const std::string& session,
                                         const std::string& window) const {
  return directory_.path() / (session + ":" + window);
}

}  // namespace interlock::testing
