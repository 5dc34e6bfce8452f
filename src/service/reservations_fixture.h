#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "service/reservations.h"
#include "service/service_fixture.h"

namespace interlock::service {

// Somebody who asks for reservations, and perhaps waits for them, on a thread of its own.
class Asker {
 public:
  using Answer = Result<Reservations::Verdict>;

  Asker(Reservations& reservations, std::future<Answer> answer)
      : reservations_(reservations), answer_(std::move(answer)) {}

  // A test that ends early, having failed, is not to wait for ever.
  ~Asker() {
    if (answer_.valid() && !answered()) reservations_.StopWaits();
  }
  Asker(Asker&&) = default;
  Asker& operator=(Asker&&) = delete;

  bool answered(std::chrono::milliseconds within = {}) const {
    return answer_.wait_for(within) == std::future_status::ready;
  }

  // Its answer, as soon as it comes. A wait that should have ended and did not would never end, as
  // the clock of a test stands still: it fails the test, and is ended with all the others.
  Answer get() {
    if (!answered(std::chrono::seconds(30))) {
      ADD_FAILURE() << "it still waits";
      reservations_.StopWaits();
    }
    return answer_.get();
  }

 private:
  Reservations& reservations_;
  std::future<Answer> answer_;
};

// A test of reservations, and of those who wait for them.
class ReservationsTest : public ServiceTest {
 protected:
  // The test goes on when the wish stands in the queue, or has its answer.
  Asker Begin(Reservations& reservations, Reservations::Wish wish) {
    const std::size_t before = reservations.waiting();
    Asker asker(reservations,
                std::async(std::launch::async, [this, &reservations, wish = std::move(wish)] {
                  return Run(reservations.Reserve(wish));
                }));
    while (reservations.waiting() == before && !asker.answered(std::chrono::milliseconds(1))) {
    }
    return asker;
  }
};

}  // namespace interlock::service
