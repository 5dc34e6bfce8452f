#include "auth/keyring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "auth/yaml.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::auth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Keyring Read(std::string_view yaml) {
  auto keyring = Keyring::Parse(yaml);
  EXPECT_TRUE(keyring.ok()) << keyring.error();
  return keyring.ok() ? *std::move(keyring) : Keyring();
}

std::string Refusal(std::string_view yaml) {
  const auto keyring = Keyring::Parse(yaml);
  EXPECT_FALSE(keyring.ok()) << yaml.substr(0, 200);
  return keyring.ok() ? "" : keyring.error().message();
}

std::string HashOf(std::string_view key) { return "sha256:" + DigestText(Sha256(key)); }

TEST(KeyringTest, AKeyOpensItsProjectOnly) {
  const Keyring keyring = Read(
      "default_policy:\n  allow_localhost_without_auth: true\n"
      "projects:\n  dev:\n    keys: [alpha, beta]\n  web:\n    keys:\n      - gamma\n");
  EXPECT_EQ(keyring.Find("alpha"), "dev");
  EXPECT_EQ(keyring.Find("beta"), "dev");
  EXPECT_EQ(keyring.Find("gamma"), "web");
  for (const char* other : {"", "alph", "alphaa", "ALPHA", " alpha", "delta", "dev"}) {
    EXPECT_EQ(keyring.Find(other), std::nullopt) << other;
  }
  EXPECT_EQ(keyring.key_count(), 3U);
  EXPECT_EQ(keyring.project_count(), 2U);
  EXPECT_EQ(keyring.local_policy(), LocalPolicy::kNoKeyNeeded);
}

TEST(KeyringTest, EmptyFilesHaveNoKeysAndLeaveThisMachineOpen) {
  for (const char* text :
       {"", "\n", "# nothing\n", "---\n", "{}", "projects:\n", "projects: {}\n",
        "projects:\n  dev:\n", "projects:\n  dev: {}\n", "projects:\n  dev:\n    keys:\n",
        "default_policy: {}\n", "projects:\n  dev:\n    keys: []\n", "~"}) {
    const Keyring keyring = Read(text);
    EXPECT_EQ(keyring.key_count(), 0U) << text;
    EXPECT_EQ(keyring.project_count(), 0U) << text;
    EXPECT_EQ(keyring.local_policy(), LocalPolicy::kNoKeyNeeded) << text;
    EXPECT_EQ(keyring.Find(""), std::nullopt);
  }
}

TEST(KeyringTest, ASlashAtTheEndMakesNoOtherProject) {
  const Keyring keyring =
      *Keyring::Parse("projects: {web: {keys: [alpha]}, web/: {keys: [beta, alpha]}}");
  EXPECT_EQ(keyring.Find("alpha"), "web");
  EXPECT_EQ(keyring.Find("beta"), "web");
  EXPECT_EQ(keyring.project_count(), 1U);
}

TEST(KeyringTest, KeysAreTrimmedAndBlankOnesSkipped) {
  const Keyring keyring =
      Read("projects:\n  ' dev ':\n    keys: ['  alpha\t', '', '   ', ~, null, \"\\n\"]\n");
  EXPECT_EQ(keyring.key_count(), 1U);
  EXPECT_EQ(keyring.Find("alpha"), "dev");
  EXPECT_EQ(keyring.Find(""), std::nullopt);
  EXPECT_EQ(keyring.Find(" "), std::nullopt);
}

TEST(KeyringTest, WhatYamlTakesForNumbersAndWordsIsAKeyLikeAnyOther) {
  const Keyring keyring = Read("projects:\n  7:\n    keys: [0123, true, 1.50, 0x10]\n");
  for (const char* key : {"0123", "true", "1.50", "0x10"}) EXPECT_EQ(keyring.Find(key), "7") << key;
  EXPECT_EQ(keyring.Find("123"), std::nullopt);
}

TEST(KeyringTest, AHashedKeyIsFoundByTheKeyAndNotByItsHash) {
  std::string upper = DigestText(Sha256("beta"));
  for (char& c : upper) c = static_cast<char>(c >= 'a' ? c - 'a' + 'A' : c);
  const Keyring keyring = Read("projects:\n  dev:\n    keys:\n      - " + HashOf("alpha") +
                               "\n      - sha256:" + upper + "\n");
  EXPECT_EQ(keyring.Find("alpha"), "dev");
  EXPECT_EQ(keyring.Find("beta"), "dev");
  EXPECT_EQ(keyring.Find(HashOf("alpha")), std::nullopt);
  EXPECT_EQ(keyring.Find(DigestText(Sha256("alpha"))), std::nullopt);
}

TEST(KeyringTest, AHashThatIsNoneIsRefusedInsteadOfBecomingAKey) {
  for (const std::string& hash :
       {std::string("sha256:"), std::string("sha256:abc"), HashOf("a") + "0",
        HashOf("a").substr(0, 70), "sha256: " + DigestText(Sha256("a")).substr(1),
        "sha256:" + std::string(64, 'g')}) {
    EXPECT_THAT(Refusal("projects:\n  dev:\n    keys:\n      - \"" + hash + "\"\n"),
                AllOf(HasSubstr("line 4"), HasSubstr("64 hexadecimal digits")))
        << hash;
  }
}

