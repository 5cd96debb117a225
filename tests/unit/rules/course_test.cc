#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/rules/evidence/noise.h"
#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using core::Mode;
using core::Role;
using testing_support::Noise;

using Curve = std::function<double(int)>;

/// A job that logs a loss at each step. Fields that are not set are not sent.
struct CourseJob {
  Curve loss;
  int steps = 1000;
  double scatter = 0.1;
  double trivial = 0;  // of the ledger's loss call
  Curve trivial_at = {};
  Curve rate = {};
  Curve evaluation = {};  // every 50 steps
  Curve accuracy = {};
  double planned = 0;
  std::string other = {};  // a further loss of each step
  bool rewarded = false;
  std::uint64_t seed = 1;
  double scale = 1;
  double shift = 0;

  [[nodiscard]] SeriesBench run(const std::string& with = "{}") const {
    SeriesBench bench("course", with);
    Noise noise(seed);
    for (int i = 0; i < steps; ++i) {
      const double plain = loss(i) + scatter * noise.normal();
      const double value = scale * plain + shift;
      std::vector<BenchValue> values{{"loss", value}};
      if (!other.empty()) values.push_back({other, 1 + 0.1 * noise.normal()});
      if (rewarded) values.push_back({"reward", noise.normal(), Role::metric});
      if (rate) values.push_back({"learning_rate", rate(i), Role::metric});
      if (planned > 0 && i == 0) values.push_back({"ledger/plan/updates", planned, Role::ledger});
      const double constant = trivial_at ? trivial_at(i) : trivial;
      if (constant > 0) {
        values.push_back({"ledger/ce/samples", 16, Role::ledger});
        values.push_back({"ledger/ce/loss", 16 * value, Role::ledger});
        values.push_back({"ledger/ce/trivial", 16 * constant, Role::ledger});
        values.push_back({"ledger/ce/pairs", 8, Role::ledger});
        values.push_back(
            {"ledger/ce/wins", noise.wins(plain < 0.9 * constant ? 0.9 : 0.5, 8), Role::ledger});
        values.push_back({"ledger/ce/straight", 30, Role::ledger});
        values.push_back({"ledger/ce/crossed", 30, Role::ledger});
      }
      bench.step(Mode::train, i, values);
      if (i % 50 != 49 || (!evaluation && !accuracy)) continue;
      std::vector<BenchValue> held;
      if (evaluation) held.push_back({"val_loss", evaluation(i)});
      if (accuracy) held.push_back({"val_accuracy", accuracy(i), Role::metric});
      bench.pass(i / 50, held);
    }
    return bench;
  }
  [[nodiscard]] std::set<std::string> kinds(const std::string& with = "{}") const {
    std::set<std::string> out;
    for (const auto& one : run(with).told) out.insert(one.kind);
    return out;
  }
};

using Kinds = std::set<std::string>;

/// From 2.3 to 0.3, by half in every `half` steps.
Curve falls(double half) {
  return [half](int i) { return 0.3 + 2 * std::exp2(-i / half); };
}
Curve stands(double at) {
  return [at](int) { return at; };
}

// ---------------------------------------------------------------------------------- healthy twins

TEST(Course, ALossThatFallsAndThenStandsIsWell) {
  EXPECT_EQ(CourseJob{.loss = falls(50)}.kinds(), Kinds{});
  EXPECT_EQ((CourseJob{.loss = falls(50), .trivial = 2.3}.kinds()), Kinds{});
  SeriesBench bench = CourseJob{.loss = falls(50), .steps = 991}.run();
  EXPECT_EQ(bench.step(Mode::train, 991, {{"loss", 0.3}}), "loss: ok");
}

TEST(Course, APlateauBeforeLearningIsNoneOfAPlannedRun) {
  const Curve late = [](int i) { return i < 300 ? 2.3 : 0.3 + 2 * std::exp2(-(i - 300) / 100.0); };
  EXPECT_EQ((CourseJob{.loss = late, .steps = 2000, .trivial = 2.3, .planned = 2000}.kinds()),
            Kinds{});
}

