// The bytes of one connection, from its first to its last.
//
// - The reader makes the same requests of them, and refuses the same one, in whatever pieces they
//   come; what it lets through keeps its limits.
// - The session answers each of these requests once, in order, then closes: every answer is whole,
//   its length is as it says, JSON is JSON, and none is a failure of the server (see server.h).
//
// The first byte says how long the pieces are.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "http/message.h"
#include "http/request_reader.h"
#include "json/parse.h"
#include "json/value.h"
#include "server.h"
#include "targets.h"

namespace interlock::fuzz {
namespace {

using http::Method;
using http::Persistence;
using http::Request;
using http::RequestReader;

struct Read {
  std::vector<Request> requests;
  std::vector<Persistence> persistence;
  std::optional<Error> refused;  // after these
};

// Reads until the peer has no more to say or is refused, or may not say more.
Read ReadInPieces(std::string_view bytes, std::size_t piece) {
  RequestReader reader(FuzzServer::SmallLimits());
  Read read;
  while (true) {
    const auto step = reader.Advance();
    if (!step.ok()) {
      read.refused = step.error();
      return read;
    }
    if (*step == RequestReader::Step::kDone) {
      RequestReader::Taken taken = reader.Take();
      read.requests.push_back(std::move(taken.request));
      read.persistence.push_back(taken.persistence);
      if (taken.persistence == Persistence::kClose) return read;
    }
    if (*step != RequestReader::Step::kNeedMore) continue;
    if (bytes.empty()) return read;
    const std::size_t size = std::min(piece, bytes.size());
    const auto room = reader.Prepare(size);
    IL_CHECK(room.size() >= size);
    std::ranges::copy(bytes.substr(0, size), room.begin());
    reader.Commit(size);
    bytes.remove_prefix(size);
  }
}

// Which of two mistakes is met first may depend on the pieces, where one of them is the length.
bool SameRefusal(int a, int b) {
  const auto too_long = [](int status) { return status == 413 || status == 431; };
  return a == b || too_long(a) || too_long(b);
}

void CheckSame(const Read& whole, const Read& pieces) {
  IL_CHECK(whole.requests.size() == pieces.requests.size());
  for (std::size_t i = 0; i < whole.requests.size(); ++i) {
    const Request& a = whole.requests[i];
    const Request& b = pieces.requests[i];
    IL_CHECK(a.method == b.method && a.target == b.target && a.body == b.body);
    IL_CHECK(a.headers.fields() == b.headers.fields() && a.http_1_0 == b.http_1_0);
    IL_CHECK(whole.persistence[i] == pieces.persistence[i]);
  }
  if (!whole.refused || !pieces.refused) return;  // half a line may be seen to be wrong, or not yet
  IL_CHECK(SameRefusal(whole.refused->http_status(), pieces.refused->http_status()));
}

void CheckRequests(const Read& read) {
  const Limits limits = FuzzServer::SmallLimits();
  for (const Request& request : read.requests) {
    IL_CHECK(request.body.size() <= limits.body_bytes_max);
    std::size_t header = request.target.size();
    for (const auto& [name, value] : request.headers.fields()) {
      header += name.size() + value.size();
      IL_CHECK(!name.empty() && value.find_first_of("\r\n") == std::string::npos, name);
    }
    IL_CHECK(header <= limits.header_bytes_max);
    IL_CHECK(request.headers.Count("Host") <= 1);
    IL_CHECK(request.target.find_first_of(" \r\n") == std::string::npos);
  }
  if (!read.refused) return;
  const int status = read.refused->http_status();
  IL_CHECK(status == 400 || status == 413 || status == 431, read.refused->message());
}

// Takes answers from the front of what the server said.
class Answers {
 public:
  explicit Answers(std::string_view heard) : rest_(heard) {}

  bool at_end() const { return rest_.empty(); }

  // The next answer's status, to a request with this method. 100 is no answer.
  int Take(Method method) {
    int status = 100;
    while (status == 100) status = TakeOne(method);
    return status;
  }

  int TakeOne(Method method) {
    constexpr std::string_view kVersion = "HTTP/1.1 ";
    IL_CHECK(rest_.starts_with(kVersion), rest_);
    int status = 0;
    std::from_chars(rest_.data() + kVersion.size(), rest_.data() + rest_.size(), status);
    IL_CHECK(!http::ReasonPhrase(status).empty() || status == 100, rest_);
    const std::size_t end = rest_.find("\r\n\r\n");
    IL_CHECK(end != std::string_view::npos, rest_);
    const std::string_view head = rest_.substr(0, end + 2);
    rest_.remove_prefix(end + 4);
    if (status == 100 || status == 101) return status;
    const bool bodiless = method == Method::kHead || status == 204;
    const std::size_t length = bodiless ? 0 : Length(head);
    IL_CHECK(length <= rest_.size(), head);
    CheckBody(head, rest_.substr(0, length));
    rest_.remove_prefix(length);
    return status;
  }

 private:
  static std::size_t Length(std::string_view head) {
    constexpr std::string_view kName = "\r\nContent-Length: ";
    const std::size_t at = head.find(kName);
    IL_CHECK(at != std::string_view::npos && head.find(kName, at + 1) == std::string_view::npos);
    std::size_t length = 0;
    std::from_chars(head.data() + at + kName.size(), head.data() + head.size(), length);
    return length;
  }

  static void CheckBody(std::string_view head, std::string_view body) {
    IL_CHECK(IsUtf8(head) && IsUtf8(body), head);
    if (head.find("\r\nContent-Type: application/json\r\n") == std::string_view::npos) return;
    if (!body.empty()) IL_CHECK(json::Parse(body).ok(), body);
  }

  std::string_view rest_;
};

void CheckAnswers(const Read& read, std::string_view heard) {
  Answers answers(heard);
  for (const Request& request : read.requests) {
    const int status = answers.Take(request.method);
    IL_CHECK(status != 500, heard);
    if (status == 101) return;  // what follows is WebSocket, which ws_fuzz is about
  }
  // Then a refusal, if anything: of what is no request, or of half of one, which may first have
  // been told to go on.
  int status = 100;
  while (!answers.at_end() && status == 100) status = answers.TakeOne(Method::kOther);
  IL_CHECK(answers.at_end() && (status == 100 || status == 400 || status == 413 || status == 431),
           heard);
  if (read.refused && status != 100) {
    IL_CHECK(SameRefusal(status, read.refused->http_status()), heard);
  }
}

}  // namespace

void FuzzHttp(std::string_view input) {
  static FuzzServer server;
  constexpr std::size_t kBytesMax = 8192;
  if (input.empty() || input.size() > kBytesMax) return;
  const std::size_t piece = static_cast<std::uint8_t>(input[0]) % 32 + 1;
  input.remove_prefix(1);
  const Read whole = ReadInPieces(input, kBytesMax);
  CheckRequests(whole);
  CheckSame(whole, ReadInPieces(input, piece));
  CheckAnswers(whole, server.Converse(input));
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzHttp);
