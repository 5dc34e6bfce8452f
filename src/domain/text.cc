#include "domain/text.h"

namespace interlock::domain {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string_view ProjectName(std::string_view text) {
  text = Trim(text);
  while (text.size() > 1 && text.ends_with('/')) text = Trim(text.substr(0, text.size() - 1));
  return text;
}

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

std::string TopicName(std::string_view text) {
  std::string name(Trim(text));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

}  // namespace interlock::domain