TEST(KeyringTest, TheSameKeyTwiceInAProjectCountsOnce) {
  const Keyring keyring =
      Read("projects:\n  dev:\n    keys: [alpha, ' alpha ', " + HashOf("alpha") + "]\n");
  EXPECT_EQ(keyring.key_count(), 1U);
  EXPECT_EQ(keyring.Find("alpha"), "dev");
}

TEST(KeyringTest, AKeyUnderTwoProjectsIsRefusedWithoutShowingIt) {
  const std::string clear = "the-secret-one";
  const std::string hash = HashOf(clear);
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {clear, clear}, {clear, hash}, {hash, clear}, {hash, hash}}) {
    std::string text = "projects:\n  dev:\n    keys: [x, ";
    text.append(a).append("]\n  web:\n    keys:\n      - y\n      - ' ").append(b).append(" '\n");
    const std::string refusal = Refusal(text);
    EXPECT_THAT(refusal, AllOf(HasSubstr("line 7"), HasSubstr("line 3 has the same key"),
                               Not(HasSubstr(clear)), Not(HasSubstr(hash.substr(7)))));
  }
}

TEST(KeyringTest, TheWordsForYesAndNoAreThoseOfYaml) {
  const auto policy = [](const std::string& word) {
    return Read("default_policy:\n  allow_localhost_without_auth: " + word + "\n").local_policy();
  };
  for (const char* yes : {"true", "True", "TRUE", "yes", "on", "y"}) {
    EXPECT_EQ(policy(yes), LocalPolicy::kNoKeyNeeded) << yes;
  }
  for (const char* no : {"false", "False", "FALSE", "no", "off", "n"}) {
    EXPECT_EQ(policy(no), LocalPolicy::kKeyNeeded) << no;
  }
}

TEST(KeyringTest, UnknownFieldsAreIgnoredExceptWhereAMistakeWouldLeaveADoorOpen) {
  const Keyring keyring =
      Read("version: 3\nprojects:\n  dev:\n    owner: me\n    keys: [alpha]\nnotes: [a, b]\n");
  EXPECT_EQ(keyring.Find("alpha"), "dev");
  EXPECT_THAT(Refusal("default_policy:\n  allow_localhost_without_auht: false\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("allow_localhost_without_auth")));
}

TEST(KeyringTest, WhatIsNotAKeysFileIsRefusedWithTheLine) {
  const struct {
    std::string text;
    std::string says;
  } kCases[] = {
      {"hello", "line 1"},
      {"- a\n- b\n", "line 1"},
      {"projects: [a]\n", "line 1"},
      {"projects: dev\n", "line 1"},
      {"\nprojects:\n  dev: alpha\n", "line 3"},
      {"projects:\n  dev: [alpha]\n", "line 2"},
      {"projects:\n  dev: {keys: [\xFF]}\n", "line 2"},
      {"projects:\n  dev:\n    keys: alpha\n", "line 3"},
      {"projects:\n  dev:\n    keys: {a: b}\n", "line 3"},
      {"projects:\n  dev:\n    keys:\n      - [a]\n", "line 4"},
      {"projects:\n  dev:\n    keys:\n      - a: b\n", "line 4"},
      {"projects:\n  '  ':\n    keys: [a]\n", "line 2"},
      {"projects:\n  ? [a]\n  : {keys: [b]}\n", "line 2"},
      {"projects:\n  dev: {keys: [a]}\n  dev: {keys: [b]}\n", "line 3"},
      {"projects:\n  dev: {keys: [a]}\n  'dev ': {keys: [b]}\n", "line 3"},
      {"projects: {}\nprojects: {}\n", "line 2"},
      {"projects:\n  dev:\n    keys: [a]\n    keys: [b]\n", "line 4"},
      {"default_policy: true\n", "line 1"},
      {"default_policy: [true]\n", "line 1"},
      {"default_policy:\n  allow_localhost_without_auth: maybe\n", "line 2"},
      {"default_policy:\n  allow_localhost_without_auth:\n", "must be true or false"},
      {"default_policy:\n  allow_localhost_without_auth: ~\n", "must be true or false"},
      {"default_policy:\n", "must be a mapping"},
      {"default_policy:\n  allow_localhost_without_auth: [true]\n", "line 2"},
      {"default_policy:\n  allow_localhost_without_auth: true\n"
       "  allow_localhost_without_auth: false\n",
       "line 3"},
      {"projects:\n  dev:\n    keys: [a\n", "line 4"},
      {"projects:\n\tdev:\n", "line 2"},
      {"projects:\n  dev:\n    keys: ['a\n", "line"},
      {"a: b: c\n", "line 1"},
      {"projects: {}\n---\nprojects: {}\n", "line 2"},
      {"projects:\n  dev:\n    keys: [!!binary aGk=, \"\\q\"]\n", "line 3"},
  };
  for (const auto& c : kCases) EXPECT_THAT(Refusal(c.text), HasSubstr(c.says)) << c.text;
}

// A line that yaml-cpp refuses may hold a key.
TEST(KeyringTest, NoRefusalShowsTheTextOfTheFile) {
  for (const char* text :
       {"projects:\n  dev:\n    keys: [*sesame]\n", "projects:\n  dev:\n    keys: [sesame\n",
        "projects:\n  dev:\n    keys: sesame\n", "projects:\n  dev:\n    keys: [[sesame]]\n",
        "projects:\n  dev:\n    keys: [{sesame: sesame}]\n", "sesame", "sesame: sesame: sesame",
        "projects:\n  dev:\n    {sesame: 1, sesame: 2}\n", "projects:\n  dev:\n    @sesame\n",
        "projects:\n  dev:\n    keys: ['sha256:sesame']\n"}) {
    EXPECT_THAT(Refusal(text), Not(HasSubstr("sesame"))) << text;
  }
}

TEST(KeyringTest, AliasesAreRefusedBeforeTheyCanMultiply) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    const std::string before = "*" + std::string(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) bomb += before + (i < 9 ? ", " : "]\n");
  }
  EXPECT_THAT(Refusal(bomb), AllOf(HasSubstr("line 2"), HasSubstr("aliases")));
  EXPECT_THAT(Refusal("projects: &p\n  dev: *p\n"), HasSubstr("aliases"));
  EXPECT_EQ(Read("projects:\n  dev: &d\n    keys: [a]\n").Find("a"), "dev");
}

