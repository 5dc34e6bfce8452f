#include "testing/ws_client.h"

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

bool WsClient::Fill(std::size_t size) {
  while (bytes_.size() < size) {
    auto more = http_.ReadBytes();
    if (!more) return false;
    bytes_.append(*more);
  }
  return true;
}

std::optional<WsClient::Frame> WsClient::ReadFrame() {
  if (!Fill(2)) return std::nullopt;
  const auto first = static_cast<std::uint8_t>(bytes_[0]);
  const auto second = static_cast<std::uint8_t>(bytes_[1]);
  Frame frame{.opcode = static_cast<Opcode>(first & 0x0F), .final = (first & 0x80) != 0};
  std::uint64_t size = second;
  std::size_t head = 2;
  if (size >= 126 && size <= 127) {
    const std::size_t length_bytes = size == 126 ? 2 : 8;
    if (!Fill(head + length_bytes)) return std::nullopt;
    size = BigEndian(std::string_view(bytes_).substr(head, length_bytes));
    head += length_bytes;
  }
  const bool control = frame.opcode >= kClose;
  if ((first & 0x70) != 0 || second > 127 || size > kServerFrameMax ||
      (control && (!frame.final || size > 125))) {
    return std::nullopt;
  }
  if (!Fill(head + size)) return std::nullopt;
  frame.payload = bytes_.substr(head, size);
  bytes_.erase(0, head + size);
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
