// Which tensors a rule looks at, and that what it needs is something that the vocabulary knows.
#include "rules/selection.h"

#include <gtest/gtest.h>

#include "core/collections.h"
#include "core/statistics.h"
#include "rules/rule.h"

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

}  // namespace
}  // namespace tocsin::rules
