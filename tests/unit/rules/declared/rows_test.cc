// Declarative rules over rows, through the engine: values, windows, aggregates, the life of issues.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

/// One metric of one worker, step by step; which steps the rule hit at.
struct Curve {
  RuleHarness rule;
  FakeWorker worker;

  explicit Curve(const std::string& keys)
      : rule("  - {name: r, select: 'metric(\"x\")', clear_after: 1, " + keys + "}") {
    rule.feed(worker.dictionary({{core::DictionaryType::scalar, "x", Role::metric}}));
  }
  /// Steps (of these, from `first` on) after which an issue stands open.
  std::vector<std::int64_t> open_at(const std::vector<double>& values, std::int64_t first = 0,
                                    std::int64_t every = 1) {
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t step = first + static_cast<std::int64_t>(i) * every;
      worker.header.time += kSecond / 10;
      rule.feed(worker.scalars(Mode::train, {{"x", step, values[i], Role::metric}}));
      if (rule.firing().size() > rule.resolved().size()) out.push_back(step);
    }
    return out;
  }
};
using Steps = std::vector<std::int64_t>;
const double kNaN = std::nan("");

TEST(DeclaredRows, JudgesTheNewestValueByDefault) {
  EXPECT_EQ(Curve("when: 'value > 2'").open_at({1, 2, 3, 2, 4}), (Steps{2, 4}));
  EXPECT_EQ(Curve("when: 'value >= 2 and not (value == 3)'").open_at({1, 2, 3, 4}), (Steps{1, 3}));
}

TEST(DeclaredRows, PrecedenceIsThatOfArithmetic) {
  // 2 + 3 * 4 - -1 = 15; a or b and c = a or (b and c); not binds before and.
  EXPECT_EQ(Curve("when: '2 + 3 * 4 - -1 == 15 and 12 / 4 / 3 == 1 and value > 0'").open_at({1}),
            (Steps{0}));
  EXPECT_EQ(Curve("when: 'value > 1 or value > 5 and value < 0'").open_at({2}), (Steps{0}));
  EXPECT_EQ(Curve("when: 'not value > 1 and value > 0'").open_at({1, 2}), (Steps{0}));
}

TEST(DeclaredRows, UnitsAreSharesSecondsAndBytes) {
  for (const char* when :
       {"value == 5%", "value == 5 %", "value * 20 == 1000ms", "value == 50ms",
        "value * 1000 == 50s", "value * 1200 == 1m", "value * 72000 == 1h", "value * 20480 == 1KiB",
        "value * 20 == 1000000us", "value * 20971520 == 1 MiB", "value * 21474836480 == 1GiB",
        "value == 5e-2"}) {
    // The products are exact up to the last bit or so: compare by quotient where they are not.
    const std::string text(when);
    const auto at = text.find("==");
    const std::string left = text.substr(0, at);
    const std::string right = text.substr(at + 2);
    EXPECT_EQ(Curve("when: 'abs((" + left + ") / (" + right + ") - 1) < 1e-12'").open_at({0.05}),
              (Steps{0}))
        << when;
  }
}

TEST(DeclaredRows, AShareIsTheNumberThatItSpells) {
  for (int percent = 1; percent < 100; ++percent) {
    const std::string share = std::to_string(percent);
    const double value = std::stod("0." + std::string(percent < 10 ? "0" : "") + share);
    EXPECT_EQ(Curve("when: 'value == " + share + "%'").open_at({value}), (Steps{0})) << share;
  }
  EXPECT_EQ(Curve("when: 'value == 29us'").open_at({29e-6}), (Steps{0}));
}

