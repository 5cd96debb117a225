// reduce() against a naive reference: every type, length, alignment and instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "collectors/tensors/number_formats.h"
#include "collectors/tensors/reduce.h"
#include "tests/unit/collectors/naive.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using naive::expect_row;
using naive::on_every_target;

template <typename T>
std::vector<T> normal(std::size_t n, double mean, double deviation, unsigned seed = 7) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution(mean, deviation);
  std::vector<T> out(n);
  for (T& x : out) x = static_cast<T>(distribution(generator));
  return out;
}

template <typename T>
void check(Dtype dtype, const std::vector<T>& x, double tolerance, const std::string& where) {
  expect_row(reduce(dtype, x.data(), x.size()), naive::row(dtype, naive::widened(x)), tolerance,
             where + " n=" + std::to_string(x.size()));
}

TEST(Reduce, MatchesTheVectorOfTheWire) {
  const float x[] = {1, -2, 0, 3};
  on_every_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    const core::SummaryRow row = reduce(Dtype::f32, x, 4);
    EXPECT_EQ(row.count, 4U);
    EXPECT_EQ(row.sum, 2);
    EXPECT_EQ(row.sumsq, 14);
    EXPECT_EQ(row.m2, 13);
    EXPECT_EQ(row.abs_sum, 6);
    EXPECT_EQ(row.min, -2);
    EXPECT_EQ(row.max, 3);
    EXPECT_EQ(row.nan + row.posinf + row.neginf, 0U);
    EXPECT_EQ(row.zero, 1U);
    EXPECT_EQ(row.negative, 1U);
    EXPECT_EQ(row.meta, 1U);
  });
}

TEST(Reduce, AgreesWithTheReferenceAtEveryLength) {
  std::vector<std::size_t> lengths;
  for (std::size_t n = 1; n <= 70; ++n) lengths.push_back(n);
  for (const std::size_t blocks : {1U, 2U, 5U}) {
    for (const std::size_t off : {0U, 1U, 2U, 33U}) {
      lengths.push_back(blocks * 4096 - off);
      lengths.push_back(blocks * 4096 + off);
    }
  }
  const auto base = normal<double>(5 * 4096 + 33, 0.01, 0.3);
  on_every_target([&](const std::string& target) {
    for (const std::size_t n : lengths) {
      const std::vector<double> x(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(n));
      check(Dtype::f32, naive::as<float>(x), 1e-6, target + " f32");
      check(Dtype::f64, x, 1e-13, target + " f64");
      std::vector<double> scaled = x;
      for (double& v : scaled) v *= 100;
      check(Dtype::i8, naive::as<std::int8_t>(scaled), 1e-13, target + " i8");
      check(Dtype::i16, naive::as<std::int16_t>(scaled), 1e-6, target + " i16");
      check(Dtype::i32, naive::as<std::int32_t>(scaled), 1e-13, target + " i32");
      check(Dtype::i64, naive::as<std::int64_t>(scaled), 1e-13, target + " i64");
      for (double& v : scaled) v = std::fabs(v);
      check(Dtype::u8, naive::as<std::uint8_t>(scaled), 1e-13, target + " u8");
      check(Dtype::u16, naive::as<std::uint16_t>(scaled), 1e-6, target + " u16");
      check(Dtype::u32, naive::as<std::uint32_t>(scaled), 1e-13, target + " u32");
      check(Dtype::u64, naive::as<std::uint64_t>(scaled), 1e-13, target + " u64");
    }
  });
}

TEST(Reduce, DoesNotCareWhereTheDataStands) {
  const auto x = normal<float>(4200, 0.5, 2);
  const core::SummaryRow want = naive::row(Dtype::f32, naive::widened(x));
  on_every_target([&](const std::string& target) {
    std::vector<std::byte> buffer(x.size() * sizeof(float) + 64);
    for (std::size_t offset = 0; offset < 20; ++offset) {
      std::memcpy(buffer.data() + offset, x.data(), x.size() * sizeof(float));
      expect_row(reduce(Dtype::f32, buffer.data() + offset, x.size()), want, 1e-6,
                 target + " at offset " + std::to_string(offset));
    }
  });
}

