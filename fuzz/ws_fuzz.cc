// The bytes of a client whose connection has become a WebSocket, /ws/events from the start of the
// log, through the real session. What the server says is held against a slow reading of what it was
// told (RFC 6455):
//
// - it says frames that a client may get: whole, unmasked, of the shortest length; the events, each
//   once at most, in order; one pong per ping, with its bytes; one close frame at most, and nothing
//   after;
// - every ping has its pong unless the client made a mistake, and every event comes unless the
//   client closes first or hears some types only;
// - it closes with the code that the first mistake of the client deserves, and without a mistake
//   with the client's own.
//
// The first byte says whether the rest are frames as they are (even), or are to be made into
// frames: a byte with flags and opcode, a byte with a length, so many bytes, and again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "json/parse.h"
#include "json/value.h"
#include "server.h"
#include "targets.h"

namespace interlock::fuzz {
namespace {

constexpr std::uint8_t kContinuation = 0;
constexpr std::uint8_t kText = 1;
constexpr std::uint8_t kBinary = 2;
constexpr std::uint8_t kClose = 8;
constexpr std::uint8_t kPing = 9;
constexpr std::uint8_t kPong = 10;

constexpr int kNoCode = 1005;  // a close frame without one
constexpr int kNormal = 1000;
constexpr int kProtocol = 1002;
constexpr int kUnsupported = 1003;
constexpr int kBadText = 1007;
constexpr int kPolicy = 1008;
constexpr int kTooLarge = 1009;

struct Frame {
  std::uint8_t opcode = 0;
  bool fin = false;
  std::string payload = {};
};

// What both sides read frames with. Nothing: the bytes end within one.
class FrameReader {
 public:
  explicit FrameReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  bool bad() const { return bad_; }  // the last Next() met what no peer may send

  enum class From : std::uint8_t { kClient, kServer };
  std::optional<Frame> Next(From from) {
    if (rest_.size() < 2) return std::nullopt;
    const auto first = static_cast<std::uint8_t>(rest_[0]);
    const auto second = static_cast<std::uint8_t>(rest_[1]);
    Frame frame{.opcode = static_cast<std::uint8_t>(first & 15U), .fin = (first & 128U) != 0};
    const bool known = frame.opcode <= kBinary || (frame.opcode >= kClose && frame.opcode <= kPong);
    const bool control = frame.opcode >= kClose;
    std::uint64_t length = second & 127U;
    const bool masked = (second & 128U) != 0;
    const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
    const std::size_t header = more + (masked ? 4 : 0);
    bad_ = false;
    if (rest_.size() < 2 + header) return std::nullopt;  // nobody looks at half a header
    bad_ = (first & 0x70U) != 0 || !known || (control && (!frame.fin || length > 125)) ||
           masked != (from == From::kClient);
    if (bad_) return std::nullopt;
    rest_.remove_prefix(2);
    if (more > 0) length = Number(rest_.substr(0, more));
    bad_ = (more == 2 && length < 126) || (more == 8 && length < 65'536);
    if (bad_) return std::nullopt;
    const std::string_view mask = rest_.substr(more, header - more);
    rest_.remove_prefix(header);
    if (rest_.size() < length) return std::nullopt;
    frame.payload = rest_.substr(0, length);
    for (std::size_t i = 0; masked && i < length; ++i) {
      frame.payload[i] = static_cast<char>(frame.payload[i] ^ mask[i % 4]);
    }
    rest_.remove_prefix(length);
    return frame;
  }

 private:
  static std::uint64_t Number(std::string_view bytes) {
    std::uint64_t number = 0;
    for (const char c : bytes) number = number << 8U | static_cast<std::uint8_t>(c);
    return number;
  }

  std::string_view rest_;
  bool bad_ = false;
};

bool IsCloseCode(int code) {
  if (code < 1000 || code >= 5000) return false;
  if (code >= 3000) return true;
  return code <= 1003 || (code >= 1007 && code <= 1013);
}

// Of a close frame.
int CodeIn(const Frame& frame) {
  if (frame.payload.size() < 2) return kNoCode;
  return static_cast<std::uint8_t>(frame.payload[0]) * 256 +
         static_cast<std::uint8_t>(frame.payload[1]);
}

// Whether a text is no UTF-8 however it goes on; its last character is not looked at.
bool NeverUtf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(text);
    text.remove_prefix(unit.size);
    if (!unit.valid) return !text.empty();
  }
  return false;
}

// What the server owes a client that said this.
struct Owed {
  std::vector<std::string> pongs;  // by when its close is due
  std::vector<int> codes;          // one of these; 0: nobody closed
  bool own_close = false;          // the first of them is the client's own
  bool all_events = true;          // nothing it said may leave one out
};

// Which types the connection hears is followed only as far as there may be too many.
class Listener {
 public:
  // A code if the message ends the connection.
  std::optional<int> Hear(std::string_view text) {
    const auto value = json::Parse(text, {.trailing = json::Trailing::kIgnore});
    if (!value.ok()) return kBadText;
    if (!value->is_object()) return std::nullopt;
    const json::Value* const types = value->get_object().if_contains("event_types");
    filters_ |= types != nullptr;
    may_be_too_many_ |= types != nullptr && types->is_array() && !types->get_array().empty();
    return std::nullopt;
  }
  bool may_be_too_many() const { return may_be_too_many_; }
  bool filters() const { return filters_; }