TEST(DeclaredRows, ANegativeLimitIsALimit) {
  Curve curve("when: 'value < -2'");
  curve.open_at({-3});
  ASSERT_EQ(curve.rule.firing().size(), 1U);
  const core::Issue issue = curve.rule.firing()[0];
  EXPECT_EQ(issue.summary, "x: value is -3 (< -2) at train step 0 on worker_0.");
  EXPECT_EQ(issue.evidence.threshold->name, "limit");
  EXPECT_EQ(issue.evidence.threshold->value, -2);
  ASSERT_EQ(issue.evidence.affected.worst.size(), 1U);
  EXPECT_EQ(issue.evidence.affected.worst[0].second, -3);
}

TEST(DeclaredRows, WhatIsNotKnownIsNeitherOkNorAHit) {
  Curve curve("when: 'value > 2'");
  EXPECT_EQ(curve.open_at({3, kNaN, kNaN, 1}), (Steps{0, 1, 2}));  // NaN does not resolve either
  EXPECT_EQ(Curve("when: 'not finite(value) or value > 9'").open_at({1, kNaN, INFINITY}),
            (Steps{1, 2}));
  EXPECT_EQ(Curve("when: 'nan + posinf > 0'").open_at({1, kNaN, INFINITY}), (Steps{1, 2}));
  EXPECT_EQ(Curve("when: 'value > 1 and prev(value, 1) > 1'").open_at({3, 0, 3, 3}), (Steps{3}));
}

TEST(DeclaredRows, ASlidingWindowIsJudgedOnceItIsFull) {
  // last 3 steps: full at step 2; means 2, 3, 4, 5.
  EXPECT_EQ(Curve("window: last 3 steps, when: 'mean(value) > 2.5'").open_at({1, 2, 3, 4, 5, 6}),
            (Steps{3, 4, 5}));
  // Boundary: two points would do, three steps must have passed.
  EXPECT_EQ(Curve("window: last 3 steps, when: 'count(value) == 2'").open_at({1, 1, 1}, 0, 2),
            (Steps{2, 4}));
}

TEST(DeclaredRows, StepsCountNotPoints) {
  // Saved every 10 steps: (s − 20, s] holds two points.
  EXPECT_EQ(Curve("window: last 20 steps, when: 'count(value) == 2 and sum(value) == 5'")
                .open_at({1, 2, 3, 4}, 0, 10),
            (Steps{20}));
}

TEST(DeclaredRows, EveryAggregateOfAWindow) {
  // The window of 4 at the end: 4, 1, 3, 2 at steps 2…5; times are 0.1 s apart.
  const std::vector<double> values{9, 9, 4, 1, 3, 2};
  const std::vector<std::pair<std::string, double>> expected{
      {"count(value)", 4},
      {"count(value > 2)", 2},
      {"sum(value)", 10},
      {"mean(value)", 2.5},
      {"min(value)", 1},
      {"max(value)", 4},
      {"first(value)", 4},
      {"last(value)", 2},
      {"delta(value)", -2},
      {"median(value)", 2.5},
      {"quantile(value, 0.25)", 1.75},
      {"std(value)", std::sqrt(1.25)},
      {"slope(value)", -0.4},  // Σ (x − 1.5)(y − 2.5) / Σ (x − 1.5)² = −2/5
      {"steps_since_min(value)", 2},
      {"steps_since_max(value)", 3},
      {"ewma(value, 0.5)", 2.25},  // 4, 2.5, 2.75, 2.375 → see below
      {"prev(value, 2)", 1}};
  for (const auto& [text, value] : expected) {
    const double exact = text == "ewma(value, 0.5)" ? 2.375 : value;
    const std::string when =
        "when: 'step == 5 and abs(" + text + " - (" + std::to_string(exact) + ")) < 1e-5'";
    EXPECT_EQ(Curve("window: last 4 steps, " + when).open_at(values), (Steps{5})) << text;
  }
  // (2 − mean(4, 1, 3)) / std(4, 1, 3) = (2 − 8/3) / √(14/9)
  EXPECT_EQ(
      Curve("window: last 4 steps, when: 'step == 5 and abs(zscore(value) + 0.534522) < 1e-5'")
          .open_at(values),
      (Steps{5}));
}

