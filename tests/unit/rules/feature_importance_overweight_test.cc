#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

using Importances = std::vector<std::pair<std::string, double>>;

struct Booster {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t round = 0;

  explicit Booster(const std::string& with = "{}", const std::string& preset = "original")
      : rule(RuleHarness::of("feature_importance_overweight", with, preset)) {}
  void importances(const Importances& features, const std::string& type = "weight",
                   Mode mode = Mode::global) {
    std::vector<Scalar> scalars;
    for (const auto& [feature, importance] : features) {
      scalars.push_back(
          {"feature_importance/" + type + "/" + feature, round, importance, Role::metric});
      rule.feed(
          worker.dictionary({{core::DictionaryType::scalar, scalars.back().name, Role::metric}}));
    }
    rule.feed(worker.scalars(mode, scalars));
    rule.feed(worker.step_end(mode, round++));
  }
};

TEST(FeatureImportanceOverweight, FiresWhenAFewFeaturesCarryMoreThanTheThreshold) {
  Booster booster;
  booster.importances({{"a", 30}, {"b", 30}, {"c", 20}, {"d", 10}, {"e", 10}});  // 80 of 100
  EXPECT_TRUE(booster.rule.firing().empty());
  booster.importances({{"a", 30}, {"b", 31}, {"c", 20}, {"d", 10}, {"e", 9}});
  const auto issues = booster.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_DOUBLE_EQ(issues[0].evidence.observed.value, 0.81);
  EXPECT_EQ(issues[0].summary,
            "3 of 5 features (b, a, c) carry 81 % of feature_importance/weight (limit 80 %) at "
            "global step 1 on worker_0.");
}

TEST(FeatureImportanceOverweight, RoundsAreStepsOfGlobalOrOfTrain) {
  const Importances few{{"a", 97}, {"b", 1}, {"c", 1}, {"d", 1}};
  Booster booster;
  booster.importances(few, "weight", Mode::eval);
  EXPECT_TRUE(booster.rule.firing().empty());
  booster.importances(few, "weight", Mode::train);
  booster.importances(few, "weight", Mode::global);
  EXPECT_EQ(booster.rule.firing().size(), 2U);
}

TEST(FeatureImportanceOverweight, NoMoreFeaturesThanAFewDoNotApply) {
  Booster booster;
  booster.importances({{"a", 98}, {"b", 1}, {"c", 1}, {"unused", 0}});
  booster.rule.feed(booster.worker.end());
  EXPECT_TRUE(booster.rule.firing().empty());
  EXPECT_EQ(booster.rule.rule_state(), "NoData") << "not applicable, which is no verdict";
}

TEST(FeatureImportanceOverweight, SumsThatSayNothingAreInsufficient) {
  Booster booster;
  booster.importances({{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}});
  booster.importances({{"a", std::nan("")}, {"b", 1}, {"c", 1}, {"d", 1}});
  booster.importances({{"a", HUGE_VAL}, {"b", 1}, {"c", 1}, {"d", 1}});
  booster.rule.feed(booster.worker.end());
  EXPECT_TRUE(booster.rule.firing().empty());
  EXPECT_EQ(booster.rule.rule_state(), "NoData");
}

TEST(FeatureImportanceOverweight, PresetsLookAtDifferentTypes) {
  const Importances leak{{"a", 97}, {"b", 1}, {"c", 1}, {"d", 1}};
  Booster ours("{start_step: 0}", "tocsin");
  ours.importances(leak, "weight");
  EXPECT_TRUE(ours.rule.firing().empty());
  ours.importances(leak, "gain", Mode::train);
  EXPECT_EQ(ours.rule.firing().size(), 1U);
  Booster original;
  original.importances(leak, "total_gain");
  original.importances(leak, "gain");
  EXPECT_TRUE(original.rule.firing().empty());
}

TEST(FeatureImportanceOverweight, OursLooksAtTheLargestOnceManyRoundsAreBuilt) {
  Booster ours("{}", "tocsin");
  for (int round = 0; round < 5; ++round) ours.importances({{"a", 1}}, "gain", Mode::train);
  EXPECT_TRUE(ours.rule.firing().empty()) << "few rounds use few features";
  ours.importances({{"a", 79}, {"b", 11}, {"c", 10}}, "gain", Mode::train);
  EXPECT_TRUE(ours.rule.firing().empty()) << "together nearly all, but no single one";
  ours.importances({{"a", 1}}, "gain", Mode::train);
  EXPECT_EQ(ours.rule.firing().size(), 1U) << "the only one that is used";
}

TEST(FeatureImportanceOverweight, OneTypeAtATime) {
  const std::string use = "  - {use: feature_importance_overweight, with: ";
  EXPECT_NE(read_rules_text(use + "{tensor_regex: ['feature_importance/']}}").errors.find("weight"),
            std::string::npos);
  EXPECT_EQ(read_rules_text(use + "{tensor_regex: ['feature_importance/cover/']}}").errors, "");
  EXPECT_NE(read_rules_text(use + "{threshold: 1.5}}").errors, "");
  EXPECT_NE(read_rules_text(use + "{nfeatures: 0}}").errors, "");
}

TEST(FeatureImportanceOverweight, ACollectionOfSeveralTypesIsAnErrorOfTheStep) {
  Booster booster("{collection_names: [feature_importance]}");
  for (const char* type : {"gain", "weight"}) {
    const std::string name = "feature_importance/" + std::string(type) + "/a";
    booster.rule.feed(
        booster.worker.dictionary({{core::DictionaryType::scalar, name, Role::importance}}));
    booster.rule.feed(booster.worker.scalars(Mode::global, {{name, 0, 1, Role::importance}}));
  }
  booster.rule.feed(booster.worker.step_end(Mode::global, 0));
  booster.rule.feed(booster.worker.end());
  EXPECT_TRUE(booster.rule.firing().empty());
  for (const Event& event : booster.rule.events()) {
    if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
      EXPECT_EQ(status->evaluations.at("error"), 1U);
    }
  }
}

TEST(FeatureImportanceOverweight, HowManyAreAFewCanBeSaid) {
  Booster booster("{nfeatures: 1, threshold: 0.5}");
  booster.importances({{"a", 50}, {"b", 50}});
  EXPECT_TRUE(booster.rule.firing().empty());
  booster.importances({{"a", 51}, {"b", 49}});
  EXPECT_EQ(booster.rule.firing().size(), 1U);
}

}  // namespace
}  // namespace tocsin::rules
