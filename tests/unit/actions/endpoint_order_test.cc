// What people ask of an integration: the records, and what a lane does about them.
#include "actions/contract/endpoint_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/lanes.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

EndpointOrder order_to(EndpointDeed deed) {
  return {"oncall/webhook", deed, "ada@node-7", "it moves", kStart};
}

std::string refusal_of_order(std::string_view key, std::string_view value) {
  const auto read = read_endpoint_order(key, value);
  return read ? "" : read.error().message;
}

TEST(EndpointOrder, ARecordReadsBackAsItWasWritten) {
  for (const auto deed :
       {EndpointDeed::disable, EndpointDeed::enable, EndpointDeed::reset, EndpointDeed::probe}) {
    const auto record = endpoint_record(order_to(deed));
    ASSERT_TRUE(is_endpoint_key(record.key));
    const auto read = read_endpoint_order(record.key, *record.value);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->deed, deed);
    EXPECT_EQ(read->integration, "oncall/webhook");
    EXPECT_EQ(read->by, "ada@node-7");
    EXPECT_EQ(read->comment, "it moves");
    EXPECT_EQ(read->at, kStart);
  }
}

TEST(EndpointOrder, WhatHoldsAndWhatIsDoneOnceHaveKeysOfTheirOwn) {
  EXPECT_EQ(endpoint_record(order_to(EndpointDeed::disable)).key, "endpoint/oncall/webhook");
  EXPECT_EQ(endpoint_record(order_to(EndpointDeed::reset)).key, "breaker/oncall/webhook");
}

TEST(EndpointOrder, WhatCannotBeReadIsRefusedWithTheNearestWord) {
  EXPECT_THAT(refusal_of_order("endpoint/a", R"({"do":"disabel"})"),
              HasSubstr("did you mean \"disable\"?"));
  EXPECT_THAT(refusal_of_order("endpoint/a", R"({"do":"reset"})"),
              HasSubstr("does not belong to the key"));
  EXPECT_THAT(refusal_of_order("breaker/a", R"({"do":"disable"})"),
              HasSubstr("does not belong to the key"));
  EXPECT_NE(refusal_of_order("endpoint/a", "no JSON"), "");
  EXPECT_NE(refusal_of_order("endpoint/a", "[]"), "");
}

TEST(EndpointOrder, ATombstoneEnables) {
  const auto read = read_endpoint_order("endpoint/a", std::nullopt);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->deed, EndpointDeed::enable);
}

TEST(LaneOrders, WhatComesWhileItIsOffWaitsAndIsSentAfterwards) {
  Lanes far;
  EXPECT_TRUE(far.lanes.order(order_to(EndpointDeed::disable), far.now));
  far.enqueue("a");
  EXPECT_EQ(far.step(), "");
  EXPECT_THAT(far.finals(), IsEmpty());
  EXPECT_THAT(far.lanes.stands()[0].held, HasSubstr("ada@node-7: it moves"));
  EXPECT_EQ(far.lanes.stands()[0].waiting, 1U);
  far.lanes.order(order_to(EndpointDeed::enable), far.now);
  EXPECT_EQ(far.step(), "a");
  EXPECT_THAT(far.finals(), ElementsAre("a:delivered"));
  EXPECT_EQ(far.lanes.stands()[0].held, "");
}

// Nothing is lost for being off: what is too old is said to be.
TEST(LaneOrders, WhatIsTooOldWhenItIsOnAgainExpires) {
  CommonConfig common;
  common.max_age = 1h;
  Lanes far(common);
  far.lanes.order(order_to(EndpointDeed::disable), far.now);
  far.enqueue("a");
  far.now += 2h;
  far.lanes.order(order_to(EndpointDeed::enable), far.now);
  EXPECT_EQ(far.step(), "");
  EXPECT_THAT(far.finals(), ElementsAre("a:expired"));
}

TEST(LaneOrders, AnotherIntegrationIsNotHeld) {
  Lanes far;
  far.lanes.order(order_to(EndpointDeed::disable), far.now);
  auto notification = sample_notification("b", NotificationKind::open);
  notification.integration = "other";
  far.lanes.enqueue(notification, far.now);
  EXPECT_EQ(far.step(), "b");
}

TEST(LaneOrders, AnUnknownIntegrationIsSaid) {
  Lanes far;
  EXPECT_FALSE(far.lanes.order({"nobody", EndpointDeed::disable, "", "", kStart}, far.now));
}

