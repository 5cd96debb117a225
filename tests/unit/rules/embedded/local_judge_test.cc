#include "rules/embedded/local_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/system_clock.h"

namespace tocsin::embedded {
namespace {

using namespace std::chrono_literals;

const core::Clock& real_clock() {
  static const core::SystemClock made;
  return made;
}

LocalJudgeOptions options(const std::string& rules, const std::string& stop = "") {
  LocalJudgeOptions out;
  out.rules = *rules_by_text(rules);
  out.stop = *StopChoice::parse(stop, out.rules.rules);
  return out;
}

std::string loss(int step, const char* value) {
  return R"({"run":"r","name":"loss","value":)" + std::string(value) + R"(,"step":)" +
         std::to_string(step) + "}";
}

TEST(LocalJudge, FindsWhatIsOfferedAndIsThroughAfterFinish) {
  auto judge = *LocalJudge::create(options("exploding_tensor"), real_clock());
  judge->start();
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE(judge->offer("r", loss(step, step < 10 ? "0.5" : "\"NaN\""), 1'000 + step));
  }
  ASSERT_TRUE(judge->catch_up(10s));
  EXPECT_TRUE(judge->wait(0, 1s));
  const auto found = judge->issues(0);
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found[0].told);
  EXPECT_THAT(found[0].text, testing::HasSubstr("error exploding_tensor at step 10: loss"));
  EXPECT_TRUE(judge->finish(10s));
  EXPECT_FALSE(judge->offer("r", loss(20, "0.5"), 2'000));
  const JudgeCounts counts = judge->counts();
  EXPECT_EQ(counts.records, 20U);
  EXPECT_EQ(counts.waiting, 0U);
  EXPECT_GT(counts.cost, core::Duration{0});
  judge->close();
}

TEST(LocalJudge, WhatItHasNoRoomForIsCountedAndWhatIsNoTelemetryToo) {
  LocalJudgeOptions small = options("exploding_tensor");
  small.queue_bytes = 600;
  auto judge = *LocalJudge::create(std::move(small), real_clock());
  for (int i = 0; i < 10; ++i) (void)judge->offer("r", "no telemetry", 1'000);
  const std::uint64_t dropped = judge->counts().dropped;
  EXPECT_GT(dropped, 0U);
  judge->start();
  ASSERT_TRUE(judge->finish(10s));
  const JudgeCounts counts = judge->counts();
  EXPECT_EQ(counts.refused, 10 - dropped);
  EXPECT_FALSE(counts.error.empty());
  judge->close();
}

TEST(LocalJudge, NobodyWaitsForIssuesOnceTheyAreWoken) {
  auto judge = *LocalJudge::create(options("exploding_tensor"), real_clock());
  judge->start();
  judge->wake();
  EXPECT_FALSE(judge->wait(0, 1h));
  judge->close();
}

TEST(StopChoice, BySeverityByRuleOrNobody) {
  const auto rules = rules_by_text("exploding_tensor,overfit")->rules;
  core::Issue issue;
  issue.rule = "overfit";
  issue.severity = core::Severity::warning;
  EXPECT_FALSE(StopChoice::parse("", rules)->asks(issue));
  EXPECT_FALSE(StopChoice::parse("error", rules)->asks(issue));
  EXPECT_TRUE(StopChoice::parse("warning", rules)->asks(issue));
  EXPECT_TRUE(StopChoice::parse("exploding_tensor,overfit", rules)->asks(issue));
  issue.shadow = true;
  EXPECT_FALSE(StopChoice::parse("info", rules)->asks(issue));
  const auto refused = StopChoice::parse("overfitt", rules);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("overfit\""));
}

}  // namespace
}  // namespace tocsin::embedded
