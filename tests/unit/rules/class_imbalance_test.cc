#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using Counts = std::vector<double>;

struct Labelled : SteppedJob {
  explicit Labelled(const std::string& with = "{}", const std::string& preset = "original")
      : SteppedJob{RuleHarness::of("class_imbalance", with, preset)} {
    rule.feed(worker.dictionary({{core::DictionaryType::tensor, "labels", Role::label},
                                 {core::DictionaryType::tensor, "my_labels"},
                                 {core::DictionaryType::tensor, "predictions", Role::prediction}}));
  }
  void labels(const Counts& counts, const Counts& correct = {}, const std::string& name = "labels",
              Role role = Role::label) {
    std::vector<Vector> vectors{{core::VectorStat::class_counts, 0, counts}};
    if (!correct.empty()) vectors.push_back({core::VectorStat::class_correct, 0, correct});
    rule.feed(worker.summary(mode, step, {row_of(name, role, 100, 1, 1)}, {}, vectors));
    end();
  }
};

TEST(ClassImbalance, FiresWhenTheLargestClassIsManyTimesTheSmallest) {
  Labelled job;
  job.labels({990, 10}, {990, 10});
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "imbalance");
  EXPECT_EQ(issues[0].evidence.observed.value, 99);
  EXPECT_EQ(issues[0].summary,
            "Class 0 has 990 labels in labels, class 1 10: 99 times as many (limit 10) at train "
            "step 0.");
}

TEST(ClassImbalance, TheRatioItselfIsRight) {
  Labelled job;
  job.labels({500, 50});
  EXPECT_TRUE(job.rule.firing().empty());
  job.labels({1, 0});
  EXPECT_EQ(job.rule.firing().size(), 1U) << "501 against 50";
}

TEST(ClassImbalance, WaitsForEnoughLabels) {
  Labelled job;
  job.labels({498, 1});
  EXPECT_TRUE(job.rule.firing().empty());
  job.labels({1, 0});
  EXPECT_EQ(job.rule.firing().size(), 1U) << "the 500th label";
}

