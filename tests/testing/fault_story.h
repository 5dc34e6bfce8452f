#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "db/sqlite/fault_vfs.h"

namespace interlock::testing {

// The files of a disk, by name.
using DiskImage = std::map<std::string, std::string>;

// A program with its database on a disk that fails. What it does is a fixed story of steps.
class FaultLife {
 public:
  explicit FaultLife(std::uint64_t seed) : vfs_(seed) {}
  virtual ~FaultLife() = default;
  FaultLife(const FaultLife&) = delete;
  FaultLife& operator=(const FaultLife&) = delete;

  // Makes the database, before the first step.
  virtual void Make() = 0;
  // Takes one step of the story and says what was answered; opens what it needs. That the program
  // refuses something is an answer, too. An error is the disk's doing: kOutcomeUnknown leaves open
  // whether the step was taken, every other one says that it was not.
  virtual Result<std::string> Do(std::size_t step) = 0;
  // Closes everything. Do() may be called again afterwards.
  virtual void End() = 0;
  virtual std::filesystem::path database() const = 0;

  sqlite::FaultVfs& vfs() { return vfs_; }
  sqlite::FaultDisk& disk() { return vfs_.disk(); }

 private:
  sqlite::FaultVfs vfs_;
};

// Tells a story again and again, each time with one fault at another place, and holds what was
// answered against what is there afterwards:
// (1) every step that was answered is there, as in the story without a fault;
// (2) the one that failed is not there, unless its outcome was called unknown; then it is there
//     whole or not at all;
// (3) nothing else is there, in no table, and integrity_check says ok;
// (4) the story can go on from there, as it does without a fault.
class FaultStory {
 public:
  using Begin = std::function<std::unique_ptr<FaultLife>(std::uint64_t seed)>;
  enum class Lives : std::uint8_t {
    kLong,   // a program that takes all the steps
    kShort,  // one for each step, on the disk that the one before it left
  };

  enum class Promise : std::uint8_t {
    kAll,     // (1)
    kOldest,  // instead of (1): a power cut may take answered steps, the newest first
  };

  // Tells it once, on a disk that does not fail.
  FaultStory(std::size_t steps, Lives lives, Begin begin, Promise promise = Promise::kAll);

  // The power goes at the first change of the disk, then at the second, or `stride` further, and so
  // on to the last, and when all is answered. Gives what was not as it must be.
  std::vector<std::string> CutPower(sqlite::Survival survival, int stride = 1);

  // The first call of `op` fails, then the second, and so on. Each is told nine times: nothing of
  // it is done, or a part, or all; and then the program ends in order, or the power goes and leaves
  // none or some of the unsynced sectors.
  std::vector<std::string> Fail(sqlite::DiskOp op);

  // The power goes as in CutPower(kSome), after the `sync`-th sync has failed.
  std::vector<std::string> FailSyncAndCutPower(int sync);

  // Of all lives so far.
  struct Counts {
    int lives = 0;
    int failed = 0;    // in which a step was not answered
    int unknown = 0;   // and was called of unknown outcome
    int happened = 0;  // of which it had been taken
    int lost = 0;      // in which steps that were answered are gone; see Promise
  };
  const Counts& counts() const { return counts_; }

 private:
  enum class End : std::uint8_t { kInOrder, kCutSynced, kCutTorn };
  // A part of the story: the first step, and the one after the last.
  struct Part {
    std::size_t first;
    std::size_t end;
  };
  struct Played {
    std::size_t answered;             // steps of the whole story
    std::optional<Error> error = {};  // of the step after those
    std::string lie = {};
  };
  using Harm = std::function<End(sqlite::FaultDisk& disk, std::int64_t nth)>;

  std::vector<std::string> TellAll(int stride, const Harm& harm);
  Played Play(FaultLife& life, Part part) const;
  // "" when all is as it must be.
  std::string Judge(FaultLife& life, Part part, End end);
  std::string GoOn(FaultLife& life, Part part) const;

  const std::size_t steps_;
  const Lives lives_;
  const Begin begin_;
  const Promise promise_;
  std::vector<std::string> answers_;   // to each step
  std::vector<std::string> contents_;  // before the first step, and after each
  std::vector<DiskImage> images_;      // the same
  Counts counts_;
  bool faulted_ = false;  // in the last life the fault has come
  bool cut_ = false;      // and it was the power
};

// Every row of every table, in words, and whether the file is sound. Opens the file by itself.
std::string ContentOf(const std::filesystem::path& database, const sqlite::FaultVfs& vfs);

}  // namespace interlock::testing
