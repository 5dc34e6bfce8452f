#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/program.h"
#include "service/injector.h"

namespace interlock::service {

// Puts texts into panes of tmux, by calling the program `tmux` as it is found in PATH; it finds its
// own server, by TMUX and TMUX_TMPDIR. Without the program, or without a server, every order fails.
//
// An order is three calls: list-panes finds the one pane that the target names, exactly, so that a
// pane that is gone is never mistaken for another; load-buffer takes the text from stdin; the third
// is two commands that tmux runs one after the other: paste-buffer -p puts it into the pane as one
// paste where the program there knows what that is, and forgets the buffer; send-keys presses
// Enter. Where the text is in the pane and Enter failed, Ctrl-U takes it back as far as the program
// knows that key, so that nobody sends it off with what is typed next; the order has failed all the
// same.
//
// A pane whose program is dead, in which somebody scrolls, in which a shell waits, or whose option
// @intermute_agent names another recipient, is left alone. Only who may use this tmux can set that
// option, so a pane that has it is its agent's alone, and one that takes its place has none.
//
// Thread-safe. Threads of its own do the work, since the calls block: each recipient belongs to one
// of them, so its texts follow each other. Bounded: a call has `call_time_max`, an order waits at
// most `wait_max` for its turn, and one beyond `queue_max` is refused at once.
class TmuxInjector final : public Injector {
 public:
  struct Options {
    std::size_t workers = 2;
    std::size_t queue_max = 256;  // of all workers together
    Duration call_time_max = std::chrono::seconds(2);
    Duration wait_max = std::chrono::seconds(5);
    std::string program = "tmux";
  };

  // The clock must outlive it.
  explicit TmuxInjector(Clock& clock) : TmuxInjector(clock, Options{}) {}
  TmuxInjector(Clock& clock, Options options);
  ~TmuxInjector() override;  // Stop()
  TmuxInjector(const TmuxInjector&) = delete;
  TmuxInjector& operator=(const TmuxInjector&) = delete;

  void Inject(Order order, Done done) override;

  // Kills what runs, fails what waits, joins the threads; later orders fail at once. Idempotent.
  void Stop();

 private:
  class Worker;

  const Options options_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace interlock::service