TEST(ClassImbalance, RareClassesMayBeRareByChance) {
  Labelled job("{samples: 100}");
  job.labels({99, 1});  // the largest class is not yet 10 · 10
  EXPECT_TRUE(job.rule.firing().empty());
  job.labels({1, 0});
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(ClassImbalance, AClassThatNeverCameCountsWhenTheirNumberIsKnown) {
  Labelled unknown;
  unknown.labels({300, 300});
  EXPECT_TRUE(unknown.rule.firing().empty());
  Labelled known("{num_classes: 3}");
  known.labels({300, 300});
  ASSERT_EQ(known.rule.firing().size(), 1U);
  EXPECT_EQ(known.rule.firing()[0].evidence.observed.value, HUGE_VAL);
}

TEST(ClassImbalance, IgnoredLabelsAreNoClass) {
  Labelled job("{ignore_labels: [2, -100]}");
  job.labels({300, 300, 1});
  EXPECT_TRUE(job.rule.firing().empty());
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(ClassImbalance, RareClassesThatArePredictedWrong) {
  Labelled job;
  job.labels({400, 120}, {400, 36});  // exactly 70 % wrong
  EXPECT_TRUE(job.rule.firing().empty());
  Labelled worse;
  worse.labels({400, 120}, {400, 35});
  const auto issues = worse.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "misprediction");
  EXPECT_DOUBLE_EQ(issues[0].evidence.observed.value, 85.0 / 120);
}

TEST(ClassImbalance, FrequentClassesAreJudgedOnlyWhenAsked) {
  Labelled scope;
  scope.labels({400, 300}, {0, 0});
  EXPECT_TRUE(scope.rule.firing().empty());
  Labelled all("{misprediction_scope: all}");
  all.labels({400, 300}, {0, 0});
  EXPECT_EQ(all.rule.firing().size(), 1U);
}

TEST(ClassImbalance, PredictionsOfLongAgoAreForgotten) {
  Labelled job;
  job.labels({300, 100}, {300, 0});
  EXPECT_TRUE(job.rule.firing().empty()) << "400 labels";
  job.labels({380, 120}, {380, 120});  // by itself 500: the first step leaves the window
  EXPECT_TRUE(job.rule.firing().empty());
  job.labels({0, 1}, {0, 0});
  EXPECT_TRUE(job.rule.firing().empty());
  Labelled kept;
  kept.labels({300, 100}, {300, 0});
  kept.labels({370, 20}, {370, 20});  // 390: the first step is still needed; 100 of 120 are wrong
  ASSERT_EQ(kept.rule.firing().size(), 1U);
  EXPECT_DOUBLE_EQ(kept.rule.firing()[0].evidence.observed.value, 100.0 / 120);
}

TEST(ClassImbalance, WithoutPredictionsOnlyThatCheckIsOff) {
  Labelled job;
  job.labels({400, 120});
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(ClassImbalance, OneClassAloneIsToldByOurPreset) {
  Labelled job("{}", "tocsin");
  job.labels({0, 78});
  job.labels({0, 1});
  EXPECT_TRUE(job.rule.firing().empty());
  job.labels({0, 1});
  ASSERT_EQ(job.rule.firing().size(), 1U);
  EXPECT_EQ(job.rule.firing()[0].kind, "single_class");
  EXPECT_EQ(job.rule.firing()[0].summary,
            "All 80 labels of labels are of class 1 at train step 2.");
  Labelled early("{}", "tocsin");
  early.labels({0, 300});
  early.labels({0, 300});
  EXPECT_TRUE(early.rule.firing().empty()) << "two steps may be two shards";
  Labelled two("{}", "tocsin");
  for (int i = 0; i < 4; ++i) two.labels({1, 20});
  EXPECT_TRUE(two.rule.firing().empty());
  Labelled original;
  original.labels({0, 700});
  EXPECT_TRUE(original.rule.firing().empty());
}

// InfoNCE against a queue: the right one of many is always the first, and few are told.
TEST(ClassImbalance, OneClassThatIsNotLearnedIsNoAnswerThatAlwaysHolds) {
  Labelled pairs("{}", "tocsin");
  for (int i = 0; i < 20; ++i) pairs.labels({32, 0}, {10, 0});
  EXPECT_TRUE(pairs.rule.firing().empty());
  pairs.labels({32, 0}, {32, 0});
  EXPECT_TRUE(pairs.rule.firing().empty()) << "one step tells too little";
  pairs.labels({32, 0}, {28, 0});
  EXPECT_TRUE(pairs.rule.firing().empty()) << "4 of 64 are wrong";
  pairs.labels({32, 0}, {32, 0});
  EXPECT_TRUE(pairs.rule.firing().empty()) << "still 4";
  pairs.labels({32, 0}, {31, 0});
  ASSERT_EQ(pairs.rule.firing().size(), 1U) << "one of 64: the answer is known by now";
  EXPECT_EQ(pairs.rule.firing()[0].kind, "single_class");
  Labelled small("{}", "tocsin");
  for (int i = 0; i < 40; ++i) small.labels({4, 0}, {i < 25 ? 0.0 : 4.0, 0});
  EXPECT_EQ(small.rule.firing().size(), 1U) << "of steps of four the newest fifteen are asked";
}

TEST(ClassImbalance, OurPresetAsksThatTheSmallestClassIsSurelyTooSmall) {
  Labelled job("{}", "tocsin");
  job.labels({1, 109});
  EXPECT_TRUE(job.rule.firing().empty()) << "10.9 - 1 is less than 3 * sqrt(10.9)";
  job.labels({0, 2});
  ASSERT_EQ(job.rule.firing().size(), 1U);
  EXPECT_EQ(job.rule.firing()[0].kind, "imbalance");
  Labelled chance("{}", "tocsin");
  chance.labels({10, 150}, {0, 150});
  EXPECT_TRUE(chance.rule.firing().empty()) << "nor are rare classes that are not learnt yet told";
  Labelled off("{deviations: 0}", "tocsin");
  off.labels({10, 150});
  EXPECT_EQ(off.rule.firing().size(), 1U);
}

TEST(ClassImbalance, MoreLabelsThanSamplesAreWordsOrPoints) {
  const auto kind = [](const std::string& with, std::vector<std::int64_t> shape) {
    RuleHarness rule = RuleHarness::of("class_imbalance", with, "tocsin");
    FakeWorker worker;
    rule.feed(worker.dictionary(
        {{core::DictionaryType::tensor, "labels", Role::label},
         {core::DictionaryType::tensor, "x", Role::input, core::Dtype::f32, std::move(shape)}}));
    rule.feed(worker.summary(
        Mode::train, 0,
        {row_of("x", Role::input, 100, 1, 1), row_of("labels", Role::label, 400, 1, 1)}, {},
        {{core::VectorStat::class_counts, 1, {395, 5}}}));
    rule.feed(worker.step_end(Mode::train, 0));
    return rule.firing().empty() ? std::string() : rule.firing()[0].kind;
  };
  EXPECT_EQ(kind("{}", {4, 100}), "");
  EXPECT_EQ(kind("{dense: true}", {4, 100}), "imbalance");
  EXPECT_EQ(kind("{}", {399, 2}), "");
  EXPECT_EQ(kind("{}", {400, 2}), "imbalance");
  const auto alone = [](std::vector<std::int64_t> shape) {
    RuleHarness rule = RuleHarness::of("class_imbalance", "{}", "tocsin");
    FakeWorker worker;
    rule.feed(worker.dictionary({{core::DictionaryType::tensor, "labels", Role::label,
                                  core::Dtype::i64, std::move(shape)}}));
    rule.feed(worker.summary(Mode::train, 0, {row_of("labels", Role::label, 400, 1, 1)}, {},
                             {{core::VectorStat::class_counts, 0, {395, 5}}}));
    rule.feed(worker.step_end(Mode::train, 0));
    return rule.firing().size();
  };
  EXPECT_EQ(alone({20, 20}), 0U) << "their own shape says so too";
  EXPECT_EQ(alone({400}), 1U);
  EXPECT_EQ(alone({400, 2}), 1U) << "one-hot";
  EXPECT_EQ(kind("{}", {7, 400, 3}), "imbalance") << "sequences first";
  EXPECT_EQ(kind("{}", {7, 3, 20, 20}), "") << "an image's points";
}

TEST(ClassImbalance, WorkersAreAddedUp) {
  RuleHarness rule = RuleHarness::of("class_imbalance", "{}", "original");
  FakeWorker zero("digits", "two", 0, 2);
  FakeWorker one("digits", "two", 1, 2);
  const auto send = [&](FakeWorker& worker, Counts counts) {
    rule.feed(worker.summary(Mode::train, 0, {row_of("labels", Role::label, 100, 1, 1)}, {},
                             {{core::VectorStat::class_counts, 0, std::move(counts)}}));
    rule.feed(worker.step_end(Mode::train, 0));
  };
  send(one, {0, 600});  // each has one class only
  EXPECT_TRUE(rule.firing().empty());
  send(zero, {50});
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].evidence.observed.value, 12);
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "");
}

