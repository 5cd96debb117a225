// How the router stands for those who look: groups of its changelog, and who inhibits whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/labels.h"
#include "tests/unit/routing/flush_fixture.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Standing : public FlushTest {
 protected:
  RouterStanding standing() {
    RouterStanding out;
    for (const auto& [key, value] : h.changelog) out.apply(key, value);
    EXPECT_EQ(out.unreadable(), 0U);
    return out;
  }
  const std::string a = core::issue_key(kTensorA);
  const std::string b = core::issue_key(kTensorB);
};

TEST_F(Standing, AGroupSaysWhoWasToldOfWhatAndWhenItIsLookedAtNext) {
  h.integrations = {webhook("oncall"), webhook("quiet")};
  h.integrations[1].when = "tensor=b";
  h.tree.receivers = {"oncall", "quiet"};
  h.open();
  h.fire(kTensorA);
  const auto waiting = standing().groups();
  ASSERT_THAT(waiting, SizeIs(1));
  EXPECT_EQ(waiting[0].next_flush, kStart + 30s);
  EXPECT_EQ(waiting[0].last_flush, std::nullopt);
  EXPECT_THAT(waiting[0].integrations, IsEmpty());
  h.at(30s);
  h.deliver(h.sent.back(), core::DeliveryState::delivered);
  h.fire(kTensorB);
  h.at(330s);
  const auto groups = standing().groups_of(a);
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].members, ::testing::UnorderedElementsAre(a, b));
  EXPECT_EQ(groups[0].labels.get("rule"), "nan");
  EXPECT_EQ(groups[0].last_flush, kStart + 330s);
  ASSERT_THAT(groups[0].integrations, SizeIs(2));
  const IntegrationStanding& oncall = groups[0].integrations[0];
  EXPECT_EQ(oncall.integration, "oncall");
  EXPECT_TRUE(oncall.incident_open);
  EXPECT_EQ(oncall.messages, 2U);
  ASSERT_THAT(oncall.told, SizeIs(2));
  for (const ToldStanding& one : oncall.told) {
    EXPECT_EQ(one.arrived, one.issue_key == a) << "of b a message is still on its way";
  }
  EXPECT_THAT(oncall.waiting, SizeIs(1));
  const IntegrationStanding& quiet = groups[0].integrations[1];
  ASSERT_THAT(quiet.told, SizeIs(1));
  EXPECT_EQ(quiet.told[0].issue_key, b);
}

TEST_F(Standing, WhatIsOwedIsThereUntilItIsPaidAndThenTheGroupIsGone) {
  h.integrations[0].resolve_when_suppressed = SuppressedEnd::defer;
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kTensorA);
  h.at(330s);
  const auto owing = standing().groups();
  ASSERT_THAT(owing, SizeIs(1));
  ASSERT_THAT(owing[0].integrations[0].owed, SizeIs(1));
  EXPECT_EQ(owing[0].integrations[0].owed[0].issue_key, a);
  EXPECT_EQ(owing[0].integrations[0].owed[0].since, kStart + 330s);
  EXPECT_THAT(owing[0].integrations[0].told, IsEmpty());
  EXPECT_EQ(standing().find(owing[0].hash.substr(0, 8))->key, owing[0].key);
  EXPECT_FALSE(standing().find("no such group"));
  h.silenced.clear();
  h.at(630s);
  for (const auto& note : h.sent) h.deliver(note, core::DeliveryState::delivered);
  EXPECT_THAT(standing().groups(), IsEmpty());
  EXPECT_THAT(standing().groups_of(a), IsEmpty());
}

TEST_F(Standing, ATombstoneAndWhatCannotBeReadChangeNothingElse) {
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  RouterStanding seen;
  for (const auto& [key, value] : h.changelog) seen.apply(key, value);
  seen.apply("issue/" + b, "no JSON");
  seen.apply("log/short", "{}");
  seen.apply("seen/1", "whatever");
  seen.apply("noslash", "whatever");
  EXPECT_EQ(seen.unreadable(), 2U);
  ASSERT_THAT(seen.groups(), SizeIs(1));
  for (const auto& [key, value] : h.changelog) seen.apply(key, std::nullopt);
  EXPECT_THAT(seen.groups(), IsEmpty());
}

