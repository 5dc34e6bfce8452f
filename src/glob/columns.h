#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "glob/budget.h"
#include "glob/pattern.h"
#include "glob/program.h"

namespace interlock::glob {

// A set of positions, one bit each; see Columns.
using Words = std::span<const std::uint64_t>;

inline bool Has(Words row, std::size_t bit) { return ((row[bit / 64] >> (bit % 64)) & 1U) != 0; }

// Brace-free patterns laid end to end, as the positions ("columns") that a reader of a path can be
// at: one before each character token, one before each slash, one at each end. A star is no column
// but a mark on the one after it: the reader may stay there. A globstar has two columns, `entry`
// and `deep`: from `entry` the reader may go to either of the next two columns without reading;
// at `deep` it reads anything and leaves over a slash. A path without wildcards ends in two
// columns: `tail` after the path, from which a slash leads to `below`, where anything is read. Sets
// of columns are bit rows, so one machine operation moves 64 readers.
//
// The columns alone would accept an empty segment or ".."; the Program run over them does not.
// Not thread-safe: masks are made when first asked for.
class Columns {
 public:
  // REQUIRES: the expansions belong to `pattern`, which outlives this.
  Columns(const Pattern& pattern, std::span<const Expansion> expansions);

  std::size_t words() const { return words_; }
  std::size_t size() const { return columns_.size(); }

  Words start() const { return Fixed(kStart); }            // before anything was read
  Words ends() const { return Fixed(kEnds); }              // everything may have been read
  Words characters() const { return Fixed(kCharacters); }  // before a character token
  Words loops() const { return Fixed(kLoops); }            // stays while a character is read
  Words slashes() const { return Fixed(kSlashes); }        // moves on over a slash
  Words deep() const { return Fixed(kDeep); }              // stays while anything is read
  Words entries() const { return Fixed(kEntries); }
  bool has_entries() const { return has_entries_; }
  // Where a segment begins, and both columns of a globstar.
  Words boundaries() const { return Fixed(kBoundaries); }
  // All columns from which a boundary follows: not those of the last segments, nor the ends.
  Words inner() const { return Fixed(kInner); }

  // The columns before a token that can read a member of `set`. Empty when the budget is used up.
  // This and all other rows are valid until the next call.
  Words Accepting(const CharSet& set, ProgramClasses& classes, Budget& budget);

  // Index of the expansion that `column` belongs to.
  std::size_t ExpansionAt(std::size_t column) const;

  // For making a witness: a member of `set` that the token after `column` can read as well.
  // REQUIRES: a character token, and there is one
  char32_t Pick(std::size_t column, const CharSet& set, ProgramClasses& classes) const;
  // Where the segment begins that `column` ends. REQUIRES: a slash or an end.
  std::size_t SegmentStart(std::size_t column) const;
  // A segment of a path that the columns from `first` to the slash or end `last` can read.
  std::string AnySegment(std::size_t first, std::size_t last) const;

 private:
  struct Column {
    enum class Kind : std::uint8_t {
      kLiteral,
      kAny,
      kClass,
      kSlash,
      kEntry,
      kDeep,
      kTail,
      kBelow,  // the last of its expansion, as kEnd is
      kEnd,
    };
    Kind kind;
    bool after_star;
    std::uint32_t value;
  };
  // Whether another expansion begins after it.
  static bool IsLast(Column::Kind kind) {
    return kind == Column::Kind::kEnd || kind == Column::Kind::kBelow;
  }
  // The rows that are made first; masks follow them.
  enum FixedRow : std::uint8_t {
    kStart,
    kEnds,
    kCharacters,
    kLoops,
    kSlashes,
    kDeep,
    kEntries,
    kBoundaries,
    kInner,
    kAny,
    kFixedRows,
  };

  Words RowAt(std::size_t index) const { return Words(rows_).subspan(index * words_, words_); }
  Words Fixed(FixedRow row) const { return RowAt(row); }
  void Set(std::size_t row, std::size_t column) {
    rows_[row * words_ + column / 64] |= std::uint64_t{1} << (column % 64);
  }
  void Add(const Expansion& expansion);
  void MakeRows();
  void MarkBoundaries();
  void MakeMask(const CharSet& set, ProgramClasses& classes, std::size_t row);
  std::int64_t MaskCost(const CharSet& set, ProgramClasses& classes) const;
  CharClass SetAt(std::size_t column) const;

  const Pattern& pattern_;
  std::vector<Column> columns_;
  std::size_t words_ = 0;
  bool has_entries_ = false;
  std::vector<std::uint64_t> rows_;
  // (code point, column) and (class, column), sorted.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> literals_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> classes_;
  // Which row is the mask of an ASCII literal, or of any other set; 0 = not made.
  std::array<std::uint32_t, 128> ascii_masks_ = {};
  std::unordered_map<std::uint64_t, std::uint32_t> masks_;
};

}  // namespace interlock::glob
