#include "http/message.h"

#include <algorithm>
#include <array>

#include "base/time_text.h"
#include "json/object_text.h"

namespace interlock::http {
namespace {

constexpr std::array<std::pair<Method, std::string_view>, 7> kMethods = {{
    {Method::kGet, "GET"},
    {Method::kPost, "POST"},
    {Method::kPut, "PUT"},
    {Method::kPatch, "PATCH"},
    {Method::kDelete, "DELETE"},
    {Method::kHead, "HEAD"},
    {Method::kOptions, "OPTIONS"},
}};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return Lower(x) == Lower(y); });
}

// The message for a client where the error's own is about our files and statements; empty = the
// error's own.
std::string_view ToldInstead(const Error& error) {
  const Errc code = error.code();
  if (IsFileLost(error)) {
    return "The server's database file, or its log, was moved away, removed or replaced, so "
           "nothing is read or stored; the server's log says what to do.";
  }
  if (code == Errc::kOutcomeUnknown) {
    return "It is not known whether this was stored: look before you repeat it, or repeat it with "
           "the same id where it has one.";
  }
  if (code == Errc::kBusy) return "The storage was busy for too long; try again.";
  if (code == Errc::kDiskFull) {
    return "The server's disk is full and nothing was stored: make room, then try again.";
  }
  if (IsInfrastructure(code)) {
    return "The server's storage failed and nothing was stored; the server's log says why. Try "
           "again later.";
  }
  return "";
}

// Seconds after which a client may try again, for errors that pass by themselves: those of the
// error's detail, else one, since a full queue drains within a second. Waiting cures neither the
// limit of reservations nor a lost database file.
std::optional<std::int64_t> RetryAfter(const Error& error) {
  for (const auto& [key, value] : error.details()) {
    if (key != "retry_after") continue;
    if (const auto* seconds = std::get_if<std::int64_t>(&value)) return *seconds;
  }
  const bool passes = (error.http_status() == 503 && !IsFileLost(error)) ||
                      (error.http_status() == 429 && error.slug() != "reservation_limit");
  if (passes) return 1;
  return std::nullopt;
}

// Thousands of answers share a second; each thread writes it down once.
std::string_view DateText(Timestamp now) {
  thread_local std::int64_t known_second = -1;
  thread_local std::string text;
  const std::int64_t second = now.micros / 1'000'000;
  if (second != known_second || text.empty()) {
    text = FormatRfc1123(now);
    known_second = second;
  }
  return text;
}

// A value that came with CR or LF would end the header early.
void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (const char c : value) out += (c == '\r' || c == '\n') ? ' ' : c;
  out += "\r\n";
}

// A list of ids as an Error holds it: one text, with blanks between the ids.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

std::string_view MethodName(Method method) {
  for (const auto& [value, name] : kMethods) {
    if (value == method) return name;
  }
  return "";
}

Method ParseMethod(std::string_view name) {
  for (const auto& [value, text] : kMethods) {
    if (text == name) return value;
  }
  return Method::kOther;
}

std::optional<std::string_view> Headers::Find(std::string_view name) const {
  for (const auto& [field, value] : fields_) {
    if (SameName(field, name)) return value;
  }
  return std::nullopt;
}

Headers::Seen Headers::Look(std::string_view name) const {
  Seen seen;
  for (const auto& [field, value] : fields_) {
    if (!SameName(field, name)) continue;
    if (seen.count++ == 0) seen.first = value;
  }
  return seen;
}

Response Response::Json(int status, std::string json) {
  Response response;
  response.status = status;
  response.headers.Add("Content-Type", "application/json");
  response.body = std::move(json);
  response.body += '\n';
  return response;
}

bool IsFileLost(const Error& error) {
  return error.code() == Errc::kUnavailable && error.slug() == Describe(Errc::kCantOpen).slug;
}

Response ErrorResponse(const Error& error) {
  if (error.code() == Errc::kInternal) {
    json::ObjectText body;
    body.Add("error", Describe(Errc::kInternal).slug)
        .Add("message",
             "The server made a mistake and logged it; trying the same request again is unlikely "
             "to help, reporting it is.");
    Response response = Response::Json(error.http_status(), body.Text());
    response.fault = error.message();
    return response;
  }
  const std::string_view told = ToldInstead(error);
  json::ObjectText body;
  body.Add("error", error.slug()).Add("message", told.empty() ? error.message() : told);
  for (const auto& [key, value] : error.details()) {
    if (key.ends_with("_ids")) {
      body.Add(key, Words(std::get<std::string>(value)));
      continue;
    }
    std::visit([&](const auto& detail) { body.Add(key, detail); }, value);
  }
  const std::optional<std::int64_t> retry_after = RetryAfter(error);
  // Clients know both names.
  if (error.code() == Errc::kRateLimited && retry_after) {
    body.Add("retry_after_seconds", *retry_after);
  }
  Response response = Response::Json(error.http_status(), body.Text());
  if (!told.empty()) response.fault = error.message();
  if (retry_after) response.headers.Add("Retry-After", std::to_string(*retry_after));
  if (error.code() == Errc::kUnauthorized) {
    response.headers.Add("WWW-Authenticate", "Bearer realm=\"intermute\"");
  }
  return response;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "";
  }
}

std::string HeadText(const Response& response, Persistence persistence, Timestamp now) {
  std::string head = "HTTP/1.1 ";
  head.reserve(256);
  head.append(std::to_string(response.status)).append(" ");
  head.append(ReasonPhrase(response.status)).append("\r\n");
  head.append("Date: ").append(DateText(now)).append("\r\n");
  for (const auto& [name, value] : response.headers.fields()) AppendField(head, name, value);
  if (response.status != 204) {
    AppendField(head, "Content-Length", std::to_string(response.body.size()));
  }
  if (persistence == Persistence::kClose) AppendField(head, "Connection", "close");
  if (persistence == Persistence::kKeepOpenAndSaySo) AppendField(head, "Connection", "keep-alive");
  head += "\r\n";
  return head;
}

}  // namespace interlock::http
