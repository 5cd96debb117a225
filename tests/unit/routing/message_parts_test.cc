// Integrations that act on each issue hear of all of them, in several messages (docs/routing.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/routing/flush_fixture.h"

namespace tocsin::routing {
namespace {

using core::DeliveryState;
using core::IssueStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

core::Labels numbered(int number) { return with(kTensorA, "tensor", std::to_string(number)); }

class MessageParts : public FlushTest {
 protected:
  MessageParts() {
    h.integrations.front().every_issue = true;
    h.integrations.front().max_alerts = 100;
  }

  void fire(int from, int to) {
    for (int i = from; i < to; ++i) h.fire(numbered(i));
  }
  /// What the far side holds after the messages sent so far: the newest word on each issue.
  std::map<std::string, IssueStatus> far_side(std::size_t from = 0) {
    std::map<std::string, IssueStatus> out;
    for (std::size_t i = from; i < h.sent.size(); ++i) {
      for (const auto& one : h.sent[i].issues) {
        out[one.issue.labels.get("tensor")] = one.issue.status;
      }
    }
    return out;
  }
};

TEST_F(MessageParts, AGroupOfAnySizeIsToldWhole) {
  h.open();
  fire(0, 250);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 100/0", "first open oncall 100/0",
                                    "first open oncall 50/0"));
  EXPECT_THAT(far_side(), SizeIs(250));
  std::set<std::string> ids;
  for (const auto& one : h.sent) {
    ids.insert(one.notification_id);
    EXPECT_EQ(one.truncated, 0U);
  }
  EXPECT_THAT(ids, SizeIs(3));
  EXPECT_EQ(h.router().stats().truncated, 0U);
}

TEST_F(MessageParts, PartsFitIntoRecordsWhateverTheTextsHold) {
  h.integrations.front().max_alerts = 0;
  h.open();
  for (int i = 0; i < 300; ++i) {
    core::Issue issue = h.issue(numbered(i), IssueStatus::firing);
    issue.summary = std::string(2000, '"');  // two bytes each as JSON
    h.report(issue);
  }
  h.at(30s);
  EXPECT_THAT(far_side(), SizeIs(300));
  EXPECT_GE(h.sent.size(), 4U);
  for (const auto& one : h.sent) EXPECT_LE(one.issues.size(), 80U);
}

TEST_F(MessageParts, AllResolvesAreToldAndTheGroupEnds) {
  h.open();
  fire(0, 250);
  h.at(30s);
  for (const auto& one : h.sent) h.deliver(one, DeliveryState::delivered);
  const std::size_t before = h.sent.size();
  for (int i = 0; i < 250; ++i) h.resolve(numbered(i));
  h.at(30s + 5min);
  const auto states = far_side(before);
  EXPECT_THAT(states, SizeIs(250));
  for (const auto& [name, status] : states) EXPECT_EQ(status, IssueStatus::resolved) << name;
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(MessageParts, APartThatNeverArrivedIsToldAgainAndTheOthersStayTold) {
  h.open();
  fire(0, 250);
  h.at(30s);
  h.deliver(h.sent[0], DeliveryState::delivered);
  h.deliver(h.sent[1], DeliveryState::expired);
  h.deliver(h.sent[2], DeliveryState::delivered);
  EXPECT_EQ(h.router().stats().untold, 100U);
  h.crash();
  (void)h.said();
  h.at(30s + 5min);
  EXPECT_THAT(far_side(3), SizeIs(250)) << "news of 100, and the others with them";
  EXPECT_THAT(h.said(), SizeIs(3));
}

TEST_F(MessageParts, OnePartArrivingDoesNotSpeakForTheOthers) {
  h.open();
  fire(0, 150);
  h.at(30s);
  h.deliver(h.sent[1], DeliveryState::delivered);
  h.deliver(h.sent[0], DeliveryState::expired);
  EXPECT_EQ(h.router().stats().untold, 100U);
}

TEST_F(MessageParts, AnEndWhoseMessageExpiredIsToldAgain) {
  h.open();
  fire(0, 150);
  h.at(30s);
  for (const auto& one : h.sent) h.deliver(one, DeliveryState::delivered);
  for (int i = 0; i < 150; ++i) h.resolve(numbered(i));
  h.at(30s + 5min);
  ASSERT_EQ(h.sent.size(), 4U);
  h.deliver(h.sent[2], DeliveryState::delivered);
  h.deliver(h.sent[3], DeliveryState::expired);
  h.at(30s + 10min);
  const auto again = far_side(4);
  EXPECT_THAT(again, SizeIs(h.sent[3].issues.size()));
  for (const auto& [name, status] : again) EXPECT_EQ(status, IssueStatus::resolved) << name;
}

TEST_F(MessageParts, ASupersededPartWhoseIssuesNewerOnesTellIsNotToldAThirdTime) {
  h.open();
  fire(0, 150);
  h.at(30s);
  fire(150, 160);
  h.at(30s + 5min);
  ASSERT_EQ(h.sent.size(), 4U);
  h.deliver(h.sent[0], DeliveryState::superseded);
  h.deliver(h.sent[1], DeliveryState::superseded);
  h.deliver(h.sent[2], DeliveryState::delivered);
  h.deliver(h.sent[3], DeliveryState::delivered);
  EXPECT_EQ(h.router().stats().untold, 0U);
  (void)h.said();
  h.at(30s + 20min);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(MessageParts, TheLargestGroupOfManyPartsIsRememberedOverARestart) {
  h.integrations.front().max_alerts = 10;
  h.open();
  fire(0, 1000);
  h.at(30s);
  ASSERT_EQ(h.sent.size(), 100U);
  h.crash();
  for (std::size_t i = 0; i < 50; ++i) h.deliver(h.sent[i], DeliveryState::delivered);
  for (std::size_t i = 50; i < 100; ++i) h.deliver(h.sent[i], DeliveryState::expired);
  EXPECT_EQ(h.router().stats().untold, 500U);
}

TEST_F(MessageParts, OthersStillGetOneMessageThatCountsTheRest) {
  h.integrations.front().every_issue = false;
  h.open();
  fire(0, 150);
  h.at(30s);
  ASSERT_EQ(h.sent.size(), 1U);
  EXPECT_EQ(h.sent[0].truncated, 50U);
}

}  // namespace
}  // namespace tocsin::routing
