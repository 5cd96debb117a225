// Messages of integrations that act on each issue: one goes only where newer ones tell of all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/lanes.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

struct IssueLanes : Lanes {
  explicit IssueLanes(bool coalesce = true)
      : Lanes({}, Traits{.coalesce = coalesce, .every_issue = true}) {}
  void tell(const std::string& id, std::initializer_list<const char*> issues,
            NotificationKind kind = NotificationKind::update) {
    auto notification = sample_notification(id, kind);
    notification.group_key = "g";
    notification.decided_at = now;
    notification.issues.clear();
    for (const char* name : issues) notification.issues.push_back(sample_issue(name));
    lanes.enqueue(std::move(notification), now, core::Position{{"router-outbox", 0}, offset++});
  }
};

TEST(CoalesceByIssue, PartsOfOneFlushAllGo) {
  IssueLanes lanes;
  lanes.tell("1", {"a", "b"}, NotificationKind::open);
  lanes.tell("2", {"c"}, NotificationKind::open);
  EXPECT_EQ(lanes.step(), "1");
  EXPECT_EQ(lanes.step(), "2");
  EXPECT_THAT(lanes.finals(), ElementsAre("1:delivered", "2:delivered"));
}

TEST(CoalesceByIssue, WhatSeveralNewerOnesTellIsNotSentTwice) {
  IssueLanes lanes;
  lanes.tell("1", {"a", "b"});
  lanes.tell("2", {"b"});
  lanes.tell("3", {"a", "c"});
  EXPECT_THAT(lanes.finals(), ElementsAre("1:superseded"));
  EXPECT_EQ(lanes.step(), "2");
  EXPECT_EQ(lanes.step(), "3");
}

TEST(CoalesceByIssue, AnEndThatNoNewerOneTellsIsSent) {
  IssueLanes lanes;
  lanes.tell("ends-a", {"a"});
  lanes.tell("b", {"b"});
  lanes.tell("b-again", {"b"});
  EXPECT_THAT(lanes.finals(), ElementsAre("b:superseded"));
  EXPECT_EQ(lanes.step(), "ends-a");
}

TEST(CoalesceByIssue, WhatIsUnderWayStays) {
  IssueLanes lanes;
  lanes.tell("1", {"a"});
  const auto attempt = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(attempt);
  lanes.tell("2", {"a"});
  EXPECT_THAT(lanes.finals(), IsEmpty());
  lanes.lanes.finished(*attempt, outcome(OutcomeClass::transient), lanes.now);
  EXPECT_THAT(lanes.finals(), ElementsAre("1:superseded"));
  EXPECT_EQ(lanes.step(), "") << "a far side that fails is not asked sooner";
}

TEST(CoalesceByIssue, AnOpenThatDiedDoesNotSwallowTheEndOfTheOthers) {
  IssueLanes lanes;
  lanes.tell("1", {"a"}, NotificationKind::open);
  lanes.tell("2", {"b"}, NotificationKind::open);
  lanes.step(OutcomeClass::gone);
  EXPECT_THAT(lanes.finals(), testing::Contains("1:dead"));
  IssueLanes again;
  again.tell("1", {"a"}, NotificationKind::open);
  EXPECT_EQ(again.step(OutcomeClass::bad_payload), "1");
  EXPECT_EQ(again.step(OutcomeClass::bad_payload), "1");
  EXPECT_THAT(again.finals(), ElementsAre("1:dead"));
  again.tell("2", {"b"}, NotificationKind::close);
  EXPECT_EQ(again.step(), "2");
}

TEST(CoalesceByIssue, StopsAreNeverMerged) {
  IssueLanes lanes(false);
  lanes.tell("1", {"a"});
  lanes.tell("2", {"a"});
  EXPECT_EQ(lanes.step(), "1");
  EXPECT_EQ(lanes.step(), "2");
}

}  // namespace
}  // namespace tocsin::actions
