#include "http/path.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/utf8.h"

namespace interlock::http {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "http://host:port/path" → "/path": clients of a proxy write the whole URL.
std::string_view WithoutAuthority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = target.find_first_of("/?");
    if (end == std::string_view::npos) return "/";
    return target.substr(end);
  }
  return target;
}

}  // namespace

std::optional<std::string> DecodePercent(std::string_view text) {
  const std::size_t plain = std::min(text.find('%'), text.size());
  std::string decoded;
  decoded.reserve(text.size());
  decoded = text.substr(0, plain);
  for (std::size_t i = plain; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

Result<Target> ParseTarget(std::string_view target) {
  target = WithoutAuthority(target);
  const std::size_t question = target.find('?');
  std::string_view path = target.substr(0, question);
  if (path.empty() && question == 0) path = "/";
  if (!path.starts_with('/')) {
    return Error(Errc::kInvalidArgument,
                 "The request target is not a path; it must begin with '/'.");
  }
  auto decoded = DecodePercent(path);
  if (!decoded) {
    return Error(Errc::kInvalidArgument,
                 "The path has a broken escape; write '%' as %25, and every other escape as '%' "
                 "and two hexadecimal digits.");
  }
  if (decoded->find('\0') != std::string::npos) {
    return Error(Errc::kInvalidArgument, "The path holds a NUL byte; remove %00 from it.");
  }
  if (!IsUtf8(*decoded)) {
    return Error(Errc::kInvalidArgument,
                 "The path is not UTF-8; encode it as UTF-8 before escaping it.");
  }
  Target parsed;
  parsed.path = *std::move(decoded);
  if (question != std::string_view::npos) parsed.query = target.substr(question + 1);
  return parsed;
}

std::string CleanPath(std::string_view path) {
  std::vector<std::string_view> kept;
  bool ends_with_directory = false;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    std::size_t end = path.find('/', begin);
    if (end == std::string_view::npos) end = path.size();
    const std::string_view segment = path.substr(begin, end - begin);
    ends_with_directory = segment.empty() || segment == "." || segment == "..";
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
    } else if (!segment.empty() && segment != ".") {
      kept.push_back(segment);
    }
    begin = end + 1;
  }
  std::string clean;
  clean.reserve(path.size() + 1);
  for (const std::string_view segment : kept) clean.append("/").append(segment);
  if (clean.empty() || (ends_with_directory && path.ends_with('/'))) clean += '/';
  return clean;
}

bool MayBeUnclean(std::string_view path) {
  if (!path.starts_with('/')) return true;
  return path.find("//") != std::string_view::npos || path.find("/.") != std::string_view::npos;
}

std::string EncodePath(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/!$&'()*+,;=:@";
  std::string encoded;
  encoded.reserve(path.size());
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(c);
    encoded += '%';
    encoded += kHex[byte >> 4];
    encoded += kHex[byte & 0xF];
  }
  return encoded;
}

}  // namespace interlock::http