 private:
  bool may_be_too_many_ = false;
  bool filters_ = false;
};

Owed OwedFor(std::string_view bytes) {
  const std::size_t most = FuzzServer::SmallLimits().ws_message_bytes_max;
  FrameReader reader(bytes);
  Listener listener;
  Owed owed;
  bool maybe_bad_text = false;  // by the last character so far of a message that goes on
  const auto close = [&](int code) {
    owed.codes = {code};
    if (maybe_bad_text) owed.codes.push_back(kBadText);
    if (listener.may_be_too_many()) owed.codes.push_back(kPolicy);
    return owed;
  };
  std::optional<std::uint8_t> open;  // the opcode of a message that goes on
  std::string message;
  while (true) {
    const std::optional<Frame> frame = reader.Next(FrameReader::From::kClient);
    if (reader.bad()) return close(kProtocol);
    if (!frame) {
      // Its end is missing, but it may be wrong by what is there: then either may be noticed.
      owed.codes = {0, kProtocol, kBadText, kTooLarge};
      if (listener.may_be_too_many()) owed.codes.push_back(kPolicy);
      owed.all_events = !listener.filters();
      return owed;
    }
    if (frame->opcode == kPing) {
      owed.pongs.push_back(frame->payload);
      continue;
    }
    if (frame->opcode == kPong) continue;
    if (frame->opcode == kClose) {
      const int code = CodeIn(*frame);
      owed.own_close =
          frame->payload.empty() || (IsCloseCode(code) && IsUtf8(frame->payload.substr(2)));
      if (!owed.own_close) return close(kProtocol);
      return close(frame->payload.empty() ? kNormal : code);
    }
    if ((frame->opcode == kContinuation) != open.has_value()) return close(kProtocol);
    if (frame->opcode != kContinuation) open = frame->opcode;
    message += frame->payload;
    if (message.size() > most) {
      // Text may be found wrong before it is found long.
      owed.codes = {kTooLarge, kBadText};
      if (listener.may_be_too_many()) owed.codes.push_back(kPolicy);
      return owed;
    }
    if (*open == kText && NeverUtf8(message)) return close(kBadText);
    maybe_bad_text = *open == kText && !IsUtf8(message);
    if (!frame->fin) continue;
    if (maybe_bad_text) return close(kBadText);
    if (*open == kBinary) return close(kUnsupported);
    if (const auto code = listener.Hear(message)) return close(*code);
    open.reset();
    message.clear();
  }
}

// The cursor of an event that may follow the one of cursor `last`; a filter may leave some out.
std::int64_t CursorOf(const std::string& text, std::int64_t last) {
  const auto event = json::Parse(text);
  IL_CHECK(event.ok() && event->is_object(), text);
  const json::Value* const cursor = event->get_object().if_contains("cursor");
  IL_CHECK(cursor != nullptr && cursor->is_int64(), text);
  IL_CHECK(cursor->get_int64() > last && cursor->get_int64() <= FuzzServer::kEvents, text);
  return cursor->get_int64();
}

void CheckFrames(const Owed& owed, std::string_view heard) {
  FrameReader reader(heard);
  std::int64_t last = 0;
  std::int64_t events = 0;
  std::size_t pongs = 0;
  int code = 0;
  while (!reader.at_end()) {
    const auto frame = reader.Next(FrameReader::From::kServer);
    IL_CHECK(frame && frame->fin && code == 0);
    if (frame->opcode == kText) {
      last = CursorOf(frame->payload, last);
      ++events;
    } else if (frame->opcode == kPong) {
      IL_CHECK(pongs < owed.pongs.size() && frame->payload == owed.pongs[pongs]);
      ++pongs;
    } else {
      IL_CHECK(frame->opcode == kClose);
      IL_CHECK(frame->payload.size() != 1 &&
               IsUtf8(frame->payload.substr(std::min<std::size_t>(2, frame->payload.size()))));
      code = CodeIn(*frame);
    }
  }
  IL_CHECK(std::ranges::find(owed.codes, code) != owed.codes.end(), std::to_string(code));
  const bool in_order = code == 0 || (owed.own_close && code == owed.codes.front());
  IL_CHECK(!in_order || pongs == owed.pongs.size(), "a ping without its pong");
  // Nobody closed, so all that was to be said was said before the client hung up.
  const bool at_rest = code == 0 && owed.all_events;
  IL_CHECK(!at_rest || events == FuzzServer::kEvents, "an event did not come");
}

// Frames of a client, with a mask that changes nothing.
std::string MakeFrames(std::string_view recipe) {
  std::string bytes;
  while (recipe.size() >= 2) {
    const auto size =
        std::min<std::size_t>(static_cast<std::uint8_t>(recipe[1]), recipe.size() - 2);
    bytes += recipe[0];
    if (size < 126) {
      bytes += static_cast<char>(128U | size);
    } else {
      bytes += {static_cast<char>(128U | 126U), static_cast<char>(0), static_cast<char>(size)};
    }
    bytes.append(4, '\0').append(recipe.substr(2, size));
    recipe.remove_prefix(2 + size);
  }
  return bytes;
}

constexpr std::string_view kHandshake =
    "GET /ws/events?project=p&since_cursor=0 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

}  // namespace

void FuzzWs(std::string_view input) {
  static FuzzServer server;
  if (input.empty() || input.size() > 8192) return;
  const bool recipe = input[0] % 2 != 0;
  input.remove_prefix(1);
  const std::string frames = recipe ? MakeFrames(input) : std::string(input);
  const std::string heard = server.Converse(std::string(kHandshake) + frames);
  const std::size_t end = heard.find("\r\n\r\n");
  IL_CHECK(heard.starts_with("HTTP/1.1 101 ") && end != std::string::npos, heard);
  CheckFrames(OwedFor(frames), std::string_view(heard).substr(end + 4));
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzWs);
