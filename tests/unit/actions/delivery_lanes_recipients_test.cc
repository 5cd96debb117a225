// Recipients are deliveries of their own: one that does not get its mail keeps nobody else waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/lanes.h"

namespace tocsin::actions {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

core::AttemptOutcome delivered_but(const std::string& recipient,
                                   const std::string& as = "put_off") {
  auto out = outcome(OutcomeClass::delivered);
  out.handles = {{"message_id", "<x>"}, {as, recipient + " 452"}};
  return out;
}

core::AttemptOutcome still_full(const std::string& recipient) {
  auto out = outcome(OutcomeClass::transient);
  out.held = true;
  out.handles = {{"fault", "recipient"}, {"put_off", recipient + " 452"}};
  return out;
}

TEST(DeliveryRecipients, TheOthersAreDoneAndTheOneIsTriedAlone) {
  Lanes lanes;
  lanes.enqueue("open");
  EXPECT_EQ(lanes.step(delivered_but("full@x")), "open");
  EXPECT_THAT(lanes.finals(), ElementsAre("open:delivered"));
  lanes.enqueue("close", NotificationKind::close);  // the others hear of it at once
  auto attempt = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->notification->notification_id, "close");
  EXPECT_THAT(attempt->notification->handles,
              ElementsAre(std::pair<std::string, std::string>("message_id", "<x>"),
                          std::pair<std::string, std::string>("not_to", "full@x")));
  lanes.lanes.finished(*attempt, outcome(OutcomeClass::delivered), lanes.now);
  lanes.now += 1s;
  attempt = lanes.lanes.next(lanes.now);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->notification->notification_id, "open/full@x");
  EXPECT_THAT(attempt->notification->handles,
              Contains(std::pair<std::string, std::string>("only_to", "full@x")));
  lanes.lanes.finished(*attempt, outcome(OutcomeClass::delivered), lanes.now);
  EXPECT_THAT(lanes.finals(), ElementsAre("close:delivered", "open/full@x:delivered"));
  EXPECT_EQ(lanes.lanes.next_deadline(lanes.now), std::nullopt);
}

TEST(DeliveryRecipients, AFullMailboxOpensNoBreakerAndHoldsUpNoMail) {
  Lanes lanes;
  for (int i = 0; i < 30; ++i) {
    const std::string id = "n" + std::to_string(i);
    lanes.enqueue(id, NotificationKind::open, id);
    std::vector<std::string> done;
    // What is due of the full mailbox fails; what is new arrives for the others.
    while (const auto attempt = lanes.lanes.next(lanes.now)) {
      const bool own = attempt->notification->notification_id.find('/') != std::string::npos;
      lanes.lanes.finished(*attempt, own ? still_full("full@x") : delivered_but("full@x"),
                           lanes.now);
    }
    EXPECT_THAT(lanes.finals(), ElementsAre(id + ":delivered"));
    lanes.now += 5s;
  }
}

TEST(DeliveryRecipients, WhatIsOwedToOneSurvivesAKill) {
  Lanes before;
  before.enqueue("open");
  before.step(delivered_but("full@x"));
  before.now += 1s;
  EXPECT_EQ(before.step(still_full("full@x")), "open/full@x");
  auto records = before.lanes.take();
  EXPECT_THAT(records.positions, IsEmpty()) << "the outbox is read again from here";

  Lanes after;
  for (const auto& record : records.deliveries) after.lanes.restore(record);
  after.now = before.now;
  after.enqueue("open");
  EXPECT_EQ(after.step(), "");
  after.now += 2s;
  EXPECT_EQ(after.step(), "open/full@x");
  EXPECT_THAT(after.finals(), ElementsAre("open/full@x:delivered"));
  ASSERT_EQ(after.batch.positions.size(), 1U);
  EXPECT_EQ(after.batch.positions[0].next, 1);

  Lanes third;  // all is done: nobody gets it again
  for (const auto& record : records.deliveries) third.lanes.restore(record);
  for (const auto& record : after.batch.deliveries) third.lanes.restore(record);
  third.enqueue("open");
  EXPECT_EQ(third.lanes.next_deadline(third.now), std::nullopt);
}

