#include "store/message_row.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "json/parse.h"
#include "json/value.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::store {
namespace {

using testing::Below;

TEST(RecipientsTest, AreWrittenWithoutWhatIsEmpty) {
  EXPECT_EQ(RecipientsText({}), "{}");
  EXPECT_EQ(RecipientsText({.received = {.to = {"a", "b"}, .cc = {}, .bcc = {"c"}}}),
            R"({"to":["a","b"],"bcc":["c"]})");
  EXPECT_EQ(RecipientsText({.received = {.cc = {"a"}}, .denied = {.to = {"x"}, .bcc = {"y"}}}),
            R"({"cc":["a"],"denied":{"to":["x"],"bcc":["y"]}})");
  EXPECT_EQ(RecipientsText({.denied = {.cc = {"x"}}}), R"({"denied":{"cc":["x"]}})");
  EXPECT_EQ(RecipientsText({.received = {.to = {"1"}},
                            .resolution = {.known = {{"ann", "1", "ann"}, {"2", "2", "bob"}},
                                           .elsewhere = {{"zoe", "q"}},
                                           .from = "sue"}}),
            R"({"to":["1"],"known":["ann","1","ann","","2","bob"],)"
            R"("elsewhere":["zoe","q"],"from":["sue"]})");
}

// Any character at all, those that JSON writes differently more often than the rest.
std::string RandomAddress(std::mt19937_64& rng) {
  static constexpr std::size_t kPlaneSize = 0x10000;
  std::string text;
  const std::size_t length = Below(rng, 6);
  for (std::size_t i = 0; i < length; ++i) {
    auto c = static_cast<char32_t>(Below(rng, 0x80));
    if (Below(rng, 4) == 0) c = static_cast<char32_t>(Below(rng, 17 * kPlaneSize));
    if (Below(rng, 8) == 0) c = U"\"\\/\b\f\n\r\t"[Below(rng, 8)];
    if (c >= 0xD800 && c < 0xE000) c = U'\0';
    AppendUtf8(text, c);
  }
  return text;
}

domain::Addresses RandomAddresses(std::mt19937_64& rng) {
  domain::Addresses addresses;
  for (auto* list : {&addresses.to, &addresses.cc, &addresses.bcc}) {
    const std::size_t count = Below(rng, 3);
    for (std::size_t i = 0; i < count; ++i) list->push_back(RandomAddress(rng));
  }
  return addresses;
}

domain::Resolution RandomResolution(std::mt19937_64& rng) {
  domain::Resolution resolution;
  for (std::size_t i = Below(rng, 3); i > 0; --i) {
    // Neither a text nor an id of a message is empty.
    resolution.known.push_back(
        {RandomAddress(rng) + "t", RandomAddress(rng) + "i", RandomAddress(rng)});
  }
  for (std::size_t i = Below(rng, 3); i > 0; --i) {
    resolution.elsewhere.push_back({RandomAddress(rng), RandomAddress(rng)});
  }
  resolution.from = RandomAddress(rng);
  return resolution;
}

TEST(RecipientsTest, WhateverIsWrittenIsJsonAndReadsBackTheSame) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int i = 0; i < 3000; ++i) {
    const Recipients recipients = {RandomAddresses(rng), RandomAddresses(rng),
                                   RandomResolution(rng)};
    const std::string text = RecipientsText(recipients);
    ASSERT_EQ(ReadRecipients(text).value(), recipients) << text;
    const auto parsed = json::Parse(text);
    ASSERT_TRUE(parsed.ok()) << text;
    const auto* to = parsed->get_object().if_contains("to");
    ASSERT_EQ(to != nullptr, !recipients.received.to.empty());
    if (to != nullptr) {
      EXPECT_EQ(json::View(to->at(0).get_string()), recipients.received.to[0]);
    }
  }
}

TEST(RecipientsTest, EveryTextThatIsCutOrChangedIsRefused) {
  const std::string whole = RecipientsText(
      {.received = {.to = {"a\"", "\x01"}, .bcc = {"b"}},
       .denied = {.to = {"c"}, .cc = {"d"}},
       .resolution = {.known = {{"x", "y", "z"}}, .elsewhere = {{"e", "q"}}, .from = "f"}});
  ASSERT_TRUE(ReadRecipients(whole).ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = ReadRecipients(whole.substr(0, size));
    ASSERT_FALSE(cut.ok()) << whole.substr(0, size);
    EXPECT_EQ(cut.error().code(), Errc::kCorrupt);
  }
  for (const char* text : {"null", "[]", "{} ", R"({"to":"a"})", R"({"to":[]})", R"({"to":["a",]})",
                           R"({"to":["a"]},)", R"({"to":["a"],})", R"({"cc":["a"],"to":["b"]})",
                           R"({"to":["a"],"to":["b"]})", R"({"to":["\x"]})", R"({"to":["\u0080"]})",
                           R"({"to":["\u12"]})", R"({"denied":{})", R"({"denied":["a"]})",
                           R"({"to":["a"]"cc":["b"]})", R"({"other":["a"]})"}) {
    EXPECT_FALSE(ReadRecipients(text).ok()) << text;
  }
}

}  // namespace
}  // namespace interlock::store
