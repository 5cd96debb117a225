// What of a topic a replay of one run reads, and how far it is.
#include "app/api/replay_span.h"

#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

const core::WallTime kBegan = core::wall_time(1'767'323'045'000'000'000);
const core::WallTime kHeard = kBegan + 1h;
const core::WallTime kNow = kBegan + 5h;

TEST(ReplaySpan, BeginsShortlyBeforeTheRunAndEndsNow) {
  const ReplaySpan of_run(kBegan, kHeard, kNow);
  EXPECT_EQ(of_run.span().from.time, kBegan - 10min);
  EXPECT_EQ(of_run.span().to.time, kNow);
}

TEST(ReplaySpan, ReadsAllWhereNobodyKnowsTheStart) {
  const ReplaySpan of_run(std::nullopt, kHeard, kNow);
  EXPECT_FALSE(of_run.span().from.time);
  EXPECT_EQ(of_run.done(kHeard), 0);
}

TEST(ReplaySpan, SaysHowMuchOfTheRunWasRead) {
  const ReplaySpan of_run(kBegan, kHeard, kNow);
  EXPECT_EQ(of_run.done(kBegan - 1min), 0);
  EXPECT_DOUBLE_EQ(of_run.done(kBegan + 15min), 0.25);
  EXPECT_DOUBLE_EQ(of_run.done(kBegan + 30min), 0.5);
  EXPECT_EQ(of_run.done(kHeard), 0.99);  // until it has judged
  EXPECT_EQ(ReplaySpan(kBegan, kBegan, kNow).done(kHeard), 0);
}

}  // namespace
}  // namespace tocsin::app
