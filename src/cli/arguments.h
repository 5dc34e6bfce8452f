#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace interlock::cli {

// A flag that a command takes, as --name=value or --name value; without a value it is a switch.
struct Flag {
  std::string_view name;   // without the dashes
  std::string_view value;  // what help calls its value: "D"; empty = a switch
  std::string_view summary;
  char letter = 0;  // of a short form: -i
};

// What a command was called with: positional arguments in order, and flags, of which the last one
// of a name counts. Views of the command line, which outlives it. A value: threads may share one
// that nobody changes.
class Arguments {
 public:
  struct Given {
    std::string_view name;
    std::optional<std::string_view> value;
  };

  std::size_t size() const { return positional_.size(); }
  // REQUIRES: i < size()
  std::string_view operator[](std::size_t i) const;
  std::span<const std::string_view> positional() const { return positional_; }

  bool Has(std::string_view flag) const { return Find(flag) != nullptr; }
  std::optional<std::string_view> Text(std::string_view flag) const;
  // A switch: given without a value, or with "true" or "1". Other values than these and "false" and
  // "0" are refused before: --dry-run=yes must not do the real thing.
  bool IsOn(std::string_view flag) const;
  // An optional sign and digits. kUsage names the flag when it is none, or out of bounds.
  Result<std::optional<std::int64_t>> Integer(
      std::string_view flag, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  // "90s", "1h30m", "7d". kUsage names the flag when it is none.
  Result<std::optional<Duration>> Time(std::string_view flag) const;

  void AddPositional(std::string_view text) { positional_.push_back(text); }
  void AddFlag(Given flag) { flags_.push_back(flag); }

 private:
  const Given* Find(std::string_view flag) const;

  std::vector<std::string_view> positional_;
  std::vector<Given> flags_;
};

// As Arguments::Integer and Time, of any text; `what` names it in the error.
Result<std::int64_t> ParseInteger(std::string_view what, std::string_view text);
Result<Duration> ParseTime(std::string_view what, std::string_view text);

}  // namespace interlock::cli
