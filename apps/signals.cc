#include "signals.h"

#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace interlock::app {
namespace {

enum class Phase : int { kStarting, kServing, kStopping };

std::atomic<Phase> phase{Phase::kStarting};
std::atomic<int> stop_number{0};
std::atomic<bool> reload_wanted{false};
sem_t asked;

// Only async-signal-safe calls in these two.

void OnStop(int number) {
  const int error = errno;
  Phase expected = Phase::kServing;
  if (phase.compare_exchange_strong(expected, Phase::kStopping)) {
    stop_number = number;
    ::sem_post(&asked);
    errno = error;
    return;
  }
  if (expected == Phase::kStarting) {
    constexpr std::string_view kText = "intermute: stopped by a signal before it was ready\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  }
  ::_exit(128 + number);
}

void OnReload(int /*number*/) {
  const int error = errno;
  if (!reload_wanted.exchange(true)) ::sem_post(&asked);
  errno = error;
}

void Handle(int number, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

void Signals::Install() {
  ::sem_init(&asked, 0, 0);
  Handle(SIGTERM, OnStop);
  Handle(SIGINT, OnStop);
  Handle(SIGHUP, OnReload);
}

void Signals::BeginServing() { phase = Phase::kServing; }

Signals::Request Signals::Wait() {
  while (true) {
    while (::sem_wait(&asked) != 0) {
    }
    if (phase == Phase::kStopping) return Request::kStop;
    if (reload_wanted.exchange(false)) return Request::kReload;
  }
}

const char* Signals::StopName() { return stop_number == SIGTERM ? "SIGTERM" : "SIGINT"; }

}  // namespace interlock::app
