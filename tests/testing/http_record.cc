#include "testing/http_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
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

// A file of this process, for as long as it lives; -1: nothing is recorded.
int OpenRecord(const char* suffix) {
  const char* const directory = std::getenv("IL_RECORD_DIR");
  if (directory == nullptr) return -1;
  std::filesystem::create_directories(directory);
  const auto path = std::filesystem::path(directory) / (std::to_string(::getpid()) + suffix);
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

// In one call, so that the lines of several threads do not mix.
void WriteLine(int file, const std::string& line) {
  if (::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
  std::fputs("an exchange could not be recorded\n", stderr);
  std::abort();
}

// What stands behind `before` in `text`, up to the end of the line or a quote.
void RecordSecretsAfter(std::string_view before, std::string_view text) {
  static const int kFile = OpenRecord(".secrets");
  if (kFile < 0) return;
  static std::mutex mutex;
  static std::set<std::string> known;  // guarded by mutex
  for (std::size_t at = 0; (at = text.find(before, at)) != std::string_view::npos;) {
    at += before.size();
    const std::string secret(text.substr(at, text.find_first_of("\r\n\"", at) - at));
    const std::lock_guard lock(mutex);
    if (!secret.empty() && known.insert(secret).second) WriteLine(kFile, secret + "\n");
  }
}

}  // namespace

void RecordExchange(const HttpQuestion& question, const HttpAnswer& answer) {
  static const int kFile = OpenRecord(".jsonl");
  if (kFile < 0) return;
  std::string line = "{";
  AppendMember(line, "method", question.method, Bytes::kAsLatin1);
  AppendMember(line, "target", question.target, Bytes::kAsLatin1);
  AppendMember(line, "content_type", answer.Header("Content-Type"), Bytes::kAsLatin1);
  AppendMember(line, "allow", answer.Header("Allow"), Bytes::kAsLatin1);
  AppendMember(line, "location", answer.Header("Location"), Bytes::kAsLatin1);
  AppendMember(line, "body", answer.body, Bytes::kAsTheyAre);
  line.append("\"status\":").append(std::to_string(answer.status)).append("}\n");
  WriteLine(kFile, line);
}

void RecordSecretsSent(std::string_view request) {
  for (const std::string_view before :
       {"Authorization: Bearer ", "X-Agent-Token: ", R"("registration_token":")"}) {
    RecordSecretsAfter(before, request);
  }
}

void RecordSecretsGiven(std::string_view body) { RecordSecretsAfter(R"("token":")", body); }

void RecordText(std::string_view text) {
  static const int kFile = OpenRecord(".texts");
  if (kFile >= 0) WriteLine(kFile, std::string(text) + "\n");
}

}  // namespace interlock::testing
