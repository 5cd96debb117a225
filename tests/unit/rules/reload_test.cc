// Other rules while runs are followed: what has not changed goes on as if nothing had happened, also
// after a kill; what has is ended once and begins anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rules/engine/state/stored_rules.h"
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
  EXPECT_EQ(end.resolution, core::Resolution::rule_removed);
  EXPECT_EQ(end.labels, rule.firing()[0].labels);
  EXPECT_GT(end.sequence, rule.firing()[0].sequence);
  EXPECT_THAT(end.ending->summary, HasSubstr("was removed while this fired"));
  EXPECT_EQ(end.summary, rule.firing()[0].summary);
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

// Who reads issues takes a smaller number for an older report, and nobody would hear of it.
TEST_F(Reload, NumbersOfARuleGrowAlsoWhenItIsChangedOrComesBack) {
  StateTopic topic(std::string(kNan) + kZero);
  const std::string changed = "  - {use: exploding_tensor, with: {cooldown: 2h}}\n";
  const auto sequence_of = [](const std::string& line) {
    return std::stoi(line.substr(line.find('#') + 1));
  };
  int step = 0;
  for (const std::string& rules : {std::string(kNan) + kZero, changed + kZero, std::string(kZero),
                                   kZero + changed, std::string(kNan)}) {
    topic.reload(rules);
    topic.feed(nans(step++));
    topic.commit();
    if (step % 2 == 0) topic.restart();
  }
  int last = 0;
  int fired = 0;
  for (const std::string& line : issues_of(topic.told())) {
    if (line.find(" exploding_tensor ") == std::string::npos) continue;
    EXPECT_GT(sequence_of(line), last) << line;
    last = sequence_of(line);
    fired += line.find(" firing ") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(fired, 4);
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

// What fired behind the last snapshot, by a rule that is not there when the process comes back.
TEST_F(Reload, WhatARuleHadFiredThatWasTakenOutWhileTheProcessWasDownEndsAtTheStart) {
  for (const bool removed : {true, false}) {
    StateTopic topic(std::string(kNan) + kZero);
    topic.feed(zeros(0));
    topic.commit();
    topic.feed(nans(1));  // no snapshot has this
    topic.commit();
    ASSERT_EQ(issues_of(topic.told()).size(), 1U);
    topic.restart_with(
        std::string(removed ? "" : "  - {use: exploding_tensor, with: {cooldown: 2h}}\n") + kZero);
    topic.commit();
    const auto told = issues_of(topic.told());
    ASSERT_EQ(told.size(), 2U);
    EXPECT_THAT(told[1], HasSubstr(removed ? "was removed while" : "was changed while"));
    topic.restart();
    topic.feed(nans(2));
    topic.commit();
    EXPECT_EQ(issues_of(topic.told()).size(), removed ? 2U : 3U)
        << "it is told once, and fires anew";
  }
}

// States of earlier programs name rules without what they were made from.
TEST_F(Reload, AStateThatOnlyNamesItsRulesIsRead) {
  const RuleTable table(read_rules_text(std::string(kNan) + kZero).config.rules);
  const std::string named = table.layout();
  EXPECT_EQ(layout_of(named), named);
  EXPECT_EQ(layout_of(stored_text(table)), named);
  EXPECT_EQ(make_stored(named, table).layout(), named);
  const RuleTable others(read_rules_text(kZero).config.rules);
  EXPECT_EQ(make_stored(named, others).layout(), others.layout())
      << "nobody knows what the other was";
  EXPECT_EQ(make_stored(stored_text(table), others).layout(), named);
}

TEST_F(Reload, EveryRuleIsMadeAgainFromWhatIsStoredOfIt) {
  std::string text;
  for (const RuleDescriptor& rule : builtin_rules()) {
    if (!make_rule(rule.name)) continue;
    text += "  - {use: " + std::string(rule.name) + ", name: n_" + std::string(rule.name) + "}\n";
    if (make_rule(rule.name, Preset::original)) {
      text += "  - {use: " + std::string(rule.name) + ", name: o_" + std::string(rule.name) +
              ", preset: original, severity: info, with: {min_hits: 2, cooldown: 90s}}\n";
    }
  }
  text +=
      "  - {name: plateau, select: 'metric(\"loss\")', window: last 200 steps, when: 'slope(value) "
      "> "
      "-1e-5', for: 3}\n"
      "  - {name: odd, select: 'tensor(\".*\"){mode=\"train\"}', when: 'nan + posinf > 0.5e-7', "
      "evidence: 'of ${x} {nan}'}\n"
      "  - {name: both, sequence: [plateau, odd], within: 100 steps}\n"
      "  - {use: tensor_variance, name: small, with: {min_threshold: 1e-7, max_threshold: "
      "1e300}}\n";
  const RulesConfig rules = read_rules_text(text).config;
  ASSERT_GT(rules.rules.size(), 40U);
  for (const RuleSettings& rule : rules.rules) {
    const auto again = read_definition(definition_of(rule));
    ASSERT_TRUE(again) << rule.name << " " << definition_of(rule);
    EXPECT_EQ(again->name, rule.name);
    EXPECT_EQ(again->type, rule.type);
    EXPECT_EQ(again->params_hash, rule.params_hash) << definition_of(rule);
    EXPECT_EQ(again->severity, rule.severity);
    EXPECT_EQ(definition_of(*again), definition_of(rule));
  }
}

}  // namespace
}  // namespace tocsin::rules
