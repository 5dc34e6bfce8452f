#include "http/request_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/mutex.h"
#include "http/message.h"
#include "testing/on_threads.h"

namespace interlock::http {
namespace {

std::string IdOf(std::initializer_list<std::string> sent) {
  Headers headers;
  for (const std::string& id : sent) headers.Add("x-request-ID", id);
  return RequestIdOf(headers);
}

TEST(RequestIdTest, AClientsIdIsRepeatedIfItIsSafe) {
  const std::string longest(128, 'x');
  for (const std::string& id : {std::string("a"), std::string("A-z_0.9:~+/=@"), longest}) {
    EXPECT_EQ(IdOf({id}), id);
  }
  for (const std::string& id :
       {std::string(), longest + "x", std::string("a b"), std::string("a\tb"), std::string("a\"b"),
        std::string("<b>"), std::string("\x1b[31m"), std::string("é"), std::string("a\0b", 3)}) {
    EXPECT_EQ(IdOf({id}).size(), 15U) << id;
  }
  EXPECT_EQ(IdOf({"a", "b"}).size(), 15U) << "two contradict each other";
  EXPECT_EQ(IdOf({}).size(), 15U);
}

TEST(RequestIdTest, NoTwoNewIdsAreEqualAndAllAreSafe) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5'000;
  Mutex mutex;
  std::set<std::string> ids;
  testing::OnThreads(kThreads, [&](int) {
    for (int i = 0; i < kEach; ++i) {
      const std::string id = NewRequestId();
      EXPECT_EQ(IdOf({id}), id);
      const MutexLock lock(mutex);
      ids.insert(id);
    }
  });
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kThreads * kEach));
}

}  // namespace
}  // namespace interlock::http
