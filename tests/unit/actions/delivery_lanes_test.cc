// Order, merging, limits and records of deliveries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "tests/unit/actions/lanes.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing_support;
using core::DeliveryState;
using core::NotificationKind;
using core::OutcomeClass;

TEST(DeliveryLanes, DeliversAtOnceAndRecordsIt) {
  Lanes lanes;
  lanes.enqueue("a");
  const auto attempt = lanes.lanes.next(kStart);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->number, 1u);
  EXPECT_EQ(attempt->budget, 10s);
  core::AttemptOutcome answer = outcome(OutcomeClass::delivered);
  answer.code = "204";
  answer.handles = {{"k", "v"}};
  lanes.lanes.finished(*attempt, answer, kStart + 20ms);
  const auto batch = lanes.lanes.take();
  ASSERT_EQ(batch.deliveries.size(), 1u);
  const core::Delivery& record = batch.deliveries[0];
  EXPECT_EQ(record.notification_id, "a");
  EXPECT_EQ(record.state, DeliveryState::delivered);
  EXPECT_EQ(record.attempt, 1u);
  EXPECT_EQ(record.code, "204");
  EXPECT_EQ(record.latency, 20ms);
  EXPECT_EQ(record.stages.decided, kStart);
  EXPECT_EQ(record.stages.answered, kStart + 20ms);
  EXPECT_EQ(record.issues.size(), 1u);
  EXPECT_THAT(record.handles, ElementsAre(std::pair<std::string, std::string>("k", "v")));
  EXPECT_THAT(batch.positions, ElementsAre(core::Position{{"router-outbox", 0}, 1}));
  EXPECT_TRUE(lanes.lanes.take().empty());
}

TEST(DeliveryLanes, WaitsAfterATransientFailureAndTriesAgain) {
  Lanes lanes;
  lanes.enqueue("a");
  EXPECT_EQ(lanes.step(OutcomeClass::transient), "a");
  EXPECT_EQ(lanes.step(), "");
  EXPECT_EQ(lanes.lanes.next_deadline(lanes.now), kStart + 1s);
  EXPECT_EQ(lanes.lanes.take().deliveries.at(0).next_attempt_at, kStart + 1s);
  lanes.now = kStart + 1s;
  EXPECT_EQ(lanes.step(OutcomeClass::transient), "a");
  EXPECT_EQ(lanes.lanes.next_deadline(lanes.now), kStart + 3s);
  lanes.now = kStart + 3s;
  EXPECT_EQ(lanes.step(), "a");
  EXPECT_THAT(lanes.finals(), ElementsAre("a:delivered"));
}

TEST(DeliveryLanes, TheJitterIsTakenFromTheGenerator) {
  Lanes lanes({}, {}, 0.25);
  lanes.enqueue("a");
  lanes.step(OutcomeClass::transient);
  EXPECT_EQ(lanes.lanes.next_deadline(lanes.now), kStart + 250ms);
}

TEST(DeliveryLanes, KeepsTheOrderInsideAGroupAndLetsOthersPass) {
  Lanes lanes;
  lanes.enqueue("open", NotificationKind::open, "g", core::Severity::critical);
  const auto first = lanes.lanes.next(lanes.now);
  lanes.enqueue("close", NotificationKind::close, "g");
  EXPECT_FALSE(lanes.lanes.next(lanes.now));  // one of a group at a time
  lanes.enqueue("elsewhere", NotificationKind::open, "h");
  EXPECT_EQ(lanes.step(), "elsewhere");
  lanes.lanes.finished(*first, outcome(OutcomeClass::delivered), lanes.now);
  EXPECT_EQ(lanes.step(), "close");
}

TEST(DeliveryLanes, OneIntegrationDoesNotWaitForAnother) {
  Lanes lanes;
  for (int i = 0; i < 4; ++i) {
    lanes.enqueue("a" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
    ASSERT_TRUE(lanes.lanes.next(lanes.now));  // all hang
  }
  lanes.enqueue("fifth", NotificationKind::open, "g5");
  EXPECT_FALSE(lanes.lanes.next(lanes.now));  // concurrency 4
  auto other = sample_notification("o");
  other.integration = "other";
  lanes.lanes.enqueue(other, lanes.now);
  EXPECT_EQ(lanes.step(), "o");
}

TEST(DeliveryLanes, MergesWhatWaitsIntoTheNewest) {
  Lanes lanes;
  lanes.enqueue("open");
  lanes.step(OutcomeClass::transient);
  lanes.enqueue("update", NotificationKind::update);
  EXPECT_THAT(lanes.finals(), ElementsAre("open:superseded"));
  EXPECT_EQ(lanes.batch.deliveries.back().detail, "superseded by update");
  EXPECT_EQ(lanes.step(), "");  // news do not hurry a far side that is failing
  lanes.now += 1s;
  const auto attempt = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->notification->notification_id, "update");
  EXPECT_EQ(attempt->notification->kind,
            NotificationKind::open);  // the incident is still to be opened
}

