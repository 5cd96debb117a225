// Views of memory: permuted, sliced, reversed, broadcast.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "collectors/tensors/reduce.h"
#include "tests/unit/collectors/naive.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using Dims = std::vector<std::int64_t>;

std::vector<float> numbers(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>((i * 37) % 101) - 30;
  return x;
}

// The elements of the view, by walking all indices.
std::vector<double> elements(const float* data, const Dims& shape, const Dims& strides) {
  std::vector<double> out;
  Dims index(shape.size(), 0);
  std::int64_t total = 1;
  for (const std::int64_t extent : shape) total *= extent;
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t at = 0;
    for (std::size_t k = 0; k < shape.size(); ++k) at += index[k] * strides[k];
    out.push_back(static_cast<double>(data[at]));
    for (std::size_t k = shape.size(); k-- > 0;) {
      if (++index[k] < shape[k]) break;
      index[k] = 0;
    }
  }
  return out;
}

void check(const float* data, const Dims& shape, const Dims& strides, const std::string& where) {
  naive::expect_row(reduce_strided(Dtype::f32, data, shape, strides),
                    naive::row(Dtype::f32, elements(data, shape, strides)), 1e-6, where);
}

TEST(ReduceStrided, SeesExactlyTheElementsOfTheView) {
  const std::vector<float> x = numbers(60 * 70 * 8);
  const float* p = x.data();
  check(p, {60, 70, 8}, {560, 8, 1}, "contiguous");
  check(p, {8, 70, 60}, {1, 8, 560}, "permuted");
  check(p, {60, 70}, {560, 8}, "one of eight channels");
  check(p, {60, 35, 3}, {560, 16, 1}, "short runs");
  check(p + 4, {60, 2, 4}, {560, 280, 1}, "columns");
  check(p + 559, {60, 560}, {560, -1}, "rows backwards");
  check(p + 59 * 560, {60, 500}, {-560, 1}, "rows from the last");
  check(p, {5, 60, 4, 3}, {0, 560, 1, 0}, "broadcast");
  check(p, {1, 1}, {99, 7}, "one element");
  check(p, {}, {}, "a scalar");
  check(p, {7, 7}, {0, 0}, "one element, 49 times");
  check(p, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 3, 9, 27, 81, 243, 729, 2187}, "eight dimensions");
  check(p, {3, 4096}, {4100, 1}, "long runs");
}

TEST(ReduceStrided, WorksForEveryWidth) {
  std::vector<std::uint8_t> bytes(64);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  const Dims shape = {4, 2};
  const Dims strides = {8, 2};
  EXPECT_EQ(reduce_strided(Dtype::u8, bytes.data(), shape, strides).sum,
            0 + 2 + 8 + 10 + 16 + 18 + 24 + 26);
  std::vector<std::int16_t> shorts(64);
  std::iota(shorts.begin(), shorts.end(), std::int16_t{0});
  EXPECT_EQ(reduce_strided(Dtype::i16, shorts.data(), shape, strides).sum, 104);
  std::vector<double> doubles(64);
  std::iota(doubles.begin(), doubles.end(), 0.0);
  EXPECT_EQ(reduce_strided(Dtype::f64, doubles.data(), shape, strides).sum, 104);
  std::vector<double> pairs(128, 0.0);
  for (std::size_t i = 0; i < 64; ++i) pairs[2 * i + 1] = static_cast<double>(i);
  EXPECT_EQ(reduce_strided(Dtype::c128, pairs.data(), shape, strides).abs_sum, 104);
}

TEST(ReduceStrided, AnEmptyDimensionMeansNoElements) {
  const float x = 1;
  const Dims shape = {3, 0};
  const Dims strides = {1, 1};
  EXPECT_EQ(reduce_strided(Dtype::f32, &x, shape, strides).count, 0U);
}

TEST(ReduceStrided, RefusesWhatIsNotAShape) {
  const float x = 1;
  const auto refused = [&](const Dims& shape, const Dims& strides) {
    const core::SummaryRow row = reduce_strided(Dtype::f32, &x, shape, strides);
    return row.count == 0 && (row.meta & core::meta::kEmptyHere) != 0;
  };
  EXPECT_TRUE(refused({1, 1}, {1}));
  EXPECT_TRUE(refused({-1}, {1}));
  EXPECT_TRUE(refused(Dims(9, 1), Dims(9, 1)));
  EXPECT_FALSE(refused({1}, {1}));
}

}  // namespace
}  // namespace tocsin::collectors
