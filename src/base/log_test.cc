#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "testing/fake_clock.h"

namespace interlock {
namespace {

using testing::FakeClock;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kLinesPerThread = 100;
#else
constexpr int kLinesPerThread = 500;
#endif

class CapturingSink final : public LogSink {
 public:
  void Write(std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

class LogTest : public ::testing::Test {
 protected:
  // What a call logs, without its newline.
  template <typename Call>
  std::string Line(LogFormat format, Call call) {
    CapturingSink sink;
    Logger logger(clock_, sink, {.level_min = LogLevel::kDebug, .format = format});
    call(logger);
    if (sink.lines.size() != 1) return "not one line";
    std::string line = sink.lines[0];
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    line.pop_back();
    return line;
  }

  FakeClock clock_;
};

TEST_F(LogTest, TextHasTimeLevelMessageAndFields) {
  const std::string address = "127.0.0.1";
  EXPECT_EQ(Line(LogFormat::kText,
                 [&](Logger& log) {
                   log.Info("listening", {{"address", address},
                                          {"port", 7338},
                                          {"size", address.size()},
                                          {"ok", true},
                                          {"ratio", 0.5},
                                          {"took", std::chrono::milliseconds(1500)},
                                          {"since", Timestamp{0}}});
                 }),
            "2026-01-02T03:04:05.000000Z INFO listening address=127.0.0.1 port=7338 size=9 ok=true "
            "ratio=0.5 took=1.5s since=1970-01-01T00:00:00Z");
}

TEST_F(LogTest, JsonHasTheSameWithNumbersAsNumbers) {
  EXPECT_EQ(Line(LogFormat::kJson,
                 [&](Logger& log) {
                   log.Warn("slow", {{"path", "/health"},
                                     {"low", std::numeric_limits<std::int64_t>::min()},
                                     {"high", std::numeric_limits<std::uint64_t>::max()},
                                     {"ok", false},
                                     {"nan", std::nan("")},
                                     {"took", std::chrono::microseconds(3)}});
                 }),
            R"({"time":"2026-01-02T03:04:05.000000Z","level":"warn","message":"slow",)"
            R"("path":"/health","low":-9223372036854775808,"high":18446744073709551615,)"
            R"("ok":false,"nan":null,"took":"3us"})");
}

TEST_F(LogTest, LevelsBelowTheLeastAreDropped) {
  for (const LogLevel least :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    CapturingSink sink;
    Logger logger(clock_, sink, {.level_min = least});
    logger.Debug("d");
    logger.Info("i");
    logger.Warn("w");
    logger.Error("e");
    EXPECT_EQ(sink.lines.size(), 4 - static_cast<std::size_t>(least));
    EXPECT_EQ(logger.Enabled(LogLevel::kInfo), least <= LogLevel::kInfo);
    EXPECT_EQ(sink.lines.back(), "2026-01-02T03:04:05.000000Z ERROR e\n");
  }
}

TEST_F(LogTest, ValuesThatWouldNotBeSeenToEndAreQuotedInText) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"plain", "v=plain"},
      {"", "v=\"\""},
      {"two words", "v=\"two words\""},
      {"a=b", "v=\"a=b\""},
      {"say \"x\"", R"(v="say \"x\"")"},
      {"a\"b", R"(v="a\"b")"},
      {"back\\slash", R"(v="back\\slash")"},
      {"é€😀", "v=é€😀"},
  };
  for (const auto& [value, shown] : cases) {
    const std::string line =
        Line(LogFormat::kText, [&](Logger& log) { log.Info("m", {{"v", value}}); });
    EXPECT_EQ(line, "2026-01-02T03:04:05.000000Z INFO m " + std::string(shown));
  }
}

// In message, key and value, in both formats.
TEST_F(LogTest, NothingInATextCanForgeALineOrSteerATerminal) {
  std::vector<std::string> hostile = {
      "a\n2026-01-02T03:04:05Z ERROR forged",
      "\r\n",
      "\x1B[2J\x1B]0;title\x07",
      "\x7F",
      "\u0085next line",
      "\u009B2J",      // C1 controls
      "\u2028\u2029",  // line separators
      "\u202Egnp.exe",
      "\u2066x\u2069",  // reordering
      "\xFF\xFE",
      "\xC3",
      "\xED\xA0\x80",  // no UTF-8
      std::string("nul\0nul", 7),
      "\",\"level\":\"error\",\"x\":\"",
      "\\\",\\\"",
  };
  for (char c = 0; c < 0x20; ++c) hostile.emplace_back(1, c);
  for (const std::string& text : hostile) {
    for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
      const std::string line = Line(format, [&](Logger& log) { log.Info(text, {{text, text}}); });
      for (const char c : line) {
        ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)
            << ::testing::PrintToString(line);
      }
      for (const std::string_view bad : {"\u0085", "\u009B", "\u2028", "\u2029", "\u202E", "\u2066",
                                         "\xFF", "\"level\":\"error\""}) {
        ASSERT_EQ(line.find(bad), std::string::npos) << ::testing::PrintToString(line);
      }
    }
  }
  EXPECT_EQ(Line(LogFormat::kText, [](Logger& log) { log.Info("a\nb\x1B", {{"k", "c\rd"}}); }),
            R"(2026-01-02T03:04:05.000000Z INFO a\nb\u001b k="c\rd")");
}

