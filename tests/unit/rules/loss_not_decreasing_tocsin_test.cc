// The conditions that stand only in the preset tocsin: what noise, warm-ups and slow starts make.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/losses.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

TEST(LossNotDecreasing, FortyRoundsAreEnoughToSeeThatNothingFalls) {
  SeriesBench rule("loss_not_decreasing");
  std::int64_t first = -1;
  for (std::int64_t i = 0; i < 40; ++i) {
    const double wobble = 0.002 * loss_noise(i);
    rule.step(Mode::global, i, {{"train-logloss", 0.693 + wobble, core::Role::metric}});
    if (first < 0 && !rule.told.empty()) first = i;
  }
  ASSERT_FALSE(rule.told.empty());
  EXPECT_EQ(rule.told[0].kind, "stuck");
  EXPECT_GE(first, 19) << "not before 2 · num_steps: a warm-up looks like that";
  EXPECT_LE(first, 24);
  SeriesBench still("loss_not_decreasing");
  for (std::int64_t i = 0; i < 9; ++i) still.step(Mode::train, i, {{"loss", 2.3}});
  EXPECT_EQ(still.told.size(), 1U) << "what does not move at all is no warm-up";
}

TEST(LossNotDecreasing, AWarmUpIsNoPlateau) {
  const auto warm_up = [](std::int64_t s) {
    return s < 15 ? 10.8 - 0.002 * static_cast<double>(s * s) + 0.02 * loss_noise(s)
                  : 4 + 6.4 * std::exp(-static_cast<double>(s - 15) / 60) + 0.05 * loss_noise(s);
  };
  EXPECT_TRUE(loss_kinds_of(warm_up, 300).empty());
}

TEST(LossNotDecreasing, SingleUpdatesMayBeSlowForLonger) {
  const auto first = [](bool whole) {
    SeriesBench rule("loss_not_decreasing");
    for (std::int64_t i = 0; i < 80; ++i) {
      std::vector<BenchValue> values{{"train-loss", 0.693 + 0.002 * loss_noise(i)}};
      if (whole) values.push_back({"valid-loss", 0.7});
      rule.step(Mode::train, i, values);
      if (!rule.told.empty()) return i;
    }
    return std::int64_t{-1};
  };
  EXPECT_GE(first(false), 39) << "not before 4 · num_steps";
  EXPECT_LE(first(false), 47);
  EXPECT_LE(first(true), 24) << "beside an evaluation set's they are of whole sets";
}

TEST(LossNotDecreasing, OneLogPerEpochIsJudged) {
  SeriesBench rule("loss_not_decreasing");
  for (std::int64_t epoch = 0; epoch < 9; ++epoch) {
    rule.step(Mode::train, 100 * epoch, {{"loss", 2.3}});
  }
  ASSERT_FALSE(rule.told.empty()) << "at the ninth of them";
  EXPECT_EQ(rule.told[0].kind, "stuck");
}

TEST(LossNotDecreasing, PointsGrowApartWithWhatTheJobHasBrought) {
  SeriesBench rule("loss_not_decreasing");
  std::vector<std::int64_t> judged;
  for (std::int64_t i = 0; i < 130; ++i) {
    if (!rule.step(Mode::train, i, {{"loss", 100 / (1.0 + static_cast<double>(i))}}).empty()) {
      judged.push_back(i);
    }
  }
  // One value per point up to 16 values, then 2, 3 … and from 80 on 10 steps.
  EXPECT_EQ(judged[15], 15);
  EXPECT_EQ(judged[16], 17);
  EXPECT_EQ(judged[judged.size() - 1] - judged[judged.size() - 2], 10);
  EXPECT_TRUE(rule.told.empty());
}

