#pragma once

#include "json/value_fwd.h"

// What answers with mail look like, for /openapi.json. They are written by hand (message_page.h),
// so their schemas are put together by hand too; a test holds one against the other.
namespace interlock::api {

json::Value MessagePageSchema();  // inbox and topics
json::Value InboxCountsSchema();
json::Value StaleAcksSchema();
json::Value ThreadSchema();
json::Value ThreadListSchema();
json::Value ReceiptBodySchema();

}  // namespace interlock::api