TEST(Course, AWarmUpFromZeroIsNoPlateau) {
  const Curve warm = [](int i) { return i < 500 ? 2.3 : 0.3 + 2 * std::exp2(-(i - 500) / 100.0); };
  const Curve rate = [](int i) { return std::min(i, 500) / 500.0; };
  EXPECT_EQ((CourseJob{.loss = warm, .trivial = 2.3, .rate = rate}.kinds()), Kinds{});
}

TEST(Course, ARateThatRisesAgainBeginsAnew) {
  // Each cycle takes back most of what was gained, while the rate rises.
  const auto phase = [](int i) { return i % 200; };
  const Curve rate = [&](int i) { return phase(i) < 100 ? 0.1 + phase(i) : 200.1 - phase(i); };
  const Curve loss = [&](int i) {
    return i < 100          ? 2.3 - 0.01 * i
           : phase(i) < 100 ? 0.3 + 0.015 * phase(i)
                            : 0.3 + 0.015 * (200 - phase(i));
  };
  EXPECT_EQ((CourseJob{.loss = loss, .scatter = 0.05, .rate = rate}.kinds()), Kinds{});
}

TEST(Course, MixupEndsAboveItsBestPossible) {
  EXPECT_EQ((CourseJob{.loss = [](int i) { return 1.5 + 0.8 * std::exp2(-i / 60.0); },
                       .scatter = 0.25,
                       .trivial = 2.3}
                 .kinds()),
            Kinds{});
}

TEST(Course, ACurriculumComesBackByItself) {
  const Curve stages = [](int i) { return 0.3 + 2 * std::exp2(-(i % 400) / 60.0); };
  EXPECT_EQ((CourseJob{.loss = stages, .steps = 1200}.kinds()), Kinds{});
}

TEST(Course, AHarderTaskOfTheLedgerBeginsAnew) {
  const Curve loss = [](int i) { return i < 500 ? falls(50)(i) : 1.6; };
  EXPECT_EQ((CourseJob{.loss = loss}.kinds().count("lost")), 1U);
  const Curve constant = [](int i) { return i < 500 ? 2.3 : 4.6; };
  EXPECT_EQ((CourseJob{.loss = loss, .trivial_at = constant}.kinds()), Kinds{});
}

TEST(Course, SelfDistillationRisesFromZeroWithItsTargets) {
  const Curve rises = [](int i) { return 1 - std::exp2(-i / 200.0); };
  const Curve constant = [](int i) { return 0.2 + 3 * (1 - std::exp2(-i / 200.0)); };
  EXPECT_EQ((CourseJob{.loss = rises, .scatter = 0.01, .trivial_at = constant}.kinds()), Kinds{});
}

TEST(Course, LossesOfAdversariesAndOfRewardsAreLeftAlone) {
  const Curve rises = [](int i) { return 1 + 0.01 * i; };
  EXPECT_EQ((CourseJob{.loss = rises}.kinds().count("rise")), 1U);
  EXPECT_EQ((CourseJob{.loss = rises, .other = "critic_loss"}.kinds()), Kinds{});
  EXPECT_EQ((CourseJob{.loss = rises, .rewarded = true}.kinds()), Kinds{});
}

TEST(Course, LossesThatTakeTurnsAreAdversaries) {
  SeriesBench bench("course");
  for (int i = 0; i < 2000; ++i) {
    bench.step(Mode::train, i, {{i % 2 == 0 ? "d_loss" : "g_loss", 1 + 0.01 * i + 0.01 * (i % 7)}});
  }
  EXPECT_TRUE(bench.told.empty());
}

TEST(Course, AFinishedFineTuneIsNotStuck) {
  EXPECT_EQ((CourseJob{.loss = stands(0.3), .trivial = 2.3}.kinds()), Kinds{});
  // The same without a constant to compare with, where it fell a little at first.
  EXPECT_EQ((CourseJob{.loss = [](int i) { return 1.0 + 0.06 * std::exp2(-i / 30.0); },
                       .steps = 4000,
                       .scatter = 0.02}
                 .kinds()),
            Kinds{});
}

