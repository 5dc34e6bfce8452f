#include "cli/output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace interlock::cli {
namespace {

constexpr bool IsControl(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

bool IsControlByte(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

std::string Field(std::string_view text) {
  if (!text.starts_with('"') && std::ranges::none_of(text, IsControlByte)) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
      case '\\':
        quoted.append({'\\', c});
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        if (IsControlByte(c)) {
          quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          quoted += c;
        }
    }
  }
  return quoted + '"';
}

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    const std::string_view bytes = text.substr(0, unit.size);
    text.remove_prefix(unit.size);
    if (unit.valid && !IsControl(unit.code_point)) {
      printable += bytes;
    } else if (bytes == "\n") {
      printable += "\\n";
    } else if (bytes == "\t") {
      printable += "\\t";
    } else {
      for (const char c : bytes) {
        printable += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
  }
  return printable;
}

CommandResult Answer(const Context& context, std::string_view text,
                     const json::ObjectText& object) {
  return {kExitOk, context.json() ? object.Text() + '\n' : fmt::format("{}\n", text)};
}

CommandResult Counted(const Context& context, std::int64_t count, std::string_view what) {
  return Answer(context, fmt::format("{} {}", count, what), json::ObjectText().Add(what, count));
}

}  // namespace interlock::cli
