#include <gmock/gmock.h>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::Role;
using core::VectorStat;
using ::testing::ElementsAre;
using testing_support::Given;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

using Labels = Tensor<std::int64_t>;
using Floats = Tensor<float>;

Labels labels(std::vector<std::int64_t> values, std::vector<std::int64_t> shape = {}) {
  Labels out{Dtype::i64, std::move(values), std::move(shape)};
  out.role = Role::label;
  return out;
}
Floats predictions(std::vector<float> values, std::vector<std::int64_t> shape = {}) {
  Floats out{Dtype::f32, std::move(values), std::move(shape)};
  out.role = Role::prediction;
  return out;
}

/// Labels after predictions, as a loss module has them.
template <typename Predictions, typename Expected>
Given both(const Predictions& first, const Expected& then) {
  const auto statistic = statistic_of("classes");
  EXPECT_TRUE(measure(*statistic, first, 3).empty());
  return measure(*statistic, then, 3);
}

TEST(Classes, LabelsAloneAreCounted) {
  const auto given = measure(*statistic_of("classes"), labels({2, 0, 2, -100, 2}));
  EXPECT_THAT(given.at(VectorStat::class_counts), ElementsAre(1, 0, 3));
  EXPECT_EQ(given.vectors.size(), 1U);
}

TEST(Classes, TheLargestLogitIsThePrediction) {
  // Taken for 1, 1, 0 and (left out) 2.
  const auto given =
      both(predictions({0, 9, 1, -1, 3, 2, 5, 1, 1, 0, 0, 7}, {4, 3}), labels({1, 0, 0, -100}));
  EXPECT_THAT(given.at(VectorStat::class_counts), ElementsAre(2, 1));
  EXPECT_THAT(given.at(VectorStat::class_correct), ElementsAre(1, 1));
  EXPECT_THAT(given.at(VectorStat::confusion), ElementsAre(0, 0, 1, 0, 1, 1, 1, 1, 1));
}

TEST(Classes, BesideScoresOfClassesANegativeLabelIsLeftOut) {
  // Taken for 1, 1, 0; the second is an ignore_index of −1.
  const auto given = both(predictions({0, 9, 1, -1, 3, 2, 5, 1, 1}, {3, 3}), labels({1, -1, 0}));
  EXPECT_THAT(given.at(VectorStat::class_counts), ElementsAre(1, 1));
  EXPECT_THAT(given.at(VectorStat::class_correct), ElementsAre(1, 1));
  EXPECT_TRUE(both(predictions({0, 9, 1, -1}, {2, 2}), labels({-1, -1})).empty())
      << "nothing is left";
  EXPECT_TRUE(both(predictions({0.2F, -3.5F}), labels({-1, 1})).empty())
      << "one score per sample: of a hinge loss, where −1 is a class";
  EXPECT_TRUE(measure(*statistic_of("classes"), labels({-1, 0, 1})).empty());
}

TEST(Classes, OfPixelsTheClassesAreOnAxisOne) {
  // One image, two classes, 1 × 3 pixels: taken for 0, 1, 1.
  const auto given =
      both(predictions({5, 0, 1, 1, 2, 3}, {1, 2, 1, 3}), labels({0, 1, 0}, {1, 1, 3}));
  EXPECT_THAT(given.at(VectorStat::confusion), ElementsAre(0, 0, 1, 0, 1, 1, 1, 1, 1));
  // Of tokens on the last one: two sequences of one token, three classes.
  const auto tokens = both(predictions({0, 0, 1, 9, 0, 1}, {2, 1, 3}), labels({2, 1}, {2, 1}));
  EXPECT_THAT(tokens.at(VectorStat::confusion), ElementsAre(1, 0, 1, 2, 2, 1));
}

