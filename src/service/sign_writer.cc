#include "service/sign_writer.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "service/storage.h"
#include "store/agents.h"

namespace interlock::service {
namespace {

using Signs = std::vector<SignsOfLife::Sign>;

// Per write of a round: other writes wait for it.
constexpr std::size_t kRowsMax = 256;

Result<void> WriteSigns(db::Transaction& tx, std::span<const SignsOfLife::Sign> signs) {
  for (const SignsOfLife::Sign& sign : signs) {
    IL_TRY_VOID(store::RaiseLastSeen(tx, sign.agent, sign.at));
  }
  return {};
}

}  // namespace

// Shared with the callbacks that storage and clock hold. A round is a chain of writes, of which
// each one's callback begins the next, so at most one is under way.
class SignWriter::Core : public std::enable_shared_from_this<SignWriter::Core> {
 public:
  Core(Storage& storage, Clock& clock, Duration interval)
      : storage_(storage), clock_(clock), interval_(interval) {}

  void ScheduleRound() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    busy_ = false;
    idle_.NotifyAll();
    if (stopped_) return;
    timer_ = clock_.Schedule(interval_, [self = shared_from_this()] { self->BeginRound(); });
  }

  void Stop() IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      const bool again = std::exchange(stopped_, true);
      if (timer_ != 0) clock_.Cancel(std::exchange(timer_, 0));
      while (busy_) idle_.Wait(mutex_);
      if (again) return;
    }
    // In one write: the storage may take no second one.
    auto signs = std::make_shared<const Signs>(storage_.signs().TakeUnsaved());
    if (signs->empty()) return;
    storage_.Write([signs](db::Transaction& tx) { return WriteSigns(tx, *signs); },
                   [](const Result<void>& /*nobody is left to try again*/) {});
  }

 private:
  void BeginRound() IL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      timer_ = 0;
      if (stopped_) return;
      busy_ = true;
    }
    WriteNext(std::make_shared<const Signs>(storage_.signs().TakeUnsaved()), 0);
  }

  // The round's signs from `begin` on.
  void WriteNext(const std::shared_ptr<const Signs>& signs, std::size_t begin) IL_EXCLUDES(mutex_) {
    if (begin == signs->size()) return ScheduleRound();
    const std::size_t end = std::min(begin + kRowsMax, signs->size());
    const auto some = std::span(*signs).subspan(begin, end - begin);
    storage_.Write([signs, some](db::Transaction& tx) { return WriteSigns(tx, some); },
                   [self = shared_from_this(), signs, some, end](const Result<void>& written) {
                     if (!written.ok()) return self->ScheduleRound();
                     self->storage_.signs().MarkSaved(some);
                     self->WriteNext(signs, end);
                   });
  }

  Storage& storage_;
  Clock& clock_;
  const Duration interval_;
  Mutex mutex_;
  CondVar idle_;
  bool busy_ IL_GUARDED_BY(mutex_) = false;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
  Clock::TimerId timer_ IL_GUARDED_BY(mutex_) = 0;
};

SignWriter::SignWriter(Storage& storage, Clock& clock, Duration interval)
    : core_(std::make_shared<Core>(storage, clock, interval)) {}

SignWriter::~SignWriter() { Stop(); }

void SignWriter::Start() { core_->ScheduleRound(); }
void SignWriter::Stop() { core_->Stop(); }

}  // namespace interlock::service
