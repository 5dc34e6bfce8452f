#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace interlock::app {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kCutMark = "…";  // one column
constexpr std::size_t kCutMin = 8;          // what is left of a column that is cut
constexpr std::size_t kWrapMin = 16;        // and of one that wraps

struct Range {
  char32_t first;
  char32_t last;
};

// What must not reach a terminal: controls of both sets, marks that turn the direction of the text
// or that nobody sees, and the line and paragraph separators.
constexpr std::array kHostile = {
    Range{0x00, 0x1F},     Range{0x7F, 0x9F},     Range{0xAD, 0xAD},       Range{0x061C, 0x061C},
    Range{0x180E, 0x180E}, Range{0x200B, 0x200F}, Range{0x2028, 0x202E},   Range{0x2060, 0x206F},
    Range{0xFEFF, 0xFEFF}, Range{0xFFF9, 0xFFFB}, Range{0xE0000, 0xE0FFF},
};
// Marks that stand on the character before them.
constexpr std::array kNoColumn = {
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD},
    Range{0x064B, 0x065F}, Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},
    Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F},
};
// East Asian wide ones, and pictures.
constexpr std::array kTwoColumns = {
    Range{0x1100, 0x115F},   Range{0x2E80, 0x303E},   Range{0x3041, 0xA4CF},
    Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},
    Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F},
    Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1FAFF}, Range{0x20000, 0x3FFFD},
};

template <std::size_t N>
bool IsIn(const std::array<Range, N>& ranges, char32_t c) {
  return std::ranges::any_of(ranges, [c](Range r) { return c >= r.first && c <= r.last; });
}

std::size_t Columns(char32_t c) {
  if (IsIn(kNoColumn, c)) return 0;
  return IsIn(kTwoColumns, c) ? 2 : 1;
}

// The longest start of the text that takes at most `width` columns; in bytes.
std::size_t FittingBytes(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  std::size_t columns = 0;
  while (bytes < text.size()) {
    const Utf8Unit unit = FirstUtf8Unit(text.substr(bytes));
    columns += Columns(unit.code_point);
    if (columns > width) break;
    bytes += unit.size;
  }
  return bytes;
}

std::string Cut(std::string_view text, std::size_t width) {
  if (WidthOf(text) <= width) return std::string(text);
  std::string cut(text.substr(0, FittingBytes(text, width - 1)));
  return cut += kCutMark;
}

// The next line of a text that wraps, taken away from it. At a space where there is one.
std::string TakeLine(std::string_view& text, std::size_t width) {
  std::size_t bytes = FittingBytes(text, width);
  if (bytes == 0) bytes = FirstUtf8Unit(text).size;  // wider than the column
  std::size_t next = bytes;
  if (bytes < text.size() && text[bytes] != ' ') {
    const std::size_t space = text.substr(0, bytes).rfind(' ');
    if (space != std::string_view::npos && space > 0) bytes = next = space;
  }
  while (next < text.size() && text[next] == ' ') ++next;
  std::string line(text.substr(0, bytes));
  line.erase(line.find_last_not_of(' ') + 1);
  text.remove_prefix(next);
  return line;
}

void Pad(std::string& out, std::size_t columns) { out.append(columns, ' '); }

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    const char32_t c = unit.code_point;
    if (unit.valid && (c == '\n' || c == '\r' || c == '\t')) {
      printable += ' ';
    } else if (!unit.valid || IsIn(kHostile, c)) {
      printable += kUtf8Replacement;
    } else {
      printable += text.substr(0, unit.size);
    }
    text.remove_prefix(unit.size);
  }
  return printable;
}

std::string PrintableJson(std::string_view json) {
  constexpr char32_t kBeyond = 0x10000;  // in two halves from there on
  std::string printable;
  printable.reserve(json.size());
  while (!json.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(json);
    const char32_t c = unit.code_point;
    if (!unit.valid) {
      printable += kUtf8Replacement;
    } else if (!IsIn(kHostile, c)) {
      printable += json.substr(0, unit.size);
    } else if (c < kBeyond) {
      printable += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
    } else {
      const auto rest = static_cast<std::uint32_t>(c - kBeyond);
      printable +=
          fmt::format("\\u{:04x}\\u{:04x}", 0xD800U + (rest >> 10U), 0xDC00U + (rest & 0x3FFU));
    }
    json.remove_prefix(unit.size);
  }
  return printable;
}

std::size_t WidthOf(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    width += Columns(unit.code_point);
    text.remove_prefix(unit.size);
  }
  return width;
}

void Table::Add(std::vector<std::string> cells) {
  IL_CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::Widths(std::size_t width) const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t wanted = WidthOf(columns_[i].heading);
    for (const auto& row : rows_) wanted = std::max(wanted, WidthOf(row[i]));
    widths.push_back(wanted);
  }
  const std::size_t gaps = kGap.size() * (columns_.size() - 1);
  std::size_t total = std::accumulate(widths.begin(), widths.end(), gaps);
  // The one that wraps gives first, and then whichever is widest of those that may be cut.
  if (columns_.back().fit == Fit::kWrap && total > width) {
    const std::size_t give =
        std::min(total - width, widths.back() - std::min(widths.back(), kWrapMin));
    widths.back() -= give;
    total -= give;
  }
  while (total > width) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].fit != Fit::kCut || widths[i] <= kCutMin) continue;
      if (widest == nullptr || widths[i] > *widest) widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
    --total;
  }
  return widths;
}

void Table::AppendRow(std::string& out, const std::vector<std::string>& cells,
                      const std::vector<std::size_t>& widths) const {
  const std::size_t last = columns_.size() - 1;
  std::string line;
  std::size_t indent = 0;
  for (std::size_t i = 0; i < last; ++i) {
    const std::string cell = Cut(cells[i], widths[i]);
    line += cell;
    Pad(line, widths[i] - std::min(widths[i], WidthOf(cell)));
    line += kGap;
    indent += widths[i] + kGap.size();
  }
  const auto end = [&out](std::string& text) {
    text.erase(text.find_last_not_of(' ') + 1);
    out += text;
    out += '\n';
  };
  if (columns_[last].fit != Fit::kWrap) {
    line += columns_[last].fit == Fit::kCut ? Cut(cells[last], widths[last]) : cells[last];
    return end(line);
  }
  std::string_view rest = cells[last];
  do {
    if (!rest.empty()) line += TakeLine(rest, widths[last]);
    end(line);
    line.clear();
    Pad(line, indent);
  } while (!rest.empty());
}

std::string Table::Text(std::size_t width) const {
  const std::vector<std::size_t> widths = Widths(width);
  std::vector<std::string> headings;
  headings.reserve(columns_.size());
  for (const Column& column : columns_) headings.push_back(column.heading);
  std::string text;
  AppendRow(text, headings, widths);
  for (const auto& row : rows_) AppendRow(text, row, widths);
  return text;
}

}  // namespace interlock::app
