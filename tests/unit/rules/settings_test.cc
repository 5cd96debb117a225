// Names, presets and parameters of configured rules.
#include <gtest/gtest.h>

#include "rules/contract/rule.h"
#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using testing_support::read_rules_text;
using testing_support::ReadRules;

TEST(Settings, FindsRulesWhateverTheSpelling) {
  for (const char* name :
       {"exploding_tensor", "ExplodingTensor", "EXPLODINGTENSOR", "exploding-tensor"}) {
    ASSERT_NE(find_rule(name), nullptr) << name;
    EXPECT_EQ(find_rule(name)->name, "exploding_tensor");
  }
  EXPECT_EQ(find_rule("stalled_training")->name, "stalled_training_rule");
  EXPECT_EQ(find_rule("WeightUpdate")->name, "weight_update_ratio");
  EXPECT_EQ(find_rule("exploding"), nullptr);
}

TEST(Settings, NamesTheNearestRuleAndParameter) {
  EXPECT_NE(read_rules_text("  - explodng_tensor").errors.find("did you mean exploding_tensor"),
            std::string::npos);
  const ReadRules read = read_rules_text("  - {use: exploding_tensor, with: {only_nans: true}}");
  EXPECT_NE(read.errors.find("only_nan"), std::string::npos) << read.errors;
}

TEST(Settings, RefusesTwoRulesOfOneName) {
  const std::string two = "  - overfit\n  - {use: overfit, preset: original}";
  EXPECT_NE(read_rules_text(two).errors.find("two rules are called overfit"), std::string::npos);
  const ReadRules named =
      read_rules_text("  - overfit\n  - {use: overfit, name: overfit_original, preset: original}");
  EXPECT_EQ(named.errors, "");
  EXPECT_EQ(named.config.rules.size(), 2U);
}

TEST(Settings, PresetsDifferOnlyWhereDocumented) {
  const auto parameter = [](const RuleSettings& rule, const std::string& name) {
    for (const core::Parameter& one : rule.parameters) {
      if (one.name == name) return core::to_json(one.value);
    }
    return std::string();
  };
  const auto ours = make_rule("vanishing_gradient", Preset::tocsin);
  const auto theirs = make_rule("vanishing_gradient", Preset::original);
  ASSERT_TRUE(ours && theirs);
  EXPECT_EQ(parameter(*ours, "min_fraction"), "0.25");
  EXPECT_EQ(parameter(*theirs, "min_fraction"), "0");
  EXPECT_EQ(parameter(*ours, "threshold"), parameter(*theirs, "threshold"));
  EXPECT_NE(ours->params_hash, theirs->params_hash);
  for (const RuleDescriptor& rule : builtin_rules()) {
    EXPECT_LE(rule.severity, core::Severity::error) << rule.name;
    EXPECT_FALSE(rule.title.empty()) << rule.name;
  }
}

TEST(Settings, UserParametersWinOverThePresetAndSayWhereTheyCameFrom) {
  const ReadRules read = read_rules_text(
      "  - {use: vanishing_gradient, severity: critical, with: {threshold: 1e-5}, actions: "
      "[stop]}");
  ASSERT_EQ(read.errors, "");
  const RuleSettings& rule = read.config.rules.at(0);
  EXPECT_EQ(rule.severity, core::Severity::critical);
  EXPECT_EQ(rule.actions, (std::vector<std::string>{"stop"}));
  for (const core::Parameter& one : rule.parameters) {
    EXPECT_EQ(one.origin, one.name == "threshold" ? "user" : "default") << one.name;
  }
}

TEST(Settings, EveryRuleDescribesItsParameters) {
  for (const RuleDescriptor& rule : builtin_rules()) {
    const auto keys = config::describe([&](config::Reader& in) { rule.read(in, Preset::tocsin); });
    EXPECT_GT(keys.size(), 4U) << rule.name;
    for (const config::KeyDoc& key : keys) EXPECT_FALSE(key.help.empty()) << key.path;
  }
}

// The original's parameters are texts: lists have commas, whole numbers may have a fraction of zeros.
TEST(Settings, ATextIsTheListOrTheNumberThatItSpells) {
  const auto program = [](const std::string& item) {
    ReadRules read = read_rules_text("  - {use: " + item + "}");
    EXPECT_EQ(read.errors, "") << item;
    return read.config.rules.empty() ? nullptr : read.config.rules[0].program;
  };
  using Texts = std::vector<std::string>;
  const auto chosen = program("exploding_tensor, with: {collection_names: 'weights, biases'}");
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->common.collection_names, (Texts{"weights", "biases"}));
  const auto patterns = program("exploding_tensor, with: {tensor_regex: 'a{1,2}b, [,;]c, d\\,e'}");
  ASSERT_TRUE(patterns);
  EXPECT_EQ(patterns->common.tensor_regex, (Texts{"a{1,2}b", "[,;]c", "d\\,e"}));
  const auto listed = program("exploding_tensor, with: {tensor_regex: ['a,b']}");
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->common.tensor_regex, (Texts{"a,b"}));
  for (
      const char* item :
      {"nlp_sequence_ratio, with: {token_values: '0, 1', token_thresholds_percent: '50, 60'}",
       "class_imbalance, with: {ignore_labels: '255, -100'}",
       "poor_weight_initialization, with: {steps: '10.0', activation_inputs_regex: 'a, b'}",
       "weight_update_ratio, with: {num_steps: 100.0}",
       "operator_latency, with: {op_regex: 'a, b'}",
       R"(similar_across_runs, with: {collection_names: [losses], other_trials: [4e3046d4-8c1f-5278-82e3-ea3595bc5999]})"}) {
    program(item);
  }
  for (const auto& [item, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"poor_weight_initialization, with: {steps: 10.5}", "expected a whole number"},
           {"exploding_tensor, with: {collection_names: 'weights,'}", "between two commas"},
           {"exploding_tensor, with: {max_open_units: 0}", "max_open_units must be >= 1"},
           {"exploding_tensor, with: {end_step: -1}", "end_step must be >= 0"},
           {"similar_across_runs, with: {collection_names: [losses], other_trials: [a, b]}",
            "expected exactly one run"}}) {
    const std::string errors = read_rules_text(std::string("  - {use: ") + item + "}").errors;
    EXPECT_NE(errors.find(words), std::string::npos) << item << ": " << errors;
  }
}

TEST(Settings, RefusesABadPatternWithItsReason) {
  const ReadRules read =
      read_rules_text("  - {use: exploding_tensor, with: {tensor_regex: ['(']}}");
  EXPECT_NE(read.errors.find("is no regular expression"), std::string::npos) << read.errors;
}

}  // namespace
}  // namespace tocsin::rules
