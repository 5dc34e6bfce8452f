#include "auth/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace interlock::auth {
namespace {

// The examples of FIPS 180-2, appendix B, and the empty text.
TEST(Sha256Test, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(DigestText(Sha256("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(DigestText(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(DigestText(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(DigestText(Sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, TakesTheWholeTextIncludingNul) {
  EXPECT_NE(Sha256(std::string_view("a\0b", 3)), Sha256(std::string_view("a\0c", 3)));
  EXPECT_NE(Sha256(std::string_view("a\0", 2)), Sha256("a"));
}

TEST(Sha256Test, ADigestIsReadBackInEitherCase) {
  const Digest digest = Sha256("abc");
  std::string text = DigestText(digest);
  EXPECT_EQ(ParseDigest(text), digest);
  for (char& c : text) {
    if (c >= 'a') c = static_cast<char>(c - 'a' + 'A');
  }
  EXPECT_EQ(ParseDigest(text), digest);
}

TEST(Sha256Test, WhatIsNotSixtyFourDigitsIsNoDigest) {
  const std::string good = DigestText(Sha256("abc"));
  EXPECT_FALSE(ParseDigest(""));
  EXPECT_FALSE(ParseDigest(good.substr(1)));
  EXPECT_FALSE(ParseDigest(good + "0"));
  EXPECT_FALSE(ParseDigest(" " + good.substr(1)));
  for (const char bad : {'g', 'G', '/', ':', '@', '`', '\0', 'x', '-'}) {
    for (const std::size_t at : {0, 31, 63}) {
      std::string text = good;
      text[at] = bad;
      EXPECT_FALSE(ParseDigest(text)) << text;
    }
  }
}

TEST(Sha256Test, DigestsAreTheSameOnlyInEveryByte) {
  const Digest digest = Sha256("abc");
  EXPECT_TRUE(SameDigest(digest, Sha256("abc")));
  for (std::size_t i = 0; i < digest.size(); ++i) {
    Digest other = digest;
    other[i] ^= 1;
    EXPECT_FALSE(SameDigest(digest, other)) << i;
  }
}

}  // namespace
}  // namespace interlock::auth
