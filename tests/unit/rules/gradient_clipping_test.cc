#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

Scalar metric(std::string name, std::int64_t step, double value) {
  return {std::move(name), step, value, Role::metric};
}

/// A rule with a worker that sends one step after the other.
struct ClippedJob {
  RuleHarness rule;
  FakeWorker worker;
  Mode mode = Mode::train;
  std::int64_t step = 0;

  explicit ClippedJob(const std::string& with, const std::string& preset = "original")
      : rule(RuleHarness::of("gradient_clipping", with, preset)) {
    for (const char* name : {"grad_norm", "clip_norm", "clipped"}) {
      rule.feed(worker.dictionary({{core::DictionaryType::scalar, name, Role::metric}}));
    }
  }
  void norm(double value, int times = 1) {
    for (int i = 0; i < times; ++i) {
      rule.feed(worker.scalars(mode, {metric("grad_norm", step, value)}));
      end();
    }
  }
  void gradients(const std::vector<core::SummaryRow>& rows) {
    rule.feed(worker.summary(mode, step, rows));
    end();
  }
  void end(std::uint64_t flags = 0) { rule.feed(worker.step_end(mode, step++, flags)); }
};

core::SummaryRow gradient(const std::string& name, double l2, std::uint64_t flags = 0) {
  return row_of(name, Role::gradient, 4, l2, 1, flags);
}

TEST(GradientClipping, MoreThanHalfOfAFullWindowIsTooOften) {
  ClippedJob job("{window: 10, max_norm: 1}");
  job.norm(1, 5);  // exactly the limit is not clipped
  job.norm(2, 5);  // exactly half of the window is right
  EXPECT_TRUE(job.rule.firing().empty());
  job.norm(2);
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "too_often");
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_0");
  EXPECT_EQ(issues[0].labels.get("mode"), "train");
  EXPECT_DOUBLE_EQ(issues[0].evidence.observed.value, 0.6);
  EXPECT_EQ(issues[0].evidence.window.first, 1);
  EXPECT_EQ(issues[0].evidence.window.points, 10U);
  EXPECT_EQ(issues[0].summary,
            "60 % of the last 10 updates were clipped (limit 50 %) at train step 10 on worker_0.");
}

TEST(GradientClipping, AWindowThatIsNotFullIsInsufficient) {
  ClippedJob job("{max_norm: 1}");
  job.norm(2, 19);
  job.rule.feed(job.worker.end());
  EXPECT_TRUE(job.rule.firing().empty());
  EXPECT_EQ(job.rule.rule_state(), "NoData");
}

TEST(GradientClipping, ThePresetsDifferInTheirWindow) {
  for (const auto& [preset, window] : {std::pair{"tocsin", 30}, {"original", 100}}) {
    ClippedJob job("{max_norm: 1}", preset);
    job.norm(11, window - 1);
    EXPECT_TRUE(job.rule.firing().empty()) << preset;
    job.norm(11);
    EXPECT_EQ(job.rule.firing().size(), 1U) << preset;
  }
}

TEST(GradientClipping, OursAsksHowMuchIsCutOff) {
  const auto judge = [](double norm, const std::string& with) {
    ClippedJob job(with, "tocsin");
    job.norm(norm, 16);
    job.norm(1, 14);  // not clipped: the median of the window is that of the others
    return job.rule.firing().size();
  };
  EXPECT_EQ(judge(10, "{max_norm: 1}"), 0U) << "exactly ten times";
  EXPECT_EQ(judge(10.1, "{max_norm: 1}"), 1U);
  EXPECT_EQ(judge(2, "{max_norm: 1, min_cut: 0}"), 1U);
  EXPECT_EQ(judge(3, "{max_norm: 1, min_cut: 2}"), 1U);
  // A limit of nothing takes everything.
  ClippedJob nothing("{window: 10}", "tocsin");
  for (int i = 0; i < 10; ++i) {
    nothing.rule.feed(nothing.worker.scalars(
        Mode::train, {metric("clip_norm", nothing.step, 0), metric("grad_norm", nothing.step, 1)}));
    nothing.end();
  }
  EXPECT_EQ(nothing.rule.firing().size(), 1U);
}

TEST(GradientClipping, OursSaysNothingWhereNobodySaysTheLimit) {
  ClippedJob flag("{window: 10}", "tocsin");
  for (int i = 0; i < 10; ++i) {
    flag.rule.feed(flag.worker.scalars(
        Mode::train, {metric("grad_norm", flag.step, 200), metric("clipped", flag.step, 1)}));
    flag.end();
  }
  flag.rule.feed(flag.worker.end());
  EXPECT_TRUE(flag.rule.firing().empty());
  EXPECT_EQ(flag.rule.rule_state(), "NoData");
}

TEST(GradientClipping, TheJobSaysWhereItClips) {
  ClippedJob limit("{window: 10}");
  ClippedJob flag("{window: 10}");
  for (int i = 0; i < 10; ++i) {
    limit.rule.feed(limit.worker.scalars(
        Mode::train, {metric("clip_norm", limit.step, 1), metric("grad_norm", limit.step, 2)}));
    limit.end();
    flag.rule.feed(flag.worker.scalars(
        Mode::train, {metric("grad_norm", flag.step, 2), metric("clipped", flag.step, 1)}));
    flag.end();
  }
  EXPECT_EQ(limit.rule.firing().size(), 1U);
  EXPECT_EQ(flag.rule.firing().size(), 1U);
}

TEST(GradientClipping, ASpikeIsFarAboveTheMedianOfTheNormsBefore) {
  ClippedJob job("{}");
  job.norm(1, 19);
  job.norm(11);  // nineteen before it are too few
  EXPECT_TRUE(job.rule.firing().empty());
  job.norm(10);  // exactly ten times the median of twenty
  EXPECT_TRUE(job.rule.firing().empty());
  job.norm(10.1);
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "spike");
  EXPECT_EQ(issues[0].step, 21);
  EXPECT_DOUBLE_EQ(issues[0].evidence.threshold->value, 10);
}

