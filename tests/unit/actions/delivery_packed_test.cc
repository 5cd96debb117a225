// Messages from the outbox: their issues are read by those attempts that need them, and by no other.
#include <gtest/gtest.h>

#include "actions/delivery/delivery_lanes.h"
#include "core/fields/outbox.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

/// As it comes from the outbox.
core::Notification stored(const std::string& id, NotificationKind kind, const std::string& group) {
  core::Notification out = sample_notification(id, kind);
  out.group_key = group;
  out.decided_at = kStart;
  out.rendered = "{\"content_type\":\"a\",\"fields\":{}}\nbody";
  return *core::read_outbox(core::write_outbox(out));
}

class DeliveryPacked : public ::testing::Test {
 protected:
  core::NullTelemetry telemetry;
};

TEST_F(DeliveryPacked, WhatIsSentAsItWasRenderedIsNeverUnpacked) {
  DeliveryLanes lanes(
      {{"oncall/webhook", {}, {}, nullptr, "c1"}}, [] { return 1.0; }, telemetry);
  lanes.enqueue(stored("a", NotificationKind::open, "g"), kStart);
  const auto attempt = lanes.next(kStart);
  ASSERT_TRUE(attempt);
  EXPECT_TRUE(attempt->notification->packed);
  EXPECT_EQ(attempt->notification->rendered.substr(attempt->notification->rendered.find('\n')),
            "\nbody");
  lanes.finished(*attempt, {}, kStart);
  const auto batch = lanes.take();
  ASSERT_EQ(batch.deliveries.size(), 1U);
  ASSERT_EQ(batch.deliveries[0].issues.size(), 1U);
  EXPECT_EQ(batch.deliveries[0].issues[0].event_id,
            sample_notification("a", NotificationKind::open).issues[0].issue.event_id);
}

TEST_F(DeliveryPacked, AMessageThatIsWrittenAnewHasItsIssues) {
  DeliveryLanes lanes(
      {{"oncall/webhook", {}, {}, nullptr, "c1"}}, [] { return 1.0; }, telemetry);
  lanes.enqueue(stored("a", NotificationKind::open, "g"), kStart);
  auto attempt = lanes.next(kStart);
  ASSERT_TRUE(attempt);
  core::AttemptOutcome refused;
  refused.outcome = OutcomeClass::bad_payload;
  lanes.finished(*attempt, refused, kStart);
  attempt = lanes.next(kStart);
  ASSERT_TRUE(attempt);
  EXPECT_TRUE(attempt->notification->minimal);
  EXPECT_FALSE(attempt->notification->packed);
  EXPECT_EQ(attempt->notification->issues.size(), 1U);
}

TEST_F(DeliveryPacked, AnActionThatReadsTheIssuesGetsThem) {
  Traits traits;
  traits.reads_issues = true;
  DeliveryLanes lanes(
      {{"oncall/webhook", {}, traits, nullptr, "c1"}}, [] { return 1.0; }, telemetry);
  lanes.enqueue(stored("a", NotificationKind::open, "g"), kStart);
  const auto attempt = lanes.next(kStart);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->notification->issues.size(), 1U);
}

TEST_F(DeliveryPacked, ADigestHasTheIssuesOfAll) {
  Traits people;
  people.human = true;
  DeliveryLanes lanes(
      {{"oncall/webhook", {}, people, nullptr, "c1"}}, [] { return 1.0; }, telemetry);
  for (int i = 0; i < 25; ++i) {
    const std::string id = std::to_string(i);
    lanes.enqueue(stored(id, NotificationKind::open, "g" + id), kStart);
  }
  const auto attempt = lanes.next(kStart);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->notification->issues.size(), 25U);
  EXPECT_FALSE(attempt->notification->packed);
}

}  // namespace
}  // namespace tocsin::actions