TEST(ClassImbalance, ModesAreCountedApart) {
  Labelled job;
  job.labels({499, 0});
  job.mode = Mode::global;
  job.step = 0;
  job.labels({1, 1});
  EXPECT_EQ(job.status(), "NoData");
}

TEST(ClassImbalance, NamesAndRolesTellWhatLabelsAre) {
  Labelled job;
  job.labels({990, 10}, {}, "my_labels", Role::other);
  EXPECT_EQ(job.rule.firing().size(), 1U);
  Labelled other;
  other.labels({990, 10}, {}, "predictions", Role::prediction);
  EXPECT_TRUE(other.rule.firing().empty());
}

TEST(ClassImbalance, CountsThatAreNoneAddNothing) {
  for (const auto& [counts, correct] :
       std::vector<std::pair<Counts, Counts>>{{{990, 10.5}, {}},
                                              {{990, -1}, {}},
                                              {{990, std::nan("")}, {}},
                                              {{HUGE_VAL, 1}, {}},
                                              {{990, 10}, {990}},
                                              {{990, 10}, {990, 11}},
                                              {Counts(70000, 1), {}}}) {
    Labelled job;
    job.labels(counts, correct);
    EXPECT_TRUE(job.rule.firing().empty());
    EXPECT_EQ(job.status(), "NoData");
  }
}

TEST(ClassImbalance, ClassesBeyondTheirNumberAreAnError) {
  Labelled job("{num_classes: 2}");
  job.labels({400, 400, 1});
  EXPECT_EQ(job.status(), "Error");
  Labelled again("{num_classes: 2}");
  again.labels({400, 400, 1});
  for (int i = 0; i < 20; ++i) again.labels({400, 400});
  EXPECT_NE(again.status(), "Error");  // it could be judged again
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(ClassImbalance, StepsWithoutLabelsAreNotJudged) {
  Labelled job("{clear_after: 1}");
  job.labels({990, 10});
  job.labels({0, 0});
  for (int i = 0; i < 5; ++i) job.end();
  EXPECT_TRUE(job.rule.resolved().empty());
  job.labels({0, 500});
  EXPECT_EQ(job.rule.resolved().size(), 1U);
}

TEST(ClassImbalance, RefusesWhatCannotBe) {
  for (const char* with :
       {"{threshold_imbalance: 0.5}", "{samples: 0}", "{num_classes: 1}", "{labels_regex: '('}",
        "{predictions_regex: '('}", "{misprediction_scope: some}", "{ignore_labels: [many]}",
        "{min_class_samples: 0}"}) {
    EXPECT_NE(read_rules_text("  - {use: class_imbalance, with: " + std::string(with) + "}").errors,
              "")
        << with;
  }
}

TEST(ClassImbalance, OneClassAfterTheOtherIsNoShuffledData) {
  Labelled job("{}", "tocsin");
  job.labels({32});
  job.labels({0, 32});
  EXPECT_TRUE(job.rule.firing().empty());
  job.labels({0, 20, 12});
  EXPECT_TRUE(job.rule.firing().empty()) << "two of three are too few";
  job.labels({0, 0, 0, 32});
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "sorted");
  EXPECT_EQ(issues[0].summary,
            "3 of the latest 4 steps have labels of one class only in labels at train step 3, "
            "although 4 classes occur.");
}

}  // namespace
}  // namespace tocsin::rules
