#pragma once

#include <span>

namespace interlock::http {

struct Route;

// GET /ws/agents/{agent…} and GET /ws/events: the event log followed over a WebSocket, from a
// cursor or from now on. Each event is one text message, the frame of service/feed.h.
//
// What a peer may send, as text messages of JSON: {"type":"subscribe","event_types":[…]} and
// {"type":"unsubscribe","event_types":[…]}. A connection begins with every type, or with those of
// the query's `types`; the first subscribe to one that has every type narrows it to the types
// listed, further ones add, unsubscribe takes away, and an empty list changes nothing. Anything
// else that is JSON is ignored, so that clients may say more than we understand.
//
// Close codes of ours: 1001 the server stops, 1003 binary message, 1007 not JSON, 1008 more types
// than a filter holds, or a key that was withdrawn, 1009 message too large, 1011 the log could not
// be read, 1013 the consumer is too slow, 4409 since_cursor is beyond the end of the log. After
// 1001, 1011 and 1013 it may resume behind the last cursor it got.
std::span<const Route> FollowRoutes();

}  // namespace interlock::http
