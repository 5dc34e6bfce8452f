#include "http/request_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "testing/seeded_random.h"

namespace interlock::http {
namespace {

using Step = RequestReader::Step;

void Feed(RequestReader& reader, std::string_view bytes) {
  const std::span<char> room = reader.Prepare(bytes.size());
  std::memcpy(room.data(), bytes.data(), bytes.size());
  reader.Commit(bytes.size());
}

// What came out of `bytes`, given to the reader in pieces of `piece` bytes: one line per request,
// and the error that ended it.
std::vector<std::string> ReadAll(std::string_view bytes, std::size_t piece,
                                 const Limits& limits = {}) {
  RequestReader reader(limits);
  std::vector<std::string> seen;
  while (true) {
    const auto step = reader.Advance();
    if (!step.ok()) {
      seen.push_back(std::to_string(step.error().http_status()));
      return seen;
    }
    if (*step == Step::kNeedMore) {
      if (bytes.empty()) return seen;
      Feed(reader, bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      continue;
    }
    if (*step == Step::kHeaderDone) continue;
    const auto [request, persistence] = reader.Take();
    std::string line(MethodName(request.method));
    line.append(" ").append(request.target).append(" ").append(request.body);
    if (persistence == Persistence::kClose) line += " close";
    if (persistence == Persistence::kKeepOpenAndSaySo) line += " keep";
    seen.push_back(line);
  }
}

std::vector<std::string> ReadAll(std::string_view bytes) {
  const auto whole = ReadAll(bytes, bytes.size());
  for (const std::size_t piece : {1, 2, 3, 7, 64}) {
    EXPECT_EQ(ReadAll(bytes, piece), whole) << "in pieces of " << piece << ": " << bytes;
  }
  return whole;
}

using Lines = std::vector<std::string>;

// Without the refusal at the end: which error damaged bytes meet, and when, may depend on the cut.
Lines Requests(Lines seen) {
  if (!seen.empty() && seen.back().starts_with('4')) seen.pop_back();
  return seen;
}

TEST(RequestReaderTest, RequestsComeOutTheSameHoweverTheBytesAreCut) {
  EXPECT_EQ(ReadAll("GET /health HTTP/1.1\r\nHost: a\r\n\r\n"), Lines{"GET /health "});
  EXPECT_EQ(ReadAll("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
            Lines{"POST /x hello"});
  EXPECT_EQ(ReadAll("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3;ext=1\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"),
            Lines{"POST /x abcdefg"});
}

TEST(RequestReaderTest, PipelinedRequestsComeOutOneByOne) {
  EXPECT_EQ(ReadAll("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
                    "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
                    "\r\nPUT /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                    "BREW /4 HTTP/1.1\r\nHost: a\r\n\r\n"),
            (Lines{"GET /1 ", "POST /2 hi", "PUT /3 ", " /4 "}));
}

TEST(RequestReaderTest, PersistenceFollowsVersionAndConnectionField) {
  EXPECT_EQ(ReadAll("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            Lines{"GET /  close"});
  EXPECT_EQ(ReadAll("GET / HTTP/1.0\r\n\r\n"), Lines{"GET /  close"});
  EXPECT_EQ(ReadAll("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), Lines{"GET /  keep"});
}

TEST(RequestReaderTest, WhatTwoReadersCouldUnderstandDifferentlyIsRefused) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  for (const std::string& bytes : {
           post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
           post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
           post + "Content-Length: 3, 4\r\n\r\nabcd",
           post + "Content-Length: -1\r\n\r\n",
           post + "Content-Length: 0x3\r\n\r\nabc",
           post + "Content-Length: 99999999999999999999\r\n\r\n",
           post + "Content-Length:\r\n\r\n",
           post + "Content-Length:\r\n 3\r\n\r\nabc",
           post + "X: a\r\n\tContent-Length: 3\r\n\r\nabc",
           post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
           std::string("POST / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n"),
           post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: identity\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
           post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
           post + "Host: b\r\n\r\n",
           std::string("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\n\r\n"),
           std::string("GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
           std::string("GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
           std::string("GET /\r\n\r\n"),
           std::string("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nHost: a\r\nx: a\0b\r\n\r\n", 35),
           std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),
           std::string("\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
       }) {
    EXPECT_EQ(ReadAll(bytes), Lines{"400"}) << bytes;
  }
}

// The parser takes fields as they come: the folded one may be gone when the last one is there.
TEST(RequestReaderTest, AFoldedLineIsRefusedWhereverTheBytesAreCut) {
  for (const std::string_view bytes : {
           "GET /api/agents HTTP/1.1\r\nHost: a\r\n  \r\nX: a value of some length\r\n\r\n",
           "GET /api/agents HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\nY: a value of some "
           "length\r\n\r\n",
           "GET /api/agents HTTP/1.1\r\n Host: b\r\nHost: a\r\nX: a value of some length\r\n\r\n",
       }) {
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
      EXPECT_EQ(ReadAll(bytes, piece), Lines{"400"}) << "in pieces of " << piece << ": " << bytes;
    }
  }
}

TEST(RequestReaderTest, BareLineFeedsNeverMakeARequest) {
  const std::string bytes = "GET / HTTP/1.1\nHost: a\n\n";
  EXPECT_EQ(ReadAll(bytes, bytes.size()), Lines{"400"});
  for (const std::size_t piece : {1, 5, 20}) {
    EXPECT_EQ(Requests(ReadAll(bytes, piece)), Lines{}) << piece;
  }
}

TEST(RequestReaderTest, EqualContentLengthsAreOneLength) {
  EXPECT_EQ(
      ReadAll("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi"),
      Lines{"POST / hi"});
}

TEST(RequestReaderTest, TheHeaderLimitHoldsForTheWholeHeaderToTheByte) {
  Limits limits;
  limits.header_bytes_max = 256;
  const auto header_of = [](std::size_t size, std::size_t target) {
    std::string text = "GET /" + std::string(target, 'a') + " HTTP/1.1\r\nHost: a\r\nx: ";
    return text + std::string(size - text.size() - 4, 'b') + "\r\n\r\n";
  };
  for (const std::size_t piece : {1, 50, 5000}) {
    for (const std::size_t target : {1, 150}) {
      EXPECT_EQ(ReadAll(header_of(256, target), piece, limits).size(), 1U);
      EXPECT_NE(ReadAll(header_of(256, target), piece, limits), Lines{"431"});
      EXPECT_EQ(ReadAll(header_of(257, target), piece, limits), Lines{"431"});
    }
    EXPECT_EQ(ReadAll("GET /" + std::string(5000, 'a'), piece, limits), Lines{"431"});
    EXPECT_EQ(ReadAll("GET / HTTP/1.1\r\nHost: a\r\nx: " + std::string(5000, 'a'), piece, limits),
              Lines{"431"});
  }
}

TEST(RequestReaderTest, TheBodyLimitHoldsForDeclaredAndForChunkedBodies) {
  Limits limits;
  limits.body_bytes_max = 10;
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t piece : {1, 50}) {
    EXPECT_EQ(ReadAll(post + "Content-Length: 10\r\n\r\n0123456789", piece, limits),
              Lines{"POST / 0123456789"});
    EXPECT_EQ(ReadAll(post + "Content-Length: 11\r\n\r\n", piece, limits), Lines{"413"});
    EXPECT_EQ(ReadAll(chunked + "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", piece, limits),
              Lines{"POST / 0123456789"});
    EXPECT_EQ(ReadAll(chunked + "5\r\n01234\r\n6\r\n567890", piece, limits), Lines{"413"});
    EXPECT_EQ(ReadAll(chunked + "FFFFFFFFFFFFFFF\r\n", piece, limits), Lines{"413"});
  }
}

TEST(RequestReaderTest, EndlessChunkLinesAndTrailersAreCutOff) {
  const std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(ReadAll(chunked + "1;" + std::string(100'000, 'x'), 1000), Lines{"431"});
  EXPECT_EQ(ReadAll(chunked + "0\r\nx: " + std::string(100'000, 'x'), 1000), Lines{"431"});
}

TEST(RequestReaderTest, FieldsAfterAChunkedBodyDoNotBecomeHeaders) {
  RequestReader reader(Limits{});
  Feed(reader,
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "0\r\nAuthorization: Bearer x\r\nHost: evil\r\n\r\n");
  EXPECT_EQ(*reader.Advance(), Step::kHeaderDone);
  EXPECT_EQ(*reader.Advance(), Step::kDone);
  const Request request = reader.Take().request;
  EXPECT_EQ(request.headers.Find("authorization"), std::nullopt);
  EXPECT_EQ(request.headers.Count("host"), 1U);
  EXPECT_TRUE(reader.idle());
}

TEST(RequestReaderTest, AClientThatWaitsForContinueIsSeen) {
  const std::string head =
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-Continue";
  RequestReader reader(Limits{});
  EXPECT_TRUE(reader.idle());
  Feed(reader, head + "\r\n\r\n");
  EXPECT_FALSE(reader.idle());
  EXPECT_EQ(*reader.Advance(), Step::kHeaderDone);
  EXPECT_TRUE(reader.expects_continue());
  EXPECT_EQ(*reader.Advance(), Step::kNeedMore);
  EXPECT_FALSE(reader.idle());
  Feed(reader, "hi");
  EXPECT_EQ(*reader.Advance(), Step::kDone);
  EXPECT_EQ(reader.Take().request.body, "hi");

  RequestReader impatient(Limits{});
  Feed(impatient, head + "\r\n\r\nh");
  EXPECT_EQ(*impatient.Advance(), Step::kHeaderDone);
  EXPECT_FALSE(impatient.expects_continue());
}

TEST(RequestReaderTest, DamagedBytesGiveTheSameRequestsHoweverTheyAreCut) {
  const std::string seed_text =
      "POST /a?b=c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;x=\"y\"\r\nabc\r\n1\r\nd\r\n0\r\nt: u\r\n\r\n"
      "GET /health HTTP/1.1\r\nHost: b\r\nConnection: keep-alive, x\r\n\r\n"
      "PUT / HTTP/1.0\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nxyz";
  constexpr std::string_view kSpice = "\r\n :;,0aF\"\t%\0x-1";
  std::mt19937_64 engine(testing::TestSeed());
  const auto below = [&](std::size_t limit) { return engine() % limit; };
  Limits limits;
  limits.header_bytes_max = 200;
  limits.body_bytes_max = 5;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kRounds = 2'000;
#else
  constexpr int kRounds = 20'000;
#endif
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = seed_text;
    for (std::size_t damage = below(4); damage > 0; --damage) {
      const std::size_t at = below(bytes.size());
      const char spice = kSpice[below(kSpice.size())];
      switch (below(3)) {
        case 0:
          bytes[at] = spice;
          break;
        case 1:
          bytes.insert(at, 1, spice);
          break;
        default:
          bytes.erase(at, 1 + below(3));
      }
    }
    const Lines whole = Requests(ReadAll(bytes, bytes.size(), limits));
    const std::size_t piece = 1 + below(9);
    ASSERT_EQ(Requests(ReadAll(bytes, piece, limits)), whole)
        << "in pieces of " << piece << ": " << bytes;
  }
}

}  // namespace
}  // namespace interlock::http
