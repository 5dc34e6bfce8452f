#include "service/feed.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "base/check.h"
#include "events/hub.h"
#include "events/outbox.h"
#include "events/type_filter.h"
#include "service/await.h"
#include "service/commit_signal.h"
#include "service/replay_queue.h"
#include "service/storage.h"
#include "service/tail.h"
#include "service/wait_outbox.h"
#include "store/events.h"

namespace interlock::service {
namespace {

using boost::asio::awaitable;
using domain::Cursor;
using events::Outbox;

// One read of a replay: enough to be worth a turn, little enough that many can be held at once.
// Short, so that many who catch up at once leave room for other reads between their pages.
constexpr std::size_t kReplayRows = 1000;
constexpr std::size_t kReplayEvents = 256;
constexpr std::size_t kReplayBytes = std::size_t{256} * 1024;

// Longer than any type there is; what a filter keeps stays small.
constexpr std::size_t kTypeBytesMax = 64;

Result<void> CheckTypes(const std::vector<std::string>& types) {
  for (const std::string& type : types) {
    if (type.size() <= kTypeBytesMax) continue;
    return Error(Errc::kInvalidArgument, "No event type is longer than " +
                                             std::to_string(kTypeBytesMax) +
                                             " bytes; check the list of types.");
  }
  return {};
}

// Part of this file's own contract with WhyEnded(); no client sees them.
constexpr char kLaggedSlug[] = "follower_lagged";
constexpr char kStoppingSlug[] = "follower_stopping";
constexpr char kClosedSlug[] = "follower_closed";

Error Lagged() {
  return Error(Errc::kUnavailable,
               "The events came faster than they were taken. Resume after the last one received.")
      .WithSlug(kLaggedSlug);
}
Error Stopping() {
  return Error(Errc::kUnavailable, "The server is stopping. Resume when it is back.")
      .WithSlug(kStoppingSlug);
}
// To who was no follower yet; as any request that comes too late is answered.
Error TooLate() {
  return Error(Errc::kUnavailable, "The server is stopping; connect again when it is back.");
}
Error Closed() { return Error(Errc::kCancelled, "no longer followed").WithSlug(kClosedSlug); }

// What one read of a replay found.
struct Replayed {
  std::vector<Frame> frames = {};
  Cursor reached = 0;
};

Result<Replayed> ReadReplay(db::Connection& connection, const store::EventQuery& query) {
  IL_TRY(const store::EventChunk chunk, store::ReadEvents(connection, query));
  Replayed replayed{.reached = chunk.ended ? query.through : chunk.reached};
  replayed.frames.reserve(chunk.events.size());
  for (const domain::Event& event : chunk.events) {
    events::FrameMaker maker(event);
    const bool addressed = query.recipient && event.type == domain::event_type::kMessageCreated;
    replayed.frames.push_back(addressed ? maker.For(*query.recipient) : maker.Logged());
  }
  return replayed;
}

}  // namespace

FollowEnd WhyEnded(const Error& error) {
  if (error.slug() == kLaggedSlug) return FollowEnd::kLagged;
  if (error.slug() == kStoppingSlug) return FollowEnd::kStopping;
  if (error.code() == Errc::kCancelled) return FollowEnd::kClosed;
  return FollowEnd::kFailed;
}

std::optional<Cursor> NewestIfAhead(const Error& error) {
  if (error.slug() != store::kCursorAheadSlug) return std::nullopt;
  return std::get<std::int64_t>(error.details().front().second);
}

struct Feed::Parts {
  Parts(Storage& s, CommitSignal& c, Clock& k, Logger& log, Options o)
      : storage(s),
        commits(c),
        clock(k),
        options(o),
        hub(std::make_shared<events::Hub>(0)),
        tail(s, hub, k, log),
        replays(s, o.replays_max) {}