TEST(DeliveryLanes, NeverTellsOfWhatIsOverUnlessItWasCritical) {
  Lanes lanes;
  lanes.enqueue("open");
  lanes.step(OutcomeClass::transient);
  lanes.enqueue("close", NotificationKind::close);
  EXPECT_THAT(lanes.finals(), ElementsAre("open:superseded", "close:superseded"));
  EXPECT_EQ(lanes.batch.deliveries.back().code, "never_announced");

  lanes.enqueue("open2", NotificationKind::open, "g", core::Severity::critical);
  lanes.step(OutcomeClass::transient);
  lanes.enqueue("close2", NotificationKind::close);
  lanes.now += 2min;
  EXPECT_EQ(lanes.step(), "open2");
  EXPECT_EQ(lanes.step(), "close2");
}

TEST(DeliveryLanes, ACloseIsOwedWhenTheOpenMayHaveArrived) {
  Lanes lanes;
  lanes.enqueue("open");
  lanes.step(OutcomeClass::unknown);
  lanes.enqueue("close", NotificationKind::close);
  lanes.now += 1s;
  EXPECT_EQ(lanes.step(), "open");
  EXPECT_EQ(lanes.step(), "close");
}

TEST(DeliveryLanes, ACloseTakesThePlaceOfAnUpdate) {
  Lanes lanes;
  lanes.enqueue("open");
  lanes.step();
  lanes.enqueue("update", NotificationKind::update);
  lanes.step(OutcomeClass::transient);
  lanes.enqueue("close", NotificationKind::close);
  EXPECT_THAT(lanes.finals(), ElementsAre("open:delivered", "update:superseded"));
  lanes.now += 1s;
  EXPECT_EQ(lanes.step(), "close");
}

TEST(DeliveryLanes, AStopIsNeverMerged) {
  Traits stop;
  stop.coalesce = false;
  Lanes lanes({}, stop);
  lanes.enqueue("one");
  lanes.step(OutcomeClass::transient);
  lanes.enqueue("two", NotificationKind::update);
  lanes.now += 1s;
  EXPECT_EQ(lanes.step(), "one");
  EXPECT_EQ(lanes.step(), "two");
}

TEST(DeliveryLanes, TheMostUrgentGoesFirst) {
  CommonConfig slow;
  slow.concurrency = 1;
  Lanes lanes(slow);
  lanes.enqueue("info", NotificationKind::open, "a", core::Severity::info);
  lanes.enqueue("error", NotificationKind::open, "b", core::Severity::error);
  lanes.enqueue("critical", NotificationKind::open, "c", core::Severity::critical);
  lanes.enqueue("close", NotificationKind::close, "d", core::Severity::info);
  EXPECT_EQ(lanes.step(), "close");
  EXPECT_EQ(lanes.step(), "critical");
  EXPECT_EQ(lanes.step(), "error");
  EXPECT_EQ(lanes.step(), "info");
}

TEST(DeliveryLanes, WhatWaitsLongBecomesMoreUrgent) {
  Lanes lanes;
  lanes.enqueue("info", NotificationKind::open, "a", core::Severity::info);
  lanes.now += 30min;
  lanes.enqueue("error", NotificationKind::open, "b", core::Severity::error);
  EXPECT_EQ(lanes.step(), "info");
}

TEST(DeliveryLanes, ObeysItsRateLimit) {
  CommonConfig limited;
  limited.rate_limit = {1, 10s, 2};
  Lanes lanes(limited);
  for (const char* id : {"a", "b", "c"}) lanes.enqueue(id, NotificationKind::open, id);
  EXPECT_EQ(lanes.step(), "a");
  EXPECT_EQ(lanes.step(), "b");
  EXPECT_EQ(lanes.step(), "");
  lanes.now = *lanes.lanes.next_deadline(lanes.now);
  EXPECT_GE(lanes.now, kStart + 10s);
  EXPECT_EQ(lanes.step(), "c");
}

