#include "signals.h"

#include <unistd.h>

#include <csignal>
#include <string_view>
#include <thread>

#include "base/mutex.h"

namespace interlock::app {
namespace {

enum class Phase : std::uint8_t { kStarting, kServing, kStopping };

struct State {
  Mutex mutex;
  CondVar changed;
  Phase phase IL_GUARDED_BY(mutex) = Phase::kStarting;
  int stop_number IL_GUARDED_BY(mutex) = 0;
  bool reload_wanted IL_GUARDED_BY(mutex) = false;
};

// Never destroyed: the thread that watches outlives main().
State& Shared() {
  static State& state = *new State;
  return state;
}

void OnStop(State& state, int number) {
  const MutexLock lock(state.mutex);
  if (state.phase != Phase::kServing) {
    if (state.phase == Phase::kStarting) {
      constexpr std::string_view kText = "intermute: stopped by a signal before it was ready\n";
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
    }
    ::_exit(128 + number);
  }
  state.phase = Phase::kStopping;
  state.stop_number = number;
  state.changed.NotifyAll();
}

void OnReload(State& state) {
  const MutexLock lock(state.mutex);
  state.reload_wanted = true;
  state.changed.NotifyAll();
}

[[noreturn]] void Watch(State& state, const sigset_t& watched) {
  while (true) {
    int number = 0;
    if (::sigwait(&watched, &number) != 0) continue;
    if (number == SIGHUP) {
      OnReload(state);
    } else {
      OnStop(state, number);
    }
  }
}

}  // namespace

void Signals::Install() {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    ::signal(number, SIG_DFL);  // an ignored one, as under nohup, would never be seen
    ::sigaddset(&watched, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);  // every thread from here on inherits this
  std::thread([&state = Shared(), watched] { Watch(state, watched); }).detach();
}

void Signals::BeginServing() {
  State& state = Shared();
  const MutexLock lock(state.mutex);
  state.phase = Phase::kServing;
}

Signals::Request Signals::Wait() {
  State& state = Shared();
  const MutexLock lock(state.mutex);
  while (true) {
    if (state.phase == Phase::kStopping) return Request::kStop;
    if (state.reload_wanted) {
      state.reload_wanted = false;
      return Request::kReload;
    }
    state.changed.Wait(state.mutex);
  }
}

const char* Signals::StopName() {
  State& state = Shared();
  const MutexLock lock(state.mutex);
  return state.stop_number == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace interlock::app
