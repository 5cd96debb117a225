// delta(): what changed between two values of one tensor.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "collectors/tensors/number_formats.h"
#include "collectors/tensors/reduce.h"
#include "tests/unit/collectors/naive.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;

DeltaNorms reference(const std::vector<double>& now, const std::vector<double>& prev) {
  long double apart = 0;
  long double before = 0;
  double most = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const long double d = static_cast<long double>(now[i]) - prev[i];
    apart += d * d;
    before += static_cast<long double>(prev[i]) * prev[i];
    most = std::max(most, static_cast<double>(std::fabs(d)));
  }
  return {static_cast<double>(std::sqrt(apart)), static_cast<double>(std::sqrt(before)), most};
}

void expect_norms(const DeltaNorms& got, const DeltaNorms& want, double tolerance) {
  EXPECT_TRUE(naive::near(got.delta_l2, want.delta_l2, tolerance * want.delta_l2)) << got.delta_l2;
  EXPECT_TRUE(naive::near(got.prev_l2, want.prev_l2, tolerance * want.prev_l2)) << got.prev_l2;
  EXPECT_TRUE(naive::near(got.delta_max_abs, want.delta_max_abs, tolerance * want.delta_max_abs))
      << got.delta_max_abs;
}

template <typename T>
void check(Dtype dtype, std::size_t n, double scale, double step, double tolerance) {
  std::mt19937 generator(11);
  std::normal_distribution<double> normal;
  std::vector<T> now(n);
  std::vector<T> prev(n);
  for (std::size_t i = 0; i < n; ++i) {
    prev[i] = static_cast<T>(scale * std::fabs(normal(generator)));
    now[i] = static_cast<T>(static_cast<double>(prev[i]) + step * std::fabs(normal(generator)));
  }
  expect_norms(delta(dtype, now.data(), prev.data(), n),
               reference(naive::widened(now), naive::widened(prev)), tolerance);
}

TEST(Delta, AgreesWithTheReference) {
  naive::on_every_target([](const std::string& target) {
    for (const std::size_t n : {1U, 7U, 64U, 1023U, 1024U, 5000U}) {
      SCOPED_TRACE(target + " n=" + std::to_string(n));
      check<float>(Dtype::f32, n, 0.02, 1e-5, 1e-6);
      check<float>(Dtype::f32, n, 1e30, 1e25, 1e-6);
      check<float>(Dtype::f32, n, 1e-22, 1e-25, 1e-6);
      check<double>(Dtype::f64, n, 0.02, 1e-5, 1e-12);
      check<std::int8_t>(Dtype::i8, n, 20, 3, 1e-12);
      check<std::int32_t>(Dtype::i32, n, 1e6, 30, 1e-12);
      check<std::uint64_t>(Dtype::u64, n, 1e6, 30, 1e-12);
    }
  });
}

TEST(Delta, ReadsHalfPrecision) {
  std::vector<std::uint16_t> now(300);
  std::vector<std::uint16_t> prev(300);
  std::vector<double> half_now(300);
  std::vector<double> half_prev(300);
  std::vector<double> brain_now(300);
  std::vector<double> brain_prev(300);
  for (std::size_t i = 0; i < now.size(); ++i) {
    prev[i] = static_cast<std::uint16_t>(0x3C00 + 5 * i);
    now[i] = static_cast<std::uint16_t>(prev[i] + i % 5);
    half_now[i] = from_f16(now[i]);
    half_prev[i] = from_f16(prev[i]);
    brain_now[i] = from_bf16(now[i]);
    brain_prev[i] = from_bf16(prev[i]);
  }
  naive::on_every_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    expect_norms(delta(Dtype::f16, now.data(), prev.data(), 300), reference(half_now, half_prev),
                 1e-6);
    expect_norms(delta(Dtype::bf16, now.data(), prev.data(), 300), reference(brain_now, brain_prev),
                 1e-6);
  });
}

