#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "testing/http_client.h"

namespace interlock::testing {

// One WebSocket connection to a server under test. Like HttpClient it sends what it is told, so
// that frames no honest client would send can be written down; on the way back it is strict: a
// masked, reserved or fragmented control frame of the server counts as a lost connection. Every
// wait ends after HttpClient's patience.
//
// Used by one thread.
class WsClient {
 public:
  enum Opcode : std::uint8_t {
    kContinuation = 0x0,
    kText = 0x1,
    kBinary = 0x2,
    kClose = 0x8,
    kPing = 0x9,
    kPong = 0xA,
  };

  // How a frame is written; the defaults are those of an honest client.
  struct FrameStyle {
    bool final = true;
    bool masked = true;
    std::uint8_t reserved = 0;  // of the three bits, the highest first: 4, 2, 1
  };
  struct Frame {
    Opcode opcode = kText;
    bool final = true;
    std::string payload = {};
  };

  // Sends the handshake on `http` and reads the answer.
  WsClient(HttpClient http, std::string_view target, std::string_view headers = "");
  static WsClient Tcp(std::uint16_t port, std::string_view target, std::string_view headers = "") {
    return {HttpClient::Tcp(port), target, headers};
  }
  WsClient(WsClient&&) noexcept = default;

  // The request of a handshake; `headers` follow the usual ones.
  static std::string Handshake(std::string_view target, std::string_view headers = "");

  // The server has switched, with the right key and no extension nor subprotocol.
  bool open() const { return open_; }
  // The answer to the handshake; status 0 when there was none.
  const HttpAnswer& answer() const { return answer_; }

  static std::string FrameBytes(Opcode opcode, std::string_view payload, FrameStyle style);
  static std::string FrameBytes(Opcode opcode, std::string_view payload) {
    return FrameBytes(opcode, payload, FrameStyle());
  }
  bool SendText(std::string_view text) { return http_.Send(FrameBytes(kText, text)); }
  bool SendBytes(std::string_view bytes) { return http_.Send(bytes); }
  bool SendClose(std::uint16_t code, std::string_view reason = "");

  // The next frame, whatever it is; nothing when the connection ends first.
  std::optional<Frame> ReadFrame();
  // True when a whole frame is here already, which poll() cannot tell.
  bool HasFrame();
  // The next whole text message. Pings are answered on the way. Nothing when the connection ends or
  // the server closes; close_code() then tells.
  std::optional<std::string> ReadText();
  // Reads on to the end and returns the server's close code, answering it as a client should;
  // 0 when it said none.
  int ReadClose();

  // What the server said when it closed; 0 as long as it has not, 1005 when it gave no code.
  int close_code() const { return close_code_; }
  const std::string& close_reason() const { return close_reason_; }
  int pings() const { return pings_; }  // answered by ReadText() and ReadClose()

  // True when the server has nothing more to say and closes the TCP connection.
  bool ClosedByServer() { return unread().empty() && http_.ClosedByServer(); }
  HttpClient& http() { return http_; }

 private:
  // The beginning of a frame: what it says and how long it is.
  struct Head {
    std::size_t head_bytes = 0;  // of the frame, as far as they are known
    std::uint64_t payload_bytes = 0;
    bool known = false;  // else head_bytes are needed to know it
  };
  static Head ReadHead(std::string_view bytes);

  std::string_view unread() const { return std::string_view(bytes_).substr(begin_); }
  bool Fill(std::size_t size);  // until that many bytes are unread
  bool FillMore();
  void NoteClose(std::string_view payload);

  HttpClient http_;
  HttpAnswer answer_;
  bool open_ = false;
  std::string bytes_;
  std::size_t begin_ = 0;  // what is before has been read
  int close_code_ = 0;
  std::string close_reason_;
  int pings_ = 0;
};

}  // namespace interlock::testing
