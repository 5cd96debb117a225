#include "rules/evidence/share_evidence.h"

#include <gtest/gtest.h>

namespace tocsin::rules {
namespace {

TEST(ShareEvidence, IsAWeightedMeanOfFourProducts) {
  const ShareCounts counts{3, 5};
  double mean = 0;
  for (const double q : {0.5, 0.45, 0.35, 0.15}) {
    mean += std::pow(q / 0.55, 3) * std::pow((1 - q) / 0.45, 2) * (q == 0.5 ? 5 : 1) / 8;
  }
  EXPECT_NEAR(counts.against_at_least(0.55, 0.05), std::log(mean), 1e-12);
}

TEST(ShareEvidence, NothingSeenIsNoEvidence) {
  EXPECT_DOUBLE_EQ(ShareCounts{}.against_at_least(0.55, 0.05), 0);
  EXPECT_DOUBLE_EQ(ShareCounts{}.against_at_most(0.55, 0.05), 0);
}

TEST(ShareEvidence, SidesAreExchanged) {
  const ShareCounts low{20, 100};
  const ShareCounts high{80, 100};
  EXPECT_NEAR(low.against_at_least(0.5, 0.05), high.against_at_most(0.5, 0.05), 1e-12);
  EXPECT_GT(low.against_at_least(0.5, 0.05), 0);
  EXPECT_LT(high.against_at_least(0.5, 0.05), 0);
}

// Of the specification's table: 1373 of w = 0.50 against 0.55 at alpha = 0.001, 338 against 0.60.
TEST(ShareEvidence, HowManyAreNeeded) {
  EXPECT_NEAR(observations_needed(0.5, 0.55, 0.001), 1373, 2);
  EXPECT_NEAR(observations_needed(0.5, 0.60, 0.001), 338, 2);
}

TEST(ShareEvidence, LargeCountsStayFinite) {
  const ShareCounts counts{5e11, 1e12};
  EXPECT_TRUE(std::isfinite(counts.against_at_least(0.55, 0.05)));
  EXPECT_GT(counts.against_at_least(0.55, 0.05), 1e9);
}

TEST(ShareEvidence, AFallBeginsWhereNothingSpokeForIt) {
  ShareFall fall;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(fall.add(9, 10, 0.55, 0.05));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(fall.add(4, 10, 0.55, 0.05));
  EXPECT_EQ(fall.since.pairs, 1000) << "nine of ten before it do not count";
}

}  // namespace
}  // namespace tocsin::rules
