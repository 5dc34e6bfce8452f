#include "serve_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace interlock::app {
namespace {

using std::chrono::milliseconds;

std::variant<ServeOptions, Done> Parse(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv = {"intermute"};
  argv.insert(argv.end(), arguments);
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

ServeOptions Serve(std::initializer_list<const char*> arguments) {
  auto parsed = Parse(arguments);
  const auto* done = std::get_if<Done>(&parsed);
  EXPECT_EQ(done, nullptr) << (done != nullptr ? done->text : "");
  return done == nullptr ? std::get<ServeOptions>(parsed) : ServeOptions{};
}

TEST(ServeOptionsTest, DefaultsAreLocalAndSafe) {
  const ServeOptions options = Serve({"serve"});
  EXPECT_EQ(options.host, "127.0.0.1");
  EXPECT_EQ(options.port, 7338);
  EXPECT_EQ(options.database, "intermute.db");
  EXPECT_TRUE(options.socket.empty());
  EXPECT_EQ(options.durability, sqlite::Durability::kFull);
  EXPECT_EQ(options.log_format, LogFormat::kText);
  EXPECT_EQ(options.log_level, LogLevel::kInfo);
  EXPECT_EQ(options.network_fs, ServeOptions::NetworkFs::kRefuse);
  EXPECT_EQ(options.limits.body_bytes_max, 1024U * 1024U);
  EXPECT_EQ(options.limits.header_bytes_max, 16U * 1024U);
  EXPECT_EQ(options.limits.drain_timeout, std::chrono::seconds(5));
}

TEST(ServeOptionsTest, FlagsTakeTheirValueWithASpaceOrAnEqualsSign) {
  const ServeOptions spaced =
      Serve({"serve", "--host", "::1", "--port", "0", "--db", "x.db", "--socket", "s",
             "--durability", "fast", "--log-format", "json", "--log-level", "debug",
             "--idle-timeout", "1m30s", "--max-connections", "7"});
  const ServeOptions joined =
      Serve({"serve", "--host=::1", "--port=0", "--db=x.db", "--socket=s", "--durability=fast",
             "--log-format=json", "--log-level=debug", "--idle-timeout=90s", "--max-connections=7",
             "--allow-network-fs"});
  for (const ServeOptions& options : {spaced, joined}) {
    EXPECT_EQ(options.host, "::1");
    EXPECT_EQ(options.port, 0);
    EXPECT_EQ(options.database, "x.db");
    EXPECT_EQ(options.socket, "s");
    EXPECT_EQ(options.durability, sqlite::Durability::kFast);
    EXPECT_EQ(options.log_format, LogFormat::kJson);
    EXPECT_EQ(options.log_level, LogLevel::kDebug);
    EXPECT_EQ(options.limits.idle_timeout, milliseconds(90'000));
    EXPECT_EQ(options.limits.connections_max, 7U);
  }
  EXPECT_EQ(joined.network_fs, ServeOptions::NetworkFs::kAllow);
}

TEST(ServeOptionsTest, OfARepeatedFlagTheLastOneCounts) {
  const ServeOptions options =
      Serve({"serve", "--port=1", "--port", "2", "--durability=fast", "--durability=full"});
  EXPECT_EQ(options.port, 2);
  EXPECT_EQ(options.durability, sqlite::Durability::kFull);
}

TEST(ServeOptionsTest, HelpNamesEveryDefault) {
  const auto parsed = Parse({"serve", "--help"});
  const Done& done = std::get<Done>(parsed);
  EXPECT_EQ(done.exit_code, 0);
  for (const char* text : {"127.0.0.1", "7338", "intermute.db", "full|fast", "text|json", "5s",
                           "10s", "30s", "1m", "1024", "Examples:"}) {
    EXPECT_THAT(done.text, ::testing::HasSubstr(text));
  }
}

}  // namespace
}  // namespace interlock::app
