#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/identity.h"
#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

template <typename T>
std::uint64_t digest_of(const Tensor<T>& tensor) {
  const auto given = measure(*statistic_of("digest"), tensor).numbers;
  EXPECT_EQ(given.count(SparseStat::digest), 1U);
  return given.empty() ? 0 : given.at(SparseStat::digest);
}

// By hand: XXH64 of type 1, one dimension of 2, then the two binary32 numbers.
TEST(Digest, IsTheHashOfTypeShapeAndValues) {
  const std::string bytes("\x01\x01\x02\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 18);
  EXPECT_EQ(digest_of(Tensor<float>{Dtype::f32, {1, 2}}), core::name_hash(bytes));
}

TEST(Digest, AllZerosAreOneAndAllNaNsAreOne) {
  EXPECT_EQ(digest_of(Tensor<float>{Dtype::f32, {0, 1}}),
            digest_of(Tensor<float>{Dtype::f32, {-0.0F, 1}}));
  EXPECT_EQ(digest_of(Tensor<std::uint32_t>{Dtype::f32, {0x7fc00000, 0xffc00001, 0x7f800001}}),
            digest_of(Tensor<std::uint32_t>{Dtype::f32, {0x7fc00000, 0x7fc00000, 0x7fc00000}}));
  EXPECT_EQ(digest_of(Tensor<std::uint16_t>{Dtype::f16, {0x8000, 0x7e01}}),
            digest_of(Tensor<std::uint16_t>{Dtype::f16, {0x0000, 0xfe00}}));
  EXPECT_EQ(digest_of(Tensor<std::uint8_t>{Dtype::f8_e4m3, {0xff, 0x80}}),
            digest_of(Tensor<std::uint8_t>{Dtype::f8_e4m3, {0x7f, 0x00}}));
  EXPECT_EQ(digest_of(Tensor<std::uint8_t>{Dtype::boolean, {7}}),
            digest_of(Tensor<std::uint8_t>{Dtype::boolean, {1}}));
}

TEST(Digest, InfinitiesAreNoNaNsAndIntegersHaveNoSignedZero) {
  EXPECT_NE(digest_of(Tensor<std::uint32_t>{Dtype::f32, {0x7f800000}}),
            digest_of(Tensor<std::uint32_t>{Dtype::f32, {0x7fc00000}}));
  EXPECT_NE(digest_of(Tensor<std::uint32_t>{Dtype::f32, {0x7f800000}}),
            digest_of(Tensor<std::uint32_t>{Dtype::f32, {0xff800000}}));
  EXPECT_NE(digest_of(Tensor<std::uint16_t>{Dtype::u16, {0x8000}}),
            digest_of(Tensor<std::uint16_t>{Dtype::u16, {0}}));
}

TEST(Digest, TypeShapeOrderAndEveryElementCount) {
  std::vector<float> many(5000, 0.5F);
  const std::uint64_t first = digest_of(Tensor<float>{Dtype::f32, many});
  EXPECT_NE(first, digest_of(Tensor<float>{Dtype::f32, many, {50, 100}}));
  many[4999] = 0.25F;
  EXPECT_NE(first, digest_of(Tensor<float>{Dtype::f32, many}));
  EXPECT_NE(digest_of(Tensor<float>{Dtype::f32, {1, 2}}),
            digest_of(Tensor<float>{Dtype::f32, {2, 1}}));
  EXPECT_NE(digest_of(Tensor<std::int32_t>{Dtype::i32, {1}}),
            digest_of(Tensor<std::int32_t>{Dtype::u32, {1}}));
}

TEST(Digest, IsNotGivenOfATensorInAnotherOrder) {
  Tensor<float> permuted{Dtype::f32, {1, 2}, {2, 1}};
  permuted.row_major = false;
  EXPECT_TRUE(measure(*statistic_of("digest"), permuted).empty());
}

}  // namespace
}  // namespace tocsin::collectors