// ----------------------------------------------------------------------------------------- faults

TEST(Course, ALossThatStandsAtTheConstantIsStuck) {
  const SeriesBench bench = CourseJob{.loss = stands(2.31), .scatter = 0.03, .trivial = 2.3}.run();
  ASSERT_FALSE(bench.told.empty());
  EXPECT_EQ(bench.told[0].kind, "stuck");
  const Finding& finding = bench.told[0].finding;
  EXPECT_NE(finding.summary.find("One constant answer has 2.3"), std::string::npos)
      << finding.summary;
  EXPECT_NE(finding.recommendation.find("Most probable first"), std::string::npos);
  EXPECT_EQ((CourseJob{.loss = stands(2.31)}.kinds()), Kinds{"stuck"}) << "without a constant";
}

TEST(Course, WithoutAConstantAnEvaluationThatGainsSpeaksForTheLoss) {
  const Curve gains = [](int i) { return 2 - 0.001 * i; };
  EXPECT_EQ(
      (CourseJob{.loss = stands(2.31), .steps = 2000, .scatter = 0.05, .planned = 2000}.kinds()),
      Kinds{"stuck"});
  EXPECT_EQ((CourseJob{.loss = stands(2.31),
                       .steps = 2000,
                       .scatter = 0.05,
                       .evaluation = gains,
                       .planned = 2000}
                 .kinds()),
            Kinds{});
}

TEST(Course, ARateAHundredTimesTooHighRises) {
  const Curve diverges = [](int i) { return i < 20 ? 2.3 : 2.3 + 0.05 * std::min(i - 20, 200); };
  EXPECT_EQ((CourseJob{.loss = diverges, .trivial = 2.3}.kinds().count("rise")), 1U);
  EXPECT_EQ(CourseJob{.loss = diverges}.kinds().count("rise"), 1U);
}

TEST(Course, LabelsThatTurnToNoiseLoseTheGain) {
  const Curve late = [](int i) { return i < 600 ? falls(60)(i) : 2.0; };
  for (const double trivial : {0.0, 2.3}) {
    const SeriesBench bench = CourseJob{.loss = late, .trivial = trivial}.run();
    ASSERT_FALSE(bench.told.empty());
    const auto lost = std::find_if(bench.told.begin(), bench.told.end(),
                                   [](const auto& one) { return one.kind == "lost"; });
    ASSERT_NE(lost, bench.told.end());
    EXPECT_NEAR(static_cast<double>(*lost->finding.first_step), 605, 8);
  }
}

TEST(Course, ASpikeThatStaysIsTold) {
  const Curve jumps = [](int i) { return falls(60)(i) + (i >= 700 ? 0.8 : 0); };
  EXPECT_EQ(CourseJob{.loss = jumps}.kinds().count("spike"), 1U);
  const Curve passes = [](int i) { return falls(60)(i) + (i >= 700 && i < 740 ? 0.8 : 0); };
  EXPECT_EQ(CourseJob{.loss = passes}.kinds(), Kinds{});
}

TEST(Course, ScatterThatGrowsTenfoldIsToldAsInfo) {
  SeriesBench bench("course");
  Noise noise(4);
  for (int i = 0; i < 1000; ++i) {
    bench.step(Mode::train, i, {{"loss", falls(40)(i) + (i < 700 ? 0.02 : 0.6) * noise.normal()}});
  }
  ASSERT_FALSE(bench.told.empty());
  EXPECT_EQ(bench.told[0].kind, "spread");
  EXPECT_EQ(bench.told[0].finding.severity, core::Severity::info);
}

TEST(Course, AScheduleThatHasEndedLeavesTheLossWhereItIs) {
  // It stands at the constant since its rate is gone.
  const Curve rate = [](int i) { return i < 20 ? 1.0 : 1e-9; };
  EXPECT_EQ(
      (CourseJob{.loss = stands(2.28), .scatter = 0.01, .trivial = 2.3, .rate = rate}.kinds()),
      Kinds{"stuck"});
}

