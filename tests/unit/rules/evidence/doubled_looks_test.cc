#include "rules/evidence/doubled_looks.h"

#include <gtest/gtest.h>

namespace tocsin::rules {
namespace {

TEST(Student, AgreesWithTables) {
  EXPECT_NEAR(student_quantile(0.001, 31), 3.3749, 1e-4);
  EXPECT_NEAR(student_quantile(0.025, 31), 2.0395, 1e-4);
  EXPECT_NEAR(student_quantile(0.01, 30), 2.4573, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 1), 6.3138, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 2), 2.9200, 1e-4);
  EXPECT_NEAR(student_tail(0, 31), 0.5, 1e-15);
  EXPECT_NEAR(student_tail(-1, 10) + student_tail(1, 10), 1, 1e-15);
}

TEST(DoubledLooks, LooksWhenTheNumberHasDoubled) {
  DoubledLooks looks;
  std::vector<int> at;
  for (int i = 1; i <= 1100; ++i) {
    const double missing = looks.missing();
    if (looks.add(2, 1, 4, i)) {
      at.push_back(i);
      EXPECT_EQ(missing, 1);
    }
  }
  EXPECT_EQ(at, (std::vector<int>{64, 128, 256, 512, 1024}));
  EXPECT_EQ(looks.looks, 5);
}

TEST(DoubledLooks, TheWindowIsTheNewerHalf) {
  DoubledLooks looks;
  for (int i = 1; i <= 256; ++i) looks.add(2, i <= 128 ? 100 : i % 2, 4, i);
  const DoubledLooks::Block sums = looks.window();
  EXPECT_EQ(sums.entries, 128);
  EXPECT_EQ(sums.weight, 256);
  EXPECT_EQ(sums.difference, 64);
  EXPECT_EQ(sums.unit, 512);
  EXPECT_EQ(looks.from(), 130.5) << "the middle of the block 129 … 132";
  const BlockMean mean = looks.mean(0.1);
  EXPECT_EQ(mean.blocks, 32);
  EXPECT_NEAR(mean.mean, 0.25 - 0.1 * 2, 1e-12);
  EXPECT_NEAR(mean.error, 0, 1e-12) << "all blocks are alike";
}

TEST(DoubledLooks, ALineIsFollowedExactly) {
  DoubledLooks looks;
  for (int i = 0; i < 64; ++i) looks.add(1, 3 + 0.5 * i, 1, i);
  const BlockMean mean = looks.mean(1);
  EXPECT_NEAR(mean.slope, 0.5, 1e-12);
  EXPECT_NEAR(mean.upper_at(1000, 0.01), 3 + 500 - 1, 1e-6);
  EXPECT_GT(mean.upper(0.01), mean.mean + 1) << "the line is no mean with a small error";
}

// Worked by hand: 32 blocks ±1 in pairs (1, 1, −1, −1, …): squares 32, neighbours' products
// 1 − 1 + 1 … of 31: 16 pairs alike, 15 unlike: 1; 1/32 corrected by (1 + 4/32)/32 and 0.75/√32.
TEST(DoubledLooks, AlikeNeighboursWidenTheError) {
  DoubledLooks looks;
  for (int i = 0; i < 64; ++i) looks.add(1, i / 2 % 2 == 0 ? 1 : -1, 0, i);
  const double alike = 1.0 / 32 + (1 + 4.0 / 32) / 32 + 0.75 / std::sqrt(32.0);
  const double squares = 32 * (1 + alike) / (1 - alike);
  EXPECT_NEAR(looks.mean(0).error, std::sqrt(squares / 31 / 32), 1e-12);
}

}  // namespace
}  // namespace tocsin::rules
