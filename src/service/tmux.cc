#include "service/tmux.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace interlock::service {
namespace {

using domain::TmuxTarget;

constexpr std::string_view kDigits = "0123456789";

// The name stands last: it alone may hold blanks.
constexpr const char* kPaneFormat =
    "#{pane_id} #{window_index} #{pane_index} #{window_active} #{pane_active} #{pane_dead} "
    "#{pane_in_mode} #{@intermute_agent} #{pane_current_command} #{window_name}";

// One line of list-panes.
struct Pane {
  std::string_view id;
  std::string_view window_index;
  std::string_view pane_index;
  bool in_active_window = false;
  bool active = false;
  bool dead = false;
  bool in_mode = false;    // somebody scrolls or copies
  std::string_view agent;  // who sits there, as somebody with access to this tmux says; or nothing
  std::string_view command;
  std::string_view window_name;
};

std::string_view TakeUpTo(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

Pane ReadPane(std::string_view line) {
  Pane pane;
  pane.id = TakeUpTo(line, ' ');
  pane.window_index = TakeUpTo(line, ' ');
  pane.pane_index = TakeUpTo(line, ' ');
  pane.in_active_window = TakeUpTo(line, ' ') == "1";
  pane.active = TakeUpTo(line, ' ') == "1";
  pane.dead = TakeUpTo(line, ' ') == "1";
  const std::string_view mode = TakeUpTo(line, ' ');
  pane.in_mode = !mode.empty() && mode != "0";
  pane.agent = TakeUpTo(line, ' ');
  pane.command = TakeUpTo(line, ' ');
  pane.window_name = line;
  return pane;
}

bool IsMeant(const Pane& pane, const TmuxTarget& target) {
  if (target.window.empty()) {
    if (!pane.in_active_window) return false;
  } else if (target.window.find_first_not_of(kDigits) == std::string::npos) {
    if (pane.window_index != target.window) return false;
  } else if (pane.window_name != target.window) {
    return false;
  }
  return target.pane.empty() ? pane.active : pane.pane_index == target.pane;
}

// What would run a text as commands, line by line.
bool IsShell(std::string_view command) {
  constexpr std::string_view kShells[] = {"ash",  "bash", "busybox", "csh",   "dash", "elvish",
                                          "fish", "ksh",  "mksh",    "nu",    "pwsh", "sh",
                                          "su",   "sudo", "tcsh",    "xonsh", "yash", "zsh"};
  if (command.starts_with('-')) command.remove_prefix(1);  // a login shell
  return std::ranges::find(kShells, command) != std::end(kShells);
}

Error NotThere(std::string reason) { return {Errc::kUnavailable, std::move(reason)}; }

// The id of the one pane that is meant, as tmux never gives it again: "%12".
Result<std::string> ChoosePane(std::string_view list, const Injector::Order& order) {
  std::optional<Pane> chosen;
  while (!list.empty()) {
    const Pane pane = ReadPane(TakeUpTo(list, '\n'));
    if (!IsMeant(pane, order.target)) continue;
    if (chosen) return NotThere("several panes of tmux have that name");
    chosen = pane;
  }
  if (!chosen) return NotThere("the pane is gone from tmux");
  if (!chosen->agent.empty() && chosen->agent != order.recipient) {
    return NotThere("the pane is marked as another agent's");
  }
  if (chosen->dead) return NotThere("the program in the pane has ended");
  if (chosen->in_mode) return NotThere("somebody scrolls in the pane");
  if (IsShell(chosen->command)) return NotThere("a shell is in the pane, not an agent");
  return std::string(chosen->id);
}

// What tmux says, on one line without control characters.
std::string FirstLine(std::string_view text) {
  std::string line(text.substr(0, std::min(text.find('\n'), std::size_t{200})));
  std::ranges::replace_if(line, [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  return line;
}

// Names of buffers that are in use at once differ.
std::string BufferName(std::string_view recipient) {
  static std::atomic<std::uint64_t> made = 0;
  return fmt::format("intermute-{}-{}", recipient.substr(0, 64), ++made);
}

// tmux, one call after the other.
class Tmux {
 public:
  Tmux(ProgramRunner& runner, const TmuxInjector::Options& options)
      : runner_(runner), options_(options) {}

  Result<void> Put(const Injector::Order& order) {
    const std::string session = "=" + order.target.session + ":";
    IL_TRY(const std::string panes, Call({"list-panes", "-s", "-t", session, "-F", kPaneFormat}));
    IL_TRY(const std::string pane, ChoosePane(panes, order));
    const std::string buffer = BufferName(order.recipient);
    IL_TRY_VOID(Call({"load-buffer", "-b", buffer, "-"}, order.text));
    // In one call, so that nothing that ends us comes between the text and its Enter.
    const auto typed = Call({"paste-buffer", "-d", "-p", "-b", buffer, "-t", pane, ";", "send-keys",
                             "-t", pane, "Enter"});
    if (typed.ok()) return {};
    // A buffer that is still there was not pasted; should deleting fail for another reason, tmux
    // forgets old ones, and a Ctrl-U too many empties a prompt that the agent said it waits at.
    if (!Call({"delete-buffer", "-b", buffer}).ok()) TakeBack(pane, order.text);
    return typed.error();
  }

 private:
  // Once per line, and once more per line for what joins them. Nobody can help it if that fails.
  void TakeBack(const std::string& pane, std::string_view text) {
    constexpr std::ptrdiff_t kPressesMax = 1000;
    const std::ptrdiff_t lines = 1 + std::ranges::count(text, '\n');
    const std::string presses = std::to_string(std::min(2 * lines, kPressesMax));
    (void)Call({"send-keys", "-t", pane, "-N", presses, "C-u"});
  }

  // What it writes to stdout.
  Result<std::string> Call(std::vector<std::string> words, std::string input = "") {
    words.insert(words.begin(), options_.program);
    const std::string command = words.at(1);
    auto outcome = runner_.Run(
        {.argv = std::move(words), .input = std::move(input), .time_max = options_.call_time_max});
    if (!outcome.ok()) return std::move(outcome).error().In("tmux " + command);
    if (outcome->exit_code == 0) return std::move(outcome->out);
    return NotThere(fmt::format("tmux {}: {}", command, FirstLine(outcome->err)));
  }

  ProgramRunner& runner_;
  const TmuxInjector::Options& options_;
};

}  // namespace

// One thread and the orders that wait for it.
class TmuxInjector::Worker {
 public:
  Worker(Clock& clock, const Options& options)
      : clock_(clock), options_(options), runner_(clock), thread_([this] { Work(); }) {}

  void Add(Order order, Done done) IL_EXCLUDES(mutex_) {
    std::optional<Error> refusal;
    {
      MutexLock lock(mutex_);
      if (stopped_) {
        refusal = NotThere("the server stops");
      } else if (waiting_.size() >= options_.queue_max / options_.workers) {
        refusal = NotThere("too many others wait for tmux");
      } else {
        waiting_.push_back({std::move(order), std::move(done), clock_.Monotonic()});
        ready_.NotifyOne();
        return;
      }
    }
    done(*std::move(refusal));
  }

  // The first half of stopping, so that all workers end at the same time.
  void BeginStop() IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      ready_.NotifyOne();
    }
    runner_.Stop();
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Waiting {
    Order order;
    Done done;
    Duration since;
  };

  void Work() IL_EXCLUDES(mutex_) {
    Tmux tmux(runner_, options_);
    while (true) {
      std::optional<Waiting> next;
      {
        MutexLock lock(mutex_);
        while (waiting_.empty() && !stopped_) ready_.Wait(mutex_);
        if (waiting_.empty()) return;
        next = std::move(waiting_.front());
        waiting_.pop_front();
      }
      if (clock_.Monotonic() - next->since > options_.wait_max) {
        next->done(NotThere("tmux is too slow; others came first"));
      } else {
        next->done(tmux.Put(next->order));  // fails at once when the runner was stopped
      }
    }
  }

  Clock& clock_;
  const Options& options_;
  ProgramRunner runner_;
  Mutex mutex_;
  CondVar ready_;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
  std::deque<Waiting> waiting_ IL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the others
};

TmuxInjector::TmuxInjector(Clock& clock, Options options) : options_(std::move(options)) {
  workers_.reserve(options_.workers);
  for (std::size_t i = 0; i < options_.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(clock, options_));
  }
}

TmuxInjector::~TmuxInjector() { Stop(); }

void TmuxInjector::Inject(Order order, Done done) {
  const std::size_t worker = std::hash<std::string>()(order.recipient) % workers_.size();
  workers_.at(worker)->Add(std::move(order), std::move(done));
}

void TmuxInjector::Stop() {
  for (const auto& worker : workers_) worker->BeginStop();
  for (const auto& worker : workers_) worker->Join();
}

}  // namespace interlock::service
