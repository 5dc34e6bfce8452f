#include "testing/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "testing/http_record.h"

namespace interlock::testing {
namespace {

int Connect(int family, const sockaddr* address, socklen_t length) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, address, length) == 0) return fd;
  ::close(fd);
  return -1;
}

std::optional<HttpAnswer> ParseHead(std::string_view head) {
  HttpAnswer answer;
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  if (!head.starts_with(kVersion) || head.size() < kVersion.size() + 3) return std::nullopt;
  std::from_chars(head.data() + kVersion.size(), head.data() + kVersion.size() + 3, answer.status);
  std::size_t line = head.find("\r\n");
  while (line != std::string_view::npos) {
    const std::size_t begin = line + 2;
    line = head.find("\r\n", begin);
    const std::string_view field = head.substr(begin, line - begin);
    const std::size_t colon = field.find(": ");
    if (colon == std::string_view::npos) continue;
    answer.headers.emplace_back(field.substr(0, colon), field.substr(colon + 2));
  }
  return answer;
}

// "GET /path HTTP/1.1", header fields that announce no body, and nothing more.
std::optional<HttpQuestion> WholeRequest(std::string_view bytes) {
  const std::size_t head = bytes.find("\r\n\r\n");
  if (head == std::string_view::npos || head + 4 != bytes.size()) return std::nullopt;
  for (const std::string_view announced : {"ontent-", "ransfer-", "xpect"}) {
    if (bytes.find(announced) != std::string_view::npos) return std::nullopt;
  }
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const std::size_t method = line.find(' ');
  const std::size_t target = line.rfind(' ');
  if (method == std::string_view::npos || method == 0 || target == method) return std::nullopt;
  if (!line.substr(target).starts_with(" HTTP/1.")) return std::nullopt;
  const std::string_view between = line.substr(method + 1, target - method - 1);
  if (between.find(' ') != std::string_view::npos) return std::nullopt;
  return HttpQuestion{std::string(line.substr(0, method)), std::string(between)};
}

}  // namespace

std::string HttpAnswer::Header(std::string_view name) const {
  for (const auto& [field, value] : headers) {
    if (field.size() == name.size() && ::strncasecmp(field.data(), name.data(), name.size()) == 0) {
      return value;
    }
  }
  return "";
}

HttpClient HttpClient::Tcp(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return HttpClient(Connect(AF_INET, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
}

HttpClient HttpClient::Unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return HttpClient(-1);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return HttpClient(Connect(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
}

HttpClient::~HttpClient() {
  if (fd_ >= 0) ::close(fd_);
}

bool HttpClient::Send(std::string_view bytes) {
  if (auto question = WholeRequest(bytes)) {
    asked_.push_back(*std::move(question));
  } else {
    blunt_ = true;
  }
  return SendAll(bytes);
}

bool HttpClient::SendAll(std::string_view bytes) {
  RecordSecretsSent(bytes);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool HttpClient::Request(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view headers) {
  std::string text;
  text.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\n");
  text.append(headers);
  if (!body.empty()) {
    text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  }
  text.append("\r\n").append(body);
  asked_.push_back({std::string(method), std::string(target)});
  return SendAll(text);
}

void HttpClient::Record(const HttpAnswer& answer) {
  HttpQuestion question;
  if (!blunt_ && !asked_.empty()) {
    question = std::move(asked_.front());
    asked_.pop_front();
  }
  RecordSecretsGiven(answer.body);
  if (recorded_) RecordExchange(question, answer);
}

int HttpClient::Fill() {
  pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, static_cast<int>(kPatience.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return -1;
  std::array<char, 65536> chunk;
  const ssize_t size = ::recv(fd_, chunk.data(), chunk.size(), 0);
  if (size > 0) buffer_.append(chunk.data(), static_cast<std::size_t>(size));
  return static_cast<int>(size);
}

std::optional<HttpAnswer> HttpClient::Read(Body body) {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (Fill() <= 0) return std::nullopt;
  }
  auto answer = ParseHead(std::string_view(buffer_).substr(0, end));
  buffer_.erase(0, end + 4);
  if (!answer) return answer;
  const bool final_answer = answer->status >= 200 || answer->status == 101;
  if (body == Body::kNone || answer->status < 200) {
    if (final_answer) Record(*answer);
    return answer;
  }
  const std::string length = answer->Header("Content-Length");
  std::size_t size = 0;
  std::from_chars(length.data(), length.data() + length.size(), size);
  while (buffer_.size() < size) {
    if (Fill() <= 0) return std::nullopt;
  }
  answer->body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  Record(*answer);
  return answer;
}

std::optional<std::string> HttpClient::ReadBytes() {
  if (buffer_.empty() && Fill() <= 0) return std::nullopt;
  return std::exchange(buffer_, {});
}

bool HttpClient::ClosedByServer() {
  if (!buffer_.empty()) return false;
  const int size = Fill();
  return size == 0 || (size < 0 && errno == ECONNRESET);
}

void HttpClient::FinishSending() { ::shutdown(fd_, SHUT_WR); }

void HttpClient::Reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  ::close(std::exchange(fd_, -1));
}

}  // namespace interlock::testing
