#include "json/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/parse_options.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "json/value.h"

namespace interlock::json {
namespace {

using boost::json::error;
using boost::json::error_code;
using BoostView = boost::json::string_view;

// Our values are destroyed, compared and written by recursion.
constexpr std::size_t kDepthCeiling = 1024;

// Makes the value of what the parser reads.
class ValueSink : public boost::json::value_stack {
 public:
  ValueSink() { reset(); }
  bool ok() const { return true; }
};

// Hands on the strings, and keeps nothing else. The same calls as a value_stack.
class StringSink {
 public:
  explicit StringSink(const OnString& on_string) : on_string_(on_string) {}

  bool ok() const { return result_.ok(); }
  Result<void> result() && { return std::move(result_); }

  void push_chars(BoostView part) { begun_.append(part.data(), part.size()); }
  void push_key(BoostView /*part*/) { begun_.clear(); }
  void push_string(BoostView part) {
    if (begun_.empty()) {
      result_ = on_string_({part.data(), part.size()});
      return;
    }
    push_chars(part);
    result_ = on_string_(begun_);
    begun_.clear();
  }
  void push_object(std::size_t /*n*/) {}
  void push_array(std::size_t /*n*/) {}
  void push_int64(std::int64_t /*n*/) {}
  void push_uint64(std::uint64_t /*n*/) {}
  void push_double(double /*n*/) {}
  void push_bool(bool /*b*/) {}
  void push_null() {}

 private:
  const OnString& on_string_;
  std::string begun_;  // the parts so far of a string that comes in several
  Result<void> result_;
};

// Receives the parser's events, enforces the limits as early as they show, and hands the rest on.
template <typename Sink>
class Handler {
 public:
  // Boost.JSON checks these while it reads; ours are run-time values, checked below.
  static constexpr std::size_t max_object_size = Object::max_size();
  static constexpr std::size_t max_array_size = Array::max_size();
  static constexpr std::size_t max_key_size = String::max_size();
  static constexpr std::size_t max_string_size = String::max_size();

  Handler(const ParseOptions& options, Sink& sink) : options_(options), sink_(sink) {}

  // Why an event was refused; empty when none was.
  const std::string& refusal() const { return refusal_; }

  bool on_document_begin(error_code& /*ec*/) { return true; }
  bool on_document_end(error_code& /*ec*/) { return true; }

  bool on_object_begin(error_code& ec) { return Open(kObject, ec); }
  bool on_object_end(std::size_t n, error_code& /*ec*/) {
    open_.pop_back();
    sink_.push_object(n);
    return true;
  }
  bool on_array_begin(error_code& ec) { return Open(kArray, ec); }
  bool on_array_end(std::size_t n, error_code& /*ec*/) {
    open_.pop_back();
    sink_.push_array(n);
    return true;
  }

  bool on_key_part(BoostView part, std::size_t n, error_code& ec) {
    if (!CheckKey(n, ec)) return false;
    sink_.push_chars(part);
    return true;
  }
  bool on_key(BoostView part, std::size_t n, error_code& ec) {
    if (!CheckKey(n, ec)) return false;
    if (++open_.back().size > options_.limits.members_max) {
      return Refuse(fmt::format("more than {} members in an object", options_.limits.members_max),
                    ec);
    }
    sink_.push_key(part);
    return true;
  }
  bool on_string_part(BoostView part, std::size_t n, error_code& ec) {
    if (!CheckString(n, ec)) return false;
    sink_.push_chars(part);
    return true;
  }
  bool on_string(BoostView part, std::size_t n, error_code& ec) {
    if (!CheckString(n, ec) || !CountElement(ec)) return false;
    sink_.push_string(part);
    if (!sink_.ok()) ec = error::input_error;
    return sink_.ok();
  }

  bool on_number_part(BoostView /*part*/, error_code& /*ec*/) { return true; }
  bool on_int64(std::int64_t n, BoostView /*text*/, error_code& ec) {
    if (!CountElement(ec)) return false;
    sink_.push_int64(n);
    return true;
  }
  bool on_uint64(std::uint64_t n, BoostView /*text*/, error_code& ec) {
    if (!CountElement(ec)) return false;
    sink_.push_uint64(n);
    return true;
  }
  // Boost.JSON's own double may be off in the last place; from_chars is exact, so that a number
  // that we wrote comes back as it was.
  bool on_double(double approximate, BoostView text, error_code& ec) {
    if (!CountElement(ec)) return false;
    const bool integer = text.find_first_of(".eE") == BoostView::npos;
    if (integer && options_.big_integers == BigIntegers::kRefuse) {
      return Refuse("integer does not fit 64 bits", ec);
    }
    double exact = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), exact);
    IL_CHECK(end == text.data() + text.size());
    if (status == std::errc::result_out_of_range) {  // it does not say on which side
      exact = std::copysign(std::abs(approximate) < 1 ? 0.0 : HUGE_VAL, approximate);
    }
    if (!std::isfinite(exact)) return Refuse("number is too large", ec);
    sink_.push_double(exact);
    return true;
  }
  bool on_bool(bool b, error_code& ec) {
    if (!CountElement(ec)) return false;
    sink_.push_bool(b);
    return true;
  }
  bool on_null(error_code& ec) {
    if (!CountElement(ec)) return false;
    sink_.push_null();
    return true;
  }
  bool on_comment_part(BoostView /*part*/, error_code& /*ec*/) { return true; }
  bool on_comment(BoostView /*part*/, error_code& /*ec*/) { return true; }

 private:
  enum Kind : std::uint8_t { kObject, kArray };
  struct Level {
    Kind kind;
    std::size_t size;
  };

