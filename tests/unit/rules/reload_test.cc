// Other rules while runs are followed: what has not changed goes on as if nothing had happened, also
// after a kill; what has is ended once and begins anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kZero[] =
    "  - {use: all_zero, with: {collection_names: [gradients], min_hits: 3}}\n";
constexpr char kNan[] = "  - {use: exploding_tensor, with: {cooldown: 1h}}\n";

class Reload : public ::testing::Test {
 protected:
  OwnedFrame zeros(std::int64_t step) {
    return worker_.tensors(Mode::train, step, {{"g", {0, 0}}});
  }
  OwnedFrame nans(std::int64_t step) {
    return worker_.tensors(Mode::train, step, {{"g", {std::nan(""), 1}}});
  }
  static void reload(RuleHarness& rule, const std::string& rules) {
    ASSERT_TRUE(rule.engine().reload(read_rules_text(rules).config, core::wall_time(kStart)));
  }

  FakeWorker worker_;
};

TEST_F(Reload, ARuleThatHasNotChangedKeepsItsMemory) {
  RuleHarness rule(kZero);
  rule.feed(zeros(0));
  rule.feed(zeros(1));
  reload(rule, std::string(kNan) + kZero);  // another number, the same rule
  rule.feed(zeros(2));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].rule, "all_zero");
  EXPECT_EQ(rule.firing()[0].step, 2);
}

