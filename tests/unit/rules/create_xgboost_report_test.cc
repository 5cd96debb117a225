#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rules/builtin/shared/class_scores.h"
#include "rules/builtin/shared/round_curve.h"
#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using ::testing::HasSubstr;
using ::testing::Not;

struct Boosting {
  RuleHarness rule = RuleHarness::of("create_xgboost_report");
  FakeWorker worker;

  Boosting() {
    using core::DictionaryType;
    std::vector<Entry> entries{{DictionaryType::tensor, "labels", Role::label},
                               {DictionaryType::tensor, "predictions", Role::prediction}};
    for (const char* name : {"train-logloss", "validation-logloss", "validation-auc"}) {
      entries.push_back({DictionaryType::scalar, name, Role::loss});
    }
    for (const char* name :
         {"feature_importance/gain/age", "feature_importance/gain/sex", "trees/depth", "roc/area",
          "roc/tpr/0.05", "roc/tpr/0.10", "residual/mean", "residual/std"}) {
      entries.push_back({DictionaryType::scalar, name, Role::metric});
    }
    entries.push_back({DictionaryType::scalar, "max_depth", Role::hyperparameter});
    rule.feed(worker.start());
    rule.feed(worker.dictionary(entries));
  }
  void round(std::int64_t number, std::vector<Scalar> scalars,
             const std::vector<Vector>& vectors = {}) {
    for (Scalar& one : scalars) one.step = number;
    if (!scalars.empty()) rule.feed(worker.scalars(Mode::train, scalars));
    if (!vectors.empty()) {
      rule.feed(worker.summary(Mode::train, number,
                               {summarize({"predictions", {0.25, 0.75}, Role::prediction}),
                                summarize({"labels", {0, 1, 1, 0}, Role::label})},
                               {}, vectors));
    }
    rule.feed(worker.step_end(Mode::train, number));
  }
  std::string sum() {
    rule.feed(worker.end());
    return summed_up(rule);
  }
};

TEST(CreateXgboostReport, IsRefreshedWhileTheTrainingGoesOn) {
  Boosting job;
  job.worker.step_time = 20 * kSecond;
  for (int i = 0; i < 7; ++i) job.round(i, {{"validation-logloss", i, 1.0 / (1 + i)}});
  const auto sums = sums_of(job.rule);
  ASSERT_EQ(sums.size(), 2U) << "the third minute is still open";
  EXPECT_EQ(sums[0].status, core::RuleState::in_progress);
  EXPECT_EQ(sums[1].time - sums[0].time, 60 * kSecond);
  EXPECT_THAT(sums[1].told, HasSubstr(R"("metrics":{"validation-logloss":)"));
  EXPECT_THAT(job.sum(), HasSubstr(R"("rounds":7)"));
}

