#include "glob/product.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <ranges>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"

namespace interlock::glob {
namespace {

using Row = std::vector<std::uint64_t>;

// Readers at `move` columns go one on, those at `stay` columns may remain.
void MoveOrStay(Row& row, Words move, Words stay) {
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::uint64_t moving = row[i] & move[i];
    row[i] = (moving << 1U) | carry | (row[i] & stay[i]);
    carry = moving >> 63U;
  }
}

// Readers may cross any number of `open` columns. The sum makes each reader a carry that runs to
// the end of its run of open columns and comes to rest on the column behind it.
std::uint64_t Flood(std::uint64_t seeds, std::uint64_t open, std::uint64_t& carry) {
  std::uint64_t sum = 0;
  const bool over = __builtin_add_overflow(open, seeds & open, &sum);
  const bool over_again = __builtin_add_overflow(sum, carry, &sum);
  carry = static_cast<std::uint64_t>(over || over_again);
  return seeds | (sum ^ open);
}

void CrossCharacters(Row& row, const Columns& columns) {
  const Words characters = columns.characters();
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = Flood(row[i], characters[i], carry);
}

// Each boundary leads to all later ones of its expansion: every segment can be read by some path.
void CrossSegments(Row& row, const Columns& columns) {
  const Words boundaries = columns.boundaries();
  const Words inner = columns.inner();
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] |= Flood(row[i] & boundaries[i], inner[i], carry) & boundaries[i];
  }
}

void CrossSlash(Row& row, const Columns& columns) {
  MoveOrStay(row, columns.slashes(), columns.deep());
  if (!columns.has_entries()) return;
  const Words entries = columns.entries();
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::uint64_t entering = row[i] & entries[i];
    row[i] |= (entering << 1U) | (entering << 2U) | carry;
    carry = (entering >> 63U) | (entering >> 62U);
  }
}

bool IsZero(const Row& row) {
  return std::ranges::all_of(row, [](std::uint64_t word) { return word == 0; });
}

// The registers of a run.
class Machine {
 public:
  Machine(ProgramClasses& classes, Columns& columns, Budget& budget)
      : classes_(classes),
        columns_(columns),
        budget_(budget),
        row_(columns.start().begin(), columns.start().end()) {}

  // False when the budget is used up.
  bool Run(const Op& op) {
    if (!budget_.Spend(static_cast<std::int64_t>(row_.size()) + 2)) return false;
    switch (op.kind) {
      case Op::Kind::kStep: {
        const Words accepting = columns_.Accepting(op.set, classes_, budget_);
        if (accepting.empty()) return false;
        MoveOrStay(row_, accepting, columns_.loops());
        break;
      }
      case Op::Kind::kStar:
      case Op::Kind::kAnySegment:
        CrossCharacters(row_, columns_);
        break;
      case Op::Kind::kSlash:
        CrossSlash(row_, columns_);
        break;
      case Op::Kind::kGlobstar:
        CrossSegments(row_, columns_);
        break;
      case Op::Kind::kFork:
        forked_ = true;
        fork_ = row_;
        joined_.assign(row_.size(), 0);
        break;
      case Op::Kind::kNext:
      case Op::Kind::kJoin:
        for (std::size_t i = 0; i < row_.size(); ++i) joined_[i] |= row_[i];
        forked_ = op.kind == Op::Kind::kNext;
        row_ = forked_ ? fork_ : joined_;
        break;
    }
    return true;
  }

  // Nothing more can come of it.
  bool dead() const { return !forked_ && IsZero(row_); }
  const Row& row() const { return row_; }

 private:
  ProgramClasses& classes_;
  Columns& columns_;
  Budget& budget_;
  Row row_;
  Row fork_;
  Row joined_;
  bool forked_ = false;
};

std::optional<std::size_t> FirstEnd(const Row& row, const Columns& columns) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::uint64_t ends = row[i] & columns.ends()[i];
    if (ends != 0) return i * 64 + static_cast<std::size_t>(std::countr_zero(ends));
  }
  return std::nullopt;
}

// Walks back from the end, from operation to operation and column to column, and writes down, last
// first, what was read.
class Unwinder {
 public:
  // `rows` has the row before each operation, and the last row.
  Unwinder(std::span<const Op> program, ProgramClasses& classes, Columns& columns, Words rows,
           std::size_t column)
      : program_(program), classes_(classes), columns_(columns), rows_(rows), column_(column) {}

  std::string Run() {
    op_ = program_.size();
    while (op_ > 0) Unwind();
    std::string path;
    for (const std::string& piece : pieces_ | std::views::reverse) path += piece;
    return path;
  }

 private:
  bool HasAt(std::size_t op, std::size_t column) const {
    return Has(rows_.subspan(op * columns_.words(), columns_.words()), column);
  }
  bool Before(std::size_t column) const { return HasAt(op_ - 1, column); }
  bool After(std::size_t column) const { return HasAt(op_, column); }
  void Read(char32_t c) { AppendUtf8(pieces_.emplace_back(), c); }

