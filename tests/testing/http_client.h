#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace interlock::testing {

// An answer as it stood on the wire.
struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  // The first field of that name, without regard to case; "" when there is none.
  std::string Header(std::string_view name) const;
};

// What was asked. Known of Request(), and of bytes that are one whole request without a body; after
// any others nobody can tell which answer belongs to what.
struct HttpQuestion {
  std::string method;
  std::string target;
};

// One connection to a server under test, blunt on purpose: it sends exactly the bytes it is given,
// so that broken and hostile requests can be written down. Every wait ends after `patience` and
// then fails like a closed connection.
//
// With the environment variable IL_RECORD_DIR each answer, and what it answers, is written down
// there (testing/http_record.h).
//
// Used by one thread.
class HttpClient {
 public:
  static HttpClient Tcp(std::uint16_t port);
  static HttpClient Unix(const std::string& path);
  ~HttpClient();
  HttpClient(HttpClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        buffer_(std::move(other.buffer_)),
        asked_(std::move(other.asked_)),
        blunt_(other.blunt_),
        recorded_(other.recorded_) {}
  HttpClient& operator=(HttpClient&&) = delete;

  bool connected() const { return fd_ >= 0; }

  // From here on only keys and tokens are written down: for a load, which says the same thousands
  // of times.
  void StopRecording() { recorded_ = false; }
  bool recorded() const { return recorded_; }

  // False when the peer no longer takes it.
  bool Send(std::string_view bytes);
  // Sends "METHOD target HTTP/1.1", Host, Content-Length when there is a body, and `headers`
  // ("Name: value\r\n"…).
  bool Request(std::string_view method, std::string_view target, std::string_view body = "",
               std::string_view headers = "");

  enum class Body : std::uint8_t { kAsDeclared, kNone };  // kNone: the answer to a HEAD
  // The next answer; nothing when the connection ends before it is whole.
  std::optional<HttpAnswer> Read(Body body = Body::kAsDeclared);
  std::optional<HttpAnswer> Get(std::string_view target) {
    if (!Request("GET", target)) return std::nullopt;
    return Read();
  }

  // The bytes that have come and that Read() has not taken, at least one; nothing at the end.
  std::optional<std::string> ReadBytes();
  bool HasBytes() const { return !buffer_.empty(); }  // ReadBytes() need not wait

  // True when the server closes (or resets) the connection within the patience, having sent no
  // further byte.
  bool ClosedByServer();
  void FinishSending();  // half-closes
  void Reset();          // closes with RST, as a crashed peer's kernel would

  int fd() const { return fd_; }

 private:
  explicit HttpClient(int fd) : fd_(fd) {}
  bool SendAll(std::string_view bytes);
  void Record(const HttpAnswer& answer);
  // Reads what is there, waiting for the first byte. 0 at the end, -1 on failure or lost patience.
  int Fill();

  static constexpr std::chrono::milliseconds kPatience{10'000};
  int fd_ = -1;
  std::string buffer_;
  std::deque<HttpQuestion> asked_;  // not yet answered
  bool blunt_ = false;              // from here on no question is known
  bool recorded_ = true;
};

}  // namespace interlock::testing
