#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "domain/event.h"

namespace interlock::events {

// The text of one event for consumers: one JSON object, built once and shared by all consumers that
// receive the same text.
//
//   {"cursor":7,"type":"message.created","project":"p","entity_id":"m1","agent":"a",
//    "created_at":"2026-01-02T03:04:05Z","message_id":"m1","data":{…}}
//
// `cursor` is absent if the event is not in the log, `agent` if the event has none. Events about
// messages repeat their `entity_id` as `message_id`; reservation.expired also has `reservation_id`,
// `agent_id` and `path_pattern` beside its `data`.
using Frame = std::shared_ptr<const std::string>;

// A client may reject a text over 32 768 bytes. A frame that would be longer than this limit has
// "truncated":true instead of its `data`.
inline constexpr std::size_t kFrameBytesMax = 32'000;

// Builds the frames of one event on demand. For one thread at a time; the event must outlive it.
class FrameMaker {
 public:
  explicit FrameMaker(const domain::Event& event) : event_(event) {}

  const domain::Event& event() const { return event_; }

  // The frame as in the log.
  const Frame& Logged();

  // The frame addressed to `agent`. Consecutive calls for one agent return the same text.
  const Frame& For(const std::string& agent);

 private:
  Frame Make(const std::optional<std::string>& agent);
  void MakeParts();

  const domain::Event& event_;
  std::string head_;  // up to the agent; empty until MakeParts()
  std::string tail_;  // after the agent, with the data
  std::string short_tail_;
  Frame logged_;
  Frame addressed_;
  std::optional<std::string> addressee_;  // the agent of addressed_
};

}  // namespace interlock::events