TEST(Delta, AnUnchangedTensorHasNone) {
  const std::vector<float> x(3000, 0.5F);
  const DeltaNorms norms = delta(Dtype::f32, x.data(), x.data(), x.size());
  EXPECT_EQ(norms.delta_l2, 0);
  EXPECT_EQ(norms.delta_max_abs, 0);
  EXPECT_NEAR(norms.prev_l2, std::sqrt(3000 * 0.25), 1e-4);
}

TEST(Delta, NotANumberSpreads) {
  for (const std::size_t at : {3U, 2990U}) {
    std::vector<float> now(3000, 1.0F);
    const std::vector<float> prev(3000, 0.5F);
    now[at] = std::numeric_limits<float>::quiet_NaN();
    naive::on_every_target([&](const std::string& target) {
      SCOPED_TRACE(target);
      const DeltaNorms norms = delta(Dtype::f32, now.data(), prev.data(), now.size());
      EXPECT_TRUE(std::isnan(norms.delta_l2));
      EXPECT_TRUE(std::isnan(norms.delta_max_abs));
      EXPECT_FALSE(std::isnan(norms.prev_l2));
    });
  }
}

TEST(Delta, NotANumberSpreadsInDoublePrecision) {
  std::vector<double> now(3000, 1.0);
  std::vector<double> prev(3000, 0.5);
  now[2] = std::numeric_limits<double>::quiet_NaN();
  prev[2500] = 4.0;
  const DeltaNorms norms = delta(Dtype::f64, now.data(), prev.data(), now.size());
  EXPECT_TRUE(std::isnan(norms.delta_l2));
  EXPECT_TRUE(std::isnan(norms.delta_max_abs));
  EXPECT_DOUBLE_EQ(norms.prev_l2, std::sqrt(2999 * 0.25 + 16));
}

TEST(Delta, InfinityIsInfinitelyFar) {
  std::vector<float> now(3000, 1.0F);
  const std::vector<float> prev(3000, 0.5F);
  now[700] = -std::numeric_limits<float>::infinity();
  const DeltaNorms norms = delta(Dtype::f32, now.data(), prev.data(), now.size());
  EXPECT_EQ(norms.delta_l2, std::numeric_limits<double>::infinity());
  EXPECT_EQ(norms.delta_max_abs, std::numeric_limits<double>::infinity());
}

TEST(Delta, ComplexNumbersMoveByTheirModulus) {
  const float now[] = {3, 4, 1, 1};
  const float prev[] = {0, 0, 1, 0};
  const DeltaNorms norms = delta(Dtype::c64, now, prev, 2);
  EXPECT_DOUBLE_EQ(norms.delta_max_abs, 5);
  EXPECT_DOUBLE_EQ(norms.delta_l2, std::sqrt(26.0));
  EXPECT_DOUBLE_EQ(norms.prev_l2, 1);
}

TEST(Delta, TakesAnyAlignment) {
  std::vector<std::byte> a(405);
  std::vector<std::byte> b(405);
  for (std::size_t i = 0; i < 100; ++i) {
    const float now = static_cast<float>(i) + 2;
    const auto prev = static_cast<float>(i);
    std::memcpy(a.data() + 1 + 4 * i, &now, 4);
    std::memcpy(b.data() + 3 + 4 * i, &prev, 4);
  }
  EXPECT_DOUBLE_EQ(delta(Dtype::f32, a.data() + 1, b.data() + 3, 100).delta_l2, 20);
}

TEST(Delta, NothingIsNowhere) {
  const DeltaNorms norms = delta(Dtype::f32, nullptr, nullptr, 0);
  EXPECT_EQ(norms.delta_l2, 0);
  EXPECT_EQ(norms.prev_l2, 0);
  EXPECT_TRUE(std::isnan(delta(Dtype::text, "a", "b", 1).delta_l2));
}

}  // namespace
}  // namespace tocsin::collectors