TEST_F(Standing, AnIssueThatFlapsIsKnownToAndCalmIssuesAreNot) {
  h.tree.flap = FlapConfig{3, 30min, 15min};
  h.open();
  for (int i = 0; i < 4; ++i) {
    h.fire(kTensorA);
    h.at(h.now() - kStart + 60s);
    h.resolve(kTensorA);
    h.at(h.now() - kStart + 60s);
  }
  h.fire(kTensorB);
  h.at(h.now() - kStart + 1s);
  EXPECT_TRUE(standing().flapping_since(a));
  EXPECT_FALSE(standing().flapping_since(b));
  h.at(24h * 10);
  EXPECT_FALSE(standing().flapping_since(a));
}

// ---- inhibition

core::Issue issue_of(const core::Labels& labels) {
  core::Issue out;
  out.labels = labels;
  return out;
}

InhibitRule lost_hides_rest() {
  InhibitRule out;
  out.name = "lost-hides-rest";
  out.source_matchers = {"rule=lost"};
  out.target_matchers = {"severity!=critical"};
  out.equal = {"job"};
  return out;
}

const core::Labels kSource{{"rule", "lost"}, {"job", "j"}, {"severity", "error"}};
const core::Labels kTarget{{"rule", "nan"}, {"job", "j"}, {"severity", "error"}};
const core::WallTime kNoon = kStart + 1h;

TEST(InhibitionSurveys, NameTheRuleAndTheSource) {
  InhibitionSurvey survey({lost_hides_rest()});
  survey.add("source", issue_of(kSource), true, kStart);
  survey.add("target", issue_of(kTarget), true, kStart);
  EXPECT_THAT(survey.of(kTarget, kNoon), ElementsAre(InhibitedBy{"lost-hides-rest", "source"}));
  EXPECT_THAT(survey.of(with(kTarget, "job", "other"), kNoon), IsEmpty());
  EXPECT_THAT(survey.of(with(kTarget, "severity", "critical"), kNoon), IsEmpty());
  EXPECT_THAT(survey.of(kSource, kNoon), IsEmpty()) << "it is on both sides: not by itself";
}

TEST(InhibitionSurveys, CountASourceByItsAgeAndForAWhileAfterItsEnd) {
  InhibitRule rule = lost_hides_rest();
  rule.source_min_age = 10min;
  rule.hold_after = 5min;
  InhibitionSurvey survey({rule});
  core::Issue over = issue_of(kSource);
  over.ends_at = kStart + 30min;
  survey.add("source", over, false, kStart);
  EXPECT_THAT(survey.of(kTarget, kStart + 34min), SizeIs(1));
  EXPECT_THAT(survey.of(kTarget, kStart + 35min), IsEmpty());
  survey.add("again", issue_of(with(kSource, "worker", "1")), true, kStart + 40min);
  EXPECT_THAT(survey.of(kTarget, kStart + 49min), IsEmpty());
  EXPECT_THAT(survey.of(kTarget, kStart + 50min),
              ElementsAre(InhibitedBy{"lost-hides-rest", "again"}));
}

TEST(InhibitionSurveys, OfSeveralSourcesTheOldestThatFiresIsNamedAndNoShadow) {
  InhibitionSurvey survey({lost_hides_rest()});
  core::Issue shadow = issue_of(kSource);
  shadow.shadow = true;
  survey.add("shadow", shadow, true, kStart);
  EXPECT_THAT(survey.of(kTarget, kNoon), IsEmpty());
  survey.add("younger", issue_of(with(kSource, "worker", "1")), true, kStart + 2min);
  survey.add("older", issue_of(with(kSource, "worker", "2")), true, kStart + 1min);
  EXPECT_THAT(survey.of(kTarget, kNoon), ElementsAre(InhibitedBy{"lost-hides-rest", "older"}));
}

TEST(InhibitionSurveys, WithoutRulesNobodyIsHeldBack) {
  InhibitionSurvey survey({});
  survey.add("source", issue_of(kSource), true, kStart);
  EXPECT_THAT(survey.of(kTarget, kNoon), IsEmpty());
}

}  // namespace
}  // namespace tocsin::routing
