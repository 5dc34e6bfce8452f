#include "http/request_reader.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace interlock::http {
namespace {

namespace beast = boost::beast;
using HttpError = beast::http::error;
using Parser = beast::http::request_parser<beast::http::string_body>;

// Blank lines before a request that old clients send after a body; more is noise.
constexpr int kBlankLinesMax = 4;

std::string_view View(boost::core::string_view text) { return {text.data(), text.size()}; }

Error BadRequest(std::string message) { return {Errc::kInvalidArgument, std::move(message)}; }

Error HeaderTooLarge(const Limits& limits) {
  return {Errc::kHeaderTooLarge,
          fmt::format("The header is larger than {} bytes; send fewer or shorter fields.",
                      limits.header_bytes_max)};
}

Error Explain(const boost::system::error_code& error, const Limits& limits) {
  if (error == HttpError::header_limit) return HeaderTooLarge(limits);
  if (error == HttpError::body_limit) {
    return {Errc::kPayloadTooLarge,
            fmt::format("The body is larger than {} bytes; send less in one request.",
                        limits.body_bytes_max)};
  }
  if (error == HttpError::bad_version) {
    return BadRequest("Only HTTP/1.0 and HTTP/1.1 are spoken here; use one of them.");
  }
  if (error == HttpError::bad_content_length || error == HttpError::multiple_content_length ||
      error == HttpError::bad_transfer_encoding) {
    return BadRequest(
        "The length of the body is not clear; send one Content-Length, or Transfer-Encoding: "
        "chunked, not both.");
  }
  return BadRequest(
      fmt::format("The request is not valid HTTP/1.1 ({}); check what the client "
                  "sends.",
                  error.message()));
}

// What the parser lets pass although two readers could understand it differently.
Result<void> CheckFraming(const Request& request, unsigned version, bool chunked) {
  const std::size_t hosts = request.headers.Count("Host");
  if (hosts > 1 || (hosts == 0 && version >= 11)) {
    return BadRequest("The request needs exactly one Host field; add it or remove the others.");
  }
  const std::size_t codings = request.headers.Count("Transfer-Encoding");
  if (codings == 0) return {};
  const std::string_view coding = *request.headers.Find("Transfer-Encoding");
  if (codings > 1 || !chunked || !beast::iequals(coding, "chunked") || version < 11) {
    return BadRequest("The only Transfer-Encoding understood here is chunked, in HTTP/1.1.");
  }
  return {};
}

}  // namespace

struct RequestReader::Impl {
  explicit Impl(const Limits& l) : limits(l) {}

  const Limits limits;
  std::string bytes;  // what was read; [begin, end) is not yet parsed
  std::size_t begin = 0;
  std::size_t end = 0;
  std::optional<Parser> parser;  // of the request under way
  std::size_t header_bytes = 0;
  int blank_lines = 0;
  bool line_ended = false;  // with the last byte of the header that was parsed
  bool header_told = false;
  Request request;
  Persistence persistence = Persistence::kClose;

  std::size_t unparsed() const { return end - begin; }

  // False: the bytes so far may still be part of a blank line.
  bool SkipBlankLines() {
    while (unparsed() > 0 && bytes[begin] == '\r' && blank_lines < kBlankLinesMax) {
      if (unparsed() == 1) return false;
      if (bytes[begin + 1] != '\n') return true;
      begin += 2;
      ++blank_lines;
    }
    return unparsed() > 0;
  }

  void StartParser() {
    parser.emplace();
    parser->header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
    parser->body_limit(limits.body_bytes_max);
    header_bytes = 0;
    line_ended = false;
    header_told = false;
  }

  // Given a header piece by piece, as it is parsed: true for a line that goes on after its end, as
  // fields once could. Who reads it as one field and who reads it as two find different requests.
  bool FindsFoldedLine(std::string_view header) {
    const auto goes_on = [header](std::size_t at) {
      return at < header.size() && (header[at] == ' ' || header[at] == '\t');
    };
    if (line_ended && goes_on(0)) return true;
    for (std::size_t at = header.find('\n'); at != std::string_view::npos;
         at = header.find('\n', at + 1)) {
      if (goes_on(at + 1)) return true;
    }
    if (!header.empty()) line_ended = header.back() == '\n';
    return false;
  }

