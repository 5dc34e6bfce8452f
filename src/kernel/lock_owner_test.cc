#include "kernel/lock_owner.h"

#include <gtest/gtest.h>

namespace interlock::kernel {
namespace {

const HostProcess kSelf = {.pid = 12, .host = "here.example.org"};

// Scripts compare and cut these bytes.
TEST(LockOwnerTest, TheTextIsCompactAndInThisOrder) {
  LockOwner owner{.pid = 4711,
                  .host = "build7",
                  .owner = "4711:build7",
                  .created = 1'767'323'045,
                  .start = 88211};
  EXPECT_EQ(LockOwnerText(owner),
            R"({"pid":4711,"host":"build7","owner":"4711:build7","created":1767323045,)"
            R"("start":88211})");
  owner.start.reset();
  EXPECT_EQ(LockOwnerText(owner),
            R"({"pid":4711,"host":"build7","owner":"4711:build7","created":1767323045})");
}

TEST(LockOwnerTest, WhatIsWrittenIsReadAgain) {
  const LockOwner owner{.pid = 1, .host = "h", .owner = R"("a"\)", .created = 0, .start = 0};
  EXPECT_EQ(*ParseLockOwner(LockOwnerText(owner)), owner);
}

TEST(LockOwnerTest, WhatScriptsWriteIsRead) {
  const auto owner = ParseLockOwner(
      "{ \"created\": 5, \"owner\": \"o\", \"host\": \"\", \"pid\": 3, \"more\": [1], "
      "\"start\": null }\n");
  ASSERT_TRUE(owner.ok()) << owner.error();
  EXPECT_EQ(*owner, (LockOwner{.pid = 3, .host = "", .owner = "o", .created = 5}));
}

TEST(LockOwnerTest, WhatMakesNoSenseIsCorrupt) {
  for (const std::string_view text :
       {"", "{", "[]", "null", R"({"pid":1})", R"({"pid":"1","host":"h","owner":"o","created":1})",
        R"({"pid":0,"host":"h","owner":"o","created":1})",
        R"({"pid":-5,"host":"h","owner":"o","created":1})",
        R"({"pid":1,"host":"h","owner":"o","created":-1})",
        R"({"pid":1,"host":"h","owner":"o","created":9000000000000000000})",
        R"({"pid":1,"host":"h","owner":"o","created":1} x)"}) {
    const auto owner = ParseLockOwner(text);
    ASSERT_FALSE(owner.ok()) << text;
    EXPECT_EQ(owner.error().code(), Errc::kCorrupt) << text;
  }
}

TEST(LockOwnerTest, AnOwnersNameNamesItsProcess) {
  struct Case {
    std::string_view owner;
    std::int64_t pid;
    std::string_view host;
  };
  for (const Case& one : {
           Case{"4711:build7", 4711, "build7"},
           {"4711", 4711, kSelf.host},
           {"4711:", 4711, kSelf.host},
           {"4711:a:b", 4711, "a:b"},
           {"alice", 12, kSelf.host},
           {"agent:blue", 12, kSelf.host},
           {"", 12, kSelf.host},
           {"0:h", 12, kSelf.host},
           {"-3:h", 12, kSelf.host},
           {"4711x:h", 12, kSelf.host},
           {"99999999999:h", 12, kSelf.host},
       }) {
    const HostProcess holder = ProcessOfOwner(one.owner, kSelf);
    EXPECT_EQ(holder.pid, one.pid) << one.owner;
    EXPECT_EQ(holder.host, one.host) << one.owner;
  }
}

TEST(LockOwnerTest, HostsAreComparedUpToTheFirstDot) {
  EXPECT_TRUE(IsSameHost("build7", "build7.example.org"));
  EXPECT_TRUE(IsSameHost("build7.a", "build7.b"));
  EXPECT_TRUE(IsSameHost("", ""));
  EXPECT_FALSE(IsSameHost("build7", "build70"));
  EXPECT_FALSE(IsSameHost("build7", ""));
}

}  // namespace
}  // namespace interlock::kernel
