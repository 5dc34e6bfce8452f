#include "kernel/secrets.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

namespace interlock::kernel {
namespace {

std::string X(std::size_t count) { return std::string(count, 'x'); }

TEST(SecretsTest, EveryShapeIsFoundFromItsShortestLengthOn) {
  struct Case {
    std::string prefix;
    std::size_t length;
  };
  std::vector<Case> cases = {{"AKIA", 16}};
  for (const std::string prefix : {"sk", "pk", "rk", "ak"}) {
    cases.push_back({prefix + "-", 20});
    cases.push_back({prefix + "_", 20});
  }
  for (const std::string prefix : {"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}) {
    cases.push_back({prefix, 30});
  }
  for (const std::string prefix : {"xoxb-", "xoxp-", "xoxr-", "xoxa-", "xoxs-"}) {
    cases.push_back({prefix, 20});
  }
  for (const Case& c : cases) {
    EXPECT_TRUE(FindSecret(c.prefix + X(c.length))) << c.prefix;
    EXPECT_TRUE(FindSecret(c.prefix + X(c.length + 50))) << c.prefix;
    EXPECT_TRUE(FindSecret("see " + c.prefix + X(c.length) + ".")) << c.prefix;
    EXPECT_FALSE(FindSecret(c.prefix + X(c.length - 1))) << c.prefix;
    EXPECT_FALSE(FindSecret(c.prefix + X(c.length - 1) + " " + X(9))) << c.prefix;
    EXPECT_FALSE(FindSecret("a" + c.prefix + X(c.length))) << "inside a word: " << c.prefix;
    std::string upper = c.prefix + X(c.length);
    for (char& ch : upper) ch = static_cast<char>(std::toupper(ch));
    EXPECT_TRUE(FindSecret(upper)) << upper;
  }
  EXPECT_TRUE(FindSecret("xoxb-123456789012-123456789012-abc"));
}

TEST(SecretsTest, WebTokensNeedTwoLongPartsWithTheirDots) {
  const std::string head = "eyJ" + X(17);
  EXPECT_TRUE(FindSecret(head + "." + X(20) + "."));
  EXPECT_TRUE(FindSecret("Bearer " + head + "_-." + X(20) + ".sig"));
  EXPECT_TRUE(FindSecret("eyJ.eyJ-" + head + "." + X(20) + "."));
  EXPECT_FALSE(FindSecret(head + "." + X(20)));
  EXPECT_FALSE(FindSecret(head + "." + X(19) + "."));
  EXPECT_FALSE(FindSecret("eyJ" + X(16) + "." + X(20) + "."));
  EXPECT_FALSE(FindSecret("x" + head + "." + X(20) + "."));
}

TEST(SecretsTest, PrivateKeysAreKnownByTheirHeader) {
  EXPECT_TRUE(FindSecret("-----BEGIN PRIVATE KEY-----\nMII"));
  EXPECT_TRUE(FindSecret("text -----BEGIN RSA PRIVATE KEY-----"));
  EXPECT_TRUE(FindSecret("-----BEGIN OPENSSH PRIVATE KEY-----"));
  EXPECT_TRUE(FindSecret("------begin ec private key-----"));
  EXPECT_TRUE(FindSecret("-----BEGIN PGP PRIVATE KEY BLOCK-----"));
  EXPECT_FALSE(FindSecret("-----BEGIN PUBLIC KEY-----\nthe private key is elsewhere"));
  EXPECT_FALSE(FindSecret("-----BEGIN CERTIFICATE-----"));
  EXPECT_FALSE(FindSecret("a private key"));
}

TEST(SecretsTest, NamesOfSecretsWithAValueAreFoundAnywhere) {
  for (const std::string name : {"password", "passwd", "secret", "token", "api_key", "apikey",
                                 "api-key", "access_key", "private_key", "PassWord"}) {
    EXPECT_TRUE(FindSecret(name + "=12345678")) << name;
    EXPECT_TRUE(FindSecret("my" + name + ":12345678 ")) << name;
    EXPECT_TRUE(FindSecret(name + " =\t12345678")) << name;
    EXPECT_FALSE(FindSecret(name + "=1234567")) << name;
    EXPECT_FALSE(FindSecret(name + "=1234567 8")) << name;
    EXPECT_FALSE(FindSecret(name + "=1234567\n8")) << name;
    EXPECT_FALSE(FindSecret(name + "\n=12345678")) << name;
    EXPECT_FALSE(FindSecret(name + "s=12345678")) << name;
    EXPECT_FALSE(FindSecret(name)) << name;
    EXPECT_FALSE(FindSecret(name + "=")) << name;
  }
}

TEST(SecretsTest, OrdinaryTextIsNone) {
  for (const std::string text :
       {"", "OPENAI_API_KEY", "sk-ab", "Use sk command to skip", "token_count", "-----",
        "task-01hv7q2w3e4r5t6y7u8i9o0p", "disk_0123456789012345678901234567890",
        "a hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "feature/sk-refactor-of-the-parser", "the secret is out", "eyJ", "akia"}) {
    EXPECT_EQ(FindSecret(text), std::nullopt) << text;
  }
}

std::string Repeated(const std::string& unit, std::size_t size) {
  std::string text;
  while (text.size() < size) text += unit;
  return text;
}

// Time of the processor, as the machine has other things to do. What starts over at every character
// takes minutes for one of these, instead of milliseconds.
TEST(SecretsTest, HostileTextTakesLinearTime) {
  constexpr std::size_t kSize = 300'000;
  std::vector<std::string> texts = {"token" + std::string(kSize, ' ')};
  for (const std::string unit :
       {"eyJ-", "-eyJ", "token ", "sk-", "-----BEGIN ", "xoxb ", "AKIA-"}) {
    texts.push_back(Repeated(unit, kSize));
  }
  for (const std::string& text : texts) {
    const std::clock_t begin = std::clock();
    EXPECT_EQ(FindSecret(text), std::nullopt);
    const auto took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(took, 3.0) << text.substr(0, 20);
  }
}

}  // namespace
}  // namespace interlock::kernel