TEST_F(Reload, AChangedRuleStartsAnew) {
  RuleHarness rule(kZero);
  rule.feed(zeros(0));
  rule.feed(zeros(1));
  reload(rule, "  - {use: all_zero, with: {collection_names: [gradients], min_hits: 2}}");
  rule.feed(zeros(2));
  EXPECT_THAT(rule.firing(), IsEmpty());
  rule.feed(zeros(3));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST_F(Reload, WhatARemovedRuleHadFiredIsResolvedAndItsStatusSaysWhy) {
  RuleHarness rule(std::string(kNan) + kZero);
  rule.feed(nans(0));
  ASSERT_EQ(rule.firing().size(), 1U);
  reload(rule, kZero);
  ASSERT_EQ(rule.resolved().size(), 1U);
  const core::Issue end = rule.resolved()[0];
  EXPECT_EQ(end.rule, "exploding_tensor");
  EXPECT_EQ(end.resolution, core::Resolution::superseded);
  EXPECT_EQ(end.labels, rule.firing()[0].labels);
  EXPECT_GT(end.sequence, rule.firing()[0].sequence);
  EXPECT_THAT(end.summary, HasSubstr("removed or changed"));
  std::vector<std::string> reasons;
  for (const Event& event : rule.events()) {
    const auto* status = std::get_if<core::RuleStatusEvent>(&event);
    if (status != nullptr && status->status == core::RuleState::stopped) {
      reasons.push_back(status->rule + ": " + status->reason);
    }
  }
  EXPECT_THAT(reasons,
              ElementsAre("exploding_tensor: the rule was removed from the configuration"));
  EXPECT_EQ(rule.engine().stats().reloads, 1U);
  rule.feed(nans(1));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST_F(Reload, AnOpenIssueOfAnUnchangedRuleStaysOpen) {
  RuleHarness rule(kNan);
  rule.feed(nans(0));
  reload(rule, std::string(kZero) + kNan);
  EXPECT_THAT(rule.resolved(), IsEmpty());
  rule.feed(nans(1));
  EXPECT_EQ(rule.firing().size(), 1U);  // within its cooldown
}

TEST_F(Reload, ARuleThatLeavesItsShadowFiresAnewAndIsTold) {
  const std::string shadow = "  - {use: exploding_tensor, shadow: true, with: {cooldown: 1h}}";
  RuleHarness rule(shadow);
  rule.feed(nans(0));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_TRUE(rule.firing()[0].shadow);
  EXPECT_EQ(rule.engine().stats().shadow_issues, 1U);
  reload(rule, kNan);
  ASSERT_EQ(rule.resolved().size(), 1U);
  EXPECT_TRUE(rule.resolved()[0].shadow);  // told as it was
  rule.feed(nans(1));
  ASSERT_EQ(rule.firing().size(), 2U);
  EXPECT_FALSE(rule.firing()[1].shadow);
}

TEST_F(Reload, ARuleThatGoesIntoShadowEndsWhatWasTold) {
  RuleHarness rule(kNan);
  rule.feed(nans(0));
  reload(rule, "  - {use: exploding_tensor, shadow: true, with: {cooldown: 1h}}");
  ASSERT_EQ(rule.resolved().size(), 1U);
  EXPECT_FALSE(rule.resolved()[0].shadow);
}

TEST_F(Reload, TwoRulesOfOneNameAreRefusedAndNothingHasChanged) {
  RuleHarness rule(kNan);
  RulesConfig twice = read_rules_text(kNan).config;
  twice.rules.push_back(twice.rules.front());
  EXPECT_FALSE(rule.engine().reload(twice, core::wall_time(kStart)));
  rule.feed(nans(0));
  EXPECT_EQ(rule.firing().size(), 1U);
}

std::vector<std::string> issues_of(const std::vector<std::string>& told) {
  std::vector<std::string> out;
  std::copy_if(told.begin(), told.end(), std::back_inserter(out),
               [](const std::string& line) { return line.starts_with("iss_"); });
  return out;
}

TEST_F(Reload, AfterAKillWhatWasToldIsNotToldAgain) {
  StateTopic topic(std::string(kNan) + kZero);
  topic.commit();
  while (topic.piece(kWhole)) {
  }
  topic.feed(nans(0));
  topic.commit();
  while (topic.piece(kWhole)) {  // a snapshot in which the issue is open
  }
  topic.commit();
  topic.reload(kZero);
  topic.feed(zeros(1));
  topic.commit();
  const auto told = issues_of(topic.told());
  ASSERT_EQ(told.size(), 2U);
  topic.restart();
  topic.feed(zeros(2));
  topic.commit();
  EXPECT_EQ(issues_of(topic.told()), told);
  topic.feed(zeros(3));  // the third in a row, two of them before the kill
  topic.commit();
  EXPECT_EQ(issues_of(topic.told()).size(), 3U);
}

TEST_F(Reload, BeforeTheFirstRecordNothingIsWrittenAndTheNewRulesJudge) {
  StateTopic topic(kNan);
  topic.reload(std::string(kZero) + kNan);
  EXPECT_THAT(topic.engine().pending(), IsEmpty());
  topic.commit();
  EXPECT_THAT(topic.state(), IsEmpty());
  topic.restart();
  for (int step = 0; step < 2; ++step) topic.feed(zeros(step));
  topic.commit();
  topic.restart();
  topic.feed(zeros(2));
  topic.commit();
  EXPECT_EQ(issues_of(topic.told()).size(), 1U);
}

TEST_F(Reload, ARuleThatCameByAReloadKeepsWhatItHasFiredAfterAKill) {
  StateTopic topic(kZero);
  topic.feed(zeros(0));
  topic.commit();
  topic.reload(std::string(kNan) + kZero);
  topic.feed(nans(1));
  topic.commit();
  ASSERT_EQ(issues_of(topic.told()).size(), 1U);
  topic.restart();
  topic.feed(nans(2));
  topic.commit();
  EXPECT_EQ(issues_of(topic.told()).size(), 1U) << "it is within its cooldown";
}

TEST_F(Reload, AfterAKillANewRuleHasSeenNothingOfBefore) {
  StateTopic topic(kNan);
  topic.commit();
  topic.feed(zeros(0));
  topic.feed(zeros(1));
  topic.commit();
  topic.reload(std::string(kNan) + kZero);
  topic.feed(zeros(2));
  topic.commit();
  topic.restart();
  topic.feed(zeros(3));
  topic.commit();
  EXPECT_THAT(issues_of(topic.told()), IsEmpty());
  topic.feed(zeros(4));  // the third since the rule is there
  topic.commit();
  EXPECT_EQ(issues_of(topic.told()).size(), 1U);
}

TEST_F(Reload, RulesThatChangedWhileTheProcessWasDownStartWhereItGoesOn) {
  StateTopic topic(kNan);
  topic.commit();
  topic.feed(zeros(0));
  topic.feed(zeros(1));
  topic.feed(zeros(2));
  topic.commit();
  topic.restart_with(std::string(kNan) + kZero);
  topic.feed(zeros(3));
  topic.feed(zeros(4));
  topic.commit();
  EXPECT_THAT(issues_of(topic.told()), IsEmpty()) << "what was replayed counts for a new rule";
  topic.restart();  // and once more: the change is in the log
  topic.feed(zeros(5));
  topic.commit();
  EXPECT_EQ(issues_of(topic.told()).size(), 1U);
}

// All shapes: rows, series, passes, silence, samples; reloads and kills anywhere.
RC_GTEST_PROP(ReloadAnywhere, WhatHasNotChangedTellsWhatItWouldHaveToldAnyway,
              (std::vector<int> one, std::vector<int> two, const std::vector<int>& order)) {
  one.resize(std::min<std::size_t>(one.size(), 20));
  two.resize(std::min<std::size_t>(two.size(), 20));
  const std::vector<OwnedFrame> frames =
      interleave({story("a", 0, 2, one), story("a", 1, 2, two), story("b", 0, 1, one)}, order);
  const std::string other =
      "  - {use: all_zero, name: other, with: {collection_names: [biases]}}\n";
  const auto play = [&](bool calm) {
    StateTopic topic(kRules);
    bool more = false;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      topic.feed(frames[i]);
      if (i % 3 == 0) topic.tick(kStart + static_cast<std::int64_t>(i) * 2 * kSecond);
      if (calm) {
        topic.commit();
        continue;
      }
      if (*rc::gen::inRange(0, 6) == 0) topic.piece(*rc::gen::element<std::size_t>(1, 500, kWhole));
      if (*rc::gen::inRange(0, 8) == 0) {
        more = !more;
        topic.reload(more ? other + kRules : kRules);
      }
      topic.commit();
      if (*rc::gen::inRange(0, 15) == 0) topic.restart();
      if (::testing::Test::HasFatalFailure()) return std::vector<std::string>{"failed"};
    }
    return issues_of(topic.told());
  };
  const std::vector<std::string> expected = play(true);
  RC_ASSERT(play(false) == expected);
}

}  // namespace
}  // namespace tocsin::rules