TEST(DeclaredRows, TheWindowBefore) {
  // last 2 steps against the 2 before: full at step 3.
  EXPECT_EQ(Curve("window: last 2 steps, when: 'mean(value) > previous(mean(value))'")
                .open_at({1, 1, 1, 1, 5, 5, 5, 5}),
            (Steps{4, 5, 6}));
}

TEST(DeclaredRows, SinceStartKeepsRunningNumbers) {
  EXPECT_EQ(Curve("window: since start, when: 'steps_since_max(value) > 2'")
                .open_at({1, 5, 4, 3, 2, 6, 1}),
            (Steps{4}));
  EXPECT_EQ(Curve("window: since start, when: 'mean(value) == 2 and max(value) == 3'")
                .open_at({1, 2, 3, kNaN}),
            (Steps{2, 3}));
  EXPECT_EQ(
      Curve("window: since start, when: 'abs(slope(value) - 2) < 1e-9'").open_at({1, 3, 5, 0}),
      (Steps{1, 2}));
  EXPECT_EQ(Curve("window: since start, when: 'ewma(value, 0.5) == 2.5'").open_at({4, 1, 9}),
            (Steps{1}));
}

TEST(DeclaredRows, AQuantileOfManyValuesIsNear) {
  Curve curve(
      "window: since start, when: 'step == 4999 and abs(median(value) / 2500 - 1) < 4.4% "
      "and abs(quantile(value, 0.9) / 4500 - 1) < 4.4%'");
  std::vector<double> values;
  for (int i = 0; i < 5000; ++i) values.push_back(1 + (i * 2741) % 5000);
  EXPECT_EQ(curve.open_at(values), (Steps{4999}));
}

TEST(DeclaredRows, PiecesAreJudgedWhenTheyAreOver) {
  // [0, 3), [3, 6): each with its last step.
  EXPECT_EQ(Curve("window: every 3 steps, when: 'sum(value) > 5'").open_at({1, 1, 1, 2, 2, 2, 0}),
            (Steps{5, 6}));
  // Without its last step a piece is over when a later one comes.
  EXPECT_EQ(Curve("window: every 4 steps, when: 'count(value) == 2'").open_at({1, 1, 1}, 0, 2),
            (Steps{4}));
  EXPECT_EQ(Curve("window: every 2 steps, when: 'mean(value) > previous(mean(value))'")
                .open_at({1, 1, 3, 3, 1, 1}),
            (Steps{3, 4}));
}

TEST(DeclaredRows, AHoppingWindowIsJudgedAtItsHops) {
  // The last 4 steps at every second: means at 3: 2.5, 5: 4.5, 7: 6.5.
  EXPECT_EQ(Curve("window: last 4 steps every 2 steps, when: 'mean(value) > 4'")
                .open_at({1, 2, 3, 4, 5, 6, 7, 8}),
            (Steps{5, 6, 7}));
}

TEST(DeclaredRows, WindowsOfTimeFollowTheMeasurement) {
  // 0.1 s a frame: 300 ms hold three points, once as much has passed.
  EXPECT_EQ(Curve("window: last 300ms, when: 'count(value) == 3 and sum(value) > 6'")
                .open_at({1, 2, 3, 4, 0}),
            (Steps{3, 4}));
  EXPECT_EQ(Curve("window: last 300ms, when: 'abs(rate(value) - 10) < 1e-6'").open_at({1, 2, 3, 4}),
            (Steps{3}));
}

TEST(DeclaredRows, ASessionEndsWithAPause) {
  Curve curve("window: session 1s, when: 'count(value) == 3'");
  curve.open_at({1, 1, 1});
  EXPECT_TRUE(curve.rule.firing().empty());
  curve.worker.header.time += 5 * kSecond;
  EXPECT_EQ(curve.open_at({1}, 3), (Steps{3}));
}