TEST(LossNotDecreasing, BetweenTwoPointsTheLatestFiveValuesTellOfAnExplosion) {
  SeriesBench rule("loss_not_decreasing");
  std::int64_t i = 0;
  const auto say = [&](double loss) { return rule.step(Mode::train, i++, {{"loss", loss}}); };
  while (i < 200) say(1 + 0.01 * loss_noise(i));
  while (say(1).empty()) continue;  // points are ten steps apart by now
  EXPECT_EQ(say(10), "");
  EXPECT_EQ(say(10), "") << "the mean of the logarithms has not tripled";
  EXPECT_EQ(say(10), "loss: hit early");
  ASSERT_EQ(rule.told.back().kind, "early");
  EXPECT_NEAR(rule.told.back().finding.observed.value, 6.4, 0.1) << "of the five, two are old ones";
}

// A fine-tune: 6 % gained in 300 steps under noise of 10 % is no plateau, and what noise gives it
// takes back.
TEST(LossNotDecreasing, SmallNoisyGainsAreNeitherStuckNorLost) {
  const auto fine_tune = [](std::int64_t s) {
    return 0.5 * (1 - 0.06 * static_cast<double>(s) / 300) + 0.05 * loss_noise(s);
  };
  EXPECT_TRUE(loss_kinds_of(fine_tune, 300).empty());
  // Early noise that goes down with the loss of a regression.
  const auto regression = [](std::int64_t s) {
    const double fall = std::exp(-static_cast<double>(s) / 40);
    return 0.3 + fall + (0.05 + 0.5 * fall) * loss_noise(s);
  };
  EXPECT_TRUE(loss_kinds_of(regression, 400).empty());
}

TEST(LossNotDecreasing, WithoutNoiseTheConditionsAreTheBareOnes) {
  SeriesBench rule("loss_not_decreasing", "{num_steps: 1, noise_factor: 0}");
  for (std::int64_t i = 0; i < 4; ++i) rule.step(Mode::train, i, {{"loss", 1}});
  EXPECT_EQ(rule.step(Mode::train, 4, {{"loss", 2.01}}), "loss: hit early");
  SeriesBench careful("loss_not_decreasing");
  for (std::int64_t i = 0; i < 4; ++i) careful.step(Mode::train, i, {{"loss", 1}});
  for (std::int64_t i = 4; i < 9; ++i) {
    EXPECT_EQ(careful.step(Mode::train, i, {{"loss", 3.5}}).find("early"), std::string::npos) << i;
  }
  std::int64_t at = 9;
  while (careful.step(Mode::train, at, {{"loss", 3.5}}).find("early") == std::string::npos) ++at;
  EXPECT_LE(at, 12) << "five of them are known, and few differences tell how much is noise";
}

TEST(LossNotDecreasing, FivePointsFarAboveTheBestAreARise) {
  SeriesBench rule("loss_not_decreasing", "{num_steps: 1}");
  for (std::int64_t i = 0; i < 10; ++i) rule.step(Mode::train, i, {{"loss", 1}});
  // best = first = 1: the limit is 1.5, and the median of 5 passes it with the third high value.
  EXPECT_EQ(rule.told.back().kind, "stuck");
  for (std::int64_t i = 10; i < 14; ++i) {
    EXPECT_EQ(rule.step(Mode::train, i, {{"loss", 1.51}}).find("rise"), std::string::npos) << i;
  }
  rule.step(Mode::train, 14, {{"loss", 1.51}});
  EXPECT_EQ(rule.told.back().kind, "rise") << "the third median above 1.5";
}

// A fine-tune: losses near 0, of which a few are large. Early medians of single ones lie below the mean.
TEST(LossNotDecreasing, SkewedLossesThatStayAreNoRise) {
  const auto skewed = [](std::int64_t s) {
    const double x = loss_noise(s);
    return x > 0.6 ? 0.4 * x : 0.02 + 0.01 * x;
  };
  EXPECT_TRUE(loss_kinds_of(skewed, 400).empty());
}

// Networks that start slowly: hardly any gain in 30 steps, then all of it.
TEST(LossNotDecreasing, ASlowStartIsNoPlateau) {
  const auto slow = [](std::int64_t s) {
    const double x = static_cast<double>(s);
    return 0.3 + 2 / (1 + std::exp((x - 80) / 15)) + 0.03 * loss_noise(s);
  };
  EXPECT_TRUE(loss_kinds_of(slow, 300).empty());
}

