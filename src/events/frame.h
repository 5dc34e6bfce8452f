#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "domain/event.h"

namespace interlock::events {

// The text of one event as consumers receive it: one JSON object, made once and shared by all for
// whom it is the same.
//
//   {"cursor":7,"type":"message.created","project":"p","entity_id":"m1","agent":"a",
//    "created_at":"2026-01-02T03:04:05Z","message_id":"m1","data":{…}}
//
// `cursor` is missing when the event is in no log, `agent` when there is none. Events about
// messages repeat their `entity_id` as `message_id`; reservation.expired has `reservation_id`,
// `agent_id` and `path_pattern` beside its `data`.
using Frame = std::shared_ptr<const std::string>;

// A client may refuse a text over 32 768 bytes. One that would be longer than this goes without its
// `data`, and says so: "truncated":true.
inline constexpr std::size_t kFrameBytesMax = 32'000;

// Makes the frames of one event, each when it is first asked for. For one thread at a time; the
// event must outlive it.
class FrameMaker {
 public:
  explicit FrameMaker(const domain::Event& event) : event_(event) {}

  const domain::Event& event() const { return event_; }

  // As the log has it.
  const Frame& Logged();

  // Addressed to `agent`. Asked for several times in a row it is the same text.
  const Frame& For(const std::string& agent);

 private:
  Frame Make(const std::optional<std::string>& agent);
  void MakeParts();

  const domain::Event& event_;
  std::string head_;  // up to the agent; empty = the parts are not made yet
  std::string tail_;  // after the agent, with the data
  std::string short_tail_;
  Frame logged_;
  Frame addressed_;
  std::optional<std::string> addressee_;  // of addressed_
};

}  // namespace interlock::events
