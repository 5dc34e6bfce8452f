#include "testing/fault_story.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::testing {
namespace {

using sqlite::DiskOp;
using sqlite::Effect;
using sqlite::Survival;

// In a slow build every second place has to do.
constexpr std::int64_t kStride = kSlowBuild ? 2 : 1;

// One life in so many is followed beyond the fault.
constexpr int kGoOnEach = 5;

DiskImage ImageOf(sqlite::FaultDisk& disk) {
  DiskImage image;
  for (const std::string& name : disk.names()) image[name] = disk.Content(name).value_or("");
  return image;
}

// Each row as one line.
std::string Rows(sqlite3* db, const std::string& sql) {
  std::string text;
  char* message = nullptr;
  const int code = sqlite3_exec(
      db, sql.c_str(),
      [](void* into, int columns, char** values, char**) {
        for (int i = 0; i < columns; ++i) {
          *static_cast<std::string*>(into) += values[i] == nullptr ? "NULL" : values[i];
          *static_cast<std::string*>(into) += i + 1 == columns ? '\n' : '|';
        }
        return 0;
      },
      &text, &message);
  if (code != SQLITE_OK) text += fmt::format("{}: {}", sql, message);
  sqlite3_free(message);
  return text;
}

}  // namespace

std::string ContentOf(const std::filesystem::path& database, const sqlite::FaultVfs& vfs) {
  sqlite3* db = nullptr;
  const int code =
      sqlite3_open_v2(database.c_str(), &db, SQLITE_OPEN_READWRITE, vfs.name().c_str());
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  std::string text = code == SQLITE_OK ? Rows(db, "PRAGMA integrity_check") : sqlite3_errmsg(db);
  const std::string tables = Rows(db, "SELECT name FROM sqlite_schema WHERE type = 'table'");
  for (std::size_t begin = 0; begin < tables.size();) {
    const std::size_t end = tables.find('\n', begin);
    const std::string table = tables.substr(begin, end - begin);
    text += table + ":\n" + Rows(db, "SELECT * FROM \"" + table + "\"");
    begin = end == std::string::npos ? tables.size() : end + 1;
  }
  sqlite3_close(db);
  return text;
}

FaultStory::FaultStory(std::size_t steps, Lives lives, Begin begin, Promise promise)
    : steps_(steps), lives_(lives), begin_(std::move(begin)), promise_(promise) {
  const std::unique_ptr<FaultLife> life = begin_(TestSeed());
  const auto note = [&] {
    contents_.push_back(ContentOf(life->database(), life->vfs()));
    IL_CHECK(contents_.back().starts_with("ok\n"), contents_.back());
    if (lives_ == Lives::kShort) life->End();
    images_.push_back(ImageOf(life->disk()));
  };
  life->Make();
  life->End();
  note();
  for (std::size_t step = 0; step < steps_; ++step) {
    Result<std::string> answer = life->Do(step);
    IL_CHECK(answer.ok(), answer.ok() ? "" : answer.error().message());
    answers_.push_back(std::move(answer).value());
    note();
  }
  life->End();
}

FaultStory::Played FaultStory::Play(FaultLife& life, Part part) const {
  Played played{.answered = part.first};
  while (played.answered < part.end && played.lie.empty()) {
    const Result<std::string> answer = life.Do(played.answered);
    if (!answer) {
      played.error = answer.error();
      return played;
    }
    if (*answer != answers_[played.answered]) {
      played.lie = fmt::format("step {} answered '{}' instead of '{}'", played.answered, *answer,
                               answers_[played.answered]);
    }
    ++played.answered;
  }
  return played;
}

