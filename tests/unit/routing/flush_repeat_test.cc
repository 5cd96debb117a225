// The weak points of Alertmanager that the flush has to beat: silences and resolves, episodes between
// flushes, repeats on their multiples (W1–W4, W10).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/routing/flush_fixture.h"

namespace tocsin::routing {
namespace {

using core::NotificationKind;
using ::testing::ElementsAre;

using FlushRepeat = FlushTest;

// W1: announced, silenced, resolves meanwhile. The incident must be closed.
TEST_F(FlushRepeat, W1AResolveUnderSilenceIsStillOwed) {
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kTensorA);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "all_resolved close oncall 0/1 over"));
}

TEST_F(FlushRepeat, W1ADeferredResolveIsPaidOnceWhenTheSilenceEnds) {
  h.integrations.front().stateful = false;
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kTensorA);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.router().stats().owed, 1U);
  h.silenced.clear();
  h.at(2h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().owed, 0U);
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(FlushRepeat, W1ADeferredResolveIsDroppedAndCountedAfterAWeek) {
  h.integrations.front().stateful = false;
  h.options.limits.owed_max_age = 1h;
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kTensorA);
  h.at(2h);
  h.silenced.clear();
  h.at(4h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.router().stats().owed_dropped, 1U);
}

// W2: the same issue fires again after W1. It must be announced at once, not after repeat_interval.
TEST_F(FlushRepeat, W2TheNextEpisodeAfterAMutedResolveIsAnnounced) {
  for (const bool stateful : {true, false}) {
    Harness one;
    one.integrations.front().stateful = stateful;
    one.open();
    one.fire(kTensorA);
    one.at(30s);
    one.silenced = {{"tensor", "a"}};
    one.resolve(kTensorA);
    one.at(10min);
    one.silenced.clear();
    one.said();
    one.fire(kTensorA);
    one.at(16min);
    const auto said = one.said();
    ASSERT_FALSE(said.empty());
    EXPECT_EQ(one.sent.back().issues.at(0).episode, 2U);
    EXPECT_TRUE(one.sent.back().kind == NotificationKind::open ||
                one.sent.back().kind == NotificationKind::update);
  }
}

TEST_F(FlushRepeat, W2ANewEpisodeBetweenTwoFlushesIsNews) {
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.resolve(kTensorA);
  h.at(40s);
  h.fire(kTensorA);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "new_issues update oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).episode, 2U);
}

TEST_F(FlushRepeat, ANewEpisodeThatIsMutedClosesTheOldOne) {
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.resolve(kTensorA);
  h.at(40s);
  h.fire(kTensorA);
  h.silenced = {{"tensor", "a"}};
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.sent.back().issues.at(0).episode, 1U);
  EXPECT_EQ(h.sent.back().issues.at(0).issue.status, core::IssueStatus::resolved);
  h.silenced.clear();
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

// W3: one member silenced but firing, another resolves. The incident must stay open.
TEST_F(FlushRepeat, W3AnIncidentStaysOpenWhileASilencedMemberFires) {
  h.open();
  h.fire(kTensorA);
  h.fire(kTensorB);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kTensorB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0", "some_resolved update oncall 0/1"));
  const core::Notification& note = h.sent.back();
  EXPECT_TRUE(note.firing);
  ASSERT_EQ(note.suppressed.size(), 1U);
  EXPECT_EQ(note.suppressed[0].issue.labels, kTensorA);
  ASSERT_EQ(note.issues.size(), 1U);
  EXPECT_EQ(note.issues[0].issue.labels, kTensorB);
}

// W4: without send_resolved, a member that resolves and fires again must be announced again.
TEST_F(FlushRepeat, W4WithoutResolvesASecondEpisodeIsStillAnnounced) {
  h.integrations.front().send_resolved = false;
  h.open();
  h.fire(kTensorA);
  h.fire(kTensorB);
  h.at(30s);
  h.resolve(kTensorA);
  h.at(30s + 5min);
  h.fire(kTensorA);
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0", "new_issues update oncall 2/0"));
}

TEST_F(FlushRepeat, WithoutResolvesACloseIsOnlyWrittenDown) {
  h.integrations.front().send_resolved = false;
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.resolve(kTensorA);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.decisions.back().reason, "all_resolved");
  h.fire(kTensorA);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

// W10: a repeat interval that is a multiple of group_interval repeats exactly on it, also when
// equal.
TEST_F(FlushRepeat, W10RepeatsFallExactlyOnTheirMultiples) {
  using Case = std::pair<std::chrono::minutes, int>;
  for (const auto& [repeat, count] : {Case{5min, 12}, Case{20min, 3}, Case{1h, 1}}) {
    Harness one;
    one.tree.repeat_interval = every(repeat);
    one.open();
    one.fire(kTensorA);
    one.at(30s + 1h);
    ASSERT_EQ(one.sent.size(), static_cast<std::size_t>(count) + 1);
    for (std::size_t i = 0; i < one.sent.size(); ++i) {
      EXPECT_EQ(one.sent[i].decided_at, kStart + 30s + static_cast<int>(i) * repeat);
      EXPECT_EQ(one.sent[i].reason, i == 0 ? "first" : "repeat");
    }
  }
}

TEST_F(FlushRepeat, W10LateTicksDoNotMoveTheGrid) {
  h.tree.repeat_interval = every(10min);
  h.open();
  h.fire(kTensorA);
  std::vector<core::Duration> repeats;
  for (int i = 0; i < 40; ++i) {
    // The owner of the router is always up to 900 ms late.
    const core::WallTime due = *h.router().next_deadline();
    h.router().tick(due + (i * 137 % 900) * 1ms);
    for (const auto& note : h.router().take().notifications) {
      if (note.reason == "repeat") repeats.push_back(due - kStart);
    }
  }
  ASSERT_GE(repeats.size(), 10U);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    EXPECT_EQ(repeats[i], 30s + 10min * static_cast<int>(i + 1));
  }
}

TEST_F(FlushRepeat, ALadderRepeatsMoreSlowlyWithAge) {
  h.tree.group_interval = 30min;
  h.tree.repeat_interval = std::vector<RepeatStep>{{6h, 1h}, {24h, 6h}, {std::nullopt, 24h}};
  h.open();
  h.fire(kTensorA);
  h.at(24h * 4);
  std::vector<std::int64_t> hours;
  for (const auto& note : h.sent) {
    hours.push_back((note.decided_at - kStart) / 1h);
  }
  EXPECT_THAT(hours, ElementsAre(0, 1, 2, 3, 4, 5, 11, 17, 23, 47, 71, 95));
}

TEST_F(FlushRepeat, OnlySuppressedMembersAreNotRepeated) {
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.at(24h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_GT(h.router().stats().suppressed, 0U);
}

}  // namespace
}  // namespace tocsin::routing