TEST(DeclaredRows, HitsInARowRaiseAndOksResolve) {
  Curve curve("when: 'value > 2', for: 3");
  EXPECT_EQ(curve.open_at({3, 3, 1, 3, 3, 3, 1}), (Steps{5}));
  EXPECT_EQ(curve.rule.firing().size(), 1U);
  EXPECT_EQ(curve.rule.resolved().size(), 1U);
}

TEST(DeclaredRows, WhatGoesOnIsReportedAgainAfterItsCooldown) {
  Curve usual("when: 'value > 2'");
  usual.open_at({3, 3, 3});
  EXPECT_EQ(usual.rule.firing().size(), 1U);
  Curve often("when: 'value > 2', cooldown: 0s");
  often.open_at({3, 3, 3});
  EXPECT_EQ(often.rule.firing().size(), 3U);
}

TEST(DeclaredRows, StepsThatGoBackBeginAnew) {
  Curve curve("window: last 2 steps, when: 'mean(value) > 2'");
  curve.open_at({9, 9});
  EXPECT_EQ(curve.rule.firing().size(), 1U);
  ++curve.worker.header.incarnation;
  curve.worker.header.sequence = 0;
  curve.rule.feed(curve.worker.start());
  EXPECT_TRUE(curve.open_at({9}).size() <= 1U);
}

