#include "app/serve/byte_range.h"

#include <gtest/gtest.h>

#include <string>

namespace tocsin::app {
namespace {

std::string range(std::string_view header, std::uint64_t size = 100) {
  ByteRange out;
  switch (asked_range(header, size, out)) {
    case RangeAsked::beyond:
      return "beyond";
    case RangeAsked::whole:
      return out == ByteRange{0, size} ? "whole" : "wrong";
    case RangeAsked::part:
      break;
  }
  return std::to_string(out.begin) + ".." + std::to_string(out.end);
}

TEST(ByteRange, IsAPartFromAPlaceOnOrTheLastBytes) {
  EXPECT_EQ(range("bytes=0-0"), "0..1");
  EXPECT_EQ(range("bytes=10-19"), "10..20");
  EXPECT_EQ(range("bytes=10-"), "10..100");
  EXPECT_EQ(range("bytes=-10"), "90..100");
  EXPECT_EQ(range("bytes=-1000"), "0..100");
  EXPECT_EQ(range("bytes=99-1000"), "99..100");
  EXPECT_EQ(range("bytes=0-18446744073709551615"), "0..100");
}

TEST(ByteRange, NothingOfItIsThere) {
  EXPECT_EQ(range("bytes=100-"), "beyond");
  EXPECT_EQ(range("bytes=100-200"), "beyond");
  EXPECT_EQ(range("bytes=-0"), "beyond");
  EXPECT_EQ(range("bytes=0-", 0), "beyond");
}

TEST(ByteRange, WhatIsNoRangeAndSeveralAskForTheWhole) {
  for (const char* header :
       {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5", "bytes=9-5", "bytes=0-1,5-6",
        "lines=0-5", "bytes= 0-5", "bytes=0-5x", "bytes=99999999999999999999-", "bytes=1--2"})
    EXPECT_EQ(range(header), "whole") << header;
}

}  // namespace
}  // namespace tocsin::app
