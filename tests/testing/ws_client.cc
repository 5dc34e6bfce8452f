#include "testing/ws_client.h"

#include "testing/http_record.h"

namespace interlock::testing {
namespace {

// The example of RFC 6455, whose right answer is known without computing it.
constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view kAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

constexpr std::string_view kMask = "\x12\x34\x56\x78";
constexpr std::size_t kServerFrameMax = std::size_t{1024} * 1024;

void AppendBigEndian(std::string& bytes, std::uint64_t value, int size) {
  for (int shift = (size - 1) * 8; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(value >> shift));
  }
}

std::uint64_t BigEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

}  // namespace

WsClient::WsClient(HttpClient http, std::string_view target, std::string_view headers)
    : http_(std::move(http)) {
  if (!http_.connected() || !http_.Send(Handshake(target, headers))) return;
  auto answer = http_.Read();
  if (!answer) return;
  answer_ = std::move(*answer);
  open_ = answer_.status == 101 && answer_.Header("Sec-WebSocket-Accept") == kAccept &&
          answer_.Header("Sec-WebSocket-Extensions").empty() &&
          answer_.Header("Sec-WebSocket-Protocol").empty();
}

std::string WsClient::Handshake(std::string_view target, std::string_view headers) {
  std::string text = "GET ";
  text.append(target).append(" HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n");
  text.append("Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
  text.append(kKey).append("\r\n").append(headers).append("\r\n");
  return text;
}

std::string WsClient::FrameBytes(Opcode opcode, std::string_view payload, FrameStyle style) {
  std::string bytes;
  bytes.push_back(static_cast<char>((style.final ? 0x80 : 0) | style.reserved << 4 | opcode));
  const int mask_bit = style.masked ? 0x80 : 0;
  if (payload.size() < 126) {
    bytes.push_back(static_cast<char>(mask_bit | static_cast<int>(payload.size())));
  } else if (payload.size() < 65536) {
    bytes.push_back(static_cast<char>(mask_bit | 126));
    AppendBigEndian(bytes, payload.size(), 2);
  } else {
    bytes.push_back(static_cast<char>(mask_bit | 127));
    AppendBigEndian(bytes, payload.size(), 8);
  }
  if (!style.masked) return bytes.append(payload);
  bytes.append(kMask);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    bytes.push_back(static_cast<char>(payload[i] ^ kMask[i % kMask.size()]));
  }
  return bytes;
}

bool WsClient::SendClose(std::uint16_t code, std::string_view reason) {
  std::string payload;
  AppendBigEndian(payload, code, 2);
  payload.append(reason);
  return http_.Send(FrameBytes(kClose, payload));
}

bool WsClient::FillMore() {
  auto more = http_.ReadBytes();
  if (!more) return false;
  bytes_.erase(0, std::exchange(begin_, 0));
  bytes_.append(*more);
  return true;
}

bool WsClient::Fill(std::size_t size) {
  while (unread().size() < size) {
    if (!FillMore()) return false;
  }
  return true;
}

WsClient::Head WsClient::ReadHead(std::string_view bytes) {
  if (bytes.size() < 2) return {.head_bytes = 2};
  const auto second = static_cast<std::uint8_t>(bytes[1]);
  const std::size_t length_bytes = second == 126 ? 2 : second == 127 ? 8 : 0;
  if (bytes.size() < 2 + length_bytes) return {.head_bytes = 2 + length_bytes};
  const std::uint64_t size = length_bytes == 0 ? second : BigEndian(bytes.substr(2, length_bytes));
  return {.head_bytes = 2 + length_bytes, .payload_bytes = size, .known = true};
}

bool WsClient::HasFrame() {
  if (http_.HasBytes()) FillMore();
  const Head head = ReadHead(unread());
  return head.known && unread().size() - head.head_bytes >= head.payload_bytes;
}

std::optional<WsClient::Frame> WsClient::ReadFrame() {
  Head head = ReadHead(unread());
  while (!head.known) {
    if (!Fill(head.head_bytes)) return std::nullopt;
    head = ReadHead(unread());
  }
  const auto first = static_cast<std::uint8_t>(unread()[0]);
  const bool masked = (static_cast<std::uint8_t>(unread()[1]) & 0x80) != 0;
  Frame frame{.opcode = static_cast<Opcode>(first & 0x0F), .final = (first & 0x80) != 0};
  const std::uint64_t size = head.payload_bytes;
  const bool control = frame.opcode >= kClose;
  if ((first & 0x70) != 0 || masked || size > kServerFrameMax ||
      (control && (!frame.final || size > 125))) {
    return std::nullopt;
  }
  if (!Fill(head.head_bytes + size)) return std::nullopt;
  frame.payload = unread().substr(head.head_bytes, size);
  if (http_.recorded() && !control) RecordText(frame.payload);
  begin_ += head.head_bytes + size;
  if (frame.opcode == kClose) NoteClose(frame.payload);
  return frame;
}

void WsClient::NoteClose(std::string_view payload) {
  close_code_ = payload.size() < 2 ? 1005 : static_cast<int>(BigEndian(payload.substr(0, 2)));
  if (payload.size() > 2) close_reason_ = payload.substr(2);
}

std::optional<std::string> WsClient::ReadText() {
  std::string text;
  while (auto frame = ReadFrame()) {
    if (frame->opcode == kClose) return std::nullopt;
    if (frame->opcode == kPing) {
      ++pings_;
      http_.Send(FrameBytes(kPong, frame->payload));
    }
    if (frame->opcode > kBinary) continue;
    text += frame->payload;
    if (frame->final) return text;
  }
  return std::nullopt;
}

int WsClient::ReadClose() {
  while (close_code_ == 0 && ReadText()) {
  }
  if (close_code_ != 0 && close_code_ != 1005) {
    SendClose(static_cast<std::uint16_t>(close_code_));
  }
  return close_code_;
}

}  // namespace interlock::testing
