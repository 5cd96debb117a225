// Streams that zlib reads, and streams that zlib has written: files made before have these.
#include "insights/series/deflated_bytes.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::insights {
namespace {

// Of any size up to a block of the pyramid and beyond what one stored block of deflate holds; from noise to one byte again and again.
std::vector<std::string> samples() {
  std::vector<std::string> out;
  std::mt19937_64 chance(7);
  for (const std::size_t size : {0U, 1U, 8U, 63U, 64U, 4096U, 4104U, 65'535U, 65'536U, 300'000U}) {
    for (const unsigned letters : {1U, 2U, 200U, 256U}) {
      std::string one(size, '\0');
      for (char& byte : one) byte = static_cast<char>(chance() % letters);
      out.push_back(std::move(one));
    }
  }
  return out;
}

std::string by_zlib(const std::string& bytes, int level) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), level),
            Z_OK);
  out.resize(size);
  return out;
}

std::string read_by_zlib(const std::string& stream, std::size_t size) {
  std::string out(size + 1, '\0');
  auto got = static_cast<uLongf>(out.size());
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(out.data()), &got,
                       reinterpret_cast<const Bytef*>(stream.data()), stream.size()),
            Z_OK);
  out.resize(got);
  return out;
}

bool reads_as(const std::string& stream, const std::string& bytes) {
  std::string out(bytes.size(), '\xEE');
  return inflate_to(stream, out.data(), out.size()) && out == bytes;
}

TEST(DeflatedBytes, ComeBackAndAreAppended) {
  for (const std::string& bytes : samples()) {
    std::string out = "before";
    append_deflated(bytes, out);
    ASSERT_TRUE(out.starts_with("before"));
    const std::string stream = out.substr(6);
    EXPECT_TRUE(reads_as(stream, bytes)) << bytes.size();
    EXPECT_EQ(read_by_zlib(stream, bytes.size()), bytes) << bytes.size();
    EXPECT_LE(stream.size(), bytes.size() + 64 + bytes.size() / 1000) << "noise grows by a little";
  }
}

TEST(DeflatedBytes, WhatZlibHasWrittenIsRead) {
  for (const std::string& bytes : samples()) {
    for (const int level : {0, 1, 6, 9})
      EXPECT_TRUE(reads_as(by_zlib(bytes, level), bytes)) << bytes.size() << " at " << level;
  }
}

TEST(DeflatedBytes, WhatIsNoneOfThisSizeOrDamagedIsRefused) {
  std::string bytes;
  for (int at = 0; at < 4096; ++at) bytes += static_cast<char>(at * at % 251);
  std::string stream;
  append_deflated(bytes, stream);
  std::string out(bytes.size() + 8, '\0');
  EXPECT_TRUE(inflate_to(stream, out.data(), bytes.size()));
  EXPECT_FALSE(inflate_to(stream, out.data(), bytes.size() - 1));
  EXPECT_FALSE(inflate_to(stream, out.data(), bytes.size() + 1));
  EXPECT_FALSE(inflate_to("", out.data(), bytes.size()));
  EXPECT_FALSE(inflate_to("no stream at all", out.data(), bytes.size()));
  for (std::size_t kept = 0; kept < stream.size(); kept += 7)
    EXPECT_FALSE(inflate_to(std::string_view(stream).substr(0, kept), out.data(), bytes.size()));
  // Its checksum tells one bit from another, whichever of its bytes is hit.
  for (std::size_t at = 2; at < stream.size(); at += 11) {
    std::string bad = stream;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(reads_as(bad, bytes) || inflate_to(bad, out.data(), bytes.size())) << at;
  }
}

}  // namespace
}  // namespace tocsin::insights
