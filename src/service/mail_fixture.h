#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "db/sqlite/database.h"
#include "domain/contact_policy.h"
#include "domain/mailbox.h"
#include "domain/message.h"
#include "service/bent_database.h"
#include "service/mail.h"
#include "service/mailbox.h"
#include "service/storage.h"
#include "testing/fake_clock.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::service {

// Mail on a real database with its threads. Its time is a FakeClock's; storage has the machine's.
class MailTest : public ::testing::Test {
 public:
  ~MailTest() override;

 protected:
  using Texts = std::vector<std::string>;

  MailTest();

  // These wait for the answer; any thread may call them.
  Result<Mail::Delivery> Send(Mail::Draft draft);
  Result<Mail::Delivery> Broadcast(Mail::Announcement announcement);
  // The ids of an agent's mail.
  Result<Texts> TryReadInbox(domain::InboxQuery query);
  // The same; fails the test when it cannot be read.
  Texts ReadInbox(domain::InboxQuery query);

  // A living agent, or another policy for one that is there.
  struct NewAgent {
    std::string id;
    domain::ContactPolicy policy = domain::ContactPolicy::kOpen;
    Texts contacts = {};
    std::string project = "p";
    std::string name = {};  // empty = the id
    Timestamp last_seen = {};
  };
  void Register(const NewAgent& agent) { RegisterAll({agent}); }
  void RegisterAll(const std::vector<NewAgent>& agents);
  void Deregister(std::string_view id);

  // The first column of each row, a text.
  Texts Rows(const db::Sql& sql, const std::vector<db::Value>& values = {});
  // The first column of the only row, a number.
  std::int64_t Count(const db::Sql& sql);

  testing::TempDb file_;
  SystemClock system_clock_;
  testing::FakeClock clock_;
  testing::SeededRandom random_;
  UuidMaker ids_{clock_, random_};
  std::unique_ptr<sqlite::Database> sqlite_;
  std::unique_ptr<BentDatabase> database_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Mail> mail_;
  std::unique_ptr<Mailbox> mailbox_;

 private:
  void Write(const std::function<Result<void>(db::Transaction&)>& fn);
};

}  // namespace interlock::service