std::string FaultStory::Judge(FaultLife& life, Part part, End end) {
  const Played played = Play(life, part);
  cut_ = !life.disk().powered();
  faulted_ = cut_ || life.disk().fired() > 0;
  if (!played.lie.empty()) return played.lie;
  const bool unknown = played.error && played.error->code() == Errc::kOutcomeUnknown;
  ++counts_.lives;
  counts_.failed += played.error ? 1 : 0;
  counts_.unknown += unknown ? 1 : 0;
  if (played.error && !faulted_) return "it fails by itself: " + played.error->message();
  if (life.disk().powered() && end != End::kInOrder) {
    life.disk().CutPower(end == End::kCutTorn ? Survival::kSome : Survival::kNothing);
  }
  life.End();
  if (!life.disk().powered()) life.disk().PowerOn();
  life.disk().Heal();
  const std::string content = ContentOf(life.database(), life.vfs());
  std::size_t taken = played.answered;
  if (unknown && content == contents_[taken + 1]) ++taken;
  if (promise_ == Promise::kOldest) {
    while (taken > part.first && content != contents_[taken]) --taken;
  }
  if (content != contents_[taken]) {
    return fmt::format("after {} steps{} it must hold\n{}and holds\n{}", played.answered,
                       !played.error ? "" : " and '" + played.error->message() + "'",
                       contents_[taken], content);
  }
  counts_.happened += taken > played.answered ? 1 : 0;
  counts_.lost += contents_[taken] != contents_[played.answered] && taken < played.answered ? 1 : 0;
  if (counts_.lives % kGoOnEach != 0) return "";
  return GoOn(life, {taken, lives_ == Lives::kLong ? steps_ : std::min(part.end + 1, steps_)});
}

std::string FaultStory::GoOn(FaultLife& life, Part part) const {
  const Played rest = Play(life, part);
  life.End();
  if (rest.error) return "it cannot go on: " + rest.error->message();
  if (!rest.lie.empty()) return "when it goes on, " + rest.lie;
  if (ContentOf(life.database(), life.vfs()) != contents_[part.end]) return "it ends otherwise";
  return "";
}

std::vector<std::string> FaultStory::TellAll(int stride, const Harm& harm) {
  std::vector<std::string> lies;
  const std::size_t length = lives_ == Lives::kLong ? steps_ : 1;
  for (std::size_t first = 0; first < steps_; first += length) {
    faulted_ = true;
    for (std::int64_t nth = 1; faulted_; nth += stride * kStride) {
      const auto life = begin_(TestSeed() + static_cast<std::uint64_t>(nth));
      for (const auto& [name, bytes] : images_[first]) life->disk().Put(name, bytes);
      const End end = harm(life->disk(), nth);
      const std::string lie = Judge(*life, {first, first + length}, end);
      if (!lie.empty()) lies.push_back(fmt::format("from step {}, fault {}: {}", first, nth, lie));
    }
  }
  return lies;
}

std::vector<std::string> FaultStory::CutPower(Survival survival, int stride) {
  return TellAll(stride, [survival](sqlite::FaultDisk& disk, std::int64_t nth) {
    disk.CutPowerAtStep(nth, survival);
    return End::kCutSynced;
  });
}

std::vector<std::string> FaultStory::FailSyncAndCutPower(int sync) {
  std::vector<std::string> lies;
  cut_ = true;
  for (std::int64_t nth = 1; cut_; nth += kStride) {
    const auto life = begin_(TestSeed() + static_cast<std::uint64_t>(nth));
    for (const auto& [name, bytes] : images_[0]) life->disk().Put(name, bytes);
    life->disk().Inject({.op = DiskOp::kSync, .nth = sync});
    life->disk().CutPowerAtStep(nth, Survival::kSome);
    const std::string lie = Judge(*life, {0, steps_}, End::kCutTorn);
    if (!lie.empty()) lies.push_back(fmt::format("sync {}, fault {}: {}", sync, nth, lie));
  }
  return lies;
}

std::vector<std::string> FaultStory::Fail(DiskOp op) {
  std::vector<std::string> lies;
  for (const Effect effect : {Effect::kNothing, Effect::kPart, Effect::kWhole}) {
    for (const End end : {End::kInOrder, End::kCutSynced, End::kCutTorn}) {
      const auto found = TellAll(1, [=](sqlite::FaultDisk& disk, std::int64_t nth) {
        disk.Inject({.op = op, .nth = nth, .effect = effect});
        return end;
      });
      for (const std::string& lie : found) {
        lies.push_back(fmt::format("effect {}, end {}, {}", static_cast<int>(effect),
                                   static_cast<int>(end), lie));
      }
    }
  }
  return lies;
}

}  // namespace interlock::testing
