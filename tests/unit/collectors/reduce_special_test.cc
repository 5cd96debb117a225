// reduce() where numbers get difficult: infinities, ranges, cancellation, the caller's environment.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "collectors/tensors/number_formats.h"
#include "collectors/tensors/reduce.h"
#include "tests/unit/collectors/naive.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tocsin::collectors {
namespace {

using core::Dtype;
using naive::expect_row;
using naive::on_every_target;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> ramp(std::size_t n, float step) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = step * static_cast<float>(i % 97) - step * 40;
  return x;
}

void check(const std::vector<float>& x, double tolerance, const std::string& where) {
  expect_row(reduce(Dtype::f32, x.data(), x.size()), naive::row(Dtype::f32, naive::widened(x)),
             tolerance, where);
}

// The table of non-finite input, with the odd value in the vector part, the tail, a later block.
TEST(ReduceSpecial, NonFiniteInputPropagates) {
  on_every_target([](const std::string& target) {
    for (const std::size_t n : {1U, 5U, 40U, 4096U, 9000U}) {
      for (const std::vector<float>& odd : std::vector<std::vector<float>>{
               {kNan}, {-kNan}, {kInf}, {-kInf}, {kInf, -kInf}, {kNan, kInf}, {kNan, -kInf}}) {
        for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
          std::vector<float> x = ramp(n, 0.25F);
          for (std::size_t i = 0; i < odd.size(); ++i) x[(at + i) % n] = odd[i];
          check(x, 1e-6, target + " n=" + std::to_string(n) + " at " + std::to_string(at));
        }
      }
    }
  });
}

TEST(ReduceSpecial, InfinityGivesAnInfiniteSumAndNoVariance) {
  const float x[] = {1, kInf, 2};
  const core::SummaryRow row = reduce(Dtype::f32, x, 3);
  EXPECT_EQ(row.sum, kInf);
  EXPECT_EQ(row.abs_sum, kInf);
  EXPECT_EQ(row.sumsq, kInf);
  EXPECT_TRUE(std::isnan(row.m2));
  EXPECT_EQ(row.min, 1);
  EXPECT_EQ(row.max, kInf);
  EXPECT_EQ(row.posinf, 1U);
}

TEST(ReduceSpecial, AllNaNIsAllNaN) {
  const std::vector<float> x(5000, kNan);
  on_every_target([&](const std::string& target) { check(x, 0, target); });
}

TEST(ReduceSpecial, MinusZeroIsZeroAndMinusInfinityIsNegative) {
  const float x[] = {-0.0F, 0.0F, -kInf, kNan, -1.0F};
  on_every_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    const core::SummaryRow row = reduce(Dtype::f32, x, 5);
    EXPECT_EQ(row.zero, 2U);
    EXPECT_EQ(row.negative, 2U);
    EXPECT_EQ(row.neginf, 1U);
    EXPECT_EQ(row.nan, 1U);
    EXPECT_EQ(row.positive(), 0U);
  });
}

TEST(ReduceSpecial, KeepsTheVarianceOfASmallSpreadAroundALargeMean) {
  std::mt19937 generator(3);
  std::normal_distribution<float> noise(0, 0.6F);
  for (const float mean : {1000.0F, -1000.0F, 5e4F, 1e6F}) {
    std::vector<float> x(100000);
    for (float& v : x) v = mean + noise(generator);
    on_every_target([&](const std::string& target) {
      check(x, 1e-6, target + " mean " + std::to_string(mean));
    });
  }
}

TEST(ReduceSpecial, FollowsAMeanThatWanders) {
  std::vector<float> rising(50000);
  std::vector<float> jumping(50000);
  for (std::size_t i = 0; i < rising.size(); ++i) {
    rising[i] = static_cast<float>(i);
    jumping[i] = (i / 4096 % 2 == 0 ? 1e-3F : 1e5F) * (1 + static_cast<float>(i % 7) * 1e-3F);
  }
  on_every_target([&](const std::string& target) {
    check(rising, 1e-6, target + " rising");
    check(jumping, 1e-6, target + " jumping");
  });
}

TEST(ReduceSpecial, AConstantHasNoVariance) {
  for (const float value : {0.1F, 1e-30F, 3e38F, -7e-42F, 16777217.0F}) {
    for (const std::size_t n : {1U, 3U, 64U, 4097U, 20000U}) {
      const std::vector<float> x(n, value);
      on_every_target([&](const std::string& target) {
        SCOPED_TRACE(target);
        const core::SummaryRow row = reduce(Dtype::f32, x.data(), n);
        EXPECT_EQ(row.m2, 0);
        EXPECT_EQ(row.min, static_cast<double>(value));
        EXPECT_NEAR(row.mean(), static_cast<double>(value), 1e-15 * std::fabs(value));
      });
    }
  }
}

TEST(ReduceSpecial, OneOutlierInTheSampleDoesNotSpoilTheRest) {
  std::vector<float> x(4096, 1e-3F);
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = -1e-3F;
  x[0] = 1e7F;  // the first element of the sample that the shift comes from
  on_every_target([&](const std::string& target) { check(x, 1e-6, target); });
}

