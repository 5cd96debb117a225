// What the engine says without a rule of the user's: too many runs, and clocks that are wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "rules/engine/partition/operational.h"
#include "tests/unit/rules/issues_of.h"
#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

TEST(OperationalLimits, EndedRunsMakeRoomAndTheRestIsRefusedAloud) {
  EngineOptions options;
  options.config.max_runs = 2;
  RuleHarness rule("  - exploding_tensor", options);
  FakeWorker a("digits", "a");
  FakeWorker b("digits", "b");
  FakeWorker c("digits", "c");
  FakeWorker d("digits", "d");
  rule.feed(a.start()).feed(b.start()).feed(a.end());
  rule.feed(c.start());
  EXPECT_EQ(rule.engine().stats().evicted_runs, 1U);
  EXPECT_EQ(rule.engine().stats().runs, 2U);
  rule.feed(d.start()).feed(d.tensors(Mode::train, 0, {{"t", {std::nan("")}}}));
  EXPECT_EQ(rule.engine().stats().refused_runs, 2U);
  ASSERT_EQ(issues_of(rule.firing(), "run_unwatched").size(), 1U) << "said once";
  EXPECT_EQ(issues_of(rule.firing(), "run_unwatched")[0].labels.get("run_uid"),
            core::to_text(d.header.run));
  EXPECT_EQ(issues_of(rule.firing(), "run_unwatched")[0].run.attempt, 0U) << "and stops nobody";
  rule.feed(b.end()).feed(d.tensors(Mode::train, 1, {{"t", {std::nan("")}}}));
  EXPECT_EQ(issues_of(rule.firing(), "exploding_tensor").size(), 1U)
      << "admitted when there is room";
}

TEST(OperationalLimits, FiveThousandShortRunsLeaveNothingThatGrows) {
  EngineOptions options;
  options.config.max_runs = 50;
  StateTopic topic("  - exploding_tensor\n  - loss_not_decreasing", options);
  std::size_t early = 0;
  std::size_t early_keys = 0;
  for (int i = 0; i < 5000; ++i) {
    FakeWorker worker("digits", "run" + std::to_string(i));
    worker.header.time += i * kSecond;
    topic.feed(worker.start());
    topic.feed(worker.dictionary({{core::DictionaryType::tensor, "t", Role::gradient}}));
    topic.feed(worker.tensors(Mode::train, 0, {{"t", {std::nan("")}}, {"u", {1}}}));
    topic.feed(worker.step_end(Mode::train, 0));
    topic.feed(worker.end());
    if (i % 10 == 9) {
      while (topic.piece(1 << 20)) topic.commit();
      topic.commit();
    }
    if (i == 499) {
      early = topic.bytes();
      early_keys = topic.state().size();
    }
  }
  EXPECT_EQ(topic.engine().stats().runs, 50U);
  EXPECT_LE(topic.state().size(), early_keys + 20);
  EXPECT_LE(topic.bytes(), early + early / 5);
  EXPECT_LT(topic.bytes() / 50, 3000U) << "an ended run is a small record";
  EXPECT_EQ(topic.engine().stats().refused_runs, 0U);
}

