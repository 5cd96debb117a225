// The notification log follows the deliveries: no update and no close of what never arrived.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using core::DeliveryState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const core::Labels kToldA{{"rule", "nan"}, {"job", "j"}, {"tensor", "a"}};
const core::Labels kToldB{{"rule", "nan"}, {"job", "j"}, {"tensor", "b"}};

class Told : public ::testing::Test {
 protected:
  /// A fires and is told at 30 s.
  void open_one() {
    h.open();
    h.fire(kToldA);
    h.at(30s);
    EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  }
  Harness h;
};

TEST_F(Told, AnOpenThatNeverArrivedIsOpenedAgain) {
  for (const DeliveryState state : {DeliveryState::expired, DeliveryState::cancelled}) {
    h.changelog.clear();
    h.stop_until(0s);
    open_one();
    h.at(2min);
    h.deliver(h.sent.back(), state);
    EXPECT_EQ(h.router().stats().untold, 1U);
    h.crash();
    h.at(30s + 5min);
    EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
    h.deliver(h.sent.back(), DeliveryState::delivered);
    h.resolve(kToldA);
    h.at(30s + 10min);
    EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  }
}

TEST_F(Told, AnOpenThatNeverArrivedIsNeitherUpdatedNorClosed) {
  open_one();
  h.deliver(h.sent[0], DeliveryState::expired);
  h.at(1min);
  h.resolve(kToldA);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  h.fire(kToldA);
  h.at(2h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(Told, NewsAfterAnOpenThatNeverArrivedIsAnOpen) {
  open_one();
  h.deliver(h.sent[0], DeliveryState::expired);
  h.fire(kToldB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0"));
}

TEST_F(Told, WhatIsOnItsWayCountsAsTold) {
  open_one();
  h.fire(kToldB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0"));
  h.resolve(kToldA);
  h.resolve(kToldB);
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/2 over"));
}

TEST_F(Told, TheMessageThatTookItsPlaceCarriesItOn) {
  open_one();
  h.fire(kToldB);
  h.at(30s + 5min);
  h.deliver(h.sent[0], DeliveryState::superseded);
  EXPECT_EQ(h.router().stats().untold, 0U);
  h.deliver(h.sent[1], DeliveryState::delivered);
  h.at(30s + 10min);
  h.said();
  h.resolve(kToldA);
  h.resolve(kToldB);
  h.at(30s + 15min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/2 over"));
}

TEST_F(Told, WithTheOneThatTookItsPlaceBothAreForgotten) {
  open_one();
  h.fire(kToldB);
  h.at(30s + 5min);
  h.said();
  h.deliver(h.sent[0], DeliveryState::superseded);
  h.deliver(h.sent[1], DeliveryState::expired);
  EXPECT_EQ(h.router().stats().untold, 2U);
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0"));
}

TEST_F(Told, AnIncidentThatWasNeverAnnouncedIsForgotten) {
  open_one();
  h.at(1min);
  h.resolve(kToldA);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  h.deliver(h.sent[0], DeliveryState::superseded);
  h.deliver(h.sent[1], DeliveryState::superseded);
  EXPECT_EQ(h.router().stats().undelivered, 0U);
  h.fire(kToldA);
  h.at(20min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(Told, AnUpdateThatFailedIsNewsAgainWhileTheIncidentStaysOpen) {
  open_one();
  h.deliver(h.sent[0], DeliveryState::delivered);
  h.fire(kToldB);
  h.at(30s + 5min);
  h.said();
  h.deliver(h.sent[1], DeliveryState::expired);
  EXPECT_EQ(h.router().stats().untold, 1U);
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0"));
}

TEST_F(Told, WhatWasRefusedIsNotRepeatedAtEveryTick) {
  open_one();
  h.deliver(h.sent[0], DeliveryState::dead);
  h.at(2h);
  EXPECT_THAT(h.said(), IsEmpty()) << "it would be refused again";
  h.at(30s + 4h);
  EXPECT_THAT(h.said(), ElementsAre("repeat open oncall 1/0")) << "the far side has no incident";
  h.deliver(h.sent[1], DeliveryState::dead);
  h.fire(kToldB);
  h.at(30s + 4h + 5min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues open oncall 2/0"));
  h.deliver(h.sent[2], DeliveryState::dead);
  h.resolve(kToldA);
  h.resolve(kToldB);
  h.at(30s + 4h + 10min);
  EXPECT_THAT(h.said(), IsEmpty()) << "nothing there to close";
}

TEST_F(Told, ALateWordAboutAnOldMessageChangesNothing) {
  open_one();
  h.deliver(h.sent[0], DeliveryState::delivered);
  h.deliver(h.sent[0], DeliveryState::expired);
  core::Notification foreign = h.sent[0];
  foreign.notification_id = "ntf_of_somebody_else";
  h.deliver(foreign, DeliveryState::expired);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.router().stats().untold, 0U);
}

TEST_F(Told, TheOldestUndeliveredMessageIsKnown) {
  open_one();
  h.fire(kToldB);
  h.at(30s + 5min);
  EXPECT_EQ(h.router().stats().undelivered, 2U);
  EXPECT_EQ(h.router().stats().oldest_undelivered, kStart + 30s);
  h.crash();
  EXPECT_EQ(h.router().stats().undelivered, 2U);
  h.deliver(h.sent[0], DeliveryState::delivered);
  EXPECT_EQ(h.router().stats().oldest_undelivered, kStart + 5min + 30s);
  h.deliver(h.sent[1], DeliveryState::delivered);
  EXPECT_EQ(h.router().stats().oldest_undelivered, std::nullopt);
}

TEST_F(Told, WithoutReportsOfDeliveriesNothingGrows) {
  h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 5min}};
  open_one();
  h.at(10h);
  EXPECT_LE(h.router().stats().undelivered, 16U);
  EXPECT_EQ(h.said().size(), 119U);
}

TEST_F(Told, OnlyHandlesOfWhatWasCarriedOutAreKept) {
  open_one();
  core::Delivery delivery;
  delivery.notification_id = h.sent[0].notification_id;
  delivery.integration = "oncall";
  delivery.route_id = h.sent[0].route_id;
  delivery.group_key = h.sent[0].group_key;
  delivery.state = DeliveryState::superseded;
  delivery.handles = {{"superseded_by", "ntf_next"}};
  h.router().on_delivery(delivery, h.now());
  h.commit();
  EXPECT_EQ(h.changelog.at("log/" + h.sent[0].group_hash + "/oncall").find("ntf_next"),
            std::string::npos);
}

}  // namespace
}  // namespace tocsin::routing
