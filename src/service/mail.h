#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "auth/rate_limit.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/result.h"
#include "domain/event.h"
#include "domain/message.h"
#include "domain/resolution.h"

namespace interlock::db {
class Transaction;
}

namespace interlock::service {

class Storage;

// Sending mail: to named agents, or to everybody in a project.
//
// Thread-safe. The coroutines run on the caller's strand; what they are given they own. A message
// is kept, delivered to every inbox, counted in its thread and logged in one transaction, or not at
// all.
class Mail {
 public:
  struct Options {
    std::size_t addresses_max = 1000;  // of one message, to, cc and bcc together, as sent
    std::size_t name_bytes_max = 256;  // of an id, an address, a thread, a topic, a project
    std::int64_t broadcasts_max = 10;  // of one agent in one project, within the window
    std::chrono::seconds broadcast_window{60};
  };

  // All must outlive it.
  Mail(Storage& storage, Clock& clock, UuidMaker& ids) : Mail(storage, clock, ids, Options{}) {}
  Mail(Storage& storage, Clock& clock, UuidMaker& ids, Options options);

  // Whose agents a sender may know of: to one that may know its own project only, an agent of
  // another is as one that nobody registered, so that no answer tells what that agent's policy is.
  enum class Sight : std::uint8_t { kEveryProject, kOwnProject };

  // Which policy of a recipient in `to` counts: the one for mail, or the one for being spoken to at
  // once. Those in cc and bcc get mail in any case.
  enum class Contact : std::uint8_t { kMail, kLive };

  // A message to send. Only `from` and `addresses.to` are required. `from` and each address are
  // an id or a name, which means an agent as AddressBook says.
  struct Draft {
    std::string project = {};
    Sight sight = Sight::kEveryProject;
    Contact contact = Contact::kMail;
    std::string from = {};
    std::string id = {};  // chosen by the sender, to repeat a request safely; empty = we make one
    std::string thread_id = {};
    std::string topic = {};  // in any case
    std::string subject = {};
    std::string body = {};
    std::string importance = {};
    bool ack_required = false;
    domain::Addresses addresses = {};  // an address that stands twice counts once, the first time
  };

  struct Announcement {
    std::string project = {};
    std::string from = {};
    std::string topic = {};
    std::string subject = {};
    std::string body = {};
  };

  // The outcome of a message. Agents stand in the order to, cc, bcc, by their ids; one that nobody
  // has registered, as it was sent. One that has deregistered is unknown, and receives it.
  struct Delivery {
    std::string message_id = {};  // empty: nothing was kept, since nobody would have received it
    domain::Cursor cursor = 0;
    std::vector<std::string> received = {};
    std::size_t to_received = 0;           // how many of them were in `to`; they come first
    std::vector<std::string> denied = {};  // by their contact policies
    std::vector<domain::KnownRecipient> known = {};  // also those that are denied
    std::vector<domain::UnknownRecipient> unknown = {};

    // There were recipients, and none of them wants it.
    bool refused() const { return received.empty() && !denied.empty(); }
    bool operator==(const Delivery&) const = default;
  };

  // kInvalidArgument names the field that is wrong.
  //
  // kConflict (ambiguous_recipient): a name that two active agents have.
  //
  // Repeating a request with its id changes nothing and gives the first answer again, whatever
  // policies and names say by now. The same id with anything else in it is kConflict
  // (message_id_conflict).
  boost::asio::awaitable<Result<Delivery>> Send(Draft draft);

  // The same, where more is written in the transaction of the message: `also` runs once the message
  // is kept, for those who receive it and under its cursor, and may run again if the write does. It
  // is not run when the request repeats an earlier one, or when nobody receives the message.
  using Also = std::function<Result<void>(db::Transaction& tx, const domain::Message& kept)>;
  struct Sent {
    Delivery delivery;
    bool repeated = false;  // this is the answer that an earlier request got
  };
  // The message is checked, numbered and dated by the call, not when it is awaited.
  boost::asio::awaitable<Result<Sent>> SendAlso(Draft draft, Also also);

  // What Send() would do with it now; nothing is written.
  struct Judgement {
    std::optional<Delivery> first = {};  // it repeats a request that was answered so
    std::string sender = {};             // its id
    domain::Addresses received = {};
    domain::Addresses denied = {};
    std::vector<domain::KnownRecipient> known = {};
    std::vector<domain::UnknownRecipient> unknown = {};
  };
  boost::asio::awaitable<Result<Judgement>> Judge(Draft draft);

  // One message to every living agent of the project but the sender. kRateLimited beyond the
  // allowed number; broadcasts that reach nobody count too.
  boost::asio::awaitable<Result<Delivery>> Broadcast(Announcement announcement);

 private:
  Result<void> CountBroadcast(const Announcement& announcement);

  Storage& storage_;
  Clock& clock_;
  UuidMaker& ids_;
  const Options options_;
  auth::RateLimit broadcasts_;
};

}  // namespace interlock::service