// One block whose sample (every 257th element) sees nothing but the large column: around that
// sample Σ(x − shift)² is 255 times m2, and a single reading would carry its rounding over.
TEST(ReduceSpecial, ASampleThatSeesOnlyOneColumnIsNotBelieved) {
  std::mt19937 generator(13);
  std::normal_distribution<float> noise(0, 0.1F);
  std::vector<float> x(4096);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = noise(generator) + (i % 257 == 0 ? 1003.7F : 0);
  on_every_target([&](const std::string& target) {
    check(x, 1e-6, target);
    std::vector<float> tiny = x;
    for (float& v : tiny) v *= 1e-3F;
    check(tiny, 1e-6, target + " scaled");
  });
}

TEST(ReduceSpecial, SumsBeyondTheRangeOfBinary32) {
  on_every_target([](const std::string& target) {
    check(ramp(5000, 1e36F), 1e-6, target + " squares overflow");
    check(std::vector<float>(5000, 3e38F), 1e-6, target + " sums overflow");
    check(ramp(5000, 1e-24F), 1e-6, target + " squares vanish");
    check(ramp(5000, 1e-44F), 1e-6, target + " denormal");
    std::vector<float> mixed(5000, 1e-30F);
    mixed[17] = -2e-30F;
    check(mixed, 1e-6, target + " almost constant and tiny");
  });
}

TEST(ReduceSpecial, FiniteDoublesGiveAnInfiniteSumOnlyWhenItIsOne) {
  const double big = 1.5e308;
  const std::vector<double> x = {big, big, -big, -big, 1.0};
  on_every_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    const core::SummaryRow row = reduce(Dtype::f64, x.data(), x.size());
    EXPECT_EQ(row.non_finite(), 0U);
    EXPECT_FALSE(std::isnan(row.sum));
    EXPECT_LE(std::fabs(row.sum), 1e-6 * big);
    EXPECT_EQ(row.sumsq, std::numeric_limits<double>::infinity());
    EXPECT_EQ(row.m2, std::numeric_limits<double>::infinity());
  });
}

TEST(ReduceSpecial, IntegersBeyondBinary64AreFlagged) {
  const std::int64_t exact[] = {(std::int64_t{1} << 53) - 1, -(std::int64_t{1} << 53), 5};
  EXPECT_EQ(reduce(Dtype::i64, exact, 3).meta & core::meta::kApproximate, 0U);
  const std::int64_t rounded[] = {(std::int64_t{1} << 53) + 1, 1};
  const core::SummaryRow row = reduce(Dtype::i64, rounded, 2);
  EXPECT_NE(row.meta & core::meta::kApproximate, 0U);
  EXPECT_EQ(core::meta::dtype(row.meta), Dtype::i64);
  const std::uint64_t top[] = {~std::uint64_t{0}};
  EXPECT_NE(reduce(Dtype::u64, top, 1).meta & core::meta::kApproximate, 0U);
  EXPECT_EQ(reduce(Dtype::u64, top, 1).max, std::ldexp(1.0, 64));
  const std::int64_t least[] = {std::numeric_limits<std::int64_t>::min()};
  EXPECT_NE(reduce(Dtype::i64, least, 1).meta & core::meta::kApproximate, 0U);
  EXPECT_EQ(reduce(Dtype::i64, least, 1).min, -std::ldexp(1.0, 63));
}

TEST(ReduceSpecial, ComplexNumbersHaveOnlyMagnitudes) {
  const float x[] = {3, 4, 0, -0.0F, -5, 12, kNan, kInf, 0, -kInf};
  const core::SummaryRow finite = reduce(Dtype::c64, x, 3);
  EXPECT_EQ(finite.count, 3U);
  EXPECT_EQ(finite.abs_sum, 18);
  EXPECT_EQ(finite.sumsq, 25 + 169);
  EXPECT_EQ(finite.min, 0);
  EXPECT_EQ(finite.max, 13);
  EXPECT_EQ(finite.zero, 1U);
  EXPECT_EQ(finite.negative, 0U);
  EXPECT_TRUE(std::isnan(finite.sum));
  EXPECT_TRUE(std::isnan(finite.m2));
  const core::SummaryRow all = reduce(Dtype::c64, x, 5);
  EXPECT_EQ(all.nan, 1U);
  EXPECT_EQ(all.posinf, 1U);
  EXPECT_EQ(all.neginf, 0U);
  const double big[] = {3e200, 4e200};
  EXPECT_DOUBLE_EQ(reduce(Dtype::c128, big, 1).max, 5e200);
}

TEST(ReduceSpecial, NoElementsNoSums) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::u8, Dtype::i64, Dtype::c128}) {
    const core::SummaryRow row = reduce(dtype, nullptr, 0);
    EXPECT_EQ(row.count, 0U);
    EXPECT_EQ(row.sum, 0);
    EXPECT_EQ(row.min, 0);
    EXPECT_EQ(row.m2, 0);
    EXPECT_EQ(core::meta::dtype(row.meta), dtype);
  }
}