  void Unwind() {
    const Op& op = program_[op_ - 1];
    IL_CHECK(After(column_) || op.kind == Op::Kind::kNext || op.kind == Op::Kind::kFork);
    switch (op.kind) {
      case Op::Kind::kStep:
        return UnwindStep(op.set);
      case Op::Kind::kStar:
        return UnwindStar();
      case Op::Kind::kAnySegment:
        return UnwindAnySegment();
      case Op::Kind::kSlash:
        return UnwindSlash();
      case Op::Kind::kGlobstar:
        return UnwindGlobstar();
      case Op::Kind::kFork:
        --op_;
        return;
      case Op::Kind::kNext:  // the alternative that was taken began here
        while (program_[op_ - 1].kind != Op::Kind::kFork) --op_;
        return;
      case Op::Kind::kJoin:
        return UnwindJoin();
    }
  }

  void UnwindStep(const CharSet& set) {
    Budget none(0);  // the mask was made on the way here
    const Words accepting = columns_.Accepting(set, classes_, none);
    if (column_ > 0 && Before(column_ - 1) && Has(accepting, column_ - 1)) {
      --column_;
      Read(columns_.Pick(column_, set, classes_));
    } else {
      IL_CHECK(Before(column_) && Has(columns_.loops(), column_));
      Read(PickAny(set));
    }
    --op_;
  }

  char32_t PickAny(const CharSet& set) {
    if (set.kind == CharSet::Kind::kAny) return U'a';
    if (set.kind == CharSet::Kind::kLiteral) return set.value;
    return classes_.Get(set.value).PickCommon(CharClass::Any());
  }

  void UnwindStar() {
    while (!Before(column_)) {
      IL_CHECK(column_ > 0);
      --column_;
      Read(columns_.Pick(column_, {CharSet::Kind::kAny}, classes_));
    }
    --op_;
  }

  void UnwindAnySegment() {
    if (Has(columns_.deep(), column_)) {
      pieces_.emplace_back("a");
    } else {
      const std::size_t first = columns_.SegmentStart(column_);
      pieces_.push_back(columns_.AnySegment(first, column_));
      column_ = first;
    }
    --op_;
    IL_CHECK(After(column_));
  }

  void UnwindSlash() {
    if (column_ > 0 && Before(column_ - 1) && Has(columns_.slashes(), column_ - 1)) {
      pieces_.emplace_back("/");
      --column_;
      --op_;
    } else if (Before(column_) && Has(columns_.deep(), column_)) {
      pieces_.emplace_back("/");
      --op_;
    } else {
      UnwindEntry();
    }
  }

  // Back to the entry that led here without reading.
  void UnwindEntry() {
    const std::size_t back = Has(columns_.entries(), column_ - 1) ? 1 : 2;
    IL_CHECK(column_ >= back);
    column_ -= back;
    IL_CHECK(Has(columns_.entries(), column_) && After(column_));
  }

  void UnwindGlobstar() {
    if (Before(column_)) {
      --op_;
      return;
    }
    IL_CHECK(column_ > 0);
    const std::size_t previous = column_ - 1;
    if (Has(columns_.entries(), previous)) {
      column_ = previous;
    } else if (!Has(columns_.deep(), previous)) {
      const std::size_t first = columns_.SegmentStart(previous);
      pieces_.push_back(columns_.AnySegment(first, previous) + "/");
      column_ = first;
    } else if (After(previous - 1)) {
      column_ = previous - 1;
    } else {
      pieces_.emplace_back("a/");
      column_ = previous;
    }
  }

  void UnwindJoin() {
    // The row before a kNext or kJoin is what its alternative came to.
    while (!Before(column_)) {
      do {
        --op_;
        IL_CHECK(op_ > 0);
      } while (program_[op_ - 1].kind != Op::Kind::kNext);
    }
    --op_;
  }

  const std::span<const Op> program_;
  ProgramClasses& classes_;
  Columns& columns_;  // for its masks, all of which exist by now
  const Words rows_;
  std::size_t op_ = 0;
  std::size_t column_;
  std::vector<std::string> pieces_;
};

}  // namespace

Error TooComplex() {
  return Error(
      Errc::kPatternTooComplex,
      "comparing the patterns with all that is held takes too long; ask for fewer at once, "
      "with fewer wildcards, classes and branches, or for a directory");
}

Result<std::optional<std::size_t>> FindCommon(std::span<const Op> program, ProgramClasses& classes,
                                              Columns& columns, Budget& budget) {
  Machine machine(classes, columns, budget);
  for (const Op& op : program) {
    if (!machine.Run(op)) return TooComplex();
    if (machine.dead()) return std::optional<std::size_t>();
  }
  const std::optional<std::size_t> end = FirstEnd(machine.row(), columns);
  if (!end) return std::optional<std::size_t>();
  return std::optional(columns.ExpansionAt(*end));
}

Result<std::string> MakeWitness(std::span<const Op> program, ProgramClasses& classes,
                                Columns& columns, Budget& budget) {
  Machine machine(classes, columns, budget);
  Row rows;
  rows.reserve((program.size() + 1) * columns.words());
  rows = machine.row();
  for (const Op& op : program) {
    if (!machine.Run(op)) return TooComplex();
    rows.insert(rows.end(), machine.row().begin(), machine.row().end());
  }
  const std::optional<std::size_t> end = FirstEnd(machine.row(), columns);
  IL_CHECK(end.has_value());
  return Unwinder(program, classes, columns, rows, *end).Run();
}

}  // namespace interlock::glob
