#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "domain/sightings.h"

namespace interlock::service {

// Signs of life that are not stored yet. Every request in an agent's name is one, reads included,
// so they are kept in memory, and what is due is stored now and then. An open stream of an
// agent is a sign of life at every moment.
//
// Thread-safe. Invariants:
// (1) The remembered time of an agent never goes back, whatever the clock does.
// (2) A sign is forgotten only at the TakeUnsaved() after the one that had it stored: a read that
//     began before that commit may still be looking for it.
// (3) Memory is bounded: `agents_max` agents, besides those of open streams. When it is full, other
//     agents are not remembered until signs were stored; what is remembered stays.
// (4) Agents are given by the ids that they registered with, so that invented names cannot fill the
//     memory. A sign of an agent that is no longer registered changes nothing when it is stored.
class SignsOfLife final : public domain::Sightings {
 private:
  struct Entry;

 public:
  static constexpr std::size_t kAgentsMax = 16'384;
  // How often the sign of an open stream without requests is due.
  static constexpr Duration kStreamSavePeriod = std::chrono::seconds(45);

  // The clock must outlive it.
  explicit SignsOfLife(Clock& clock, std::size_t agents_max = kAgentsMax)
      : clock_(clock), agents_max_(agents_max) {}

  // The agent lives now.
  void Seen(std::string_view agent_id) IL_EXCLUDES(mutex_);

  // Keeps the agent alive until it is destroyed, which must be before `SignsOfLife` is.
  class Stream {
   public:
    Stream() = default;  // of nobody
    Stream(Stream&& other) noexcept
        : signs_(std::exchange(other.signs_, nullptr)), entry_(other.entry_) {}
    Stream& operator=(Stream&& other) noexcept {
      std::swap(signs_, other.signs_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Stream() {
      if (signs_ != nullptr) signs_->Close(*entry_);
    }

   private:
    friend class SignsOfLife;
    Stream(SignsOfLife& signs, Entry& entry) : signs_(&signs), entry_(&entry) {}

    SignsOfLife* signs_ = nullptr;
    Entry* entry_ = nullptr;  // of `signs_`, which keeps it
  };
  Stream Open(std::string_view agent_id) IL_EXCLUDES(mutex_);

  Timestamp Newest(std::string_view agent_id, Timestamp stored) const override IL_EXCLUDES(mutex_);
  std::vector<std::string> Remembered() const override IL_EXCLUDES(mutex_);

  // For the one that stores them.
  struct Sign {
    std::string agent;  // its id
    Timestamp at;
  };
  // Everything that is due to be stored. Forgets what was stored before and is not newer.
  std::vector<Sign> TakeUnsaved() IL_EXCLUDES(mutex_);
  // These were committed.
  void MarkSaved(std::span<const Sign> signs) IL_EXCLUDES(mutex_);

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's
    std::size_t operator()(std::string_view id) const { return std::hash<std::string_view>()(id); }
  };
  struct Entry {
    Timestamp at = {};
    Timestamp saved = {std::numeric_limits<std::int64_t>::min()};  // never
    std::size_t streams = 0;
  };

  Entry& Raise(std::string_view agent_id, Timestamp now) IL_REQUIRES(mutex_);
  void Close(Entry& entry) IL_EXCLUDES(mutex_);

  Clock& clock_;
  const std::size_t agents_max_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::service