TEST_F(LogTest, LongTextsAreCutBetweenCharacters) {
  CapturingSink sink;
  Logger logger(clock_, sink, {.text_bytes_max = 5});
  logger.Info("12345", {{"v", "12345"}});
  logger.Info("123456", {{"v", "1234é6"}});
  EXPECT_EQ(sink.lines[0], "2026-01-02T03:04:05.000000Z INFO 12345 v=12345\n");
  EXPECT_EQ(sink.lines[1],
            "2026-01-02T03:04:05.000000Z INFO 12345…(6 bytes) v=\"1234…(7 bytes)\"\n");
}

TEST_F(LogTest, ErrorsAndSecretsShowWhatTheyMay) {
  const Secret secret("hunter2");
  const std::string line = Line(LogFormat::kJson, [&](Logger& log) {
    log.Error("failed", {{"error", Error(Errc::kIo, "disk\ngone")}, {"token", secret}});
  });
  EXPECT_EQ(line, R"({"time":"2026-01-02T03:04:05.000000Z","level":"error","message":"failed",)"
                  R"("error":"storage_io_error: disk\ngone","token":"[secret]"})");
}

struct Pipe {
  explicit Pipe(int flags) {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe2(ends.data(), flags), 0);
    out = ends[0];
    in = ends[1];
  }
  ~Pipe() {
    close(out);
    if (in >= 0) close(in);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void CloseInput() {
    close(in);
    in = -1;
  }
  std::string ReadAll() const {
    std::string all;
    std::vector<char> buffer(65'536);
    for (ssize_t n = 0; (n = read(out, buffer.data(), buffer.size())) > 0;) {
      all.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return all;
  }

  int out = -1;
  int in = -1;
};

// A pipe in packet mode hands each write(2) to the reader as it was made.
TEST_F(LogTest, OneLineIsOneWrite) {
  Pipe pipe(O_DIRECT);
  FdLogSink sink(pipe.in);
  Logger logger(clock_, sink);
  logger.Info("first", {{"a", 1}, {"b", "two words"}});
  logger.Info("second");
  std::array<char, 4096> buffer;
  const ssize_t first = read(pipe.out, buffer.data(), buffer.size());
  EXPECT_EQ(std::string_view(buffer.data(), static_cast<std::size_t>(first)),
            "2026-01-02T03:04:05.000000Z INFO first a=1 b=\"two words\"\n");
  const ssize_t second = read(pipe.out, buffer.data(), buffer.size());
  EXPECT_EQ(std::string_view(buffer.data(), static_cast<std::size_t>(second)),
            "2026-01-02T03:04:05.000000Z INFO second\n");
}

// Many threads write lines, most of them longer than the pipe takes at once; `flags` belong to the
// writing end. Every line must arrive whole, and each thread's in its order.
void ExpectWholeLines(Clock& clock, int flags) {
  constexpr int kThreads = 8;
  Pipe pipe(flags);
  ASSERT_GE(fcntl(pipe.in, F_SETPIPE_SZ, 4096), 4096);
  if ((flags & O_NONBLOCK) != 0) {
    ASSERT_EQ(fcntl(pipe.out, F_SETFL, 0), 0);  // pipe2 sets the flag on both ends
  }
  FdLogSink sink(pipe.in);
  Logger logger(clock, sink, {.text_bytes_max = 100'000});
  std::string all;
  std::thread reader([&] { all = pipe.ReadAll(); });
  std::vector<std::thread> writers;
  writers.reserve(kThreads);
  for (int id = 0; id < kThreads; ++id) {
    writers.emplace_back([&logger, id] {
      for (int i = 0; i < kLinesPerThread; ++i) {
        const std::string fill(static_cast<std::size_t>(i * 371 % 9'000),
                               static_cast<char>('a' + id));
        logger.Info("line", {{"id", id}, {"i", i}, {"fill", fill}});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  pipe.CloseInput();
  reader.join();

  std::map<int, int> next;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    int id = -1;
    int i = -1;
    ASSERT_EQ(
        std::sscanf(line.c_str(), "2026-01-02T03:04:05.000000Z INFO line id=%d i=%d", &id, &i), 2)
        << line;
    ASSERT_EQ(i, next[id]++);
    const auto size = static_cast<std::size_t>(i * 371 % 9'000);
    const std::string fill = size == 0 ? "\"\"" : std::string(size, static_cast<char>('a' + id));
    ASSERT_TRUE(line.ends_with(" fill=" + fill)) << line;
  }
  ASSERT_EQ(next.size(), std::size_t{kThreads});
  for (const auto& [id, count] : next) EXPECT_EQ(count, kLinesPerThread) << id;
}

TEST_F(LogTest, LinesOfManyThreadsComeWholeThroughAPipe) { ExpectWholeLines(clock_, 0); }

TEST_F(LogTest, LinesComeWholeThroughANonBlockingPipeToo) { ExpectWholeLines(clock_, O_NONBLOCK); }

TEST_F(LogTest, ASinkThatCannotWriteLosesTheLineAndNothingElse) {
  FdLogSink closed(-1);
  Logger logger(clock_, closed);
  logger.Info("lost");
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  FdLogSink no_space(full);
  Logger other(clock_, no_space);
  other.Info("lost");
  close(full);
}

}  // namespace
}  // namespace interlock