TEST(LossNotDecreasing, ASetsLossThatIsOneNumberFromTheStartIsStuckAtTheFifth) {
  const auto told_at = [](double change, bool validation) {
    SeriesBench rule("loss_not_decreasing");
    for (std::int64_t i = 0; i < 8; ++i) {
      std::vector<BenchValue> values{
          {"train-logloss", 0.693147 - change * static_cast<double>(i), core::Role::loss}};
      if (validation) values.push_back({"valid-logloss", 0.7, core::Role::loss});
      rule.step(core::Mode::train, i, values);
      if (!rule.told.empty()) return i;
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(told_at(0, true), 4);
  EXPECT_EQ(told_at(1e-7, true), 4) << "less than a millionth of it over four rounds";
  EXPECT_EQ(told_at(1e-5, true), -1) << "it falls slowly";
  EXPECT_EQ(told_at(0, false), -1) << "losses of batches may be rounded";
}

// The loss of a policy: about zero at first, below while it finds what pays, and back to zero when it does.
TEST(LossNotDecreasing, AnObjectiveThatComesBackToZeroIsMet) {
  const auto policy = [](double end) {
    return [end](std::int64_t s) {
      const double x = static_cast<double>(s);
      return -0.25 * std::exp(-(x - 80) * (x - 80) / 2000) + end / (1 + std::exp((160 - x) / 10)) +
             0.01 * loss_noise(s);
    };
  };
  EXPECT_TRUE(loss_kinds_of(policy(0), 300).empty());
  EXPECT_FALSE(loss_kinds_of(policy(0.5), 300).empty()) << "worse than at first";
  const auto likelihood = [](std::int64_t s) {
    const double x = static_cast<double>(s);
    return 1 - 1.5 / (1 + std::exp((40 - x) / 10)) + 1.4 / (1 + std::exp((160 - x) / 10)) +
           0.01 * loss_noise(s);
  };
  EXPECT_FALSE(loss_kinds_of(likelihood, 300).empty()) << "from 1 to -0.5 and back is a loss";
}

TEST(LossNotDecreasing, ALossThatIsOneUnroundedNumberIsStuckAtTheFifth) {
  const auto told_at = [](double loss, bool rated) {
    SeriesBench rule("loss_not_decreasing");
    for (std::int64_t i = 0; i < 8; ++i) {
      std::vector<BenchValue> values{{"loss", loss, core::Role::loss}};
      if (rated) values.push_back({"learning_rate", 0.1, core::Role::metric});
      rule.step(core::Mode::train, i, values);
      if (!rule.told.empty()) return i;
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(told_at(0.6931471805599453, false), 4);
  EXPECT_EQ(told_at(0.693147, false), -1) << "six places: batches may round to it";
  EXPECT_EQ(told_at(0.6931471805599453, true), -1) << "the rate was never larger until just now";
}

TEST(LossNotDecreasing, APlateauIsNoneWhileTheLearningRateRises) {
  const auto told_at = [](std::int64_t warm_up) {
    SeriesBench rule("loss_not_decreasing");
    for (std::int64_t i = 0; i < 120; ++i) {
      const auto rate = static_cast<double>(std::min(i, warm_up)) + 1;
      const double noise = i % 2 == 0 ? 0.001 : -0.001;
      rule.step(
          core::Mode::train, i,
          {{"loss", 2.3 + noise, core::Role::loss}, {"learning_rate", rate, core::Role::metric}});
      if (!rule.told.empty()) return i;
    }
    return std::int64_t{-1};
  };
  const std::int64_t constant = told_at(0);
  EXPECT_GE(constant, 10);
  EXPECT_LT(constant, 60);
  EXPECT_GE(told_at(80), 90) << "ten steps beyond the largest rate";
}

TEST(LossNotDecreasing, AWarmUpThatGainsNothingIsAwaitedSixteenTimesNumSteps) {
  SeriesBench rule("loss_not_decreasing");
  std::int64_t told = -1;
  for (std::int64_t i = 0; i < 300 && told < 0; ++i) {
    rule.step(core::Mode::train, i,
              {{"loss", 2.3 + 0.001 * loss_noise(i), core::Role::loss},
               {"learning_rate", 1e-6 * static_cast<double>(i), core::Role::metric}});
    if (!rule.told.empty()) told = i;
  }
  EXPECT_GT(told, 160);
  EXPECT_LE(told, 175);
}

TEST(LossNotDecreasing, SeveralMetricsOfASetAreNoAdversaries) {
  const auto told = [](bool validation) {
    SeriesBench rule("loss_not_decreasing", "{num_steps: 1}");
    for (std::int64_t i = 0; i < 12; ++i) {
      std::vector<BenchValue> values{{"training-l1", 1, core::Role::loss},
                                     {"training-l2", 1, core::Role::loss}};
      if (validation) values.push_back({"valid-l2", 1.1, core::Role::loss});
      rule.step(core::Mode::train, i, values);
    }
    return rule.told.size();
  };
  EXPECT_EQ(told(false), 0U);
  EXPECT_GE(told(true), 2U);
}

// 0.9, 1.0, 1.1 in turn: a range of 0.2, of which a quarter is 0.05.
struct Level {
  SeriesBench rule{"loss_not_decreasing"};
  std::int64_t step = 0;
  double usual() const { return 0.9 + 0.1 * static_cast<double>(step % 3); }
  bool log(double loss) {
    return rule.step(Mode::train, step++, {{"loss", loss}}).find("jump") != std::string::npos;
  }
  void stay(int steps) {
    while (steps-- > 0) log(usual());
  }
};

TEST(LossNotDecreasing, FiveLossesAboveAllOfTheTwentyBeforeAreAJump) {
  Level loss;
  loss.stay(20);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(loss.log(1.1501 + 0.1 * i)) << i;
  EXPECT_TRUE(loss.log(1.2));
  const auto& told = loss.rule.told.back();
  EXPECT_EQ(told.kind, "jump");
  EXPECT_DOUBLE_EQ(told.finding.observed.value, 1.1501);
  EXPECT_NE(told.finding.summary.find("its newest 5 values are at least 1.15 up to step 24"),
            std::string::npos)
      << told.finding.summary;
  Level short_of_it;
  short_of_it.stay(20);
  for (int i = 0; i < 12; ++i) EXPECT_FALSE(short_of_it.log(1.1499)) << i;
}

TEST(LossNotDecreasing, FourBadBatchesAreNoJump) {
  Level loss;
  loss.stay(30);
  for (int i = 0; i < 4; ++i) loss.log(1.3);
  loss.stay(30);
  for (int i = 0; i < 4; ++i) loss.log(1.3);
  EXPECT_TRUE(loss.rule.told.empty());
}

// A rate that grows too fast takes the loss along: each step is above all before, and none is a jump.
TEST(LossNotDecreasing, ASlowRiseIsNoJump) {
  Level loss;
  for (int i = 0; i < 60; ++i) EXPECT_FALSE(loss.log(1 + 0.001 * i)) << i;
}

TEST(LossNotDecreasing, AdversariesMayJump) {
  SeriesBench rule("loss_not_decreasing");
  for (std::int64_t i = 0; i < 40; ++i) {
    const double loss = i < 30 ? 1 : 5;
    rule.step(Mode::train, i, {{"judge/loss", loss}, {"generator/loss", loss}});
  }
  EXPECT_TRUE(rule.told.empty());
}

TEST(LossNotDecreasing, JumpsCanBeLeftOut) {
  SeriesBench rule("loss_not_decreasing", "{jump_margin: 0}");
  for (std::int64_t i = 0; i < 25; ++i) {
    EXPECT_EQ(rule.step(Mode::train, i, {{"loss", i < 20 ? 1 : 1.4}}).find("jump"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace tocsin::rules
