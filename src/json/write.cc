#include "json/write.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "json/value.h"

namespace interlock::json {
namespace {

template <typename Int>
void AppendInteger(std::string& out, Int number) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  out.append(buffer.data(), end);
}

void AppendEscaped(std::string& out, char c) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4U];
      out += kHex[static_cast<unsigned char>(c) & 0xFU];
  }
}

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

// One bit of each byte of `word`, set where the byte is not plain.
std::uint64_t NotPlain(std::uint64_t word) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHigh = 0x8080808080808080;
  // With the high bits off no byte borrows from or carries into the next.
  const std::uint64_t low = word & ~kHigh;
  const std::uint64_t at_least_space = low + kOnes * (0x80 - 0x20);
  const std::uint64_t not_quote = (low ^ (kOnes * '"')) + kOnes * 0x7F;
  const std::uint64_t not_backslash = (low ^ (kOnes * '\\')) + kOnes * 0x7F;
  return (word | ~(at_least_space & not_quote & not_backslash)) & kHigh;
}

// How many bytes at the start need no escape and are ASCII. Most text is nothing else, so it is
// looked at eight bytes at a time.
std::size_t PlainSize(std::string_view text) {
  std::size_t size = 0;
  for (std::uint64_t word = 0; size + sizeof(word) <= text.size(); size += sizeof(word)) {
    std::memcpy(&word, text.substr(size).data(), sizeof(word));
    if (NotPlain(word) != 0) break;
  }
  while (size < text.size() && IsPlain(text[size])) ++size;
  return size;
}

// Recursive: values are at most as deep as Parse() lets them be, or as code of ours nests them.
class Writer {
 public:
  explicit Writer(const WriteOptions& options) : options_(options) {}

  std::string Finish(const Value& value) && {
    Append(value, 0);
    return std::move(out_);
  }

 private:
  void Append(const Value& value, std::size_t depth) {
    switch (value.kind()) {
      case boost::json::kind::null:
        out_ += "null";
        break;
      case boost::json::kind::bool_:
        out_ += value.get_bool() ? "true" : "false";
        break;
      case boost::json::kind::int64:
        AppendInteger(out_, value.get_int64());
        break;
      case boost::json::kind::uint64:
        AppendInteger(out_, value.get_uint64());
        break;
      case boost::json::kind::double_:
        AppendDouble(out_, value.get_double());
        break;
      case boost::json::kind::string:
        AppendQuoted(out_, View(value.get_string()));
        break;
      case boost::json::kind::array:
        AppendArray(value.get_array(), depth);
        break;
      case boost::json::kind::object:
        AppendObject(value.get_object(), depth);
        break;
    }
  }

  void AppendArray(const Array& array, std::size_t depth) {
    out_ += '[';
    for (std::size_t i = 0; i < array.size(); ++i) {
      if (i > 0) out_ += ',';
      BreakLine(depth + 1);
      Append(array[i], depth + 1);
    }
    if (!array.empty()) BreakLine(depth);
    out_ += ']';
  }

  void AppendObject(const Object& object, std::size_t depth) {
    using Member = Object::value_type;
    std::vector<const Member*> members;
    members.reserve(object.size());
    for (const Member& member : object) members.push_back(&member);
    if (options_.key_order == KeyOrder::kSorted) {
      std::ranges::sort(members, {}, [](const Member* member) { return member->key(); });
    }
    out_ += '{';
    bool first = true;
    for (const Member* member : members) {
      if (!first) out_ += ',';
      first = false;
      BreakLine(depth + 1);
      AppendQuoted(out_, {member->key().data(), member->key().size()});
      out_ += options_.layout == Layout::kPretty ? ": " : ":";
      Append(member->value(), depth + 1);
    }
    if (!object.empty()) BreakLine(depth);
    out_ += '}';
  }

  void BreakLine(std::size_t depth) {
    if (options_.layout == Layout::kCompact) return;
    out_ += '\n';
    out_.append(2 * depth, ' ');
  }

  const WriteOptions options_;
  std::string out_;
};

}  // namespace

std::string Write(const Value& value, const WriteOptions& options) {
  return Writer(options).Finish(value);
}

void AppendQuoted(std::string& out, std::string_view text) {
  std::size_t plain = PlainSize(text);
  if (plain == text.size()) {
    const std::size_t before = out.size();
    out.resize(before + plain + 2, '"');
    std::ranges::copy(text, out.begin() + static_cast<std::ptrdiff_t>(before) + 1);
    return;
  }
  out += '"';
  for (; !text.empty(); plain = PlainSize(text)) {
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Utf8Unit unit = FirstUtf8Unit(text);
    if (!unit.valid) {
      out += kUtf8Replacement;
    } else if (unit.size > 1) {
      out += text.substr(0, unit.size);
    } else {
      AppendEscaped(out, text.front());
    }
    text.remove_prefix(unit.size);
  }
  out += '"';
}

void AppendDouble(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  // Where people write a number without an exponent, so do we.
  const double size = std::abs(number);
  const bool fixed = number == 0 || (size >= 1e-5 && size < 1e15);
  std::array<char, 32> buffer;
  const auto [end, status] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  IL_CHECK(status == std::errc());
  const std::string_view text(buffer.data(), end);
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace interlock::json
