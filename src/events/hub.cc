#include "events/hub.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace interlock::events {

std::optional<domain::Cursor> Hub::Join(const std::string& project,
                                        const std::shared_ptr<Outbox>& outbox,
                                        domain::Cursor not_before) {
  MutexLock lock(mutex_);
  if (closed_) return std::nullopt;
  outbox->Open(std::max(published_, not_before));
  Outboxes& joined = projects_[project].Of(*outbox);
  if (std::ranges::find(joined, outbox) == joined.end()) {
    joined.push_back(outbox);
    ++listeners_;
  }
  return published_;
}

void Hub::Leave(const std::string& project, const std::shared_ptr<Outbox>& outbox) {
  MutexLock lock(mutex_);
  const auto audience = projects_.find(project);
  if (audience == projects_.end()) return;
  Outboxes& joined = audience->second.Of(*outbox);
  const auto removed = std::erase(joined, outbox);
  listeners_ -= removed;
  if (joined.empty() && outbox->agent()) audience->second.agents.erase(*outbox->agent());
  if (audience->second.whole.empty() && audience->second.agents.empty()) projects_.erase(audience);
}

void Hub::Publish(const store::DeliveredEvent& delivered) {
  const domain::Event& event = delivered.event;
  FrameMaker frames(event);
  Wakes wakes;
  {
    MutexLock lock(mutex_);
    if (event.cursor <= published_) return;  // older than every consumer
    published_ = event.cursor;
    const auto audience = projects_.find(event.project);
    if (audience == projects_.end()) return;
    if (event.type == domain::event_type::kMessageCreated) {
      OfferMessage(audience->second, delivered.recipients, frames, wakes);
    } else {
      OfferToAll(audience->second, frames, wakes);
    }
  }
  for (Outbox::Wake& wake : wakes) wake();
}

void Hub::PublishLive(const domain::Event& event) {
  IL_CHECK(event.cursor == 0);
  FrameMaker frames(event);
  Wakes wakes;
  {
    MutexLock lock(mutex_);
    const auto audience = projects_.find(event.project);
    if (audience == projects_.end()) return;
    OfferToAll(audience->second, frames, wakes);
  }
  for (Outbox::Wake& wake : wakes) wake();
}

bool Hub::SkipTo(domain::Cursor cursor) {
  MutexLock lock(mutex_);
  if (listeners_ > 0) return false;
  published_ = std::max(published_, cursor);
  return true;
}

bool Hub::HasListeners() { return listeners() > 0; }

void Hub::Close() {
  std::map<std::string, Audience> projects;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    projects = projects_;  // the consumers call Leave() themselves
  }
  for (auto& [project, audience] : projects) {
    for (const auto& outbox : audience.whole) outbox->Close(Outbox::State::kStopping);
    for (const auto& [agent, outboxes] : audience.agents) {
      for (const auto& outbox : outboxes) outbox->Close(Outbox::State::kStopping);
    }
  }
}

domain::Cursor Hub::published() {
  MutexLock lock(mutex_);
  return published_;
}

std::size_t Hub::listeners() {
  MutexLock lock(mutex_);
  return listeners_;
}

void Hub::OfferTo(const Outboxes& outboxes, FrameMaker& frames, Wakes& wakes) {
  for (const auto& outbox : outboxes) {
    if (Outbox::Wake wake = outbox->Offer(frames)) wakes.push_back(std::move(wake));
  }
}

void Hub::OfferToAll(const Audience& audience, FrameMaker& frames, Wakes& wakes) {
  OfferTo(audience.whole, frames, wakes);
  for (const auto& [agent, outboxes] : audience.agents) OfferTo(outboxes, frames, wakes);
}

void Hub::OfferMessage(const Audience& audience, const std::vector<std::string>& recipients,
                       FrameMaker& frames, Wakes& wakes) {
  OfferTo(audience.whole, frames, wakes);
  for (const std::string& agent : recipients) {
    const auto outboxes = audience.agents.find(agent);
    if (outboxes != audience.agents.end()) OfferTo(outboxes->second, frames, wakes);
  }
}

}  // namespace interlock::events
