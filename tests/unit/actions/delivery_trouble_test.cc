// What people hear of messages that do not arrive.
#include "actions/delivery/delivery_trouble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/delivery/delivery_lanes.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing_support;
using core::DeliveryState;
using core::IssueStatus;
using core::NotificationKind;
using core::OutcomeClass;

core::AttemptOutcome answer(OutcomeClass what, std::string code = "") {
  core::AttemptOutcome out;
  out.outcome = what;
  out.code = std::move(code);
  return out;
}

/// One lane that tries once, and what it says.
struct TroubledMailbox {
  explicit TroubledMailbox(CommonConfig common = once())
      : lanes(
            {{"oncall/webhook", common, {}, nullptr, "c1"}}, [] { return 1.0; }, telemetry) {}
  static CommonConfig once() {
    CommonConfig out;
    out.retry.max_attempts = 1;
    return out;
  }
  std::vector<core::Issue> send(core::AttemptOutcome what,
                                const std::string& rule = "exploding_tensor") {
    auto message = sample_notification("n" + std::to_string(++sent), NotificationKind::open);
    message.group_key = "g" + std::to_string(sent);
    message.decided_at = now;
    for (auto& one : message.issues) one.issue.rule = rule;
    lanes.enqueue(std::move(message), now);
    if (const auto attempt = lanes.next(now)) lanes.finished(*attempt, what, now);
    return lanes.take().issues;
  }

  core::NullTelemetry telemetry;
  core::WallTime now = kStart;
  int sent = 0;
  DeliveryLanes lanes;
};

TEST(DeliveryTrouble, AMessageThatIsGivenUpIsAnIssueUntilOneArrives) {
  TroubledMailbox box;
  const auto fired = box.send(answer(OutcomeClass::transient, "503"));
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_EQ(fired[0].rule, "delivery_dead");
  EXPECT_EQ(fired[0].status, IssueStatus::firing);
  EXPECT_EQ(fired[0].labels.get("integration"), "oncall/webhook");
  EXPECT_EQ(fired[0].labels.get("receiver"), "oncall");
  const auto declared = own_issue(ActionIssue::delivery_dead).labels;
  for (const auto& [name, value] : fired[0].labels.entries()) {
    if (name == "rule" || name == "severity" || name == "cluster") continue;
    EXPECT_NE(std::find(declared.begin(), declared.end(), name), declared.end()) << name;
  }
  EXPECT_THAT(fired[0].summary, HasSubstr("given up after attempt 1 (503"));
  EXPECT_TRUE(fired[0].run.uid.nil()) << "it can stop nobody";

  box.now += 10s;
  const auto over = box.send(answer(OutcomeClass::delivered));
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].status, IssueStatus::resolved);
  EXPECT_EQ(over[0].labels, fired[0].labels) << "the same issue";
  EXPECT_NE(over[0].event_id, fired[0].event_id);
  EXPECT_GT(over[0].sequence, fired[0].sequence);
  EXPECT_THAT(box.send(answer(OutcomeClass::delivered)), IsEmpty()) << "said once";
}

TEST(DeliveryTrouble, IsReportedAgainOnceAMinuteWithTheCountAndEndsByItself) {
  DeliveryTrouble trouble("oncall/webhook", "c1");
  const auto message = sample_notification("n", NotificationKind::open);
  ASSERT_TRUE(trouble.given_up(message, {}, kStart));
  for (int i = 1; i < 60; ++i) {
    EXPECT_FALSE(trouble.given_up(message, {}, kStart + i * 1s)) << i;
  }
  const auto again = trouble.given_up(message, {}, kStart + 60s);
  ASSERT_TRUE(again);
  EXPECT_THAT(again->summary, HasSubstr("61 messages were given up"));
  EXPECT_EQ(again->starts_at, kStart);
  ASSERT_TRUE(again->ends_at) << "who would end it may be gone";
  EXPECT_EQ(*again->ends_at, kStart + 60s + 1h);
}

TEST(DeliveryTrouble, WhatIsRefusedIsSaidAtTheFirstAttemptNotWhenItIsGivenUp) {
  TroubledMailbox box(CommonConfig{});
  const auto fired = box.send(answer(OutcomeClass::configuration, "401"));
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_EQ(fired[0].rule, "delivery_config");
  EXPECT_THAT(fired[0].summary, HasSubstr("401"));
  EXPECT_THAT(fired[0].recommendation, HasSubstr("credentials"));
}

TEST(DeliveryTrouble, DoesNotReportItself) {
  TroubledMailbox box;
  EXPECT_THAT(box.send(answer(OutcomeClass::transient), "delivery_dead"), IsEmpty());
  EXPECT_THAT(box.send(answer(OutcomeClass::configuration), "delivery_config"), IsEmpty());
}

TEST(DeliveryTrouble, WhatExpiresWithoutAnAttemptCounts) {
  CommonConfig common;
  common.max_age = 10s;
  TroubledMailbox box(common);
  EXPECT_THAT(box.send(answer(OutcomeClass::transient)), IsEmpty()) << "it is tried again";
  box.now += 1min;
  (void)box.lanes.next(box.now);
  const auto issues = box.lanes.take().issues;
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].rule, "delivery_dead");
}

}  // namespace
}  // namespace tocsin::actions
