#include "rules/embedded/chosen_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tocsin::embedded {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> names(const ChosenRules& chosen) {
  std::vector<std::string> out;
  for (const auto& rule : chosen.rules.rules) out.push_back(rule.name);
  return out;
}

TEST(ChosenRules, ByNameEachRuleOnceAndGroupsInTheirOrder) {
  const auto two = rules_by_text(" overfit , exploding_tensor,overfit");
  ASSERT_TRUE(two);
  EXPECT_EQ(names(*two), (std::vector<std::string>{"overfit", "exploding_tensor"}));
  const auto group = rules_by_text("");
  ASSERT_TRUE(group);
  EXPECT_EQ(group->from, "group default");
  EXPECT_GE(group->rules.rules.size(), 5U);
}

TEST(ChosenRules, AnUnknownNameIsToldWithTheNearest) {
  const auto refused = rules_by_text("exploding_tensr");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("did you mean \"exploding_tensor\""));
}

TEST(ChosenRules, TextAndFileMayBeAWholeConfiguration) {
  const auto given = rules_by_text(R"({"rules": [{"use": "overfit", "name": "mine"}]})");
  ASSERT_TRUE(given);
  EXPECT_EQ(names(*given), std::vector<std::string>{"mine"});
  const std::string path = testing::TempDir() + "chosen_rules.yaml";
  std::ofstream(path) << "cluster: here\nlabels: {team: a}\nrules: [overfit]\n"
                         "transport: {journal: x}\nreceivers: {r: {publish_metric: {}}}\n";
  const auto read = rules_by_text(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->cluster, "here");
  EXPECT_EQ(read->labels.at("team"), "a");
  std::filesystem::remove(path);
}

TEST(ChosenRules, WhatIsWrongInATextIsToldAtItsPlace) {
  const auto refused =
      rules_by_text(R"({"rules": [{"use": "overfit", "with": {"patience": "x"}}], "ruls": []})");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("rules:1:52: error: patience"));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("ruls"))) << "other sections do not judge";
  const auto misspelt = rules_by_text(R"({"ruls": [{"use": "overfit"}]})");
  ASSERT_FALSE(misspelt);
  EXPECT_THAT(misspelt.error().message, HasSubstr("has no rules"));
  EXPECT_FALSE(rules_by_text("{}"));
}

}  // namespace
}  // namespace tocsin::embedded
