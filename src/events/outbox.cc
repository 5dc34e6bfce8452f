#include "events/outbox.h"

#include <utility>

#include "base/check.h"

namespace interlock::events {

Outbox::Taken Outbox::Take() {
  MutexLock lock(mutex_);
  bytes_ = 0;
  return {.frames = std::exchange(frames_, {}), .state = state_};
}

Outbox::State Outbox::state() {
  MutexLock lock(mutex_);
  return state_;
}

bool Outbox::Arm(Wake wake) {
  MutexLock lock(mutex_);
  IL_CHECK(wake_ == nullptr);
  if (Ready()) return false;
  wake_ = std::move(wake);
  return true;
}

void Outbox::SetFilter(TypeFilter filter) {
  MutexLock lock(mutex_);
  filter_ = std::move(filter);
}

void Outbox::Close(State state) {
  IL_CHECK(state == State::kClosed || state == State::kStopping);
  Wake wake;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kClosed || state_ == State::kStopping) return;
    state_ = state;
    Free();
    wake = std::exchange(wake_, nullptr);
  }
  if (wake) wake();
}

void Outbox::Open(domain::Cursor floor) {
  MutexLock lock(mutex_);
  if (state_ == State::kClosed || state_ == State::kStopping) return;
  state_ = State::kOpen;
  last_ = floor;
  Free();
}

Outbox::Wake Outbox::Offer(FrameMaker& event) {
  MutexLock lock(mutex_);
  const domain::Event& offered = event.event();
  if (state_ != State::kOpen || !filter_.Accepts(offered.type)) return nullptr;
  if (offered.cursor != 0) {
    if (offered.cursor <= last_) return nullptr;
    last_ = offered.cursor;
  }
  const bool addressed = agent_ && offered.type == domain::event_type::kMessageCreated;
  const Frame& frame = addressed ? event.For(*agent_) : event.Logged();
  if (frames_.size() >= limits_.events_max || bytes_ + frame->size() > limits_.bytes_max) {
    state_ = State::kLagged;
    Free();
  } else {
    frames_.push_back(frame);
    bytes_ += frame->size();
  }
  return std::exchange(wake_, nullptr);
}

void Outbox::Free() {
  frames_ = {};
  bytes_ = 0;
}

}  // namespace interlock::events
