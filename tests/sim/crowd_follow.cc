#include <charconv>

#include "sim/crowd.h"

namespace interlock::sim {
namespace {

using service::FollowEnd;
using service::Follower;
using service::Frame;

// Of a frame's text; 0 when it is in no log.
Cursor CursorOf(const std::string& frame) {
  constexpr std::string_view kBegin = R"({"cursor":)";
  Cursor cursor = 0;
  if (!frame.starts_with(kBegin)) return cursor;
  std::from_chars(frame.data() + kBegin.size(), frame.data() + frame.size(), cursor);
  return cursor;
}

}  // namespace

// Whoever does not come here often enough falls behind.
void Crowd::Watch(Client& client) {
  if (!client.watcher) {
    const std::string agent = Below(2) == 0 ? client.agent : "";
    client.watcher = std::make_unique<Watcher>(Watcher{
        .promise = FollowPromise(promises_.violations, promises_.log, client.project, agent),
        .agent = agent});
  }
  if (client.watcher->busy) return;
  if (client.watcher->follower) return Listen(client);
  Connect(client);
}

void Crowd::Connect(Client& client) {
  Watcher& watcher = *client.watcher;
  service::FollowRequest request{.project = client.project, .since = watcher.promise.position()};
  if (!watcher.agent.empty()) request.agent = watcher.agent;
  if (!request.since && Below(2) == 0) {
    request.since = 0;
    watcher.promise.Join(0);
  }
  watcher.busy = true;
  using Made = std::unique_ptr<Follower>;
  Launch<Made>("follow", world_.server().feed.Follow(std::move(request)),
               [&watcher](Result<Made> made) {
                 watcher.busy = false;
                 const bool closing = std::exchange(watcher.closing, false);
                 if (made.ok() && !closing) watcher.follower = *std::move(made);
                 if (made.ok() || made.error().code() != Errc::kGone) return;
                 if (watcher.promise.Gone()) watcher.promise.Join(0);
               });
}

void Crowd::Listen(Client& client) {
  client.watcher->busy = true;
  using Frames = std::vector<Frame>;
  Launch<Frames>("next", client.watcher->follower->Next(),
                 [this, &client](Result<Frames> frames) { HearFrames(client, std::move(frames)); });
}

void Crowd::HearFrames(Client& client, Result<std::vector<Frame>> frames) {
  Watcher& watcher = *client.watcher;
  watcher.busy = false;
  if (!frames.ok()) {
    if (frames.error().code() == Errc::kGone && watcher.promise.Gone()) watcher.promise.Join(0);
    watcher.closing = false;
    watcher.follower.reset();
    return;
  }
  if (frames->empty()) promises_.violations.Add("follow: woken for nothing");
  for (const Frame& frame : *frames) {
    const Cursor cursor = CursorOf(*frame);
    if (cursor == 0) continue;
    trace_.Add(static_cast<std::uint64_t>(cursor));
    watcher.promise.Heard(cursor);
  }
  if (std::exchange(watcher.closing, false)) watcher.follower.reset();
}

void Crowd::ReadPage(Client& client) {
  if (client.paging) return;
  if (!client.pages) {
    client.pages =
        std::make_unique<FollowPromise>(promises_.violations, promises_.log, client.project, "");
    client.pages->Join(0);
  }
  client.paging = true;
  FollowPromise& pages = *client.pages;
  auto call = world_.server().feed.Page(
      {.project = client.project, .since = pages.position().value_or(0), .limit = 1 + Below(40)});
  Launch<service::EventPage>("page", std::move(call),
                             [&client, &pages](Result<service::EventPage> page) {
                               client.paging = false;
                               if (!page.ok()) {
                                 const bool gone = page.error().code() == Errc::kGone;
                                 if (gone && pages.Gone()) pages.Join(0);
                                 return;
                               }
                               for (const domain::Event& event : page->events) {
                                 pages.Heard(event.cursor);
                               }
                               pages.Reached(page->cursor);
                             });
}

bool Crowd::ListenAll() {
  bool any = false;
  for (Client& client : clients_) {
    if (!client.watcher || client.watcher->busy) continue;
    Watch(client);
    any = true;
  }
  return any;
}

void Crowd::CheckAllHeard() {
  for (const Client& client : clients_) {
    const Watcher* watcher = client.watcher.get();
    // One that is told nothing waits for the next; so all there was it has been told.
    if (watcher == nullptr || !watcher->busy || watcher->closing) continue;
    client.watcher->promise.CheckCaughtUp();
  }
}

}  // namespace interlock::sim