  // Parses what is there. False: more bytes are needed.
  Result<bool> Put() {
    // The end of a chunked body, "0 CRLF CRLF", is never shorter; given less of it in two pieces
    // the parser fails an assertion of its own.
    constexpr std::size_t kChunkedTail = 5;
    const bool in_chunks = parser->is_header_done() && parser->chunked();
    if (unparsed() < (in_chunks ? kChunkedTail : 1)) return false;
    boost::system::error_code error;
    const std::size_t used =
        parser->put(boost::asio::const_buffer(bytes.data() + begin, unparsed()), error);
    begin += used;
    if (!parser->is_header_done()) header_bytes += used;
    if (error == HttpError::need_more) {
      // A line that never ends: of the header, of a chunk, or of the fields after the last one.
      if (unparsed() >= limits.header_bytes_max) return HeaderTooLarge(limits);
      return used > 0 && unparsed() > 0;
    }
    if (error) return Explain(error, limits);
    return true;
  }

  Result<void> FinishHeader() {
    const auto& message = parser->get();
    request = Request();
    request.method = ParseMethod(View(message.method_string()));
    request.target = View(message.target());
    request.http_1_0 = message.version() < 11;
    for (const auto& field : message) {
      request.headers.Add(std::string(View(field.name_string())), std::string(View(field.value())));
    }
    persistence = Persistence::kClose;
    if (parser->keep_alive()) {
      persistence =
          message.version() >= 11 ? Persistence::kKeepOpen : Persistence::kKeepOpenAndSaySo;
    }
    return CheckFraming(request, message.version(), parser->chunked());
  }
};

RequestReader::RequestReader(const Limits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestReader::~RequestReader() = default;

std::span<char> RequestReader::Prepare(std::size_t size) {
  Impl& impl = *impl_;
  if (impl.begin == impl.end) impl.begin = impl.end = 0;
  if (impl.end + size > impl.bytes.size() && impl.begin > 0) {
    impl.bytes.erase(0, impl.begin);
    impl.end -= impl.begin;
    impl.begin = 0;
  }
  if (impl.end + size > impl.bytes.size()) impl.bytes.resize(impl.end + size);
  return std::span(impl.bytes).subspan(impl.end);
}

void RequestReader::Commit(std::size_t size) {
  IL_CHECK(impl_->end + size <= impl_->bytes.size());
  impl_->end += size;
}

bool RequestReader::idle() const { return !impl_->parser && impl_->unparsed() == 0; }

Result<RequestReader::Step> RequestReader::Advance() {
  Impl& impl = *impl_;
  if (!impl.parser) {
    if (!impl.SkipBlankLines()) return Step::kNeedMore;
    impl.StartParser();
  }
  while (!impl.parser->is_header_done()) {
    const std::size_t before = impl.begin;
    IL_TRY(const bool more, impl.Put());
    const bool folded =
        impl.FindsFoldedLine(std::string_view(impl.bytes).substr(before, impl.begin - before));
    if (impl.parser->is_header_done()) {
      impl.header_bytes += impl.begin - before;
      if (impl.header_bytes > impl.limits.header_bytes_max) return HeaderTooLarge(impl.limits);
    }
    if (folded) return BadRequest("A header field goes on in a second line; write it in one.");
    if (impl.parser->is_header_done()) {
      IL_TRY_VOID(impl.FinishHeader());
      break;
    }
    if (!more) return Step::kNeedMore;
  }
  if (!impl.header_told && !impl.parser->is_done()) {
    impl.header_told = true;
    return Step::kHeaderDone;
  }
  while (!impl.parser->is_done()) {
    IL_TRY(const bool more, impl.Put());
    if (!more && !impl.parser->is_done()) return Step::kNeedMore;
  }
  return Step::kDone;
}

bool RequestReader::expects_continue() const {
  const auto expect = impl_->request.headers.Find("Expect");
  return expect && beast::iequals(*expect, "100-continue") &&
         impl_->parser->get().version() >= 11 && impl_->unparsed() == 0;
}

RequestReader::Taken RequestReader::Take() {
  Impl& impl = *impl_;
  IL_CHECK(impl.parser && impl.parser->is_done());
  impl.request.body = std::move(impl.parser->get().body());
  impl.parser.reset();
  impl.blank_lines = 0;
  // A connection that rests keeps no large buffer.
  constexpr std::size_t kKeptMax = std::size_t{8} * 1024;
  if (impl.unparsed() == 0 && impl.bytes.capacity() > kKeptMax) {
    impl.bytes = std::string();
    impl.begin = impl.end = 0;
  }
  return {std::move(impl.request), impl.persistence};
}

std::string RequestReader::TakeRest() {
  Impl& impl = *impl_;
  IL_CHECK(!impl.parser);
  std::string rest(impl.bytes, impl.begin, impl.unparsed());
  impl.bytes = std::string();
  impl.begin = impl.end = 0;
  return rest;
}

}  // namespace interlock::http
