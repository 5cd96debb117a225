// What speaks for a training although its loss does not fall: another value that says how well the task is
// done, and the shape of the loss itself.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/losses.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using Course = std::function<double(std::int64_t)>;

std::vector<std::string> kinds_beside(const std::string& metric, const Course& loss,
                                      const Course& value, std::int64_t steps = 200) {
  SeriesBench rule("loss_not_decreasing");
  std::vector<std::string> kinds;
  for (std::int64_t i = 0; i < steps; ++i) {
    rule.step(Mode::train, i,
              {{"loss", loss(i), core::Role::loss}, {metric, value(i), core::Role::metric}});
  }
  for (const auto& told : rule.told) kinds.push_back(told.kind);
  return kinds;
}

// A saddle: what starts at zero grows by the same factor each time, and the loss falls ever faster.
TEST(LossNotDecreasing, WhatFallsEverFasterLeavesASaddle) {
  const auto saddle = [](std::int64_t i) {
    return 4.16 - 0.0001 * std::exp(static_cast<double>(std::min<std::int64_t>(i, 66)) / 7);
  };
  EXPECT_TRUE(loss_kinds_of(saddle, 100).empty());
  const auto crawls = [](std::int64_t i) { return 4.16 - 0.0001 * static_cast<double>(i); };
  EXPECT_EQ(loss_kinds_of(crawls, 100), std::vector<std::string>{"stuck"})
      << "by the same each time";
}

// Self-distillation: the target sharpens, the loss rises, and comes down when the network follows.
TEST(LossNotDecreasing, WhatComesDownFromWhereItHadRisenToIsNotStuck) {
  const auto follows = [](std::int64_t i) {
    const double x = static_cast<double>(i);
    return (i < 20 ? 2.5 + 0.03 * x : 3.1 * std::exp(-(x - 20) / 120)) + 0.02 * loss_noise(i);
  };
  EXPECT_TRUE(loss_kinds_of(follows, 160).empty());
  const auto stays = [](std::int64_t i) {
    return (i < 20 ? 2.5 + 0.03 * static_cast<double>(i) : 3.1) + 0.02 * loss_noise(i);
  };
  EXPECT_FALSE(loss_kinds_of(stays, 160).empty());
}

// A policy whose loss is a penalty that grows with what it has learned.
TEST(LossNotDecreasing, ALossThatRisesWhileTheScoreGrowsSaysNothing) {
  const auto loss = [](std::int64_t i) {
    return 0.5 + 0.01 * static_cast<double>(i) + 0.05 * loss_noise(i);
  };
  const auto grows = [](std::int64_t i) {
    return 0.4 + 0.5 * (1 - std::exp(-static_cast<double>(i) / 60)) + 0.01 * loss_noise(i + 7);
  };
  const auto stands = [](std::int64_t i) { return 0.4 + 0.01 * loss_noise(i + 7); };
  EXPECT_TRUE(kinds_beside("score", loss, grows).empty());
  EXPECT_TRUE(kinds_beside("success/mean", loss, grows).empty());
  EXPECT_FALSE(kinds_beside("score", loss, stands).empty());
  EXPECT_FALSE(kinds_beside("score_std", loss, grows).empty()) << "how far scores lie apart";
  EXPECT_FALSE(kinds_beside("temperature", loss, grows).empty());
}

TEST(LossNotDecreasing, AScoreThatIsNoNumberOnceStillGrows) {
  const auto loss = [](std::int64_t i) {
    return 0.5 + 0.01 * static_cast<double>(i) + 0.05 * loss_noise(i);
  };
  const auto score = [](std::int64_t from, std::int64_t until) {
    return [from, until](std::int64_t i) {
      const double grown = 0.4 + 0.5 * (1 - std::exp(-static_cast<double>(i) / 60));
      return i >= from && i < until ? std::nan("") : grown + 0.01 * loss_noise(i + 7);
    };
  };
  EXPECT_TRUE(kinds_beside("score", loss, score(9, 10)).empty());
  EXPECT_FALSE(kinds_beside("score", loss, score(9, 10000)).empty()) << "it says no more";
}

TEST(LossNotDecreasing, ALossThatJumpsAfterTheScoreHasGrownIsTold) {
  const auto loss = [](std::int64_t i) { return (i < 120 ? 1.0 : 5.0) + 0.05 * loss_noise(i); };
  const auto grown = [](std::int64_t i) {
    return 0.4 + 0.5 * std::min(static_cast<double>(i) / 100, 1.0) + 0.01 * loss_noise(i + 7);
  };
  EXPECT_FALSE(kinds_beside("score", loss, grown).empty());
}

