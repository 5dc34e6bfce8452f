#include "store/events.h"

#include <gtest/gtest.h>

#include <memory>

#include "store/store_fixture.h"

namespace interlock::store {
namespace {

using EventsTest = StoreTest;

TEST_F(EventsTest, CursorsRiseFromEventToEventAcrossProjects) {
  domain::Cursor last = 0;
  for (const char* project : {"p", "q", "", "p"}) {
    const auto cursor = Write<domain::Cursor>([&](db::Transaction& tx) {
      return AppendEvent(tx, {.type = domain::event_type::kAgentUpdated,
                              .project = project,
                              .entity_id = "a",
                              .created_at = {1}});
    });
    ASSERT_TRUE(cursor.ok()) << cursor.error();
    EXPECT_GT(*cursor, last);
    last = *cursor;
  }
}

}  // namespace
}  // namespace interlock::store