TEST(DeliveryLanes, TellsPeopleOfManyThingsInOneMessage) {
  Traits human;
  human.human = true;
  Lanes lanes({}, human);
  for (int i = 0; i < 25; ++i)
    lanes.enqueue("n" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
  const auto attempt = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->notification->reason, "digest");
  EXPECT_EQ(attempt->notification->issues.size(), 25u);
  EXPECT_EQ(attempt->notification->firing_count, 25u);
  lanes.lanes.finished(*attempt, outcome(OutcomeClass::delivered), lanes.now);
  const auto finals = lanes.finals();
  ASSERT_EQ(finals.size(), 25u);
  EXPECT_THAT(finals, ::testing::Each(HasSubstr(":delivered_via_digest")));
  EXPECT_FALSE(lanes.lanes.next_deadline(lanes.now));
}

TEST(DeliveryLanes, ADigestHasEachRunAsTheNewestMessageTellsIt) {
  Traits human;
  human.human = true;
  Lanes lanes({}, human);
  for (int i = 0; i < 25; ++i) {
    auto notification = sample_notification("n" + std::to_string(i));
    notification.group_key = "g" + std::to_string(i);
    notification.decided_at = lanes.now;
    notification.runs = {stopped_run()};
    notification.runs[0].step = i;
    if (i == 7) notification.runs[0].run.attempt = 2;
    lanes.lanes.enqueue(std::move(notification), lanes.now,
                        core::Position{{"router-outbox", 0}, lanes.offset++});
  }
  const auto attempt = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(attempt);
  ASSERT_EQ(attempt->notification->runs.size(), 2u);
  EXPECT_EQ(attempt->notification->runs[0].step, 24);
  EXPECT_EQ(attempt->notification->runs[1].step, 7);
}

TEST(DeliveryLanes, ADigestThatFailsIsRetriedWithoutLosingAnybody) {
  Traits human;
  human.human = true;
  Lanes lanes({}, human);
  for (int i = 0; i < 25; ++i)
    lanes.enqueue("n" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
  lanes.step(OutcomeClass::transient);
  EXPECT_THAT(lanes.finals(), ::testing::IsEmpty());
  lanes.now += 1s;
  lanes.step();
  EXPECT_EQ(lanes.finals().size(), 25u);
}

TEST(DeliveryLanes, GivesLaterMessagesTheHandlesOfTheIncident) {
  Lanes lanes;
  lanes.enqueue("open");
  auto answer = outcome(OutcomeClass::delivered);
  answer.handles = {{"message_id", "<open@x>"}};
  lanes.step(answer);
  lanes.enqueue("close", NotificationKind::close);
  const auto attempt = lanes.lanes.next(lanes.now);
  EXPECT_THAT(attempt->notification->handles,
              ElementsAre(std::pair<std::string, std::string>("message_id", "<open@x>")));
  lanes.lanes.finished(*attempt, outcome(OutcomeClass::delivered), lanes.now);
  lanes.enqueue("next");
  EXPECT_THAT(lanes.lanes.next(lanes.now)->notification->handles, IsEmpty());  // a new incident
}

TEST(DeliveryLanes, ADryRunEndsCancelledAndShadowSendsNothing) {
  Lanes lanes;
  lanes.enqueue("a");
  auto declined = outcome(OutcomeClass::delivered);
  declined.declined = true;
  lanes.step(declined);
  EXPECT_THAT(lanes.finals(), ElementsAre("a:cancelled"));

  CommonConfig shadow;
  shadow.shadow = true;
  Lanes shadowed(shadow);
  shadowed.enqueue("b");
  EXPECT_EQ(shadowed.step(), "");
  EXPECT_THAT(shadowed.finals(), ElementsAre("b:cancelled"));
  EXPECT_EQ(shadowed.batch.deliveries[0].code, "shadow");
}

TEST(DeliveryLanes, AnUnconfirmedDeliverySaysSo) {
  Lanes lanes;
  lanes.enqueue("a");
  auto answer = outcome(OutcomeClass::delivered);
  answer.confirmed = false;
  lanes.step(answer);
  EXPECT_THAT(lanes.finals(), ElementsAre("a:sent_unconfirmed"));
}

TEST(DeliveryLanes, AnIntegrationThatIsNoLongerConfiguredEndsItsMessages) {
  Lanes lanes;
  auto notification = sample_notification("a");
  notification.integration = "removed";
  lanes.lanes.enqueue(notification, lanes.now, core::Position{{"router-outbox", 0}, 9});
  EXPECT_THAT(lanes.finals(), ElementsAre("a:cancelled"));
  EXPECT_THAT(lanes.batch.positions, ElementsAre(core::Position{{"router-outbox", 0}, 10}));
}

TEST(DeliveryLanes, CommitsTheLowestRecordThatIsNotFinished) {
  Lanes lanes;
  for (const char* id : {"a", "b", "c"}) lanes.enqueue(id, NotificationKind::open, id);
  const auto a = lanes.lanes.next(lanes.now);
  EXPECT_EQ(lanes.step(), "b");
  EXPECT_EQ(lanes.step(), "c");
  EXPECT_THAT(lanes.lanes.take().positions, IsEmpty());
  lanes.lanes.finished(*a, outcome(OutcomeClass::delivered), lanes.now);
  EXPECT_THAT(lanes.lanes.take().positions, ElementsAre(core::Position{{"router-outbox", 0}, 3}));
}

TEST(DeliveryLanes, AnAttemptThatWasNotStartedDoesNotCount) {
  Lanes lanes;
  lanes.enqueue("a");
  const auto first = lanes.lanes.next(lanes.now);
  lanes.lanes.not_started(*first, lanes.now);
  EXPECT_TRUE(lanes.lanes.take().deliveries.empty());
  const auto again = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->number, 1u);
}