TEST(CreateXgboostReport, CurvesWithTheirBestRoundAndWhatTheySay) {
  Boosting job;
  const double validation[] = {0.9, 0.5, 0.4, 0.5, 0.6};
  for (int i = 0; i < 5; ++i) {
    job.round(i, {{"train-logloss", 0, 1.0 / (1 + i)}, {"validation-logloss", 0, validation[i]}});
  }
  const std::string sum = job.sum();
  EXPECT_THAT(sum, HasSubstr(R"("task":"unknown","rounds":5)"));
  EXPECT_THAT(sum, HasSubstr(R"("validation-logloss":{"direction":"min","count":5,"last_round":4,)"
                             R"("last":0.6,"best_round":2,"best":0.4,)"));
  EXPECT_THAT(sum, HasSubstr(R"("rounds":[0,1,2,3,4],"values":[0.9,0.5,0.4,0.5,0.6])"));
  EXPECT_THAT(sum, HasSubstr("validation-logloss was best in round 2 and is 50 % worse"));
  EXPECT_THAT(sum, Not(HasSubstr("train-logloss was best"))) << "only the other sets say something";
  EXPECT_EQ(job.rule.rule_state(), "NoIssuesFound");
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(CreateXgboostReport, MetricsThatGrow) {
  Boosting job;
  for (int i = 0; i < 4; ++i) job.round(i, {{"validation-auc", 0, 0.6 + 0.1 * i}});
  const std::string sum = job.sum();
  EXPECT_THAT(sum, HasSubstr(R"("direction":"max")"));
  EXPECT_THAT(sum, HasSubstr("validation-auc was best in the last round: more rounds may help"));
}

TEST(CreateXgboostReport, ImportanceTreesAndHyperparameters) {
  Boosting job;
  job.round(0, {{"max_depth", 0, 6, Role::hyperparameter}});
  job.round(1, {{"feature_importance/gain/age", 0, 1, Role::metric}});
  job.round(2, {{"feature_importance/gain/age", 0, 1, Role::metric},
                {"feature_importance/gain/sex", 0, 3, Role::metric},
                {"trees/depth", 0, 5, Role::metric}});
  const std::string sum = job.sum();
  EXPECT_THAT(sum, HasSubstr(R"("hyperparameters":{"max_depth":6})"));
  EXPECT_THAT(sum, HasSubstr(R"("gain":{"round":2,"features":2,"shares":{"sex":0.75,"age":0.25}})"))
      << "of the last round alone";
  EXPECT_THAT(
      sum, HasSubstr(R"("trees":{"depth":{"direction":"max","count":1,"last_round":2,"last":5)"));
}

TEST(CreateXgboostReport, LabelsPredictionsAndConfusion) {
  Boosting job;
  job.round(0, {},
            {{core::VectorStat::class_counts, 1, {60, 40}},
             {core::VectorStat::class_correct, 1, {30, 10}}});
  job.round(5, {},
            {{core::VectorStat::class_counts, 1, {60, 40}},
             {core::VectorStat::class_correct, 1, {54, 20}},
             {core::VectorStat::confusion, 1, {0, 0, 54, 0, 1, 6, 1, 0, 20, 1, 1, 20}}});
  const std::string sum = job.sum();
  EXPECT_THAT(sum, HasSubstr(R"("task":"binary")"));
  EXPECT_THAT(sum, HasSubstr(R"("label_classes":{"round":5,"counts":[60,40]})"));
  EXPECT_THAT(sum, HasSubstr(R"("labels":{"round":5,"count":4,"mean":0.5,)"));
  EXPECT_THAT(sum, HasSubstr(R"("confusion":{"round":5,"matrix":[[54,6],[20,20]]})"));
  EXPECT_THAT(sum, HasSubstr(R"("accuracy":0.74,)"));
  EXPECT_THAT(sum, HasSubstr(R"("rounds":[0,5],"values":[0.25,0.5])")) << "of class 1";
  EXPECT_THAT(
      sum, HasSubstr(R"("missing":{"roc":"no hook had labels and predictions of the same worker)"));
}

TEST(CreateXgboostReport, TheCharacteristicOfTwoClasses) {
  Boosting job;
  const auto two = std::vector<Vector>{{core::VectorStat::class_counts, 1, {60, 40}},
                                       {core::VectorStat::confusion, 1, {0, 0, 60, 1, 1, 40}}};
  job.round(0, {{"roc/area", 0, 0.9, Role::metric}, {"roc/tpr/0.10", 0, 1, Role::metric}}, two);
  job.round(5, {{"roc/area", 0, 0.55, Role::metric}, {"roc/tpr/0.05", 0, 0.25, Role::metric}}, two);
  const std::string sum = job.sum();
  EXPECT_THAT(sum,
              HasSubstr(R"("roc":{"round":5,"area":0.55,"true_positive_rate_at":{"0.05":0.25}})"));
  EXPECT_THAT(sum, HasSubstr("area under the ROC curve is 0.55: the model hardly"));
  EXPECT_THAT(sum, Not(HasSubstr("missing")));
  EXPECT_THAT(sum, Not(HasSubstr("roc/"))) << "it is no curve of a metric";
}

TEST(CreateXgboostReport, ResidualsOfQuantities) {
  Boosting job;
  const auto counted = std::vector<Vector>{{core::VectorStat::value_counts, 0, {1}}};
  job.round(0, {{"residual/mean", 0, 0.5, Role::metric}, {"residual/std", 0, 2, Role::metric}},
            counted);
  EXPECT_THAT(job.sum(), HasSubstr(R"("residuals":{"round":0,"mean":0.5,"std":2})"));
  Boosting apart;
  apart.round(0, {}, counted);
  EXPECT_THAT(apart.sum(),
              HasSubstr(R"("missing":{"residuals":"no hook had labels and predictions)"));
}

TEST(CreateXgboostReport, SaysWhatIsMissing) {
  Boosting none;
  none.round(0, {{"train-logloss", 0, 1}});
  EXPECT_THAT(none.sum(), HasSubstr(R"("missing":{"confusion":"no labels were captured)"));
  Boosting regression;
  regression.round(0, {}, {{core::VectorStat::value_counts, 0, {1}}});
  const std::string sum = regression.sum();
  EXPECT_THAT(sum, HasSubstr(R"("task":"regression")"));
  EXPECT_THAT(sum, HasSubstr("labels are continuous"));
}

TEST(CreateXgboostReport, WithoutAnyOfItsInputsThereIsNoData) {
  Boosting job;
  job.round(0, {});
  EXPECT_EQ(job.sum(), "{}");
  EXPECT_EQ(job.rule.rule_state(), "NoData");
}

TEST(RoundCurve, KeepsEvenlySpacedPointsAndTheExactBest) {
  RoundCurve curve;
  for (int i = 0; i < 1001; ++i) curve.take(i, std::fabs(i - 333.0));
  EXPECT_EQ(curve.count(), 1001U);
  EXPECT_EQ(curve.best_round(), 333);
  EXPECT_EQ(curve.best(), 0);
  EXPECT_EQ(curve.last(), 667);
  const core::ValueMap points = curve.points();
  const auto* rounds = core::as<core::ValueList>(core::find(points, "rounds"));
  ASSERT_NE(rounds, nullptr);
  EXPECT_LE(rounds->size(), RoundCurve::kMostPoints + 1);
  EXPECT_GE(rounds->size(), RoundCurve::kMostPoints / 2);
  const std::int64_t pace = *core::as<std::int64_t>((*rounds)[1]);
  for (std::size_t i = 0; i + 1 < rounds->size(); ++i) {
    EXPECT_EQ((*rounds)[i], core::Value(static_cast<std::int64_t>(i) * pace));
  }
  EXPECT_EQ(rounds->back(), core::Value(std::int64_t{1000}));
}

TEST(RoundCurve, NanIsNoBest) {
  RoundCurve curve(true);
  curve.take(0, std::nan(""));
  EXPECT_EQ(curve.best_round(), -1);
  curve.take(1, -2);
  curve.take(2, -HUGE_VAL);
  EXPECT_EQ(curve.best_round(), 1);
}

TEST(ClassScores, MicroMacroAndWeighted) {
  // Two classes: 54 right and 6 wrong, 20 right and 20 wrong.
  const ClassScores scores({{{0, 0}, 54}, {{0, 1}, 6}, {{1, 0}, 20}, {{1, 1}, 20}});
  EXPECT_DOUBLE_EQ(scores.precision(0), 54.0 / 74);
  EXPECT_DOUBLE_EQ(scores.recall(0), 0.9);
  EXPECT_DOUBLE_EQ(scores.precision(1), 20.0 / 26);
  EXPECT_DOUBLE_EQ(scores.recall(1), 0.5);
  EXPECT_DOUBLE_EQ(scores.f1(1), 40.0 / 66);
  const std::string told = core::to_json(scores.told());
  EXPECT_THAT(told, HasSubstr(R"("recall":{"micro":0.74,"macro":0.7,"weighted":0.74})"));
}

TEST(ClassScores, AClassThatIsNeverPredictedCountsAsZero) {
  const ClassScores scores({{{0, 0}, 10}, {{1, 0}, 10}});
  EXPECT_EQ(scores.precision(1), 0);
  EXPECT_EQ(scores.f1(1), 0);
}

}  // namespace
}  // namespace tocsin::rules