TEST(DeclaredRows, ModesAndWorkersAreUnitsOfTheirOwn) {
  RuleHarness rule("  - {name: r, select: 'metric(\"loss\"){mode=\"eval\"}', when: 'value > 1'}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss}}));
  rule.feed(worker.scalars(Mode::train, {{"loss", 0, 5}}));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.scalars(Mode::eval, {{"loss", 0, 5}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("mode"), "eval");
  EXPECT_EQ(rule.firing()[0].labels.get("metric"), "loss");
}

// Of every shape: rows, folded rows, steps, several selections.
TEST(DeclaredRows, AnEpochIsAPassThroughItsMode) {
  const auto hits = [](const std::string& looks_at, std::uint64_t first_sequence = 0) {
    RuleHarness rule("  - {name: r, " + looks_at + ", clear_after: 1}");
    FakeWorker worker;
    worker.header.sequence = first_sequence;
    rule.feed(worker.start());
    rule.feed(worker.dictionary({{core::DictionaryType::scalar, "x", Role::metric}}));
    for (std::int64_t step = 0; step < 12; ++step) {
      worker.header.pass = static_cast<std::uint32_t>(step / 3);  // three steps each
      rule.feed(worker.scalars(Mode::train, {{"x", step, 1, Role::metric}}));
      rule.feed(worker.step_end(Mode::train, step));
      if (step % 3 != 2) continue;
      rule.feed(worker.scalars(Mode::eval, {{"x", step / 3, 1, Role::metric}}));
      rule.feed(worker.step_end(Mode::eval, step / 3));
    }
    rule.feed(worker.end());
    Steps out;
    for (const core::Issue& issue : rule.firing()) out.push_back(issue.step.value_or(-1));
    return out;
  };
  const std::string of_train = "select: 'metric(\"x\"){mode=\"train\"}', when: 'epoch == 2'";
  EXPECT_EQ(hits(of_train), (Steps{6}));
  EXPECT_EQ(hits("select: 'metric(\"x\"){mode=\"eval\"}', when: 'epoch >= 2'"), (Steps{2}));
  EXPECT_EQ(
      hits(
          "select: 'metric(\"x\"){mode=\"train\"}', by: [metric], when: 'across(max, epoch) == 2'"),
      (Steps{6}));
  EXPECT_EQ(hits("select: 'step(){mode=\"train\"}', when: 'epoch == 2'"), (Steps{6}));
  EXPECT_EQ(
      hits("let: {t: 'metric(\"x\"){mode=\"train\"}', e: 'metric(\"x\"){mode=\"eval\"}'}, when: "
           "'t.epoch > 2 and e.epoch == 2'"),
      (Steps{9}));
}

TEST(DeclaredRows, StatisticsOfTensors) {
  // x = [3, −4, 0, 0]: l2 5, mean −0.25, abs_max 4, m2 24.75.
  const std::string when =
      "count == 4 and sum == -1 and sumsq == 25 and m2 == 24.75 and abs_sum == 7 and min == -4 and "
      "max == 3 and nan == 0 and zero == 2 and negative == 1 and positive == 1 and mean == -0.25 "
      "and abs_mean == 1.75 and l1 == 7 and l2 == 5 and variance == 6.1875 and abs_max == 4 and "
      "abs(std - 2.487469) < 1e-6 and abs_variance == 3.1875 and abs(abs_std - 1.785357) < 1e-6";
  RuleHarness rule("  - {name: r, select: 'collection(\"gradients\")', when: '" + when + "'}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::tensor, "g", Role::gradient}}));
  rule.feed(
      worker.tensors(Mode::train, 0, {{"w", {3, -4, 0, 0}, Role::weight}, {"g", {3, -4, 0, 0}}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("tensor"), "g");
  EXPECT_EQ(rule.firing()[0].evidence.tensor->collection, "gradients");
}

TEST(DeclaredRows, AnEmptyTensorHasNoExtremes) {
  RuleHarness rule("  - {name: r, select: 'tensor(\".*\")', when: 'min < 1 or mean > 0'}");
  FakeWorker worker;
  core::SummaryRow empty;
  empty.name = core::name_hash("e");
  empty.meta = core::meta::make(core::Dtype::f32, Role::gradient);
  rule.feed(worker.summary(Mode::train, 0, {empty}));
  EXPECT_TRUE(rule.firing().empty());
}

TEST(DeclaredRows, AStatisticThatIsNotSentIsNotKnown) {
  RuleHarness rule("  - {name: r, select: 'tensor(\".*\")', when: 'delta_l2 > 1'}");
  FakeWorker worker;
  const auto row = row_of("w", Role::weight, 10, 1, 1);
  rule.feed(worker.summary(Mode::train, 0, {row}));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.summary(Mode::train, 1, {row}, {{core::SparseStat::delta_l2, 0, 3.0}}));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(DeclaredRows, SaysWhatItSawInTheRulesOwnWords) {
  Curve curve(
      "window: last 3 steps, when: 'value > 2 * median(value)', severity: critical, "
      "evidence: 'norm {value}, usual {median(value)} of {metric} on {worker} in {mode}'");
  curve.open_at({1, 1, 9});
  ASSERT_EQ(curve.rule.firing().size(), 1U);
  const core::Issue issue = curve.rule.firing()[0];
  EXPECT_EQ(issue.summary, "x: norm 9, usual 1 of x on worker_0 in train.");
  EXPECT_EQ(issue.rule, "r");
  EXPECT_EQ(issue.rule_type, "declared");
  EXPECT_EQ(issue.severity, core::Severity::critical);
  EXPECT_EQ(issue.evidence.observed.name, "value");
  EXPECT_EQ(issue.evidence.observed.value, 9);
  EXPECT_EQ(issue.evidence.op, ">");
  EXPECT_EQ(issue.evidence.threshold->name, "2 * median(value)");
  EXPECT_EQ(issue.evidence.threshold->value, 2);
  EXPECT_EQ(issue.evidence.window.first, 0);
  EXPECT_EQ(issue.evidence.window.last, 2);
  EXPECT_EQ(issue.evidence.window.points, 3U);
}

TEST(DeclaredRows, AShadowIsMarked) {
  Curve curve("when: 'value > 1', shadow: true, actions: [stop]");
  curve.open_at({2});
  ASSERT_EQ(curve.rule.firing().size(), 1U);
  EXPECT_TRUE(curve.rule.firing()[0].shadow);
}

}  // namespace
}  // namespace tocsin::rules
