#include "api/prometheus.h"

#include <fmt/format.h>

#include <iterator>

namespace interlock::api {
namespace {

std::string_view Name(PrometheusText::Type type) {
  switch (type) {
    case PrometheusText::Type::kCounter:
      return "counter";
    case PrometheusText::Type::kGauge:
      return "gauge";
    case PrometheusText::Type::kHistogram:
      return "histogram";
    case PrometheusText::Type::kSummary:
      return "summary";
  }
  return "untyped";
}

void AppendLabelValue(std::string& out, std::string_view value) {
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
}

}  // namespace

void PrometheusText::Family(std::string_view name, Type type, std::string_view help) {
  family_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                 Name(type));
}

void PrometheusText::Begin(Labels labels, std::string_view suffix) {
  text_.append(family_).append(suffix);
  char before = '{';
  for (const auto& [name, value] : labels) {
    text_ += before;
    text_.append(name).append("=\"");
    AppendLabelValue(text_, value);
    text_ += '"';
    before = ',';
  }
  if (labels.size() > 0) text_ += '}';
  text_ += ' ';
}

void PrometheusText::Add(std::uint64_t value, Labels labels, std::string_view suffix) {
  Begin(labels, suffix);
  fmt::format_to(std::back_inserter(text_), "{}\n", value);
}

void PrometheusText::Add(double value, Labels labels, std::string_view suffix) {
  Begin(labels, suffix);
  fmt::format_to(std::back_inserter(text_), "{}\n", value);
}

}  // namespace interlock::api
