#pragma once

#include <span>

#include "api/route.h"

namespace interlock::api {

// Every operation of the server.
std::span<const Route> Routes();

// The operations of each noun; Routes() is all of them.

// /api/agents: registration, heartbeats, lists, metadata, policies, contacts, deregistration. With
// a key, an agent of another project does not exist (404).
std::span<const Route> AgentRoutes();

// GET /api/events: the event log, page by page.
std::span<const Route> EventRoutes();

// GET /ws/agents/{agent...} and GET /ws/events: the event log over a WebSocket, from a cursor or
// from now on. Each event is one text message, the frame of service/feed.h.
//
// A peer may send text messages of JSON: {"type":"subscribe","event_types":[…]} and
// {"type":"unsubscribe","event_types":[…]}. A connection begins with every type, or with the types
// of the query's `types`. The first subscribe of a connection with every type narrows it to the
// listed types; later ones add types. Unsubscribe removes types. An empty list changes nothing.
// Other JSON is ignored.
//
// Close codes: 1001 the server stops, 1003 binary message, 1007 not JSON, 1008 too many types in
// the filter or a revoked key, 1009 message too large, 1011 the log cannot be read, 1013 the
// consumer is too slow, 4409 since_cursor is beyond the end of the log. After 1001, 1011 and 1013 a
// client may resume behind the last cursor it received.
std::span<const Route> FollowRoutes();

// GET /health:
// {"status","circuit_breaker","circuit_breaker_read","circuit_breaker_write","version",
// "started_at","log_id"}: 200 while the storage answers, else 503 with `error` and `message`. Every
// value is text, because clients decode the body into a map of strings. Numbers are in /api/status
// and /metrics.
std::span<const Route> HealthRoutes();

// The inbox of an agent, its counts, and messages that wait for an acknowledgement.
std::span<const Route> InboxRoutes();

// POST /api/messages to named agents, POST /api/broadcast to a project.
std::span<const Route> MailRoutes();

// /api/specs, /api/epics, /api/stories, /api/tasks, /api/insights, /api/sessions, /api/cujs
std::span<const Route> PlanningRoutes();

// Receipts of a message: read and acknowledged.
//
// The recipient is the body's `agent`, else the query's, else the caller (X-Agent-ID or token),
// else the only recipient of the message. An agent that is no recipient gets 404. When no agent is
// named and the message has several recipients, nothing is marked; the answer is still 200, because
// old clients that cannot name themselves know no other, and a header gives the reason.
std::span<const Route> ReceiptRoutes();

// /api/reservations: reserve, check, renew, transfer, release.
std::span<const Route> ReservationRoutes();

// GET /api/status: counts of one project or of all.
std::span<const Route> StatusRoutes();

// The threads of an agent, and the messages of a thread.
std::span<const Route> ThreadRoutes();

// The messages of a topic.
std::span<const Route> TopicRoutes();

// Terminal windows of agents, and the pokes that wait for them.
std::span<const Route> WindowRoutes();

}  // namespace interlock::api