TEST(OperationalLimits, AClockFarAheadIsSaidAndBlindsNobody) {
  RuleHarness rule = RuleHarness::of("cpu_bottleneck", "{scan_interval_us: 1000000}");
  FakeWorker worker;
  const auto feed = [&](OwnedFrame frame, std::int64_t appended) {
    const core::WallTime time = core::wall_time(appended);
    rule.engine().on_frame(frame.view(), frame.decoded(),
                           {"tocsin.telemetry.v1", "telemetry", 3, rule.offset++, time}, time);
  };
  rule.feed(worker.start()).feed(worker.step_end(Mode::train, 0));
  feed(worker.dictionary({{core::DictionaryType::series, "hw.gpu.utilization"}}), kStart);
  OwnedFrame ahead = worker.step_end(Mode::train, 1);
  ahead.header.time = kStart + 7200 * kSecond;
  feed(ahead, kStart + kSecond);
  ASSERT_EQ(issues_of(rule.firing(), "clock_skew").size(), 1U);
  EXPECT_EQ(issues_of(rule.firing(), "clock_skew")[0].labels.get("worker"), "worker_0");
  EXPECT_EQ(rule.engine().stats().future_times, 1U);
  feed(worker.system({{"hw.gpu.utilization", kStart + 7200 * kSecond, 0.1}}), kStart + kSecond);
  EXPECT_EQ(rule.engine().stats().discarded_samples, 1U);
  const std::uint64_t late = rule.engine().stats().late_rows;
  feed(worker.system({{"hw.gpu.utilization", kStart + 2 * kSecond, 0.1}}), kStart + 2 * kSecond);
  EXPECT_EQ(rule.engine().stats().late_rows, late) << "later samples still count";
  EXPECT_EQ(issues_of(rule.resolved(), "clock_skew").size(), 1U);
}

TEST(OperationalLimits, AWrongClockIsRestoredWhereItWasSeenInTheMiddleOfARecord) {
  // The very record that makes the worker known also shows its clock: replayed before the record,
  // the decision would find no worker.
  FakeWorker worker;
  worker.header.time = kStart + 7200 * kSecond;
  const std::vector<OwnedFrame> frames{worker.start(), worker.step_end(Mode::train, 0)};
  const auto feed = [&](RuleHarness& rule, const OwnedFrame& frame, std::int64_t offset) {
    const core::WallTime time = core::wall_time(kStart + offset * kSecond);
    rule.engine().on_frame(frame.view(), frame.decoded(),
                           {"tocsin.telemetry.v1", "telemetry", 3, offset, time}, time);
  };
  RuleHarness before("  - exploding_tensor");
  ASSERT_TRUE(before.engine().finish_restore(3, {}));
  before.engine().go_live(3, core::wall_time(kStart));
  for (std::size_t i = 0; i < frames.size(); ++i) {
    feed(before, frames[i], static_cast<std::int64_t>(i));
  }
  ASSERT_EQ(issues_of(before.firing(), "clock_skew").size(), 1U);
  RuleHarness after("  - exploding_tensor");
  for (const StateRecord& record : before.log()) {
    ASSERT_TRUE(after.engine().restore(3, record.key, *record.value));
  }
  const core::Position read{{"telemetry", 3}, 2};
  const auto restored = after.engine().finish_restore(3, {&read, 1});
  ASSERT_TRUE(restored) << restored.error().message;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    feed(after, frames[i], static_cast<std::int64_t>(i));
  }
  after.engine().go_live(3, core::wall_time(kStart + 2 * kSecond));
  EXPECT_TRUE(after.firing().empty()) << "it was told";
  worker.header.time = kStart + 3 * kSecond;  // set right
  feed(after, worker.step_end(Mode::train, 1), 2);
  EXPECT_EQ(issues_of(after.resolved(), "clock_skew").size(), 1U);
}

TEST(OperationalLimits, AClockOfOursThatStepsBackBlindsNobody) {
  StateTopic topic("  - exploding_tensor");
  FakeWorker worker;
  worker.header.time = kStart + 7200 * kSecond;
  topic.feed(worker.start());
  topic.feed(worker.heartbeat());
  while (topic.piece(kWhole)) topic.commit();
  topic.commit();
  RuleHarness after("  - exploding_tensor");
  for (const auto& [key, value] : topic.state()) {
    ASSERT_TRUE(after.engine().restore(3, key, value));
  }
  ASSERT_TRUE(after.engine().finish_restore(3, {}));
  after.engine().go_live(3, core::wall_time(kStart));  // two hours before the state's times
  after.tick(kStart + 119 * kSecond);
  EXPECT_TRUE(issues_of(after.firing(), "job_lost").empty());
  after.tick(kStart + 121 * kSecond);
  EXPECT_EQ(issues_of(after.firing(), "job_lost").size(), 1U)
      << "silence counts from now, not from then";
}

}  // namespace
}  // namespace tocsin::rules
