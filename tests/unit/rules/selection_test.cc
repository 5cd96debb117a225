// Which tensors a rule looks at, and that what it needs is something that the vocabulary knows.
#include "rules/contract/selection.h"

#include <gtest/gtest.h>

#include "core/collections.h"
#include "core/statistics.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {
namespace {

TEST(Selection, ACollectionIsItsRolesBeforeAnyNameIsKnown) {
  for (const core::Collection& one : core::builtin_collections()) {
    Selection selection;
    selection.add_collection(one.name);
    for (const core::Role role : one.roles) {
      EXPECT_EQ(selection.matches(role, nullptr), Match::yes) << one.name;
    }
    if (one.roles.empty()) continue;
    EXPECT_EQ(selection.matches(core::Role::other, nullptr), Match::unknown) << one.name;
  }
}

TEST(Selection, AProducersWordPutsATensorIntoACollection) {
  Selection selection;
  selection.add_collection("gradients");
  Name name;
  name.text = "norm_of_everything";
  EXPECT_EQ(selection.matches(core::Role::other, &name), Match::no);
  name.collections = {"gradients"};
  EXPECT_EQ(selection.matches(core::Role::other, &name), Match::yes);
}

TEST(Selection, AllIsEverything) {
  Selection selection;
  selection.add_collection("all");
  EXPECT_EQ(selection.matches(core::Role::other, nullptr), Match::yes);
}

TEST(Needs, OfBuiltInRulesAreOfTheVocabulary) {
  std::size_t needs = 0;
  for (const RuleDescriptor& rule : builtin_rules()) {
    const auto made = make_rule(rule.name);
    if (!made) continue;  // it asks for parameters
    for (const Need& need : made->program->needs) {
      ++needs;
      EXPECT_NE(core::find_collection(need.collection), nullptr) << rule.name;
      for (const std::string& statistic : need.statistics) {
        EXPECT_TRUE(core::parse_statistic(statistic)) << rule.name << " " << statistic;
      }
    }
  }
  EXPECT_GT(needs, 3U);
}

TEST(Selection, OperatorsSelectWhatGoesInOrComesOut) {
  Selection outputs;
  EXPECT_TRUE(outputs.empty());
  outputs.add_operator(core::Role::activation_out, "ReLU");
  EXPECT_FALSE(outputs.empty());
  Name name;
  name.text = "features.2_output_0";
  name.op_type = "RELU";
  EXPECT_EQ(outputs.matches(core::Role::activation_out, &name), Match::yes);
  EXPECT_EQ(outputs.matches(core::Role::activation_in, &name), Match::no);
  EXPECT_EQ(outputs.matches(core::Role::other, &name), Match::yes) << "`output` in its name";
  EXPECT_EQ(outputs.matches(core::Role::activation_out, nullptr), Match::unknown);
  name.op_type = "LeakyReLU";
  EXPECT_EQ(outputs.matches(core::Role::activation_out, &name), Match::no);
}

TEST(Selection, ARankLeavesOutWhateverElseSelects) {
  Selection matrices;
  matrices.add_role(core::Role::weight);
  matrices.least_rank(2);
  Name name;
  name.shape = {3};
  EXPECT_EQ(matrices.matches(core::Role::weight, &name), Match::no);
  name.shape = {3, 1};
  EXPECT_EQ(matrices.matches(core::Role::weight, &name), Match::yes);
  EXPECT_EQ(matrices.matches(core::Role::bias, &name), Match::no);
  EXPECT_EQ(matrices.matches(core::Role::weight, nullptr), Match::unknown) << "so is its shape";
  EXPECT_EQ(matrices.matches(core::Role::bias, nullptr), Match::no);
}

}  // namespace
}  // namespace tocsin::rules
