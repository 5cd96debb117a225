// The tree: which leaves are reached, what they inherit, how they are identified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RouteConfig node(std::string matcher, std::string receiver = "") {
  RouteConfig out;
  out.matchers = {std::move(matcher)};
  if (!receiver.empty()) out.receivers = {std::move(receiver)};
  return out;
}

class Tree : public ::testing::Test {
 protected:
  Tree() { h.integrations = {webhook("oncall"), webhook("page"), webhook("stop"), webhook("nlp")}; }

  std::vector<std::string> receivers(const core::Labels& labels) {
    h.open();
    std::vector<std::string> out;
    for (const auto& leaf : h.router().explain(labels).leaves) {
      out.insert(out.end(), leaf.receivers.begin(), leaf.receivers.end());
    }
    return out;
  }
  std::string problem() {
    const auto made = Router::create(h.tree, h.rule_actions, h.integrations, h.options);
    return made ? "" : made.error().message;
  }

  Harness h;
};

TEST_F(Tree, TheRootCatchesWhatNothingElseDoes) {
  h.tree.routes = {node("a=x", "page")};
  EXPECT_THAT(receivers({{"a", "y"}}), ElementsAre("oncall"));
  EXPECT_THAT(receivers({{"a", "x"}}), ElementsAre("page"));
}

TEST_F(Tree, TheFirstMatchingSiblingWinsUnlessItContinues) {
  h.tree.routes = {node("a=x", "page"), node("b=y", "stop")};
  EXPECT_THAT(receivers({{"a", "x"}, {"b", "y"}}), ElementsAre("page"));
  h.tree.routes[0].proceed = true;
  EXPECT_THAT(receivers({{"a", "x"}, {"b", "y"}}), ElementsAre("page", "stop"));
}

TEST_F(Tree, ANodeWhoseChildrenDoNotMatchIsTheResultItself) {
  h.tree.routes = {node("a=x", "page")};
  h.tree.routes[0].routes = {node("b=y", "stop")};
  EXPECT_THAT(receivers({{"a", "x"}, {"b", "y"}}), ElementsAre("stop"));
  EXPECT_THAT(receivers({{"a", "x"}, {"b", "z"}}), ElementsAre("page"));
  EXPECT_THAT(receivers({{"b", "y"}}), ElementsAre("oncall"));
}

TEST_F(Tree, ContinueIsAboutSiblingsAndNotAboutTheParent) {
  h.tree.routes = {node("a=x", "page"), node("c=z", "nlp")};
  h.tree.routes[0].routes = {node("b=y", "stop")};
  h.tree.routes[0].routes[0].proceed = true;
  EXPECT_THAT(receivers({{"a", "x"}, {"b", "y"}, {"c", "z"}}), ElementsAre("stop"));
}

TEST_F(Tree, ARouteMayNameSeveralReceivers) {
  h.tree.receivers = {"page", "nlp", "page"};
  h.open();
  const auto leaf = h.router().explain({{"a", "x"}}).leaves.at(0);
  EXPECT_THAT(leaf.integrations, ElementsAre("page", "nlp"));
}

TEST_F(Tree, WhatIsNotSetIsInherited) {
  h.tree.group_by = {{"rule"}};
  h.tree.group_wait = 10s;
  h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 2h}};
  h.tree.routes = {node("a=x")};
  h.tree.routes[0].group_interval = 1min;
  h.tree.routes[0].routes = {node("b=y")};
  h.tree.routes[0].routes[0].group_by = std::vector<std::string>{};
  h.open();
  const auto leaf = h.router().explain({{"a", "x"}, {"b", "y"}, {"rule", "r"}}).leaves.at(0);
  EXPECT_THAT(leaf.receivers, ElementsAre("oncall"));
  EXPECT_EQ(leaf.group_wait, 10s);
  EXPECT_EQ(leaf.group_interval, 1min);
  EXPECT_EQ(leaf.repeat_interval, 2h);
  EXPECT_TRUE(leaf.group_labels.empty());
  const auto parent = h.router().explain({{"a", "x"}, {"rule", "r"}}).leaves.at(0);
  EXPECT_EQ(parent.group_labels, (core::Labels{{"rule", "r"}}));
}

TEST_F(Tree, TheDefaultsAreThoseOfTheDocumentation) {
  h.open();
  const auto leaf = h.router().explain({{"rule", "r"}, {"job", "j"}, {"x", "y"}}).leaves.at(0);
  EXPECT_EQ(leaf.group_labels, (core::Labels{{"rule", "r"}, {"job", "j"}}));
  EXPECT_EQ(leaf.group_wait, 30s);
  EXPECT_EQ(leaf.group_interval, 5min);
  EXPECT_EQ(leaf.repeat_interval, 4h);
}

TEST_F(Tree, ThreeDotsGroupByAllLabels) {
  h.tree.group_by = {{"..."}};
  h.open();
  const core::Labels labels{{"rule", "r"}, {"x", "y"}};
  EXPECT_EQ(h.router().explain(labels).leaves.at(0).group_labels, labels);
}

TEST_F(Tree, LabelsThatAreAbsentAreLeftOutOfTheGroup) {
  h.open();
  const auto leaf = h.router().explain({{"rule", "r"}}).leaves.at(0);
  EXPECT_EQ(leaf.group_key, "{}:{rule=\"r\"}");
}

