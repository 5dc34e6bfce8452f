#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace interlock::api {

// Writes the text format that Prometheus reads (version 0.0.4): families one after the other, the
// samples of each right below its help and type. A value type; used by one thread.
class PrometheusText {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  enum class Type : std::uint8_t { kCounter, kGauge, kHistogram, kSummary };
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Begins a family. `name` must live until the next one begins.
  void Family(std::string_view name, Type type, std::string_view help);
  // A sample of the family, its name followed by `suffix` ("_sum", "_bucket").
  void Add(std::uint64_t value, Labels labels = {}, std::string_view suffix = "");
  void Add(double value, Labels labels = {}, std::string_view suffix = "");

  // A family of one sample.
  template <typename Number>
  void Single(std::string_view name, Type type, std::string_view help, Number value) {
    Family(name, type, help);
    Add(value);
  }

  std::string Take() && { return std::move(text_); }

 private:
  void Begin(Labels labels, std::string_view suffix);

  std::string text_;
  std::string_view family_;
};

}  // namespace interlock::api