TEST(KeyringTest, DeepAndHugeTextsAreRefused) {
  for (const char* open : {"[", "{a: ", "- ", "? ", "!!a ", "&a ", "? - "}) {
    std::string text;
    while (text.size() < 200'000) text += open;
    EXPECT_FALSE(Keyring::Parse(text).ok()) << open;
  }
  EXPECT_THAT(Refusal(std::string(kKeysFileBytesMax + 1, ' ')), HasSubstr("1048576 bytes"));
  EXPECT_TRUE(Keyring::Parse(std::string(kKeysFileBytesMax, ' ')).ok());
}

TEST(KeyringTest, MoreKeysThanARequestShouldBeComparedWithAreRefused) {
  std::string text = "projects:\n  dev:\n    keys:\n";
  for (int i = 0; i < 4096; ++i) text += "      - key" + std::to_string(i) + "\n";
  EXPECT_EQ(Read(text).key_count(), 4096U);
  EXPECT_EQ(Read(text).Find("key4095"), "dev");
  EXPECT_THAT(Refusal(text + "      - onemore\n"),
              AllOf(HasSubstr("line 4100"), HasSubstr("4096")));
}

// yaml-cpp takes some control characters for the end: the rest of the file would be lost.
TEST(KeyringTest, BinaryTextIsRefusedInsteadOfBeingCut) {
  const std::string head = "projects:\n  dev:\n    keys: [alpha]\n";
  for (const char c : {'\0', '\x04', '\x1a', '\x1b', '\x07'}) {
    EXPECT_THAT(Refusal(head + c + "  web:\n    keys: [beta]\n"), HasSubstr("line 4"));
  }
  EXPECT_THAT(Refusal(head + "# \xFF\xFE\n"), HasSubstr("UTF-8"));
  EXPECT_EQ(Read("projects:\r\n  dev:\r\n    keys: [alpha]\r\n").Find("alpha"), "dev");
}

// Bytes changed, lost, doubled and moved: whatever is left is read or refused, and no refusal shows
// a key.
TEST(KeyringTest, NoDamageToAFileBringsTheReaderDown) {
  const std::string whole =
      "# keys\ndefault_policy:\n  allow_localhost_without_auth: true\nprojects:\n  dev:\n    "
      "keys:\n"
      "      - sesame-one\n      - \"sesame\\ttwo\"\n      - 'sesame three'\n  web: {keys: [" +
      HashOf("sesame") + ", |\n  ? &a !!str x : *a\n]}\n";
  constexpr std::string_view kOdd = "\n\t :-?[]{},#&*!|>'\"%@`\\~0\r\x7f\xc3\xa9";
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < (testing::kSlowBuild ? 2'000 : 20'000); ++i) {
    std::string text = whole;
    for (std::size_t change = 1 + testing::Below(random, 6); change > 0 && !text.empty();
         --change) {
      const std::size_t at = testing::Below(random, text.size());
      const char odd = kOdd[testing::Below(random, kOdd.size())];
      switch (testing::Below(random, 5)) {
        case 0:
          text[at] = odd;
          break;
        case 1:
          text.insert(at, 1, odd);
          break;
        case 2:
          text.erase(at, 1 + testing::Below(random, 8));
          break;
        case 3:
          text.insert(at, text.substr(testing::Below(random, text.size()), 12));
          break;
        default:
          text.resize(at);
          break;
      }
    }
    const auto keyring = Keyring::Parse(text);
    const std::string said = keyring.ok() ? "" : keyring.error().message();
    ASSERT_THAT(said, Not(HasSubstr("sesame"))) << text;
  }
}

}  // namespace
}  // namespace interlock::auth
