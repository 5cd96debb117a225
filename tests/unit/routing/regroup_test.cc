// A changed configuration and the groups that are there: closed before they are opened anew, or left, and
// what has not changed is told to nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const core::Labels kOne{{"rule", "nan"}, {"job", "one"}, {"severity", "error"}};

class RegroupTest : public ::testing::Test {
 protected:
  RegroupTest() {
    h.tree.group_wait = 0s;
    h.tree.group_by = {{"job"}};
    h.open();
    h.fire(kOne);
    h.said();
  }
  Harness h;
};

// K13: the process dies when the new configuration has been read and nothing is committed, and again
// when the close is committed and the open is not.
TEST_F(RegroupTest, AKillInTheMiddleLosesNeitherAndDoublesNeither) {
  h.tree.group_by = {{"job", "rule"}};
  h.open();   // decided, lost
  h.crash();  // decided again
  h.commit();
  EXPECT_THAT(h.said(), ElementsAre("regrouped close oncall 0/1 over"));
  const std::string close = h.sent.back().notification_id;
  h.crash();
  h.at(1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_NE(h.sent.back().notification_id, close);
  h.crash();
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(RegroupTest, LeaveClosesNothing) {
  h.tree.group_by = {{"job", "rule"}};
  h.options.limits.close_regrouped = false;
  h.open();
  h.at(1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(RegroupTest, TheLadderOfAGroupThatComesAgainBeginsAnew) {
  h.integrations.push_back(webhook("second"));
  h.tree.further.steps = {{{10min, "second", true, {}, 0}}};
  h.open();
  h.at(8min);
  h.tree.group_by = {{"job", "rule"}};
  h.open();
  h.at(9min);
  h.tree.group_by = {{"job"}};
  h.open();  // the first group again
  h.at(15min);
  for (const auto& note : h.sent) EXPECT_NE(note.integration, "second") << note.reason;
  h.at(20min);
  EXPECT_EQ(h.sent.back().reason, "escalation");
}

TEST_F(RegroupTest, AnAcknowledgementGoesAlong) {
  Acknowledgement ack;
  ack.id = "ack_one";
  ack.issues = {core::issue_key(kOne)};
  ack.by = "ada";
  ack.at = h.now();
  ASSERT_TRUE(h.router().on_control("ack/ack_one", ack_json(ack), h.now()));
  h.commit();
  h.tree.group_by = {{"job", "rule"}};
  h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 1h}};
  h.open();
  h.at(5h);
  EXPECT_THAT(h.said(), ElementsAre("regrouped close oncall 0/1 over", "first open oncall 1/0"));
  EXPECT_TRUE(h.sent.back().issues.at(0).acknowledged);
}

TEST(Overflow, TooManyGroupsOfOneRouteShareItsOverflowGroupAlsoAfterAKill) {
  Harness h;
  h.tree.group_wait = 0s;
  h.tree.group_by = {{"job"}};
  h.options.limits.max_groups_per_route = 2;
  h.open();
  for (const std::string job : {"a", "b", "c", "d"}) {
    h.fire({{"rule", "nan"}, {"job", job}, {"severity", "error"}});
    h.crash();
  }
  h.at(10min);
  std::set<std::string> told;
  bool alarm = false;
  bool overflow = false;
  for (const auto& note : h.sent) {
    overflow = overflow || note.group_labels == core::Labels{{"overflow", "true"}};
    for (const auto& one : note.issues) {
      told.insert(one.issue.labels.get("job"));
      alarm = alarm || one.issue.rule == "router_overflow";
    }
  }
  EXPECT_TRUE(alarm);
  EXPECT_TRUE(overflow);
  for (const std::string job : {"a", "b", "c", "d"}) EXPECT_TRUE(told.contains(job)) << job;
}

}  // namespace
}  // namespace tocsin::routing