// ------------------------------------------------------------------------------------- evaluation

TEST(Course, AnEvaluationThatTurnsWhileTrainingGainsIsTold) {
  const Curve turns = [](int i) { return i < 300 ? 2.3 - 0.004 * i : 1.1 + 0.001 * (i - 300); };
  const SeriesBench bench = CourseJob{.loss = falls(200), .evaluation = turns}.run();
  ASSERT_FALSE(bench.told.empty());
  EXPECT_EQ(bench.told[0].kind, "turned");
  EXPECT_EQ(bench.told[0].metric, "val_loss");
  // Where training rises with it, training has lost its gain, and the evaluation shows nothing else.
  const Curve both = [](int i) { return i < 300 ? falls(60)(i) : 0.3 + 0.01 * (i - 300); };
  const Kinds kinds = CourseJob{.loss = both, .evaluation = turns}.kinds();
  EXPECT_EQ(kinds.count("turned"), 0U);
  EXPECT_EQ(kinds.count("lost"), 1U);
}

TEST(Course, AnAccuracyThatStaysSpeaksForAnEvaluationLossThatRises) {
  const Curve turns = [](int i) { return i < 300 ? 2.3 - 0.004 * i : 1.1 + 0.001 * (i - 300); };
  const Curve keeps = [](int i) { return std::min(0.1 + 0.003 * i, 0.8); };
  EXPECT_EQ((CourseJob{.loss = falls(200), .evaluation = turns, .accuracy = keeps}.kinds()),
            Kinds{});
  const Curve never = [](int) { return 0.1; };
  EXPECT_EQ((CourseJob{.loss = falls(200), .evaluation = turns, .accuracy = never}.kinds()),
            Kinds{"turned"});
}

TEST(Course, BoostersAreJudgedByTheirEvaluationOnly) {
  SeriesBench bench("course");
  for (int i = 0; i < 40; ++i) {
    const double fall = std::exp(-i / 5.0);
    bench.step(Mode::global, i,
               {{"train-rmse", fall, Role::metric},
                {"valid-rmse", 0.3 + fall + 0.01 * std::max(0, i - 12), Role::metric}});
  }
  ASSERT_FALSE(bench.told.empty());
  for (const auto& one : bench.told) EXPECT_EQ(one.metric + " " + one.kind, "valid-rmse turned");
}

// ------------------------------------------------------------------------------------ metamorphic

TEST(Course, ScaleAndPlaceOfALossChangeNothing) {
  const auto steps_of = [](CourseJob job, double scale, double shift) {
    job.scale = scale;
    job.shift = shift;
    std::vector<std::string> out;
    for (const auto& one : job.run().told) {
      out.push_back(one.kind + " " + std::to_string(one.finding.first_step.value_or(-1)));
    }
    return out;
  };
  const Curve late = [](int i) { return i < 600 ? falls(60)(i) : 2.0; };
  const Curve jumps = [](int i) { return falls(60)(i) + (i >= 700 ? 0.8 : 0); };
  for (const Curve& curve : {late, jumps}) {
    const auto plain = steps_of({.loss = curve}, 1, 0);
    EXPECT_FALSE(plain.empty());
    EXPECT_EQ(plain, steps_of({.loss = curve}, 1024, 0));
    EXPECT_EQ(plain, steps_of({.loss = curve}, 1, -1.5)) << "across zero";
    EXPECT_EQ(plain, steps_of({.loss = curve}, 1, 100));
  }
}

TEST(Course, WhatIsNoNumberIsLeftOut) {
  SeriesBench bench("course");
  for (int i = 0; i < 7; ++i) EXPECT_EQ(bench.step(Mode::train, i, {{"loss", 1}}), "");
  EXPECT_EQ(bench.step(Mode::train, 7, {{"loss", std::nan("")}}), "");
  EXPECT_EQ(bench.step(Mode::train, 8, {{"loss", 1}}), "loss: insufficient_data");
}

}  // namespace
}  // namespace tocsin::rules
