#include "collectors/hook/abi/step_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/unit/collectors/hook/session_fixture.h"

namespace tocsin::hook {
namespace {

using core::FrameKind;
using ::testing::Pair;

// Step and value of every scalar that is queued or waits.
std::vector<std::pair<std::int64_t, double>> scalars_of(Session& session, SendQueue& queue) {
  session.flush();
  const Drained drained(queue);
  std::vector<std::pair<std::int64_t, double>> out;
  for (const KeptFrame& frame : drained.of(FrameKind::scalar)) {
    const auto view = frame.view();
    for (std::uint32_t i = 0; i < view.rows(); ++i) {
      out.emplace_back(view.scalar(i).step, view.scalar(i).value);
    }
  }
  return out;
}

TEST_F(SessionTest, ScalarsWaitForTheirStepWhereStepsAreShortAndNothingElseIsCaptured) {
  Session session = open("{every: 1000 steps}");
  const std::uint64_t loss = session.name("loss", scalar_info());
  StepLane lane(clock_);
  lane.scalar(session, loss, 0, false);
  EXPECT_EQ(lane.values(), 0U);  // nobody knows how long this step takes
  EXPECT_TRUE(lane.step_end(session, false, 1));
  lane.scalar(session, loss, 1, true);
  EXPECT_EQ(lane.values(), 1U);
  lane.scalar(session, loss, 2, false);  // and so the one before it does not wait either
  EXPECT_EQ(lane.values(), 0U);
  clock_.advance(std::chrono::nanoseconds(StepLane::kShort));
  EXPECT_TRUE(lane.step_end(session, false, 1));
  lane.scalar(session, loss, 3, true);
  EXPECT_EQ(lane.values(), 0U);  // the step before was long
  EXPECT_TRUE(lane.step_end(session, false, 1));
  for (std::size_t i = 0; i < StepLane::kMost + 1; ++i) lane.scalar(session, loss, 4, true);
  EXPECT_EQ(lane.values(), 0U);  // more than there is room for: all of them at once
  lane.scalar(session, loss, 5, true);
  lane.tell_values(session);
  EXPECT_EQ(lane.values(), 0U);
  const auto found = scalars_of(session, *queue_);
  ASSERT_EQ(found.size(), 4 + StepLane::kMost + 2);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(found[i].second, static_cast<double>(i));
  EXPECT_EQ(found[0].first, 0);
  EXPECT_EQ(found[2].first, 1);
  EXPECT_THAT(found.back(), Pair(3, 5.0));
}

TEST_F(SessionTest, TimesWaitForTheirStepAndNoneIsLost) {
  Session session = open();
  NameInfo info;
  info.type = core::DictionaryType::span_name;
  const std::uint64_t forward = session.name("forward", info);
  StepLane lane(clock_);
  lane.time(session, {forward, 0, 10});
  lane.tell_values(session);  // there are none
  EXPECT_EQ(lane.times(), 1U);
  lane.time(session, {forward, 1, StepLane::kShort});  // a long one, at once, and those before it
  EXPECT_EQ(lane.times(), 0U);
  for (std::size_t i = 0; i < StepLane::kMost + 1; ++i) {
    lane.time(session, {forward, 2 + static_cast<std::int64_t>(i), 10});
  }
  EXPECT_EQ(lane.times(), 0U);
  lane.time(session, {forward, 99, 10});
  lane.step_end(session, true, 3);
  session.flush();
  const Drained drained(*queue_);
  const auto spans = drained.of(FrameKind::span);
  ASSERT_EQ(spans.size(), 1U);
  ASSERT_EQ(spans[0].view().rows(), 2 + StepLane::kMost + 2);
  for (std::uint32_t i = 0; i + 1 < spans[0].view().rows(); ++i) {
    EXPECT_EQ(spans[0].view().span(i).start, i);
  }
  EXPECT_EQ(spans[0].view().span(spans[0].view().rows() - 1).start, 99);
  const auto ends = drained.of(FrameKind::step_end);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].view().step_end(0).micro_steps, 3U);
}

}  // namespace
}  // namespace tocsin::hook