TEST(Classes, OneNumberIsAProbabilityALogitOrAClass) {
  Floats binary = predictions({0, 1, 1});
  binary.role = Role::label;
  const auto shares = both(predictions({0.4F, 0.5F, 0.1F}, {3, 1}), binary);
  EXPECT_THAT(shares.at(VectorStat::class_correct), ElementsAre(1, 1));
  const auto logits = both(predictions({-2.5F, 0.1F, -7.1F}), binary);
  EXPECT_THAT(logits.at(VectorStat::class_correct), ElementsAre(1, 1));
  const auto whole = both(predictions({0, 3, 1}), labels({0, 3, 2}));
  EXPECT_THAT(whole.at(VectorStat::confusion), ElementsAre(0, 0, 1, 2, 1, 1, 3, 3, 1));
}

TEST(Classes, AProbabilityIsClassOneFromTheThresholdAskedForOn) {
  Floats binary = predictions({0, 1, 1});
  binary.role = Role::label;
  const auto at = [&](double threshold, const Floats& first) {
    const auto statistic = statistic_of("classes", {threshold});
    EXPECT_TRUE(measure(*statistic, first, 3).empty());
    return measure(*statistic, binary, 3);
  };
  EXPECT_THAT(at(0.125, predictions({0.4F, 0.125F, 0.1F})).at(VectorStat::confusion),
              ElementsAre(0, 1, 1, 1, 0, 1, 1, 1, 1));
  // log(0.2 / 0.8) = −1.386
  EXPECT_THAT(at(0.2, predictions({-1.5F, -1.38F, 9})).at(VectorStat::confusion),
              ElementsAre(0, 0, 1, 1, 1, 2));
  EXPECT_THAT(at(0, predictions({-90, 0.5F, 9})).at(VectorStat::confusion),
              ElementsAre(0, 1, 1, 1, 1, 2));
  EXPECT_EQ(statistic_of("classes", {1.5}), nullptr);
}

TEST(Classes, OneHotAndSoftLabelsAreTheirLargestEntry) {
  Floats soft = predictions({0.9F, 0.1F, 0.05F, 0.95F}, {2, 2});
  soft.role = Role::label;
  const auto given = both(predictions({3, 1, 2, 1}, {2, 2}), soft);
  EXPECT_THAT(given.at(VectorStat::class_correct), ElementsAre(1, 0));
}

TEST(Classes, SeveralLabelsOfASampleAreNoClasses) {
  Floats several = predictions({1, 1, 0, 1}, {2, 2});
  several.role = Role::label;
  EXPECT_TRUE(both(predictions({0.9F, 0.8F, 0.1F, 0.7F}, {2, 2}), several).empty());
}

TEST(Classes, QuantitiesAreNoClasses) {
  const auto statistic = statistic_of("classes");
  Floats prices = predictions({1.5F, 2});
  prices.role = Role::label;
  EXPECT_TRUE(measure(*statistic, prices).empty());
  EXPECT_TRUE(measure(*statistic, labels({-1, 1})).empty()) << "signs, of a hinge loss";
  EXPECT_TRUE(measure(*statistic, labels({1, 50'000})).empty()) << "tokens";
  Labels stars = labels({1, 5});
  stars.op_type = "MSELoss";
  EXPECT_TRUE(measure(*statistic, stars).empty());
  EXPECT_FALSE(measure(*statistic, labels({1, 5})).empty());
}

TEST(Classes, PredictionsOfAnotherStepOrNumberAreNotTheirs) {
  const auto statistic = statistic_of("classes");
  measure(*statistic, predictions({1, 2, 2, 1}, {2, 2}), 3);
  EXPECT_EQ(measure(*statistic, labels({0, 1}), 4).vectors.size(), 1U);
  EXPECT_EQ(both(predictions({1, 2, 2, 1}, {2, 2}), labels({0, 1, 1})).vectors.size(), 1U);
  EXPECT_EQ(both(predictions({1, NAN, 2, 1}, {2, 2}), labels({0, 1})).vectors.size(), 1U);
}

TEST(Classes, PredictionsAreUsedOnce) {
  const auto statistic = statistic_of("classes");
  measure(*statistic, predictions({1, 2, 2, 1}, {2, 2}), 3);
  EXPECT_EQ(measure(*statistic, labels({0, 1}), 3).vectors.size(), 3U);
  EXPECT_EQ(measure(*statistic, labels({0, 1}), 3).vectors.size(), 1U);
}

}  // namespace
}  // namespace tocsin::collectors
