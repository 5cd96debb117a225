#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using core::Mode;
using core::Role;

/// A loss around 1 with a median absolute deviation of 0.1 once it is warm: values 0.8, 0.9, 1.0, 1.1,
/// 1.2 in turn. Robust deviation 0.14826, so 8 of them are 2.186 at 8 · 0.14826 + 1.
struct SpikeJob {
  SeriesBench rule;
  std::int64_t step = 0;
  explicit SpikeJob(const std::string& with = "{}") : rule("loss_spike", with) {}
  std::string log(double loss) { return rule.step(Mode::train, step++, {{"loss", loss}}); }
  void usual(int times) {
    for (int i = 0; i < times; ++i) log(0.8 + 0.1 * static_cast<double>(step % 5));
  }
};

TEST(LossSpike, WaitsForThirtyValues) {
  SpikeJob job;
  for (int i = 0; i < 30; ++i) EXPECT_EQ(job.log(1), "loss: insufficient_data");
  EXPECT_EQ(job.log(1), "loss: ok");
}

TEST(LossSpike, AJumpThatComesBackIsTransient) {
  SpikeJob job;
  job.usual(50);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(job.log(5), "loss: ok") << i;
  EXPECT_EQ(job.log(1), "loss: ok") << "the median of the latest three is still high";
  EXPECT_EQ(job.log(1), "loss: hit transient");
  ASSERT_EQ(job.rule.told.size(), 1U);
  EXPECT_EQ(job.rule.told[0].finding.severity, core::Severity::info);
  EXPECT_EQ(job.rule.told[0].finding.first_step, 51) << "from the second high value on";
  EXPECT_EQ(job.log(1), "loss: ok");
}

TEST(LossSpike, OneOrTwoBadBatchesAreNone) {
  SpikeJob job;
  job.usual(50);
  job.log(500);
  job.usual(10);
  job.log(500);
  job.log(500);
  job.usual(10);
  EXPECT_TRUE(job.rule.told.empty());
}

TEST(LossSpike, AJumpThatStaysIsASpike) {
  SpikeJob job;
  job.usual(50);
  job.log(5);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(job.log(5), "loss: ok") << i;
  EXPECT_EQ(job.log(5), "loss: hit spike") << "20 steps after the row began";
  EXPECT_EQ(job.rule.told[0].finding.severity, std::nullopt);
  EXPECT_NEAR(job.rule.told[0].finding.observed.value, 4 / 0.14826, 1e-9);
  EXPECT_EQ(job.log(5), "loss: hit spike");
  job.log(1);
  EXPECT_EQ(job.log(1), "loss: ok") << "back, but too late to be called transient";
}

TEST(LossSpike, TheLimitIsStrict) {
  const double limit = 1 + 8 * 1.4826 * 0.1;
  SpikeJob below;
  below.usual(50);
  for (int i = 0; i < 40; ++i) below.log(limit - 1e-6);
  EXPECT_TRUE(below.rule.told.empty());
  SpikeJob above;
  above.usual(50);
  for (int i = 0; i < 22; ++i) above.log(limit + 1e-6);
  EXPECT_EQ(above.rule.told.size(), 1U);
}

TEST(LossSpike, ALevelThatLastsAWholeWindowIsTheUsualOne) {
  SpikeJob job("{window: 30}");
  job.usual(50);
  int hits = 0;
  for (int i = 0; i < 60; ++i) hits += job.log(5) == "loss: hit spike" ? 1 : 0;
  EXPECT_EQ(hits, 29);
  for (int i = 0; i < 30; ++i) EXPECT_NE(job.log(5), "loss: hit spike");
}

TEST(LossSpike, AConstantLossHasADeviationOfOnePercent) {
  SpikeJob job;
  for (int i = 0; i < 40; ++i) job.log(2);
  for (int i = 0; i < 30; ++i) job.log(2.15);
  EXPECT_TRUE(job.rule.told.empty()) << "7.5 deviations";
  for (int i = 0; i < 22; ++i) job.log(2.5);
  EXPECT_FALSE(job.rule.told.empty());
}

TEST(LossSpike, NonFiniteLosses) {
  SpikeJob job;
  job.usual(50);
  EXPECT_EQ(job.log(std::nan("")), "loss: insufficient_data");
  for (int i = 0; i < 22; ++i) job.log(HUGE_VAL);
  EXPECT_EQ(job.rule.told.size(), 1U) << "+Inf is high";
}

TEST(LossSpike, OnlyTheTrainingLossAndOnlyWhatFalls) {
  SeriesBench rule("loss_spike");
  const std::vector<BenchValue> values{{"val_loss", 1},
                                       {"accuracy_loss", 1, Role::loss, core::Direction::max}};
  EXPECT_EQ(rule.step(Mode::train, 0, values), "");
  EXPECT_EQ(rule.pass(0, {{"loss", 1}}), "");
  EXPECT_EQ(rule.step(Mode::global, 0, {{"train-loss", 1}}), "train-loss: insufficient_data");
}

TEST(LossSpike, RefusesWindowsOutOfReach) {
  EXPECT_NE(refusal("loss_spike", "{window: 29}").find("window"), std::string::npos);
  EXPECT_NE(refusal("loss_spike", "{window: 201}").find("window"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::rules