TEST(ReduceSpecial, TextHasACountAndNoStatistics) {
  const core::SummaryRow row = reduce(Dtype::text, "abc", 3);
  EXPECT_EQ(row.count, 3U);
  EXPECT_TRUE(std::isnan(row.sum));
  EXPECT_TRUE(std::isnan(row.max));
}

#if defined(__x86_64__)
// Frameworks set flush-to-zero and denormals-are-zero for a thread.
TEST(ReduceSpecial, ADenormalIsNoZeroEvenWhereTheCallerFlushesThem) {
  const unsigned before = _mm_getcsr();
  std::vector<float> x(100, 1e-40F);
  x[3] = 0;
  _mm_setcsr(0x9FC0);
  const core::SummaryRow row = reduce(Dtype::f32, x.data(), x.size());
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(row.zero, 1U);
  EXPECT_GT(row.max, 0);
  EXPECT_NEAR(row.sum, 99 * static_cast<double>(x[0]), 1e-46);
  EXPECT_EQ(after, 0x9FC0U);
}
#endif

// Of a value that the type has exactly; 0 for binary32.
std::uint16_t pattern_of(Dtype dtype, float value) {
  for (std::uint32_t bits = 0; bits < 0x10000 && dtype != Dtype::f32; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const float number = dtype == Dtype::f16 ? from_f16(pattern) : from_bf16(pattern);
    if (number == value && std::signbit(number) == std::signbit(value)) return pattern;
  }
  return 0;
}

// Patterns are compared, of halves, and packed, of binary32 around 0: each sign alone, zeros of both,
// the smallest numbers, at lengths that end in a vector and in its rest.
TEST(ReduceSpecial, SignsAndZerosAreTheNumbersNotThePatterns) {
  const float smallest[] = {std::numeric_limits<float>::denorm_min(), 0x1p-133F, 0x1p-24F};
  const Dtype types[] = {Dtype::f32, Dtype::bf16, Dtype::f16};
  on_every_target([&](const std::string& target) {
    for (std::size_t type = 0; type < 3; ++type) {
      const float tiny = smallest[type];
      const std::vector<float> mixes[] = {{0.F},        {-0.F},      {0.F, -0.F},
                                          {-0.F, -1.F}, {0.F, 1.F},  {1.F, 2.F},
                                          {-2.F, -1.F}, {-0.F, 1.F}, {tiny, -tiny},
                                          {-tiny},      {tiny, 0.F}, {-3.F, -0.F, 0.F, 5.F, tiny}};
      for (std::size_t mix = 0; mix < std::size(mixes); ++mix) {
        std::vector<std::uint16_t> patterns;
        for (const float value : mixes[mix]) patterns.push_back(pattern_of(types[type], value));
        for (const std::size_t n : {1U, 16U, 31U, 64U, 100U, 4096U, 4096U + 65U}) {
          std::vector<float> x(n);
          std::vector<std::uint16_t> half(n);
          for (std::size_t i = 0; i < n; ++i) {
            x[i] = mixes[mix][i % mixes[mix].size()];
            half[i] = patterns[i % patterns.size()];
          }
          const void* data = type == 0 ? static_cast<const void*>(x.data()) : half.data();
          expect_row(reduce(types[type], data, n), naive::row(types[type], naive::widened(x)), 1e-6,
                     target + " type " + std::to_string(type) + " mix " + std::to_string(mix) +
                         " n " + std::to_string(n));
        }
      }
    }
  });
}

// Longer than what narrow counters hold, and than one part: every value, and the extremes alone.
TEST(ReduceSpecial, BytesAreExactAtAnyLength) {
  on_every_target([&](const std::string& target) {
    for (const std::size_t n :
         {std::size_t{1000}, std::size_t{255} * 64 + 17, std::size_t{2'100'003}}) {
      for (const int only : {256, -128, 127, 255, 0}) {
        std::vector<std::uint8_t> bytes(n);
        for (std::size_t i = 0; i < n; ++i) {
          bytes[i] = static_cast<std::uint8_t>(only == 256 ? i * 7 + i / 256 : only);
        }
        std::vector<double> small(n);
        std::vector<double> large(n);
        std::vector<double> truth(n);
        for (std::size_t i = 0; i < n; ++i) {
          small[i] = static_cast<std::int8_t>(bytes[i]);
          large[i] = bytes[i];
          truth[i] = bytes[i] != 0 ? 1 : 0;
        }
        const std::string where = target + " " + std::to_string(only) + " n " + std::to_string(n);
        expect_row(reduce(Dtype::i8, bytes.data(), n), naive::row(Dtype::i8, small), 1e-13,
                   where + " i8");
        expect_row(reduce(Dtype::u8, bytes.data(), n), naive::row(Dtype::u8, large), 1e-13,
                   where + " u8");
        expect_row(reduce(Dtype::boolean, bytes.data(), n), naive::row(Dtype::boolean, truth),
                   1e-13, where + " bool");
      }
    }
  });
}

}  // namespace
}  // namespace tocsin::collectors
