#pragma once

#include <memory>
#include <string>
#include <vector>

#include "db/sqlite/connection.h"
#include "sim/promises.h"

namespace interlock::sim {

// Looks at the tables by SQL of its own, past everything that the server makes of them.
class Observer {
 public:
  explicit Observer(std::unique_ptr<sqlite::Connection> connection)
      : connection_(std::move(connection)) {}

  struct Sight {
    std::vector<LoggedEvent> events;  // after the cursor asked for
    std::vector<HoldRow> holds;
    std::vector<AgentRow> living;
    Cursor newest = 0;
    Cursor pruned_through = 0;
  };
  // One snapshot. REQUIRES: the disk is well.
  Sight Look(Cursor after);
  // "ok", or what integrity_check finds wrong, or which mailboxes do not tell what is in the inbox.
  // REQUIRES: the disk is well.
  std::string Integrity();

 private:
  std::vector<LoggedEvent> Events(Cursor after);
  std::vector<HoldRow> Holds();
  std::vector<AgentRow> Living();

  const std::unique_ptr<sqlite::Connection> connection_;
};

}  // namespace interlock::sim
