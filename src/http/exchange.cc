#include "http/exchange.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>

namespace interlock::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

Error NoConnection(std::string message) {
  return Error(Errc::kUnavailable, std::move(message)).WithSlug("no_connection");
}
Error NoAnswer(std::string message) {
  return Error(Errc::kUnavailable, std::move(message)).WithSlug("no_answer");
}
Error NotHttp(std::string message) {
  return Error(Errc::kUnavailable, std::move(message)).WithSlug("not_http");
}

Error BadUrl(std::string_view url, std::string_view reason) {
  return {Errc::kUsage,
          fmt::format("'{}' is no address of a server: {}; write http://HOST:PORT or unix:/PATH",
                      url, reason)};
}

// Socket, request and answer of one exchange; the handlers run in Run() only.
template <typename Protocol>
class Conversation {
 public:
  Conversation(const Question& question, const std::string& host, const ExchangeLimits& limits)
      : limits_(limits), socket_(io_) {
    request_.method_string(question.method);
    request_.target(question.target);
    request_.version(11);
    request_.set(beast::http::field::host, host);
    request_.set(beast::http::field::connection, "close");
    for (const auto& [name, value] : question.headers) request_.set(name, value);
    if (!question.body.empty()) {
      request_.set(beast::http::field::content_type, "application/json");
    }
    request_.body() = question.body;
    request_.prepare_payload();
    parser_.body_limit(limits.answer_bytes_max);
  }

  // `endpoints` is tried in order. The step that failed stands before its reason.
  Result<Answer> Run(const std::vector<typename Protocol::endpoint>& endpoints) {
    asio::async_connect(socket_, endpoints, [this](error_code error, const auto& /*endpoint*/) {
      if (error) {
        failure_ = NoConnection("no connection: " + error.message());
      } else {
        Send();
      }
    });
    io_.run_for(limits_.patience);
    if (failure_) return *failure_;
    if (!answer_) {
      return NoAnswer(fmt::format("no answer within {} ms", limits_.patience.count()));
    }
    return *std::move(answer_);
  }

 private:
  // A server may answer before it has read everything, and then takes no more: the answer counts.
  void Send() {
    beast::http::async_write(socket_, request_, [this](error_code /*error*/, std::size_t) {
      beast::http::async_read(socket_, buffer_, parser_, [this](error_code error, std::size_t) {
        if (error) {
          failure_ = NotHttp("no whole answer: " + error.message());
          return;
        }
        answer_ = Answer{.status = static_cast<int>(parser_.get().result_int()),
                         .body = std::move(parser_.get().body())};
      });
    });
  }

  const ExchangeLimits limits_;
  asio::io_context io_;
  typename Protocol::socket socket_;
  beast::http::request<beast::http::string_body> request_;
  beast::flat_buffer buffer_;
  beast::http::response_parser<beast::http::string_body> parser_;
  std::optional<Answer> answer_;
  std::optional<Error> failure_;
};

Result<std::vector<Tcp::endpoint>> Resolve(const Endpoint& endpoint) {
  asio::io_context io;
  Tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(endpoint.host, endpoint.port, error);
  if (error) {
    return NoConnection(fmt::format("no host '{}': {}", endpoint.host, error.message()));
  }
  return std::vector<Tcp::endpoint>(found.begin(), found.end());
}

// "host:port" or "[v6]:port", with what follows the host in `rest`.
Result<Endpoint> ParseAuthority(std::string_view url, std::string_view authority) {
  Endpoint endpoint;
  std::string_view rest;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return BadUrl(url, "its '[' is not closed");
    endpoint.host = authority.substr(1, close - 1);
    rest = authority.substr(close + 1);
  } else {
    const std::size_t colon = authority.find(':');
    endpoint.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) rest = authority.substr(colon);
  }
  if (endpoint.host.empty()) return BadUrl(url, "it names no host");
  if (rest.empty()) rest = ":80";
  if (!rest.starts_with(':')) return BadUrl(url, "a port must follow the ']'");
  endpoint.port = rest.substr(1);
  if (endpoint.port.empty() || endpoint.port.size() > 5 ||
      endpoint.port.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(endpoint.port) > 65'535) {
    return BadUrl(url, "its port is no number up to 65535");
  }
  return endpoint;
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view url) {
  constexpr std::string_view kUnix = "unix:";
  constexpr std::string_view kHttp = "http://";
  if (url.starts_with(kUnix)) {
    std::string_view path = url.substr(kUnix.size());
    if (path.starts_with("//")) path.remove_prefix(2);
    if (path.empty()) return BadUrl(url, "it names no socket");
    return Endpoint{.kind = Endpoint::Kind::kUnix, .path = std::string(path)};
  }
  if (url.starts_with("https://")) return BadUrl(url, "the server speaks no TLS");
  if (!url.starts_with(kHttp)) return BadUrl(url, "it begins neither with http:// nor with unix:");
  std::string_view authority = url.substr(kHttp.size());
  if (authority.ends_with('/')) authority.remove_suffix(1);
  if (authority.find_first_of("/?#@ ") != std::string_view::npos) {
    return BadUrl(url, "more than a host and a port stands in it");
  }
  return ParseAuthority(url, authority);
}

Result<Answer> Exchange(const Endpoint& endpoint, const Question& question,
                        const ExchangeLimits& limits) {
  if (endpoint.kind == Endpoint::Kind::kUnix) {
    if (endpoint.path.size() >= sizeof(sockaddr_un::sun_path)) {
      return NoConnection("the path of the socket is longer than a socket can have");
    }
    return Conversation<Local>(question, "localhost", limits).Run({Local::endpoint(endpoint.path)});
  }
  IL_TRY(const auto endpoints, Resolve(endpoint));
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  const std::string host =
      fmt::format(fmt::runtime(v6 ? "[{}]:{}" : "{}:{}"), endpoint.host, endpoint.port);
  return Conversation<Tcp>(question, host, limits).Run(endpoints);
}

std::string EncodeSegment(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kHex[byte >> 4U];
    encoded += kHex[byte & 0xFU];
  }
  return encoded;
}

std::string EncodeQuery(const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::string query;
  for (const auto& [name, value] : parameters) {
    if (!query.empty()) query += '&';
    query.append(EncodeSegment(name)).append("=").append(EncodeSegment(value));
  }
  return query;
}

}  // namespace interlock::http
