#include "http/handshake.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

namespace interlock::http {
namespace {

bool SameText(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view Trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// A comma-separated list, in one field or in several of that name.
bool HasToken(const Headers& headers, std::string_view name, std::string_view token) {
  for (const auto& [field, value] : headers.fields()) {
    if (!SameText(field, name)) continue;
    std::string_view rest = value;
    while (true) {
      const std::size_t comma = rest.find(',');
      if (SameText(Trim(rest.substr(0, comma)), token)) return true;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return false;
}

// The base64 of 16 bytes.
bool IsKey(std::string_view key) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return key.size() == 24 && key.ends_with("==") &&
         key.substr(0, 22).find_first_not_of(kAlphabet) == std::string_view::npos;
}

// "localhost:7338" of "http://localhost:7338"; nothing for "null" and what is no origin.
std::optional<std::string_view> HostOfOrigin(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  const std::string_view host = origin.substr(scheme + 3);
  return host.substr(0, host.find('/'));
}

bool FromAnotherOrigin(const Headers& headers) {
  const auto origin = headers.Find("Origin");
  if (!origin) return false;
  const auto host = HostOfOrigin(Trim(*origin));
  return !host || !SameText(*host, Trim(headers.Find("Host").value_or("")));
}

}  // namespace

Result<std::string> HandshakeKey(const Request& request) {
  const Headers& headers = request.headers;
  if (request.http_1_0) {
    return Error(Errc::kUpgradeRequired,
                 "HTTP/1.0 knows no upgrade; connect with a WebSocket client, which speaks 1.1.");
  }
  if (!HasToken(headers, "Connection", "upgrade") || !HasToken(headers, "Upgrade", "websocket")) {
    return Error(Errc::kUpgradeRequired, "This is a WebSocket; connect to it with ws://.");
  }
  const auto version = headers.Find("Sec-WebSocket-Version");
  if (!version || Trim(*version) != "13" || headers.Count("Sec-WebSocket-Version") > 1) {
    return Error(Errc::kInvalidArgument,
                 "Only version 13 of WebSocket is spoken here; send Sec-WebSocket-Version: 13.");
  }
  const auto key = headers.Find("Sec-WebSocket-Key");
  if (!key || headers.Count("Sec-WebSocket-Key") > 1 || !IsKey(Trim(*key))) {
    return Error(Errc::kInvalidArgument,
                 "Sec-WebSocket-Key must be the base64 of 16 bytes; use a WebSocket client.");
  }
  if (FromAnotherOrigin(headers)) {
    return Error(Errc::kForbidden,
                 "A page of another origin may not connect; connect from this server's own pages, "
                 "or from a program, which sends no Origin.")
        .WithSlug("forbidden_origin");
  }
  return std::string(Trim(*key));
}

Response HandshakeRefusal(const Error& error) {
  Response response = ErrorResponse(error);
  if (error.code() == Errc::kForbidden) return response;
  if (error.code() == Errc::kUpgradeRequired) {
    response.headers.Add("Upgrade", "websocket");
    response.headers.Add("Connection", "Upgrade");
  }
  response.headers.Add("Sec-WebSocket-Version", "13");
  return response;
}

}  // namespace interlock::http
