// Names of data sets that are no words of ours: what boosting libraries write in front of a metric.
#include <gtest/gtest.h>

#include "tests/unit/rules/losses.h"

namespace tocsin::rules {
namespace {

using core::Mode;
using core::Role;

TEST(SetNames, WhatStandsBesideTheTrainingSetsMetricIsTheSameOfAnotherSet) {
  const auto fits_noise = [](const std::string& trained, const std::string& held) {
    SeriesBench rule("overfit");
    for (std::int64_t i = 0; i < 30; ++i) {
      const auto x = static_cast<double>(i);
      rule.step(Mode::train, i,
                {{trained, 1 - 0.01 * x, Role::loss}, {held, 1 + 0.005 * x, Role::loss}});
    }
    return !rule.told.empty();
  };
  EXPECT_TRUE(fits_noise("training-huber", "held-huber")) << "LightGBM, valid_names: [held]";
  EXPECT_TRUE(fits_noise("train-rmse", "hold-out-rmse"));
  EXPECT_TRUE(fits_noise("train-ndcg_loss", "march-ndcg_loss"));
  EXPECT_FALSE(fits_noise("train_loss", "kl_loss")) << "parts of a loss are no sets";
  EXPECT_FALSE(fits_noise("train-rmse", "held-mae")) << "another metric";
}

TEST(SetNames, ARateOfNothingIsSeenBesideASetOfAnyName) {
  SeriesBench rule("loss_not_decreasing");
  for (std::int64_t i = 0; i < 12; ++i) {
    rule.step(Mode::train, i,
              {{"training-huber", 0.8454, Role::loss}, {"held-huber", 0.7365, Role::loss}});
  }
  ASSERT_FALSE(rule.told.empty());
  EXPECT_EQ(rule.told[0].kind, "stuck");
  EXPECT_EQ(rule.told[0].metric, "training-huber");
}

}  // namespace
}  // namespace tocsin::rules