TEST(GradientClipping, AWindowBelowTwentyHasNoSpikes) {
  ClippedJob job("{window: 19, max_norm: 1000000}");
  job.norm(1, 40);
  job.norm(500);
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(GradientClipping, TheMedianForgetsWhatIsOlderThanTheWindow) {
  ClippedJob job("{window: 20}");
  job.norm(100, 30);
  job.norm(1, 20);
  job.norm(11);
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(GradientClipping, NormsThatAreNotFiniteCountNeitherWay) {
  ClippedJob job("{window: 10, max_norm: 1}");
  for (int i = 0; i < 5; ++i) {
    job.norm(2);
    job.norm(i % 2 == 0 ? std::nan("") : HUGE_VAL);
  }
  EXPECT_TRUE(job.rule.firing().empty()) << "five finite norms";
  job.norm(2, 5);
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(GradientClipping, WithoutANormTheGradientsAreAdded) {
  ClippedJob job("{window: 30, max_norm: 4.9}");
  for (int i = 0; i < 30; ++i) job.gradients({gradient("a", 3), gradient("b", 4)});
  ASSERT_EQ(job.rule.firing().size(), 1U);
  job.gradients({gradient("a", 30), gradient("b", 41)});
  ASSERT_EQ(job.rule.firing().size(), 2U);
  EXPECT_NEAR(job.rule.firing()[1].evidence.observed.value, std::hypot(30, 41), 1e-12);
}

TEST(GradientClipping, ALoggedNormWinsOverTheGradients) {
  ClippedJob job("{window: 10, max_norm: 4.9}");
  for (int i = 0; i < 10; ++i) {
    job.rule.feed(job.worker.scalars(Mode::train, {metric("grad_norm", job.step, 1)}));
    job.gradients({gradient("a", 3), gradient("b", 4)});
  }
  job.rule.feed(job.worker.end());
  EXPECT_TRUE(job.rule.firing().empty());
  EXPECT_EQ(job.rule.rule_state(), "NoIssuesFound");
}

TEST(GradientClipping, AMissingGradientMakesTheNormUnknown) {
  ClippedJob job("{window: 10, max_norm: 1}");
  job.gradients({gradient("a", 3), gradient("b", 4)});
  for (int i = 0; i < 20; ++i) job.gradients({gradient("a", 3)});
  EXPECT_TRUE(job.rule.firing().empty());
  for (int i = 0; i < 9; ++i) job.gradients({gradient("a", 3), gradient("b", 4)});
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(GradientClipping, APartOfAShardedGradientIsNoNorm) {
  ClippedJob job("{window: 10, max_norm: 1}");
  for (int i = 0; i < 20; ++i) job.gradients({gradient("a", 3, core::meta::kPartial)});
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(GradientClipping, TakesTheLossScaleOut) {
  ClippedJob job("{window: 10, max_norm: 1}");
  job.rule.feed(job.worker.scalars(Mode::train, {metric("loss_scale", 0, 4)}));
  for (int i = 0; i < 10; ++i) job.gradients({gradient("a", 4)});  // 1, not above the limit
  EXPECT_TRUE(job.rule.firing().empty());
  for (int i = 0; i < 10; ++i) job.gradients({gradient("a", 4, core::meta::kUnscaled)});
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(GradientClipping, UpdatesThatWereLeftOutDoNotCount) {
  ClippedJob job("{window: 10, max_norm: 1}");
  for (int i = 0; i < 20; ++i) {
    job.rule.feed(job.worker.scalars(Mode::train, {metric("grad_norm", job.step, 2)}));
    job.end(core::meta::kOptimizerSkipped);
  }
  for (int i = 0; i < 20; ++i) job.gradients({gradient("a", 4, core::meta::kOptimizerSkipped)});
  EXPECT_TRUE(job.rule.firing().empty());
  EXPECT_EQ(job.rule.rule_state(), "");
  job.norm(2, 10);
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(GradientClipping, EachModeAndWorkerIsJudgedByItself) {
  RuleHarness rule = RuleHarness::of("gradient_clipping", "{window: 10, max_norm: 1, min_cut: 0}");
  FakeWorker one("digits", "two", 0, 2);
  FakeWorker two("digits", "two", 1, 2);
  rule.feed(one.dictionary({{core::DictionaryType::scalar, "grad_norm", Role::metric}}));
  for (std::int64_t step = 0; step < 10; ++step) {
    for (const Mode mode : {Mode::train, Mode::global, Mode::eval}) {
      rule.feed(one.scalars(mode, {metric("grad_norm", step, 2)}));
      rule.feed(one.step_end(mode, step));
    }
    rule.feed(two.scalars(Mode::train, {metric("grad_norm", step, 1)}));
    rule.feed(two.step_end(Mode::train, step));
  }
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 2U) << "train and global of the first; eval has no gradients";
  EXPECT_EQ(issues[0].labels.get("mode"), "train");
  EXPECT_EQ(issues[1].labels.get("mode"), "global");
  EXPECT_EQ(issues[1].labels.get("worker"), "worker_0");
}

TEST(GradientClipping, RefusesWhatCannotBe) {
  for (const char* with :
       {"{window: 9}", "{max_clipped_fraction: 1.1}", "{max_norm: 0}", "{spike_factor: 1}"}) {
    EXPECT_NE(
        read_rules_text("  - {use: gradient_clipping, with: " + std::string(with) + "}").errors, "")
        << with;
  }
}

}  // namespace
}  // namespace tocsin::rules
