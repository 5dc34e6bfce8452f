#pragma once

#include "api/app.h"
#include "api/metrics.h"
#include "api/routes.h"
#include "auth/keyring_holder.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limited_log.h"
#include "service/agents.h"
#include "service/commit_signal.h"
#include "service/feed.h"
#include "service/health.h"
#include "service/live.h"
#include "service/mail.h"
#include "service/mailbox.h"
#include "service/planning.h"
#include "service/reservations.h"
#include "service/status.h"
#include "service/storage.h"
#include "service/windows.h"
#include "testing/captured_log.h"
#include "testing/seeded_random.h"

namespace interlock::api {

// Types nothing anywhere.
class NoTerminal final : public service::Injector {
 public:
  void Inject(Order /*order*/, Done done) override {
    done(Error(Errc::kUnavailable, "there is no terminal"));
  }
};

// The services of a test's App over a database of its choice; whoever adds a service to App adds it
// here, and every test has it. No keys, and this machine needs none.
struct TestServices {
  TestServices(db::Database& database, Clock& clock,
               Duration ping_budget = std::chrono::milliseconds(500))
      : metrics(Routes(), clock, [] { return ServerNumbers(); }),
        storage(database, clock),
        health(&storage, clock, ping_budget),
        uuids(clock, random),
        keys(auth::Keyring()),
        agents(storage, clock, random, uuids),
        mail(storage, clock, uuids, {}),
        mailbox(storage, clock),
        quiet(clock, unheard),
        silent(clock, limited_lines, {.level_min = LogLevel::kError}),
        events(silent, clock),
        feed(storage, commits, clock, quiet, {}),
        planning(storage, clock, uuids),
        reservations(storage, clock, uuids, Limits(), {}),
        status(storage, reservations, feed, clock, {}),
        live(storage, clock, uuids, mail, nowhere, quiet),
        windows(storage, clock, uuids) {
    feed.Start(0);
  }

  App MakeApp(Logger& log) { return MakeApp(log, health, feed); }
  App MakeApp(Logger& log, service::Health& other_health) {
    return MakeApp(log, other_health, feed);
  }
  App MakeApp(Logger& log, service::Health& other_health, service::Feed& other_feed) {
    return {.version = "9.8.7",
            .log_id = "0123456789abcdef0123456789abcdef",
            .log = log,
            .events = events,
            .metrics = metrics,
            .keys = keys,
            .access = {},
            .health = other_health,
            .agents = agents,
            .mail = mail,
            .mailbox = mailbox,
            .feed = other_feed,
            .planning = planning,
            .reservations = reservations,
            .status = status,
            .live = live,
            .windows = windows};
  }

  Metrics metrics;
  service::Storage storage;
  service::Health health;
  testing::SeededRandom random;
  UuidMaker uuids;
  auth::KeyringHolder keys;
  service::Agents agents;
  service::Mail mail;
  service::Mailbox mailbox;
  testing::CapturedLog unheard;
  Logger quiet;
  testing::CapturedLog limited_lines;  // of `events`, level error
  Logger silent;  // so that no timer of `events` is among those that a test waits for
  LimitedLog events;
  service::CommitSignal commits;
  service::Feed feed;
  service::Planning planning;
  service::Reservations reservations;
  service::Status status;
  NoTerminal nowhere;
  service::Live live;
  service::Windows windows;
};

}  // namespace interlock::api
