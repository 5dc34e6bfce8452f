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

// A flag of a command: --name=value or --name value; a switch has no value.
struct Flag {
  std::string_view name;   // without the dashes
  std::string_view value;  // placeholder in the help text: "D"; empty for a switch
  std::string_view summary;
  char letter = 0;  // of the short form: -i
};

// The arguments of a command: positional arguments in order, and flags. If a flag is repeated, the
// last one counts. The views refer to the command line, which must outlive this object. A value
// type: threads may share an unchanged one.
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
  // True for a switch without a value, or with "true" or "1". The parser rejects every other value
  // except "false" and "0": --dry-run=yes must not run for real.
  bool IsOn(std::string_view flag) const;
  // Parses an optional sign and digits. kUsage names the flag on a malformed or out-of-range value.
  Result<std::optional<std::int64_t>> Integer(
      std::string_view flag, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  // Parses "90s", "1h30m", "7d". kUsage names the flag on a malformed value.
  Result<std::optional<Duration>> Time(std::string_view flag) const;

  void AddPositional(std::string_view text) { positional_.push_back(text); }
  void AddFlag(Given flag) { flags_.push_back(flag); }

 private:
  const Given* Find(std::string_view flag) const;

  std::vector<std::string_view> positional_;
  std::vector<Given> flags_;
};

// Parse any text like Arguments::Integer and Time; `what` is its name in the error.
Result<std::int64_t> ParseInteger(std::string_view what, std::string_view text);
Result<Duration> ParseTime(std::string_view what, std::string_view text);

}  // namespace interlock::cli