TEST(LaneOrders, AResetClosesTheBreaker) {
  Lanes far({}, {}, 0.0);
  for (int i = 0; i < 5; ++i)
    far.enqueue("n" + std::to_string(i), NotificationKind::open, "g" + std::to_string(i));
  for (int i = 0; i < 5; ++i) far.step(OutcomeClass::transient);
  EXPECT_EQ(far.lanes.stands()[0].breaker, "open");
  far.now += 200ms;
  EXPECT_EQ(far.step(), "");
  far.lanes.order(order_to(EndpointDeed::reset), far.now);
  EXPECT_EQ(far.lanes.stands()[0].breaker, "closed");
  EXPECT_NE(far.step(), "");
}

TEST(LaneOrders, AProbeTriesWhatWaitsForItsNextAttempt) {
  Lanes far;
  far.enqueue("a");
  EXPECT_EQ(far.step(outcome(OutcomeClass::throttled, 30min)), "a");
  EXPECT_EQ(far.step(), "");
  EXPECT_GT(far.lanes.stands()[0].paused, far.now);
  far.lanes.order(order_to(EndpointDeed::reset), far.now);
  EXPECT_EQ(far.step(), "") << "a reset ends the pause of the lane, not the wait of a message";
  far.lanes.order(order_to(EndpointDeed::probe), far.now);
  EXPECT_EQ(far.step(), "a");
}

TEST(LaneOrders, EnablingTakesBackThatTheFarSideIsGone) {
  Lanes far;
  far.enqueue("a", NotificationKind::open, "g1");
  far.enqueue("b", NotificationKind::open, "g2");
  far.step(OutcomeClass::gone);
  far.step(OutcomeClass::gone);
  EXPECT_NE(far.lanes.stands()[0].switched_off, "");
  far.finals();
  far.enqueue("c", NotificationKind::open, "g3");
  EXPECT_THAT(far.finals(), ElementsAre("c:dead"));
  far.lanes.order(order_to(EndpointDeed::enable), far.now);
  far.enqueue("d", NotificationKind::open, "g4");
  EXPECT_EQ(far.step(), "d");
}

// ---- what was given up, and is sent again

TEST(Replay, WhatIsGivenUpIsALetterWithItsEnd) {
  Lanes far;
  far.enqueue("a");
  far.step(OutcomeClass::gone);
  far.finals();
  ASSERT_EQ(far.batch.dead.size(), 1U);
  EXPECT_EQ(far.batch.dead[0].notification->notification_id, "a");
  EXPECT_EQ(far.batch.dead[0].end.state, core::DeliveryState::dead);
  far.enqueue("b", NotificationKind::open, "h");
  far.step();
  far.finals();
  EXPECT_THAT(far.batch.dead, IsEmpty()) << "b arrived";
}

core::Notification again(const std::string& id) {
  auto out = sample_notification(id, NotificationKind::open);
  out.group_key = "g";
  return out;
}

TEST(Replay, AFinishedNotificationIsSentAgainOnceUnderItsId) {
  Lanes far;
  far.enqueue("a");
  far.step(OutcomeClass::gone);
  far.finals();
  far.lanes.enqueue(again("a"), far.now, core::Position{{"router-outbox", 0}, 1}, "rpl_1");
  far.lanes.enqueue(again("a"), far.now, core::Position{{"router-outbox", 0}, 2}, "rpl_1");
  EXPECT_EQ(far.step(), "a");
  EXPECT_EQ(far.step(), "") << "the same request, read twice";
  EXPECT_THAT(far.finals(), ElementsAre("a:delivered"));
  EXPECT_EQ(replay_of(far.batch.deliveries.back()), "rpl_1");
}

TEST(Replay, AfterARestartAReplayThatEndedIsNotSentAgainAndAnotherIs) {
  Lanes before;
  before.enqueue("a");
  before.step(OutcomeClass::gone);
  before.lanes.enqueue(again("a"), before.now, std::nullopt, "rpl_1");
  before.step();
  const auto records = before.lanes.take().deliveries;
  Lanes after;
  for (const auto& record : records) after.lanes.restore(record);
  after.enqueue("a");
  after.lanes.enqueue(again("a"), after.now, std::nullopt, "rpl_1");
  EXPECT_EQ(after.step(), "");
  after.lanes.enqueue(again("a"), after.now, std::nullopt, "rpl_2");
  EXPECT_EQ(after.step(), "a");
}

TEST(Replay, BehindANewerMessageOfItsIncidentItIsSuperseded) {
  Lanes far;
  far.enqueue("a");
  far.step(OutcomeClass::gone);
  far.finals();
  far.enqueue("newer");
  far.lanes.enqueue(again("a"), far.now, std::nullopt, "rpl_1");
  EXPECT_THAT(far.finals(), ElementsAre("a:superseded"));
  EXPECT_EQ(far.step(), "newer");
}

}  // namespace
}  // namespace tocsin::actions
