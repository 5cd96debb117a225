// What lanes do when the far side fails, throttles, is gone, or says nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/lanes.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

TEST(DeliveryLanes, AThrottleHoldsTheWholeLaneForAsLongAsItSays) {
  Lanes lanes;
  lanes.enqueue("a");
  EXPECT_EQ(lanes.step(outcome(OutcomeClass::throttled, 7s)), "a");
  lanes.enqueue("b", NotificationKind::open, "h");
  EXPECT_EQ(lanes.step(), "");
  EXPECT_EQ(lanes.lanes.next_deadline(lanes.now), kStart + 7s);
  lanes.now = kStart + 7s;
  EXPECT_EQ(lanes.step(), "b");  // it was never tried
  EXPECT_EQ(lanes.step(), "a");
}

TEST(DeliveryLanes, AThrottleIsObeyedForAnHourAtMost) {
  Lanes lanes;
  lanes.enqueue("a");
  lanes.step(outcome(OutcomeClass::throttled, 100h));
  EXPECT_EQ(lanes.lanes.next_deadline(lanes.now), kStart + 1h);
}

TEST(DeliveryLanes, ManyThrottlesDoNotOpenTheBreaker) {
  Lanes lanes;
  lanes.enqueue("a");
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(lanes.step(outcome(OutcomeClass::throttled, 1s)), "a");
    lanes.now += 2min;  // our own back-off grows to that
  }
  EXPECT_EQ(lanes.step(), "a");
}

TEST(DeliveryLanes, AFarSideThatIsDownIsProbedAndNotStormed) {
  Lanes lanes({}, {}, 0.0);  // no wait between retries: only the breaker holds
  for (int i = 0; i < 10; ++i)
    lanes.enqueue("n" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
  int attempts = 0;
  while (!lanes.step(OutcomeClass::transient).empty()) ++attempts;
  EXPECT_EQ(attempts, 5);
  lanes.now = kStart + 30s;
  EXPECT_NE(lanes.step(OutcomeClass::transient), "");
  EXPECT_EQ(lanes.step(OutcomeClass::transient), "");
  lanes.now = kStart + 30s + 60s;
  int delivered = 0;
  while (!lanes.step().empty()) ++delivered;
  EXPECT_EQ(delivered, 10);
}

TEST(DeliveryLanes, WhatIsHeldOnOurSideKeepsNobodyElseWaiting) {
  Lanes lanes({}, {}, 0.0);
  lanes.enqueue("young run");
  core::AttemptOutcome held = outcome(OutcomeClass::transient);
  held.held = true;
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(lanes.step(held), "young run");
    lanes.now += 1s;
  }
  lanes.enqueue("other run", NotificationKind::open, "h");
  std::vector<std::string> tried{lanes.step(), lanes.step()};
  EXPECT_THAT(tried, ::testing::UnorderedElementsAre("young run", "other run"));
}

TEST(DeliveryLanes, AConfigurationErrorIsTriedSlowlyAndThenGivenUp) {
  Lanes lanes;
  lanes.enqueue("a");
  std::vector<core::Duration> tried;
  for (int i = 0; i < 10; ++i) {
    if (lanes.step(OutcomeClass::configuration).empty()) break;
    tried.push_back(lanes.now - kStart);
    const auto next = lanes.lanes.next_deadline(lanes.now);
    if (next) lanes.now = *next;
  }
  EXPECT_THAT(tried, ElementsAre(0min, 1min, 3min, 7min, 15min));
  EXPECT_THAT(lanes.finals(), ElementsAre("a:dead"));
}

TEST(DeliveryLanes, ARefusedMessageIsSentOnceMoreInShort) {
  Lanes lanes;
  lanes.enqueue("a");
  EXPECT_EQ(lanes.step(OutcomeClass::bad_payload), "a");
  const auto again = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->notification->minimal);
  EXPECT_EQ(again->notification->rendered, "");
  lanes.lanes.finished(*again, outcome(OutcomeClass::bad_payload), lanes.now);
  EXPECT_THAT(lanes.finals(), ElementsAre("a:dead"));
}

TEST(DeliveryLanes, AFarSideThatSaysTwiceThatItIsGoneIsNotAskedAgain) {
  Lanes lanes;
  lanes.enqueue("a");
  lanes.enqueue("b", NotificationKind::open, "h");
  lanes.enqueue("c", NotificationKind::open, "i");
  EXPECT_EQ(lanes.step(OutcomeClass::gone), "a");
  EXPECT_THAT(lanes.finals(), ElementsAre("a:dead"));
  EXPECT_EQ(lanes.step(OutcomeClass::gone), "b");
  EXPECT_THAT(lanes.finals(), ElementsAre("b:dead", "c:dead"));
  lanes.enqueue("d");
  EXPECT_EQ(lanes.step(), "");
  EXPECT_THAT(lanes.finals(), ElementsAre("d:dead"));
}

TEST(DeliveryLanes, OneMessageThatIsAnsweredGoneEndsNoOther) {
  Lanes lanes;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    lanes.enqueue("odd" + n, NotificationKind::open, "odd" + n);
    EXPECT_EQ(lanes.step(OutcomeClass::gone), "odd" + n);
    lanes.enqueue("well" + n, NotificationKind::open, "well" + n);
    EXPECT_EQ(lanes.step(), "well" + n);
  }
}