  Storage& storage;
  CommitSignal& commits;
  Clock& clock;
  const Options options;
  const std::shared_ptr<events::Hub> hub;
  Tail tail;
  ReplayQueue replays;
  std::atomic<std::uint64_t> lagged{0};
};

// Replays (position_, through_] from the log, then takes from the outbox, which has had everything
// after through_ since it joined. If that overflows during the replay, or is to have other types,
// it joins anew, which sets a later through_: a long replay under load ends all the same.
class Follower::Impl {
 public:
  // `bare_name`: mail under this text belongs to the agent, too. No new mail is stored under it.
  Impl(std::shared_ptr<Feed::Parts> feed, FollowRequest request,
       std::optional<std::string> bare_name)
      : feed_(std::move(feed)),
        project_(std::move(request.project)),
        bare_name_(std::move(bare_name)),
        filter_(request.types),
        outbox_(std::make_shared<Outbox>(
            std::move(request.agent), filter_,
            Outbox::Limits{.events_max = feed_->options.outbox_events_max,
                           .bytes_max = feed_->options.outbox_bytes_max})) {}
  ~Impl() {
    Close();
    feed_->hub->Leave(project_, outbox_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Nothing: from where the live events begin.
  Result<void> Join(std::optional<Cursor> position) {
    const std::optional<Cursor> joined = feed_->hub->Join(project_, outbox_, position.value_or(0));
    if (!joined) return Stopping();
    through_ = *joined;
    position_ = position.value_or(through_);
    return {};
  }

  awaitable<Result<std::vector<Frame>>> Next() {
    while (!end_) {
      if (position_ < through_ && !closed()) {
        std::vector<Frame> replayed = co_await Replay();
        if (!replayed.empty()) co_return replayed;
        continue;
      }
      std::vector<Frame> taken = Take();
      if (!taken.empty()) co_return taken;
      if (!end_ && position_ >= through_) co_await WaitFor(outbox_);
    }
    co_return *end_;
  }

  Result<void> Check(const events::TypeFilter& filter) const {
    if (filter.size() <= feed_->options.types_max) return {};
    return Error(Errc::kInvalidArgument, "Too many event types; subscribe to at most " +
                                             std::to_string(feed_->options.types_max) + ".");
  }

  // REQUIRES: it has joined.
  Result<void> SetFilter(events::TypeFilter filter) {
    IL_TRY_VOID(Check(filter));
    filter_ = std::move(filter);
    outbox_->SetFilter(filter_);
    // What the outbox has left out by the old filter comes after what is yet to be replayed by the
    // new one: it is replayed, too.
    if (!live_ && !closed()) Rejoin();
    return {};
  }
  const events::TypeFilter& filter() const { return filter_; }

  void Close() {
    // It may never come to Take() and learn that it lagged: its last frame is not taken.
    if (live_ && outbox_->state() == Outbox::State::kLagged) CountLagged();
    outbox_->Close(Outbox::State::kClosed);
    reading_.Cancel();
  }

  void GiveUp() {
    CountLagged();
    Close();
  }

 private:
  void CountLagged() {
    if (!std::exchange(counted_, true)) ++feed_->lagged;
  }

  bool closed() const {
    const Outbox::State state = outbox_->state();
    return state == Outbox::State::kClosed || state == Outbox::State::kStopping;
  }

  // The next frames of the log; none when it found none, or came to an end.
  awaitable<std::vector<Frame>> Replay() {
    store::EventQuery query{.project = project_,
                            .after = position_,
                            .through = through_,
                            .recipient = outbox_->agent(),
                            .or_recipient = bare_name_,
                            .events_max = kReplayEvents,
                            .rows_max = kReplayRows,
                            .bytes_max = kReplayBytes};
    if (!filter_.AcceptsAll()) {
      query.wants = [filter = filter_](std::string_view type) { return filter.Accepts(type); };
    }
    auto replayed = std::make_shared<Replayed>();  // the read may outlive us
    auto read = [this, query = std::move(query), replayed](Storage::DoneWith<void> done) {
      reading_ = feed_->replays.Submit(
          [query, replayed](db::Connection& connection) -> Result<void> {
            IL_TRY(*replayed, ReadReplay(connection, query));
            return {};
          },
          std::move(done));
      return reading_;
    };
    Result<void> ended = co_await Await<void>(std::move(read));
    if (!ended.ok()) {
      // Of one that was closed the outbox knows why.
      if (!closed()) end_ = std::move(ended).error();
      co_return std::vector<Frame>();
    }
    position_ = replayed->reached;
    co_return std::move(replayed->frames);
  }

  std::vector<Frame> Take() {
    Outbox::Taken taken = outbox_->Take();
    switch (taken.state) {
      case Outbox::State::kOpen:
        live_ = true;
        break;
      case Outbox::State::kLagged:
        OnLagged();
        break;
      case Outbox::State::kClosed:
        end_ = Closed();
        break;
      case Outbox::State::kStopping:
        end_ = Stopping();
        break;
    }
    return std::move(taken.frames);
  }

  void Rejoin() {
    if (Result<void> joined = Join(position_); !joined.ok()) end_ = std::move(joined).error();
  }

  void OnLagged() {
    if (!live_) return Rejoin();
    end_ = Lagged();
    CountLagged();
  }

  const std::shared_ptr<Feed::Parts> feed_;
  const std::string project_;
  const std::optional<std::string> bare_name_;
  events::TypeFilter filter_;
  const std::shared_ptr<Outbox> outbox_;
  Cursor position_ = 0;        // all up to here has been handed out, or was left out
  Cursor through_ = 0;         // the outbox has what comes after
  bool live_ = false;          // the replay is over
  bool counted_ = false;       // as lagged
  ReplayQueue::Call reading_;  // of the replay
  std::optional<Error> end_;
};

Follower::Follower(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Follower::~Follower() = default;

awaitable<Result<std::vector<Frame>>> Follower::Next() { return impl_->Next(); }

Result<void> Follower::Subscribe(const std::vector<std::string>& types) {
  IL_TRY_VOID(CheckTypes(types));
  events::TypeFilter filter = impl_->filter();
  filter.Subscribe(types);
  return impl_->SetFilter(std::move(filter));
}

Result<void> Follower::Unsubscribe(const std::vector<std::string>& types) {
  IL_TRY_VOID(CheckTypes(types));
  events::TypeFilter filter = impl_->filter();
  filter.Unsubscribe(types);
  return impl_->SetFilter(std::move(filter));
}

void Follower::Close() { impl_->Close(); }
void Follower::GiveUp() { impl_->GiveUp(); }

Feed::Feed(Storage& storage, CommitSignal& commits, Clock& clock, Logger& log, Options options)
    : parts_(std::make_shared<Parts>(storage, commits, clock, log, options)) {}

Feed::~Feed() { Stop(); }

void Feed::Start(Cursor newest) {
  IL_CHECK(parts_->hub->SkipTo(newest));
  parts_->commits.Connect([parts = parts_.get()](db::Connection* own) { parts->tail.Notify(own); });
}

awaitable<Result<std::unique_ptr<Follower>>> Feed::Follow(FollowRequest request) {
  const std::shared_ptr<Parts> parts = parts_;
  IL_CO_TRY_VOID(CheckTypes(request.types));
  std::optional<Cursor> since = request.since;
  std::optional<std::string> bare_name;
  if (since) {
    since = std::max<Cursor>(*since, 0);
    using Name = std::optional<std::string>;
    auto check = [parts, cursor = *since, project = request.project,
                  agent = request.agent](db::Connection& connection) -> Result<Name> {
      IL_TRY_VOID(store::RefuseExpired(connection, cursor));
      IL_TRY_VOID(store::RefuseAhead(connection, cursor));
      if (!agent) return Name();
      IL_TRY(auto owner,
             parts->storage.addresses().OwnerOf(connection, project, *agent, parts->clock.Now()));
      return owner.also ? Name(std::move(owner.also->name)) : Name();
    };
    IL_CO_TRY(bare_name, co_await AwaitRead<Name>(parts->storage, std::move(check)));
  }
  auto impl = std::make_unique<Follower::Impl>(parts, std::move(request), std::move(bare_name));
  IL_CO_TRY_VOID(impl->Check(impl->filter()));
  if (!impl->Join(since).ok()) co_return TooLate();
  co_return std::make_unique<Follower>(std::move(impl));
}

awaitable<Result<EventPage>> Feed::Page(EventPageRequest request) {
  IL_CHECK(request.limit >= 1 && request.limit <= kPageMax);
  store::EventQuery query{.project = std::move(request.project),
                          .after = std::max<Cursor>(request.since, 0),
                          .events_max = request.limit};
  if (!request.types.empty()) {
    query.wants = [filter = events::TypeFilter(request.types)](std::string_view type) {
      return filter.Accepts(type);
    };
  }
  auto read = [&storage = parts_->storage,
               query = std::move(query)](Storage::DoneWith<store::EventChunk> done) {
    return storage.Read<store::EventChunk>(
        [query](db::Connection& connection) { return store::ReadEvents(connection, query); },
        std::move(done));
  };
  IL_CO_TRY(store::EventChunk chunk, co_await Await<store::EventChunk>(std::move(read)));
  co_return EventPage{.events = std::move(chunk.events), .cursor = chunk.reached};
}

void Feed::PublishLive(const domain::Event& event) { parts_->hub->PublishLive(event); }

void Feed::Stop() {
  parts_->commits.Disconnect();
  parts_->tail.Stop();
  parts_->hub->Close();
  parts_->replays.Stop();  // those who wait for it now learn from the hub why
}

Feed::Stats Feed::stats() const {
  const ReplayQueue::Stats replays = parts_->replays.stats();
  return {.followers = parts_->hub->listeners(),
          .lagged = parts_->lagged,
          .published = parts_->hub->published(),
          .replays_running = replays.running,
          .replays_waiting = replays.waiting};
}

}  // namespace interlock::service
