#include "testing/http_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace interlock::testing {
namespace {

enum class Bytes { kAsTheyAre, kAsLatin1 };

void AppendMember(std::string& out, std::string_view name, std::string_view text, Bytes bytes) {
  out.append("\"").append(name).append("\":\"");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append(1, '\\').append(1, c);
    } else if (byte < 0x20 || (byte >= 0x7f && bytes == Bytes::kAsLatin1)) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
      out += escape.data();
    } else {
      out += c;
    }
  }
  out += "\",";
}

// Open as long as the process lives; -1: nothing is recorded.
int RecordFile() {
  static const int kFile = [] {
    const char* const directory = std::getenv("IL_RECORD_DIR");
    if (directory == nullptr) return -1;
    std::filesystem::create_directories(directory);
    const auto path = std::filesystem::path(directory) / (std::to_string(::getpid()) + ".jsonl");
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }();
  return kFile;
}

}  // namespace

void RecordExchange(const HttpQuestion& question, const HttpAnswer& answer) {
  const int file = RecordFile();
  if (file < 0) return;
  std::string line = "{";
  AppendMember(line, "method", question.method, Bytes::kAsLatin1);
  AppendMember(line, "target", question.target, Bytes::kAsLatin1);
  AppendMember(line, "content_type", answer.Header("Content-Type"), Bytes::kAsLatin1);
  AppendMember(line, "allow", answer.Header("Allow"), Bytes::kAsLatin1);
  AppendMember(line, "location", answer.Header("Location"), Bytes::kAsLatin1);
  AppendMember(line, "body", answer.body, Bytes::kAsTheyAre);
  line.append("\"status\":").append(std::to_string(answer.status)).append("}\n");
  // One call, so that the lines of several threads do not mix.
  if (::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::fputs("an exchange could not be recorded\n", stderr);
    std::abort();
  }
}

}  // namespace interlock::testing
