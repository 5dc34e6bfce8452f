#include "service/sign_writer.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "service/rounds.h"
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
      : storage_(storage), interval_(interval), rounds_(clock) {}

  void ScheduleRound() {
    rounds_.Schedule(interval_, [self = shared_from_this()] { self->BeginRound(); });
  }

  void Stop() {
    if (!rounds_.Stop()) return;
    // In one write: the storage may take no second one.
    auto signs = std::make_shared<const Signs>(storage_.signs().TakeUnsaved());
    if (signs->empty()) return;
    storage_.Write([signs](db::Transaction& tx) { return WriteSigns(tx, *signs); },
                   [](const Result<void>& /*nobody is left to try again*/) {});
  }

 private:
  void BeginRound() { WriteNext(std::make_shared<const Signs>(storage_.signs().TakeUnsaved()), 0); }

  // The round's signs from `begin` on.
  void WriteNext(const std::shared_ptr<const Signs>& signs, std::size_t begin) {
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
  const Duration interval_;
  Rounds rounds_;
};

SignWriter::SignWriter(Storage& storage, Clock& clock, Duration interval)
    : core_(std::make_shared<Core>(storage, clock, interval)) {}

SignWriter::~SignWriter() { Stop(); }

void SignWriter::Start() { core_->ScheduleRound(); }
void SignWriter::Stop() { core_->Stop(); }

}  // namespace interlock::service