TEST(DeliveryLanes, WhatWasUnderWayWhenTheFarSideWentIsNotTriedAgain) {
  Lanes lanes;
  for (const char* id : {"a", "b", "c"}) lanes.enqueue(id, NotificationKind::open, id);
  const auto a = lanes.lanes.next(lanes.now);
  const auto b = lanes.lanes.next(lanes.now);
  const auto c = lanes.lanes.next(lanes.now);
  lanes.lanes.finished(*a, outcome(OutcomeClass::gone), lanes.now);
  lanes.lanes.finished(*b, outcome(OutcomeClass::gone), lanes.now);
  lanes.lanes.finished(*c, outcome(OutcomeClass::transient), lanes.now);
  EXPECT_THAT(lanes.finals(), ElementsAre("a:dead", "b:dead", "c:dead"));
}

TEST(DeliveryLanes, AnUnknownOutcomeIsTriedAgainUnlessToldToDrop) {
  Lanes lanes;
  lanes.enqueue("a");
  lanes.step(OutcomeClass::unknown);
  lanes.now += 1s;
  EXPECT_EQ(lanes.step(), "a");

  CommonConfig drop;
  drop.retry_unknown = false;
  Lanes dropping(drop);
  dropping.enqueue("a");
  dropping.step(OutcomeClass::unknown);
  EXPECT_THAT(dropping.finals(), ElementsAre("a:sent_unconfirmed"));
}

TEST(DeliveryLanes, ExpiresWhatIsTooOldAndClosesLater) {
  Lanes lanes;
  lanes.enqueue("a");
  lanes.enqueue("b", NotificationKind::close, "h");
  lanes.step(OutcomeClass::transient);
  lanes.step(OutcomeClass::transient);
  lanes.finals();
  lanes.now = kStart + 24h;
  EXPECT_EQ(lanes.step(), "b");
  EXPECT_THAT(lanes.finals(), ElementsAre("a:expired", "b:delivered"));
}

TEST(DeliveryLanes, GivesUpAfterMaxAttempts) {
  CommonConfig common;
  common.retry.max_attempts = 2;
  Lanes lanes(common);
  lanes.enqueue("a");
  lanes.step(OutcomeClass::transient);
  lanes.now += 1s;
  lanes.step(OutcomeClass::transient);
  EXPECT_THAT(lanes.finals(), ElementsAre("a:dead"));
}

// An open that nobody got is followed by nothing the far side cannot place.
TEST(DeliveryLanes, AfterAnOpenThatExpiredAnUpdateOpensTheIncidentAndACloseIsDropped) {
  for (const bool restarted : {false, true}) {
    Lanes before;
    before.enqueue("open");
    before.step(OutcomeClass::transient);
    before.now = kStart + 24h;
    EXPECT_EQ(before.step(), "");
    EXPECT_THAT(before.finals(), ElementsAre("open:expired"));
    Lanes after;
    for (const auto& record : before.batch.deliveries) after.lanes.restore(record);
    after.now = before.now;
    Lanes& lanes = restarted ? after : before;
    if (restarted) lanes.offset = 1;

    lanes.enqueue("update", NotificationKind::update);
    const auto attempt = lanes.lanes.next(lanes.now);
    ASSERT_TRUE(attempt);
    EXPECT_EQ(attempt->notification->kind, NotificationKind::open);
    lanes.lanes.finished(*attempt, outcome(OutcomeClass::bad_payload), lanes.now);
    EXPECT_EQ(lanes.step(OutcomeClass::bad_payload), "update");
    EXPECT_THAT(lanes.finals(), ElementsAre("update:dead"));
    lanes.enqueue("close", NotificationKind::close);
    EXPECT_EQ(lanes.step(), "");
    EXPECT_THAT(lanes.finals(), ElementsAre("close:superseded"));
    EXPECT_EQ(lanes.batch.deliveries[0].code, "never_announced");
    lanes.enqueue("next");  // the next episode is told as ever
    EXPECT_EQ(lanes.step(), "next");
    lanes.enqueue("its_close", NotificationKind::close);
    EXPECT_EQ(lanes.step(), "its_close");
  }
}

TEST(DeliveryLanes, WhatWaitsBehindAnOpenThatDiesIsJudgedAnew) {
  CommonConfig once;
  once.retry.max_attempts = 1;
  for (const auto kind : {NotificationKind::update, NotificationKind::close}) {
    Lanes lanes(once);
    lanes.enqueue("open");
    const auto open = lanes.lanes.next(lanes.now);
    lanes.enqueue("second", kind);  // while the open is under way
    lanes.lanes.finished(*open, outcome(OutcomeClass::transient), lanes.now);
    const auto next = lanes.lanes.next(lanes.now);
    if (kind == NotificationKind::close) {
      EXPECT_FALSE(next);
      EXPECT_THAT(lanes.finals(), ElementsAre("open:dead", "second:superseded"));
    } else {
      ASSERT_TRUE(next);
      EXPECT_EQ(next->notification->kind, NotificationKind::open);
    }
  }
}

TEST(DeliveryLanes, ACloseIsStillOwedWhenTheLostOpenMayHaveArrived) {
  Lanes lanes;
  lanes.enqueue("open");
  lanes.step(OutcomeClass::unknown);
  lanes.now = kStart + 24h;
  EXPECT_EQ(lanes.step(), "");
  EXPECT_THAT(lanes.finals(), ElementsAre("open:expired"));
  lanes.enqueue("close", NotificationKind::close);
  EXPECT_EQ(lanes.step(), "close");
}

}  // namespace
}  // namespace tocsin::actions
