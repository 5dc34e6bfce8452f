#pragma once

#include <barrier>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace interlock::testing {

// Runs fn(0) … fn(n-1), each on a thread of its own, all starting together; returns when all are
// done.
inline void OnThreads(int n, const std::function<void(int)>& fn) {
  std::barrier start(n);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(n));
  for (int t = 0; t < n; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      fn(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace interlock::testing
