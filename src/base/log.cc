#include "base/log.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "base/time_text.h"
#include "base/utf8.h"

namespace interlock {
namespace {

struct LevelNames {
  std::string_view text;
  std::string_view json;
};
constexpr std::array kLevels = {LevelNames{"DEBUG", "debug"}, LevelNames{"INFO", "info"},
                                LevelNames{"WARN", "warn"}, LevelNames{"ERROR", "error"}};

// Characters that move the cursor, end a line, or reorder what stands around them.
bool IsUnsafe(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x061C ||  // C0, DEL, C1; Arabic letter mark
         c == 0x200E || c == 0x200F ||                           // direction marks
         (c >= 0x2028 && c <= 0x202E) ||                         // line separators, embeddings
         (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;            // isolates; byte order mark
}

// "\n", "\u001b", "\u202e": the same in text and in JSON.
std::string Escape(char32_t c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
}

// How many characters from the start on may be written as they are: printable ASCII.
std::size_t PlainSize(std::string_view text) {
  const auto special = std::ranges::find_if(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x7F || c == '"' || c == '\\';
  });
  return static_cast<std::size_t>(special - text.begin());
}

// `text` made safe, quotes and backslashes escaped, cut between two characters at `bytes_max`.
std::string Safe(std::string_view text, std::size_t bytes_max) {
  std::string out;
  std::size_t used = 0;
  while (used < text.size()) {
    const std::size_t plain = PlainSize(text.substr(used, bytes_max - used));
    out += text.substr(used, plain);
    used += plain;
    if (used == text.size()) break;
    const Utf8Unit unit = FirstUtf8Unit(text.substr(used));
    if (used + unit.size > bytes_max) return out + fmt::format("…({} bytes)", text.size());
    if (!unit.valid) {
      out += kUtf8Replacement;
    } else if (IsUnsafe(unit.code_point) || unit.code_point == '"' || unit.code_point == '\\') {
      out += Escape(unit.code_point);
    } else {
      out += text.substr(used, unit.size);
    }
    used += unit.size;
  }
  return out;
}

std::string ErrorText(const Error& error) {
  return fmt::format("{}: {}", error.slug(), error.message());
}

std::string NumberText(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

// The value as JSON writes it, quotes included.
class ValueText {
 public:
  explicit ValueText(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  std::string operator()(std::string_view text) const {
    return fmt::format("\"{}\"", Safe(text, bytes_max_));
  }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(double number) const { return NumberText(number); }
  std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
  std::string operator()(std::uint64_t number) const { return fmt::format("{}", number); }
  std::string operator()(Duration duration) const { return (*this)(FormatDuration(duration)); }
  std::string operator()(Timestamp time) const { return (*this)(FormatRfc3339(time)); }
  std::string operator()(const Error* error) const { return (*this)(ErrorText(*error)); }

 private:
  std::size_t bytes_max_;
};

// In text the quotes stay only where the value would otherwise not be seen to end: around nothing,
// spaces, '=' and whatever was escaped.
std::string_view Bare(std::string_view json) {
  if (!json.starts_with('"') || json.size() == 2) return json;
  const std::string_view inner = json.substr(1, json.size() - 2);
  return inner.find_first_of(" =\\") == std::string_view::npos ? inner : json;
}

}  // namespace

void FdLogSink::Write(std::string_view line) {
  MutexLock lock(mutex_);
  while (!line.empty()) {
    const ssize_t written = write(fd_, line.data(), line.size());
    if (written >= 0) {
      line.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // someone made the descriptor non-blocking: wait all the same
      pollfd waiting = {.fd = fd_, .events = POLLOUT, .revents = 0};
      poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

Logger::Logger(Clock& clock, LogSink& sink, Options options)
    : clock_(clock), sink_(sink), options_(options) {}

void Logger::Log(LogLevel level, std::string_view message, Fields fields) {
  if (!Enabled(level)) return;
  const LevelNames& names = kLevels[static_cast<std::size_t>(level)];
  const std::string time = FormatRfc3339(clock_.Now(), Fraction::kMicros);
  const std::string what = Safe(message, options_.text_bytes_max);
  const ValueText value_text(options_.text_bytes_max);
  std::string line;
  if (options_.format == LogFormat::kJson) {
    line = fmt::format(R"({{"time":"{}","level":"{}","message":"{}")", time, names.json, what);
  } else {
    line = fmt::format("{} {} {}", time, names.text, what);
  }
  for (const LogField& field : fields) {
    const std::string key = Safe(field.key, options_.text_bytes_max);
    const std::string value = std::visit(value_text, field.value);
    if (options_.format == LogFormat::kJson) {
      line += fmt::format(",\"{}\":{}", key, value);
    } else {
      line += fmt::format(" {}={}", key, Bare(value));
    }
  }
  line += options_.format == LogFormat::kJson ? "}\n" : "\n";
  sink_.Write(line);
}

}  // namespace interlock
