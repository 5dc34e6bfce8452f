#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "domain/window.h"

namespace interlock::service {

// What puts a text before an agent as if it had been typed there. The real one is tmux.h; tests
// have their own.
class Injector {
 public:
  struct Order {
    std::string recipient;  // texts for one recipient follow each other and never mix
    domain::TmuxTarget target;
    std::string text;
  };
  // Hears once, on any thread, whether the text is there; an error says in a few words why not.
  using Done = std::move_only_function<void(Result<void>)>;

  virtual ~Injector() = default;

  // Thread-safe; never waits. `done` may run before it returns, when the order is refused.
  virtual void Inject(Order order, Done done) = 0;
};

}  // namespace interlock::service
