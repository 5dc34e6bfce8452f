#include "init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "auth/keys_file.h"
#include "testing/fake_clock.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class InitTest : public ::testing::Test {
 protected:
  std::filesystem::path File() const { return directory_.path() / "keys of mine.yaml"; }
  Done RunFor(const std::string& project) {
    return Init({.project = project, .keys_file = File()}, random_, clock_);
  }
  static std::string KeyIn(const std::string& text) {
    const std::size_t begin = text.find("\nkey: ") + 6;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  testing::TempDir directory_;
  testing::SeededRandom random_;
  testing::FakeClock clock_;
};

TEST_F(InitTest, SaysTheKeyWhereItIsAndHowToUseIt) {
  const Done done = RunFor("web");
  EXPECT_EQ(done.exit_code, 0);
  const std::string key = KeyIn(done.text);
  EXPECT_EQ(auth::LoadKeys(File())->keyring.Find(key), "web");
  EXPECT_THAT(done.text, AllOf(StartsWith("project: web\n"), HasSubstr(File().string()),
                               HasSubstr("export INTERMUTE_API_KEY=" + key + "\n"),
                               HasSubstr("Authorization: Bearer " + key + "\n"),
                               HasSubstr("INTERMUTE_KEYS_FILE='" + File().string() + "'")));
}

TEST_F(InitTest, EachCallAddsAKey) {
  const std::string first = KeyIn(RunFor("web").text);
  const std::string second = KeyIn(RunFor("web").text);
  const std::string third = KeyIn(RunFor("dev").text);
  const auth::Keyring keyring = auth::LoadKeys(File())->keyring;
  EXPECT_EQ(keyring.Find(first), "web");
  EXPECT_EQ(keyring.Find(second), "web");
  EXPECT_EQ(keyring.Find(third), "dev");
  EXPECT_EQ(keyring.key_count(), 3U);
}

TEST_F(InitTest, FailsWithoutAKeyWhenTheFileIsBroken) {
  std::ofstream(File()) << "projects: [";
  const Done done = RunFor("web");
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.text, AllOf(StartsWith("intermute: the keys file "), HasSubstr("line"),
                               Not(HasSubstr("Bearer"))));
}

}  // namespace
}  // namespace interlock::app
