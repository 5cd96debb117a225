// A restart of the lanes: what was committed is read back, the outbox is read again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/lanes.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

// A restart: what was committed is read back, the outbox is read again from its position.
TEST(DeliveryLanes, AfterARestartNothingFinishedIsSentAgainAndWaitsAreHonoured) {
  Lanes before;
  before.enqueue("done", NotificationKind::open, "a");
  before.enqueue("waiting", NotificationKind::open, "b");
  EXPECT_EQ(before.step(), "done");
  EXPECT_EQ(before.step(OutcomeClass::transient), "waiting");
  const auto records = before.lanes.take().deliveries;

  Lanes after;
  for (const auto& record : records) after.lanes.restore(record);
  after.now = kStart + 500ms;
  after.enqueue("done", NotificationKind::open, "a");
  after.enqueue("waiting", NotificationKind::open, "b");
  EXPECT_EQ(after.step(), "");
  EXPECT_EQ(after.lanes.next_deadline(after.now), kStart + 1s);
  after.now = kStart + 1s;
  const auto attempt = after.lanes.next(after.now);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->notification->notification_id, "waiting");
  EXPECT_EQ(attempt->number, 2u);
}

TEST(DeliveryLanes, AfterARestartAThrottledLaneStaysQuiet) {
  Lanes before;
  before.enqueue("a");
  before.step(outcome(OutcomeClass::throttled, 60s));
  Lanes after;
  for (const auto& record : before.lanes.take().deliveries) after.lanes.restore(record);
  after.now = kStart + 30s;
  after.enqueue("a");
  after.enqueue("b", NotificationKind::open, "h");
  EXPECT_EQ(after.step(), "");
  after.now = kStart + 60s;
  EXPECT_EQ(after.step(), "b");  // it was never tried
  EXPECT_EQ(after.step(), "a");
}

TEST(DeliveryLanes, AfterARestartAnOpenBreakerSendsOneProbe) {
  Lanes before({}, {}, 0.0);
  for (int i = 0; i < 5; ++i)
    before.enqueue("n" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
  for (int i = 0; i < 5; ++i) before.step(OutcomeClass::transient);
  Lanes after({}, {}, 0.0);
  for (const auto& record : before.lanes.take().deliveries) after.lanes.restore(record);
  for (int i = 0; i < 5; ++i)
    after.enqueue("n" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
  EXPECT_EQ(after.step(), "");
  after.now = kStart + 30s;
  ASSERT_TRUE(after.lanes.next(after.now));
  EXPECT_FALSE(after.lanes.next(after.now));
}

// What a clock wrote that has stepped back since lies in its future: waits are restored as lengths.
TEST(DeliveryLanes, AfterARestartOnAClockThatSteppedBackARetryWaitsNoLonger) {
  Lanes before;
  before.enqueue("a");
  before.step(OutcomeClass::transient);  // again in a second
  Lanes after;
  for (const auto& record : before.lanes.take().deliveries) after.lanes.restore(record);
  after.now = kStart - 97min;
  after.enqueue("a");
  EXPECT_EQ(after.step(), "");
  after.now += 1s;
  EXPECT_EQ(after.step(), "a");
}

TEST(DeliveryLanes, AfterARestartOnAClockThatSteppedBackAPauseLastsNoLonger) {
  Lanes before;
  before.enqueue("a");
  before.step(outcome(OutcomeClass::throttled, 60s));
  Lanes after;
  for (const auto& record : before.lanes.take().deliveries) after.lanes.restore(record);
  after.now = kStart - 97min;
  after.enqueue("a");
  after.enqueue("b", NotificationKind::open, "h");
  after.now += 59s;
  EXPECT_EQ(after.step(), "");
  after.now += 1s;
  EXPECT_EQ(after.step(), "b");
  EXPECT_EQ(after.step(), "a");
}

TEST(DeliveryLanes, AfterARestartOnAClockThatSteppedBackABreakerOpensNoLonger) {
  Lanes before({}, {}, 0.0);
  const auto enqueue = [](Lanes& lanes) {
    for (const char* id : {"a", "b", "c", "d", "e"}) lanes.enqueue(id, NotificationKind::open, id);
  };
  enqueue(before);
  for (int i = 0; i < 5; ++i) before.step(OutcomeClass::transient);
  Lanes after({}, {}, 0.0);
  for (const auto& record : before.lanes.take().deliveries) after.lanes.restore(record);
  after.now = kStart - 97min;
  enqueue(after);
  EXPECT_EQ(after.step(), "");
  after.now += 30s;
  EXPECT_NE(after.step(), "");
}

TEST(DeliveryLanes, AfterARestartAFarSideThatHadRecoveredIsNotSlowedDown) {
  Lanes before({}, {}, 0.0);
  for (int i = 0; i < 5; ++i)
    before.enqueue("n" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
  for (int i = 0; i < 5; ++i) before.step(OutcomeClass::transient);
  before.now = kStart + 30s;
  while (!before.step().empty()) {
  }
  Lanes after;
  for (const auto& record : before.lanes.take().deliveries) after.lanes.restore(record);
  after.now = kStart + 31s;
  after.enqueue("a", NotificationKind::open, "a");
  after.enqueue("b", NotificationKind::open, "b");
  EXPECT_TRUE(after.lanes.next(after.now));
  EXPECT_TRUE(after.lanes.next(after.now));
}

TEST(DeliveryLanes, AfterARestartAMergedOpenIsStillAnOpenAndTheThreadGoesOn) {
  Lanes before;
  before.enqueue("open");
  before.step(OutcomeClass::transient);
  before.enqueue("update", NotificationKind::update);
  Lanes after;
  for (const auto& record : before.lanes.take().deliveries) after.lanes.restore(record);
  after.enqueue("open");
  after.enqueue("update", NotificationKind::update);
  auto attempt = after.lanes.next(after.now);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->notification->notification_id, "update");
  EXPECT_EQ(attempt->notification->kind, NotificationKind::open);
  auto answer = outcome(OutcomeClass::delivered);
  answer.handles = {{"message_id", "<update@x>"}};
  after.lanes.finished(*attempt, answer, after.now);

  Lanes third;
  for (const auto& record : after.lanes.take().deliveries) third.lanes.restore(record);
  third.enqueue("close", NotificationKind::close);
  EXPECT_EQ(third.lanes.next(third.now)->notification->handles.size(), 1u);
}

}  // namespace
}  // namespace tocsin::actions