// All patterns of the 16-bit formats, and of the 8-bit ones, in slices that mix ordinary numbers
// with denormals, infinities and NaN.
TEST(Reduce, ReadsEveryPatternOfTheSmallFormats) {
  std::vector<std::uint16_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  on_every_target([&](const std::string& target) {
    for (std::size_t at = 0; at < words.size(); at += 256) {
      std::vector<double> half(256);
      std::vector<double> brain(256);
      for (std::size_t i = 0; i < 256; ++i) {
        half[i] = static_cast<double>(from_f16(words[at + i]));
        brain[i] = static_cast<double>(from_bf16(words[at + i]));
      }
      const std::string where = target + " from " + std::to_string(at);
      expect_row(reduce(Dtype::f16, &words[at], 256), naive::row(Dtype::f16, half), 2e-6, where);
      expect_row(reduce(Dtype::bf16, &words[at], 256), naive::row(Dtype::bf16, brain), 2e-6, where);
    }
  });
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  for (std::size_t at = 0; at < 256; at += 8) {
    std::vector<double> e4m3(8);
    std::vector<double> e5m2(8);
    for (std::size_t i = 0; i < 8; ++i) {
      e4m3[i] = static_cast<double>(from_f8_e4m3(bytes[at + i]));
      e5m2[i] = static_cast<double>(from_f8_e5m2(bytes[at + i]));
    }
    expect_row(reduce(Dtype::f8_e4m3, &bytes[at], 8), naive::row(Dtype::f8_e4m3, e4m3), 1e-13, "");
    expect_row(reduce(Dtype::f8_e5m2, &bytes[at], 8), naive::row(Dtype::f8_e5m2, e5m2), 1e-13, "");
  }
}

// Values from the format definitions, not from our own decoder.
TEST(NumberFormats, DecodeTheirLandmarks) {
  EXPECT_EQ(from_f16(0x3C00), 1.0F);
  EXPECT_EQ(from_f16(0x7BFF), 65504.0F);
  EXPECT_EQ(from_f16(0x0001), std::ldexp(1.0F, -24));
  EXPECT_EQ(from_f16(0xFC00), -INFINITY);
  EXPECT_TRUE(std::isnan(from_f16(0x7E00)));
  EXPECT_EQ(from_bf16(0x4049), 3.140625F);
  EXPECT_EQ(from_f8_e4m3(0x7E), 448.0F);
  EXPECT_EQ(from_f8_e4m3(0x01), std::ldexp(1.0F, -9));
  EXPECT_TRUE(std::isnan(from_f8_e4m3(0xFF)));
  EXPECT_EQ(from_f8_e5m2(0x7B), 57344.0F);
  EXPECT_EQ(from_f8_e5m2(0x7C), INFINITY);
  EXPECT_EQ(from_f8_e5m2(0x01), std::ldexp(1.0F, -16));
  EXPECT_TRUE(std::isnan(from_f8_e5m2(0x7D)));
}

TEST(Reduce, CountsABooleanAsOneWhateverItsByte) {
  const std::uint8_t x[] = {0, 1, 255, 0, 2};
  const core::SummaryRow row = reduce(Dtype::boolean, x, 5);
  EXPECT_EQ(row.sum, 3);
  EXPECT_EQ(row.zero, 2U);
  EXPECT_EQ(row.max, 1);
}

TEST(Reduce, SumsSmallIntegersExactly) {
  std::vector<std::int32_t> x(10000);
  std::int64_t sum = 0;
  std::int64_t squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<std::int32_t>((i * 7919) % 1000) - 300;
    sum += x[i];
    squares += std::int64_t{x[i]} * x[i];
  }
  const core::SummaryRow row = reduce(Dtype::i32, x.data(), x.size());
  EXPECT_EQ(row.sum, static_cast<double>(sum));
  EXPECT_EQ(row.sumsq, static_cast<double>(squares));
}

// Whatever the bits, whatever the length: NaN of every payload, denormals, the whole range.
template <typename T>
void agrees_on_any_bits(Dtype dtype, double tolerance) {
  std::mt19937_64 generator(20260102);
  for (int round = 0; round < 300; ++round) {
    std::vector<T> x(1 + generator() % 150);
    for (T& element : x) {
      std::uint64_t bits = generator();
      if constexpr (sizeof(T) == 4) bits >>= 32;
      std::memcpy(&element, &bits, sizeof(T));
      // Most rounds without the one NaN in 256 that would hide everything else.
      if (round % 4 != 0 && element != element) element = T{1};
    }
    check(dtype, x, tolerance, "round " + std::to_string(round));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Reduce, AgreesOnAnyBits) {
  on_every_target([](const std::string& target) {
    SCOPED_TRACE(target);
    agrees_on_any_bits<float>(Dtype::f32, 1e-5);
    agrees_on_any_bits<double>(Dtype::f64, 1e-12);
    agrees_on_any_bits<std::int32_t>(Dtype::i32, 1e-12);
  });
}

}  // namespace
}  // namespace tocsin::collectors