  bool Refuse(std::string reason, error_code& ec) {
    refusal_ = std::move(reason);
    ec = error::input_error;
    return false;
  }

  bool Open(Kind kind, error_code& ec) {
    if (!CountElement(ec)) return false;
    if (open_.size() == options_.limits.depth_max) {
      return Refuse(fmt::format("nested deeper than {} levels", options_.limits.depth_max), ec);
    }
    open_.push_back({kind, 0});
    return true;
  }

  bool CountElement(error_code& ec) {
    if (open_.empty() || open_.back().kind == kObject) return true;
    if (++open_.back().size <= options_.limits.elements_max) return true;
    return Refuse(fmt::format("more than {} elements in an array", options_.limits.elements_max),
                  ec);
  }

  bool CheckKey(std::size_t n, error_code& ec) {
    if (n <= options_.limits.key_bytes_max) return true;
    return Refuse(fmt::format("key longer than {} bytes", options_.limits.key_bytes_max), ec);
  }

  bool CheckString(std::size_t n, error_code& ec) {
    if (n <= options_.limits.string_bytes_max) return true;
    return Refuse(fmt::format("string longer than {} bytes", options_.limits.string_bytes_max), ec);
  }

  const ParseOptions& options_;
  Sink& sink_;
  std::vector<Level> open_;
  std::string refusal_;
};

struct Position {
  std::int64_t line = 1;
  std::int64_t column = 1;
};

// Where byte `offset` stands. Continuation bytes add no column, so a broken sequence counts as one.
Position Locate(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 = 0: the first line
  Position at;
  at.line += std::ranges::count(before, '\n');
  at.column += std::ranges::count_if(before.substr(line_start), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  });
  return at;
}

Error BadJson(std::string_view text, std::size_t offset, std::string_view reason) {
  const Position at = Locate(text, offset);
  return Error(Errc::kBadJson, fmt::format("line {}, column {}: {}", at.line, at.column, reason))
      .WithDetail("line", at.line)
      .WithDetail("column", at.column);
}

std::string DescribeByte(unsigned char byte) {
  if (byte == '\'') return "unexpected character \"'\"";
  if (byte >= 0x20 && byte < 0x7F) return fmt::format("unexpected character '{:c}'", byte);
  if (byte < 0x80) return fmt::format("unexpected control character 0x{:02X}", byte);
  return fmt::format("unexpected byte 0x{:02X}", byte);
}

// Whether the text up to `offset` ends in the escape of a high surrogate, of which Boost.JSON says
// only that what follows is wrong; `offset` may stand behind the next backslash.
bool FollowsHighSurrogate(std::string_view text, std::size_t offset) {
  std::string_view before = text.substr(0, offset);
  if (before.ends_with('\\')) before.remove_suffix(1);
  if (before.size() < 6) return false;
  const std::string_view escape = before.substr(before.size() - 6);
  if (!escape.starts_with("\\u")) return false;
  if (std::string_view("dD").find(escape[2]) == std::string_view::npos) return false;
  if (std::string_view("89abAB").find(escape[3]) == std::string_view::npos) return false;
  before.remove_suffix(5);  // "\\\\ud800" is a backslash and plain letters: count the backslashes
  const std::size_t other = before.find_last_not_of('\\');
  return (before.size() - (other + 1)) % 2 == 1;
}

std::string Reason(std::string_view text, std::size_t offset, const error_code& ec) {
  if (text.starts_with("\xEF\xBB\xBF")) return "byte order mark, which JSON does not have";
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "no JSON value";
  if (ec == error::illegal_leading_surrogate || ec == error::expected_utf16_escape ||
      ec == error::illegal_trailing_surrogate ||
      (ec == error::syntax && FollowsHighSurrogate(text, offset))) {
    return "lone surrogate in a \\u escape";
  }
  if (ec == error::expected_hex_digit) return "expected four hexadecimal digits after \\u";
  if (ec == error::exponent_overflow) return "exponent is too large";
  if (offset >= text.size()) return "unexpected end of text";
  return DescribeByte(static_cast<unsigned char>(text[offset]));
}

template <typename Sink>
Result<void> Read(std::string_view text, const ParseOptions& options, Sink& sink) {
  const Limits& limits = options.limits;
  IL_CHECK(limits.depth_max <= kDepthCeiling);
  if (text.size() > limits.bytes_max) {
    return BadJson(text, limits.bytes_max,
                   fmt::format("text longer than {} bytes", limits.bytes_max));
  }
  boost::json::parse_options rules;
  rules.max_depth = kDepthCeiling + 1;  // ours is checked first, and named in the error
  boost::json::basic_parser<Handler<Sink>> parser(rules, options, sink);
  error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (ec) {
    const std::string& refusal = parser.handler().refusal();
    return BadJson(text, used, refusal.empty() ? Reason(text, used, ec) : refusal);
  }
  const std::size_t rest = text.find_first_not_of(" \t\r\n", used);
  if (rest != std::string_view::npos && options.trailing == Trailing::kRefuse) {
    return BadJson(text, rest, "unexpected text after the JSON value");
  }
  return {};
}

}  // namespace

Result<Value> Parse(std::string_view text, const ParseOptions& options) {
  ValueSink sink;
  IL_TRY_VOID(Read(text, options, sink));
  return sink.release();
}

Result<void> Scan(std::string_view text, const ParseOptions& options, const OnString& on_string) {
  StringSink sink(on_string);
  auto read = Read(text, options, sink);
  if (!sink.ok()) return std::move(sink).result();
  return read;
}

std::string_view KindName(const Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
    case boost::json::kind::double_:
      return "number";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
  }
  return "value";
}

}  // namespace interlock::json
