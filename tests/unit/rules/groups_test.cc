// Groups of rules: what `rule_groups:` adds.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using testing_support::read_rules_text;
using testing_support::ReadRules;

std::size_t count(const RulesConfig& config, std::string_view type) {
  return static_cast<std::size_t>(
      std::count_if(config.rules.begin(), config.rules.end(),
                    [&](const RuleSettings& rule) { return rule.type == type; }));
}

TEST(Groups, AddWhatIsNotThereAlready) {
  const ReadRules read = read_rules_text(
      "  - {use: overfit, name: mine, with: {patience: 7}}\nrule_groups: [default, all_pytorch]");
  EXPECT_EQ(read.errors, "");
  EXPECT_EQ(count(read.config, "overfit"), 1U) << "the user's own stays alone";
  EXPECT_EQ(read.config.rules.front().name, "mine");
  EXPECT_EQ(count(read.config, "exploding_tensor"), 1U) << "in both groups";
}

TEST(Groups, HoldEveryRuleThatNeedsNoSelection) {
  const ReadRules read =
      read_rules_text("  []\nrule_groups: [all_pytorch, all_xgboost, all_profiler]");
  EXPECT_EQ(read.errors, "");
  for (const RuleDescriptor& rule : builtin_rules()) {
    if (!make_rule(rule.name)) continue;  // it needs a selection
    EXPECT_EQ(count(read.config, rule.name), 1U) << rule.name;
  }
}

TEST(Groups, AnUnknownOneIsAnErrorWithTheNearest) {
  const ReadRules read = read_rules_text("  []\nrule_groups: [all_pytroch]");
  EXPECT_NE(read.errors.find("did you mean all_pytorch?"), std::string::npos) << read.errors;
}

}  // namespace
}  // namespace tocsin::rules
