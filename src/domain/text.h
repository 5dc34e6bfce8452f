#pragma once

#include <string>
#include <string_view>

// How we treat the small texts that people and programs send us.
namespace interlock::domain {

// Without the spaces, tabs and line breaks at both ends.
std::string_view Trim(std::string_view text);

// The name of a project: without blanks around it and without slashes at its end, so that "web",
// " web" and "web/" are one project. A name of slashes alone is "/".
std::string_view ProjectName(std::string_view text);

// U+0000 is in it, which no path and no query can say, and which many programs take for the end of
// a text. Names, titles and other texts of one line are refused with one; bodies are kept as sent.
bool HasNul(std::string_view text);

// The name under which a topic is kept: trimmed, ASCII letters in lower case.
std::string TopicName(std::string_view text);

}  // namespace interlock::domain