// Losses of learning by reward have targets that move: `reward` asks whether that learns.
TEST(LossNotDecreasing, BesideRewardsALossSaysNothing) {
  const auto jumps = [](std::int64_t i) { return (i < 120 ? 1.0 : 5.0) + 0.05 * loss_noise(i); };
  const auto stands = [](std::int64_t i) { return 0.4 + 0.01 * loss_noise(i + 7); };
  EXPECT_TRUE(kinds_beside("reward", jumps, stands).empty());
  EXPECT_TRUE(kinds_beside("rollout/ep_rew_mean", jumps, stands).empty());
  EXPECT_FALSE(kinds_beside("reward_std", jumps, stands).empty());
  EXPECT_FALSE(kinds_beside("entropy", jumps, stands).empty());
}

TEST(LossNotDecreasing, ALossThatStandsWhileTheAccuracyGrowsIsNotStuck) {
  const auto loss = [](std::int64_t i) { return 2.3 + 0.02 * loss_noise(i); };
  const auto accuracy = [](double slope) {
    return [slope](std::int64_t i) {
      return 0.1 + slope * static_cast<double>(i) + 0.07 * loss_noise(i + 3);
    };
  };
  const std::vector<std::string> none;
  EXPECT_EQ(kinds_beside("accuracy", loss, accuracy(0.005), 60), none);
  EXPECT_FALSE(kinds_beside("accuracy", loss, accuracy(0), 60).empty());
}

// A fine-tune: less is gained than the samples of a batch scatter by, and the same data tell at each evaluation.
std::vector<std::int64_t> stuck_beside_evaluations(const Course& evaluated) {
  SeriesBench rule("loss_not_decreasing");
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::string answer =
        rule.step(Mode::train, i, {{"loss", 2.7 + 0.05 * loss_noise(i), core::Role::loss}});
    if (answer.find("stuck") != std::string::npos) steps.push_back(i);
    if (i % 20 == 19) rule.pass(i / 20, {{"loss", evaluated(i / 20), core::Role::loss}});
  }
  return steps;
}

TEST(LossNotDecreasing, ALossThatStandsWhileItsEvaluationFallsIsNotStuck) {
  const auto falling = [](double share) {
    return [share](std::int64_t pass) { return 2.7 * (1 - share * static_cast<double>(pass)); };
  };
  const std::vector<std::int64_t> always = stuck_beside_evaluations(falling(0));
  ASSERT_FALSE(always.empty());
  EXPECT_TRUE(stuck_beside_evaluations(falling(0.02)).empty());
  EXPECT_EQ(stuck_beside_evaluations(falling(0.0005)), always) << "next to nothing in all";
  const auto gained = [](std::int64_t pass) { return pass == 0 ? 3.0 : 2.7; };
  EXPECT_EQ(stuck_beside_evaluations(gained).back(), always.back()) << "all is gained that will be";
  const auto loses = [](std::int64_t pass) {
    return 2.7 * (1 - 0.02 * static_cast<double>(pass)) + (pass == 3 ? 0.3 : 0);
  };
  const std::vector<std::int64_t> lost = stuck_beside_evaluations(loses);
  ASSERT_FALSE(lost.empty());
  EXPECT_TRUE(lost.front() >= 80 && lost.back() < 100) << "the fourth pass gives all back";
  const auto ends = [](std::int64_t pass) {
    return 2.7 * (1 - 0.02 * static_cast<double>(std::min<std::int64_t>(pass, 3)));
  };
  const std::vector<std::int64_t> ended = stuck_beside_evaluations(ends);
  ASSERT_FALSE(ended.empty());
  EXPECT_GE(ended.front(), 160) << "no more is gained for as long as something was";
}

// Advantages are centred, so the first loss of a policy is zero, and twice zero says nothing.
TEST(LossNotDecreasing, AnObjectiveThatBeginsAtZeroHasNoSize) {
  const auto drifts = [](std::int64_t i) {
    return i == 0 ? -1e-8 : 0.0002 * static_cast<double>(i) + 0.01 * loss_noise(i);
  };
  EXPECT_EQ(loss_kinds_of(drifts, 200), std::vector<std::string>{});
  const auto explodes = [](std::int64_t i) {
    return i == 0 ? -1e-8 : (i < 100 ? 0.0 : 5.0) + 0.01 * loss_noise(i);
  };
  EXPECT_FALSE(loss_kinds_of(explodes, 200).empty());
}

}  // namespace
}  // namespace tocsin::rules