// A record is JSON: each name stands in it once.
TEST(DeliveryRecipients, SeveralAreOwedAfterAKill) {
  Lanes before;
  before.enqueue("open");
  auto said = outcome(OutcomeClass::delivered);
  said.handles = {{"put_off", "a@x 452, b@x"}};
  before.step(said);
  Lanes after;
  for (const auto& record : before.lanes.take().deliveries) after.lanes.restore(record);
  after.enqueue("open");
  after.now += 1s;
  EXPECT_EQ(after.step(), "open/a@x");
  EXPECT_EQ(after.step(), "open/b@x");
  EXPECT_EQ(after.step(), "");
}

TEST(DeliveryRecipients, OneThatIsRefusedIsToldOnceAndEndsWhenItIsReached) {
  Lanes lanes;
  lanes.enqueue("a", NotificationKind::open, "a");
  lanes.step(delivered_but("gone@x", "refused"));
  lanes.finals();
  ASSERT_EQ(lanes.batch.issues.size(), 1U);
  EXPECT_EQ(lanes.batch.issues[0].rule, "delivery_recipient");
  EXPECT_EQ(lanes.batch.issues[0].labels.get("recipient"), "gone@x");
  EXPECT_THAT(lanes.batch.issues[0].summary, HasSubstr("gone@x does not get its mail (smtp 452)"));
  lanes.enqueue("b", NotificationKind::open, "b");
  lanes.step(delivered_but("gone@x", "refused"));
  lanes.finals();
  EXPECT_THAT(lanes.batch.issues, IsEmpty()) << "once a minute at most";
  lanes.enqueue("c", NotificationKind::open, "c");
  lanes.step();
  lanes.finals();
  ASSERT_EQ(lanes.batch.issues.size(), 1U);
  EXPECT_EQ(lanes.batch.issues[0].status, core::IssueStatus::resolved);
}

TEST(DeliveryRecipients, OneAtWhomTheServerHangsUpOrSays421HoldsNobodyElse) {
  for (const auto what :
       {OutcomeClass::throttled, OutcomeClass::transient, OutcomeClass::unknown}) {
    Lanes lanes({}, {.dedup = true});
    std::vector<core::Issue> issues;
    for (int i = 0; i < 80; ++i) {
      const std::string id = "n" + std::to_string(i);
      lanes.enqueue(id, NotificationKind::open, id);
      while (const auto attempt = lanes.lanes.next(lanes.now)) {
        const bool own = attempt->notification->notification_id.find('/') != std::string::npos;
        lanes.lanes.finished(*attempt, own ? outcome(what) : delivered_but("odd@x"), lanes.now);
      }
      EXPECT_THAT(lanes.finals(), ElementsAre(id + ":delivered"));
      for (const auto& issue : lanes.batch.issues) {
        if (issue.rule == "delivery_recipient") issues.push_back(issue);
      }
      lanes.now += 5s;
    }
    ASSERT_THAT(issues, Not(IsEmpty())) << "who is not reached for five minutes is told of";
    EXPECT_EQ(issues[0].labels.get("recipient"), "odd@x");
  }
}

TEST(DeliveryRecipients, AnIntegrationWhoseOnlyMailboxIsFullStandsStill) {
  Lanes lanes;
  lanes.enqueue("a");
  while (lanes.now < kStart + 6min) {
    lanes.step(still_full("full@x"));
    lanes.lanes.measure(lanes.now);
    lanes.now += 1s;
  }
  const auto issues = lanes.lanes.take().issues;
  ASSERT_THAT(issues, Not(IsEmpty()));
  EXPECT_EQ(issues[0].rule, "delivery_standing");
}

}  // namespace
}  // namespace tocsin::actions
