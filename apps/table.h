#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Text for a terminal. What strangers wrote (names, reasons) passes Printable() on its way, so that
// no agent can move the cursor, forge a line or hide something.
namespace interlock::app {

// One line of it: control characters, escape sequences' beginnings, invisible and direction marks,
// and bytes that are no UTF-8 become U+FFFD; line breaks and tabs become spaces.
std::string Printable(std::string_view text);

// The same JSON, in which those characters are escaped (\u202e) instead: for a terminal.
// REQUIRES: `json` is JSON, without line breaks and tabs.
std::string PrintableJson(std::string_view json);

// How many columns the text takes. REQUIRES: it is Printable().
std::size_t WidthOf(std::string_view text);

// Rows with headings, in columns that line up and fit the terminal.
class Table {
 public:
  enum class Fit : std::uint8_t {
    kWhole,  // never cut
    kCut,    // cut with … when the table is too wide
    kWrap,   // goes on in the next line; for the last column
  };
  struct Column {
    std::string heading;
    Fit fit = Fit::kWhole;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: one cell per column.
  void Add(std::vector<std::string> cells);

  // Each line ends in a newline and has at most `width` columns, unless what may not be cut is
  // wider. No line has spaces at its end.
  std::string Text(std::size_t width) const;

 private:
  std::vector<std::size_t> Widths(std::size_t width) const;
  void AppendRow(std::string& out, const std::vector<std::string>& cells,
                 const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace interlock::app
