#include <gtest/gtest.h>

#include "tests/support/rule_harness.h"
#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

TEST(StalledTrainingRule, FiresOncePerSilenceAndResolvesWithTheNextProgress) {
  RuleHarness rule = RuleHarness::of("stalled_training_rule", "{threshold: 60}");
  FakeWorker worker;
  rule.feed(worker.step_end(Mode::train, 0));
  const std::int64_t last = worker.header.time;
  rule.tick(last + 59 * kSecond);
  EXPECT_TRUE(rule.firing().empty());
  rule.tick(last + 60 * kSecond);
  rule.tick(last + 61 * kSecond);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].severity, core::Severity::error);
  EXPECT_EQ(rule.firing()[0].evidence.window.clock, "time");
  worker.header.time = last + 90 * kSecond;
  rule.feed(worker.step_end(Mode::train, 1));
  ASSERT_EQ(rule.resolved().size(), 1U);
  rule.tick(worker.header.time + 60 * kSecond);
  EXPECT_EQ(rule.firing().size(), 2U) << "armed again";
}

// The issue is of one clock and its end of another: an end before the start would be refused by
// its own reader, and the issue would fire for ever.
TEST(StalledTrainingRule, AnEndIsNotBeforeItsStartWhenTheClockOfTheTrainerStepsBack) {
  RuleHarness rule = RuleHarness::of("stalled_training_rule", "{threshold: 60}");
  FakeWorker worker;
  rule.feed(worker.step_end(Mode::train, 0));
  const std::int64_t last = worker.header.time;
  rule.tick(last + 60 * kSecond);
  ASSERT_EQ(rule.firing().size(), 1U);
  worker.header.time = last - 3600 * kSecond;
  rule.feed(worker.step_end(Mode::train, 1));
  ASSERT_EQ(rule.resolved().size(), 1U);
  const core::Issue end = rule.resolved()[0];
  EXPECT_GE(end.ends_at, end.starts_at);
}

// One id would be one report: the second end would be dropped as told, and the issue fire for ever.
TEST(StalledTrainingRule, ASecondEndIsAnotherOneThoughTheClockOfTheTrainerStandsStill) {
  RuleHarness rule = RuleHarness::of("stalled_training_rule", "{threshold: 60}");
  FakeWorker worker;
  rule.feed(worker.step_end(Mode::train, 0));
  worker.header.time += 7200 * kSecond;  // far ahead of ours, and there it stays
  for (int step = 1; step <= 2; ++step) {
    rule.tick(worker.header.time + step * 100 * kSecond);
    ASSERT_EQ(rule.firing().size(), static_cast<std::size_t>(step));
    rule.feed(worker.step_end(Mode::train, step));
  }
  ASSERT_EQ(rule.resolved().size(), 2U);
  EXPECT_NE(rule.resolved()[0].event_id, rule.resolved()[1].event_id);
}

TEST(StalledTrainingRule, LagIsNoStall) {
  RuleHarness rule = RuleHarness::of("stalled_training_rule", "{threshold: 60}");
  FakeWorker worker;
  rule.feed(worker.step_end(Mode::train, 0));
  rule.tick(worker.header.time + 1000 * kSecond, /*zero_lag=*/false);
  EXPECT_TRUE(rule.firing().empty());
}

TEST(StalledTrainingRule, HeartbeatsAreNoProgressButAnEndIsTheEnd) {
  RuleHarness rule = RuleHarness::of("stalled_training_rule", "{threshold: 60}");
  FakeWorker worker;
  rule.feed(worker.start()).feed(worker.step_end(Mode::train, 0));
  const std::int64_t last = worker.header.time;
  worker.header.time = last + 59 * kSecond;
  rule.feed(worker.heartbeat());
  rule.tick(last + 60 * kSecond);
  EXPECT_EQ(rule.firing().size(), 1U);

  RuleHarness ended = RuleHarness::of("stalled_training_rule", "{threshold: 60}");
  FakeWorker other;
  ended.feed(other.step_end(Mode::train, 0)).feed(other.end());
  ended.tick(other.header.time + 100 * kSecond);
  EXPECT_TRUE(ended.firing().empty());
}

TEST(StalledTrainingRule, RecordTimeIsTheClockOfAReplay) {
  EngineOptions options;
  options.record_time = true;
  RuleHarness rule("  - {use: stalled_training, with: {threshold: 60}}", options);
  FakeWorker worker;
  rule.feed(worker.step_end(Mode::train, 0));
  const std::int64_t last = worker.header.time;
  worker.header.time = last + 60 * kSecond;  // progress at exactly that time does not prevent it
  rule.feed(worker.scalars(Mode::train, {{"loss", 1, 1.0}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(core::nanoseconds(rule.firing()[0].time), last + 60 * kSecond);
  EXPECT_EQ(rule.resolved().size(), 1U);
}

TEST(StalledTrainingRule, CanWatchEachWorker) {
  RuleHarness rule = RuleHarness::of("stalled_training_rule", "{threshold: 60, scope: worker}");
  FakeWorker one("digits", "exploding", 0, 2);
  FakeWorker two("digits", "exploding", 1, 2);
  rule.feed(one.step_end(Mode::train, 0)).feed(two.step_end(Mode::train, 0));
  two.header.time += 60 * kSecond;
  rule.feed(two.step_end(Mode::train, 1));
  rule.tick(two.header.time);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "worker_0");
}

TEST(StalledTrainingRule, WhatTheLoopPromisedIsTheLimitWithItsGrace) {
  RuleHarness rule = RuleHarness::of("stalled_training_rule", "{threshold: 60, grace: 10}");
  FakeWorker worker;
  rule.feed(worker.step_end(Mode::train, 0));
  rule.feed(worker.heartbeat(R"(,"expect_next_in":600)"));
  const std::int64_t said = worker.header.time;
  worker.header.time = said + 600 * kSecond;
  rule.feed(worker.heartbeat());  // its process lives, and that is no progress
  rule.tick(said + 609 * kSecond);
  EXPECT_TRUE(rule.firing().empty());
  rule.tick(said + 610 * kSecond);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].summary,
            "The training has made no progress for 10.2 min (limit 10.2 min; it promised its next "
            "step in 10 min). The "
            "last step seen was train step 0.");
}

TEST(StalledTrainingRule, APromiseIsPartOfTheState) {
  constexpr const char* kRule = "  - {use: stalled_training_rule, with: {grace: 0}}";
  stories::StateTopic topic(kRule);
  FakeWorker worker;
  topic.feed(worker.start());
  topic.feed(worker.heartbeat(R"(,"expect_next_in":30)"));
  while (topic.piece(stories::kWhole)) topic.commit();
  topic.commit();
  RuleHarness after(kRule);
  for (const auto& [key, value] : topic.state()) {
    ASSERT_TRUE(after.engine().restore(3, key, value));
  }
  ASSERT_TRUE(after.engine().finish_restore(3, {}));
  after.engine().go_live(3, core::wall_time(worker.header.time));
  after.tick(worker.header.time + 30 * kSecond);
  ASSERT_EQ(after.firing().size(), 1U);
  EXPECT_EQ(after.firing()[0].rule, "stalled_training_rule");
}

TEST(StalledTrainingRule, AWordOfTheLoopIsNoFirstStep) {
  RuleHarness rule = RuleHarness::of("max_initialization_time", "{threshold: 1}");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.feed(worker.heartbeat(R"(,"expect_next_in":600)"));
  rule.tick(worker.header.time + 61 * kSecond);
  EXPECT_EQ(rule.firing().size(), 1U);
}

}  // namespace
}  // namespace tocsin::rules