TEST_F(Tree, ARouteIsKnownByItsIdOrByItsMatchersAndItsPlace) {
  h.tree.routes = {node("b!=c", "page"), node("a=x", "stop")};
  h.tree.routes[1].routes = {node("{b=\"y\", c=~\"z\"}")};
  h.tree.routes[1].routes[0].proceed = true;
  h.tree.routes[1].routes.push_back(node("b=y"));
  h.tree.routes[1].routes[1].id = "named";
  h.open();
  const auto found = h.router().explain({{"a", "x"}, {"b", "c"}, {"c", "z"}}).leaves.at(0);
  EXPECT_EQ(found.route_id, "{}/1{a=\"x\"}");
  EXPECT_EQ(found.path, "{}/{a=\"x\"}");
  h.tree.routes[0].matchers = {"b=never"};
  h.open();
  const auto leaves = h.router().explain({{"a", "x"}, {"b", "y"}, {"c", "z"}}).leaves;
  ASSERT_EQ(leaves.size(), 2U);
  EXPECT_EQ(leaves[0].route_id, "{}/1{a=\"x\"}/0{b=\"y\",c=~\"z\"}");
  EXPECT_EQ(leaves[1].route_id, "named");
  EXPECT_EQ(leaves[1].path, "{}/{a=\"x\"}/{b=\"y\"}");
}

TEST_F(Tree, NearMissesNameTheTermThatFailed) {
  h.tree.routes = {node("{a=\"x\", b=\"y\"}", "page"), node("c=~\"z.*\"", "stop")};
  h.open();
  const auto misses = h.router().explain({{"a", "x"}, {"b", "no"}}).misses;
  ASSERT_EQ(misses.size(), 2U);
  EXPECT_EQ(misses[0].term, "b=\"y\"");
  EXPECT_EQ(misses[0].value, "no");
  EXPECT_EQ(misses[1].term, "c=~\"z.*\"");
  EXPECT_EQ(misses[1].value, "");
}

TEST_F(Tree, ActionsOfARuleAreARouteBesideTheTree) {
  h.rule_actions = {{"nan", {"stop"}}};
  EXPECT_THAT(receivers({{"rule", "nan"}}), ElementsAre("stop", "oncall"));
  EXPECT_THAT(receivers({{"rule", "other"}}), ElementsAre("oncall"));
  const auto leaf = h.router().explain({{"rule", "nan"}, {"run_uid", "u"}, {"job", "j"}}).leaves[0];
  EXPECT_EQ(leaf.group_wait, 0s);
  EXPECT_EQ(leaf.group_labels, (core::Labels{{"rule", "nan"}, {"run_uid", "u"}}));
}

TEST_F(Tree, WithoutATreeOnlyRulesWithActionsTellAnybody) {
  h.tree.receivers = {};
  h.rule_actions = {{"nan", {"stop"}}};
  EXPECT_THAT(receivers({{"rule", "nan"}}), ElementsAre("stop"));
  EXPECT_THAT(receivers({{"rule", "other"}}), IsEmpty());
  h.fire({{"rule", "other"}});
  EXPECT_EQ(h.router().stats().firing, 1U);
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(Tree, MistakesInATreeAreNamed) {
  h.tree.receivers = {"onkall"};
  EXPECT_THAT(problem(), HasSubstr("no receiver is called 'onkall'; did you mean 'oncall'?"));
  h.tree.receivers = {};
  h.tree.routes = {node("a=x", "page")};
  EXPECT_THAT(problem(), HasSubstr("needs a receiver"));
  h.tree.routes = {};
  h.tree.receivers = {"oncall"};
  h.tree.matchers = {"a=x"};
  EXPECT_THAT(problem(), HasSubstr("no matchers"));
  h.tree.matchers = {};
  h.tree.group_by = {{"a", "a"}};
  EXPECT_THAT(problem(), HasSubstr("'a' twice"));
  h.tree.group_by = {{"...", "a"}};
  EXPECT_THAT(problem(), HasSubstr("mixes"));
  h.tree.group_by = {};
  h.tree.group_interval = 0s;
  EXPECT_THAT(problem(), HasSubstr("group_interval"));
  h.tree.group_interval = {};
  h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 0s}};
  EXPECT_THAT(problem(), HasSubstr("repeat_interval must be greater than zero"));
  h.tree.repeat_interval = std::vector<RepeatStep>{{2h, 1h}, {1h, 2h}};
  EXPECT_THAT(problem(), HasSubstr("until must grow"));
  h.tree.repeat_interval = {};
  h.tree.routes = {node("a", "page")};
  EXPECT_THAT(problem(), HasSubstr("expected one of"));
  h.tree.routes = {node("a=x"), node("b=x")};
  h.tree.routes[0].id = h.tree.routes[1].id = "same";
  EXPECT_THAT(problem(), HasSubstr("two routes have the id 'same'"));
  h.tree.routes = {};
  h.integrations.push_back(webhook("page"));
  EXPECT_THAT(problem(), HasSubstr("two integrations have the id 'page'"));
}

}  // namespace
}  // namespace tocsin::routing