TEST(DeliveryLanes, AProbeThatWasNotStartedDoesNotBlockTheLane) {
  Lanes lanes({}, {}, 0.0);
  lanes.enqueue("a");
  for (int i = 0; i < 5; ++i) lanes.step(OutcomeClass::transient);
  lanes.now = kStart + 30s;
  const auto probe = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(probe);
  lanes.lanes.not_started(*probe, lanes.now);
  EXPECT_EQ(lanes.lanes.next_deadline(lanes.now), lanes.now);
  EXPECT_EQ(lanes.step(), "a");
}

TEST(DeliveryLanes, HandsOnWhatPeopleMustBeTold) {
  Lanes lanes;
  lanes.enqueue("a");
  auto answer = outcome(OutcomeClass::delivered);
  answer.issues.push_back(sample_issue().issue);
  lanes.step(answer);
  EXPECT_EQ(lanes.lanes.take().issues.size(), 1u);
  EXPECT_TRUE(lanes.lanes.take().issues.empty());
}

// One unit: the record of the attempt, what it publishes, and where the outbox stands.
TEST(DeliveryLanes, WhatAnAttemptPublishesComesWithItsRecord) {
  Lanes lanes;
  lanes.enqueue("a");
  auto answer = outcome(OutcomeClass::delivered);
  answer.records.push_back({"/alarms", "key", "value"});
  const auto attempt = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(attempt);
  EXPECT_TRUE(lanes.lanes.take().records.empty());
  lanes.lanes.finished(*attempt, answer, lanes.now);
  const auto batch = lanes.lanes.take();
  ASSERT_EQ(batch.records.size(), 1u);
  EXPECT_EQ(batch.records[0].topic, "/alarms");
  ASSERT_EQ(batch.deliveries.size(), 1u);
  EXPECT_EQ(batch.deliveries[0].state, core::DeliveryState::delivered);
  EXPECT_TRUE(lanes.lanes.take().records.empty());
}

/// Processor time that each of so many groups costs.
double seconds_each(int groups) {
  Lanes lanes;
  for (int i = 0; i < groups; ++i) {
    lanes.enqueue("n" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
  }
  const std::clock_t begin = std::clock();
  int sent = 0;
  while (!lanes.step().empty()) {
    ++sent;
    (void)lanes.lanes.next_deadline(lanes.now);
  }
  EXPECT_EQ(sent, groups);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / groups;
}

// Each call looks at what is due, not at all that waits: with a scan per call it is forty times.
TEST(DeliveryLanes, ManyGroupsCostNoMoreEachThanFew) {
  EXPECT_LT(seconds_each(40'000), 15 * seconds_each(1'000));
}

TEST(DeliveryLanes, TheSameRecordTwiceIsOneMessage) {
  Lanes lanes;
  lanes.enqueue("a");
  lanes.enqueue("a");
  EXPECT_EQ(lanes.step(), "a");
  EXPECT_EQ(lanes.step(), "");
  lanes.enqueue("a");
  EXPECT_EQ(lanes.step(), "");
  lanes.finals();
  EXPECT_THAT(lanes.batch.positions, ElementsAre(core::Position{{"router-outbox", 0}, 3}));
}

}  // namespace
}  // namespace tocsin::actions
