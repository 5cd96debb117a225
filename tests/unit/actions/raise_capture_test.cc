#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/steering_bench.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;

TEST(RaiseCapture, AsksForAPlanThatIsBoundedInStepsTimeAndBytes) {
  SteeringBench bench;
  const auto action = bench.make("raise_capture",
                                 "{collections: [gradients], statistics: [quantiles], raw: true, "
                                 "interval: 2, steps: 50, time: 5m, max_bytes: 1MiB}");
  const auto out = deliver(*action, steering_episode(1));
  EXPECT_EQ(out.outcome, core::OutcomeClass::unknown);
  EXPECT_TRUE(out.held) << "answers are to come";
  ASSERT_EQ(bench.commands.size(), 1U);
  const core::Command& command = bench.commands[0];
  EXPECT_EQ(command.action, "capture/of-oncall_raise_capture");
  EXPECT_EQ(command.run, kRun);
  EXPECT_EQ(command.attempt, 1U);
  EXPECT_EQ(command.launch, bench.current.launch);
  EXPECT_EQ(command.reason.rule, "exploding_tensor");
  // 400, and four steps since it was told.
  EXPECT_THAT(
      core::to_json(command.args),
      HasSubstr(R"("plans":[{"every":"2 steps","collections":{"gradients":{"statistics":)"
                R"(["quantiles"],"raw":true}}}],"until_step":454,)"
                R"("until_time":"2026-01-02T03:09:05.678Z","max_bytes":1048576,"asked":1)"));
}

TEST(RaiseCapture, TheOutcomeSaysWhatTheRanksAnswered) {
  SteeringBench bench;
  const auto action = bench.make("raise_capture", "{}");
  deliver(*action, steering_episode(1));
  bench.answer(0, "received");
  bench.answer(0, "applied", "without loss", 402);
  auto out = deliver(*action, steering_episode(1));
  EXPECT_EQ(out.outcome, core::OutcomeClass::unknown) << "one of two";
  bench.answer(1, "applied");
  out = deliver(*action, steering_episode(1));
  EXPECT_EQ(out.outcome, core::OutcomeClass::delivered);
  EXPECT_EQ(out.code, "applied");
  EXPECT_THAT(out.detail, HasSubstr("2 of 2 ranks applied it from step 402, without loss"));
  EXPECT_EQ(bench.commands.size(), 1U) << "asked once";
}

TEST(RaiseCapture, ARefusalAndSilenceAreNoSuccess) {
  SteeringBench bench;
  const auto action = bench.make("raise_capture", "{every: 0s}");
  deliver(*action, steering_episode(1));
  bench.answer(0, "refused", "too_many");
  bench.answer(1, "refused", "too_many");
  auto out = deliver(*action, steering_episode(1));
  EXPECT_EQ(out.code, "refused");
  EXPECT_TRUE(out.declined);
  EXPECT_THAT(out.detail, HasSubstr("0 of 2 ranks applied it; 2 refused: too_many"));
  deliver(*action, steering_episode(2));
  bench.answer(0, "received");
  bench.clock.advance(1min);
  out = deliver(*action, steering_episode(2));
  EXPECT_EQ(out.code, "no_answer");
  EXPECT_THAT(out.detail, HasSubstr("1 received it, but the training loop has not taken it; "
                                    "1 did not answer"));
}

TEST(RaiseCapture, OncePerEpisodeWithinTheBudgetAcrossRestarts) {
  SteeringBench bench;
  const char* yaml = "{every: 10m, most: 2}";
  auto action = bench.make("raise_capture", yaml);
  const auto finished = [&](std::uint64_t episode) {
    deliver(*action, steering_episode(episode));
    bench.answer(0, "applied");
    bench.answer(1, "applied");
    return deliver(*action, steering_episode(episode));
  };
  EXPECT_EQ(finished(1).code, "applied");
  EXPECT_EQ(deliver(*action, steering_episode(2)).code, "too_soon");
  EXPECT_EQ(deliver(*action, steering_episode(2)).code, "too_soon")
      << "a later attempt says it too";
  bench.clock.advance(10min);
  EXPECT_EQ(finished(3).code, "applied");
  ASSERT_EQ(bench.commands.size(), 2U);
  EXPECT_LT(bench.commands[0].revision, bench.commands[1].revision);
  bench.restart();
  action = bench.make("raise_capture", yaml);
  EXPECT_EQ(deliver(*action, steering_episode(1)).code, "already_requested");
  EXPECT_EQ(deliver(*action, steering_episode(3)).code, "applied") << "its answers are known again";
  bench.clock.advance(1h);
  EXPECT_EQ(deliver(*action, steering_episode(4)).code, "too_many");
  EXPECT_EQ(bench.commands.size(), 2U);
}

TEST(RaiseCapture, OnlyTheAttemptThatTheIssueIsAbout) {
  SteeringBench bench;
  const auto action = bench.make("raise_capture", "{}");
  bench.current.attempt = 2;
  EXPECT_EQ(deliver(*action, steering_episode(1)).code, "stale");
  bench.current.attempt = 1;
  bench.current.ended = true;
  EXPECT_EQ(deliver(*action, steering_episode(2)).code, "ended");
  bench.current.ended = false;
  bench.current.step.reset();
  EXPECT_EQ(deliver(*action, steering_episode(3)).code, "step_unknown");
  EXPECT_TRUE(bench.commands.empty());
}

TEST(RaiseCapture, AFailedWriteGivesTheBudgetBack) {
  SteeringBench bench;
  const auto action = bench.make("raise_capture", "{most: 1}");
  bench.command_answer = core::Error{core::Code::unavailable, "no broker"};
  EXPECT_EQ(deliver(*action, steering_episode(1)).outcome, core::OutcomeClass::transient);
  bench.command_answer = core::ok();
  EXPECT_EQ(deliver(*action, steering_episode(1)).code, "asked");
}

// A rank that opened after the run last told its launch refuses as stale: asked again, once the launch is known.
TEST(RaiseCapture, ARankThatOpenedLaterIsAskedAgain) {
  SteeringBench bench;
  const auto action = bench.make("raise_capture", "{}");
  deliver(*action, steering_episode(1));
  bench.answer(0, "applied");
  bench.answer(1, "refused", "stale");
  EXPECT_TRUE(bench.due().empty()) << "nothing is known of another launch";
  bench.current.launch = {{"h1", "b/2"}};
  const auto again = bench.due();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].command_id, bench.commands[0].command_id);
  EXPECT_EQ(again[0].revision, bench.commands[0].revision + 1);
  EXPECT_EQ(again[0].launch, bench.current.launch);
  EXPECT_TRUE(bench.due().empty()) << "written once";
  bench.commands.push_back(again[0]);
  bench.answer(1, "applied");
  EXPECT_EQ(deliver(*action, steering_episode(1)).code, "applied");
}

TEST(RaiseCapture, IssuesOfItsOwnAskForNothing) {
  SteeringBench bench;
  auto of_a_stop = steering_episode(1);
  of_a_stop.issues[0].issue.rule = "stop_failed";
  EXPECT_EQ(deliver(*bench.make("raise_capture", "{}"), of_a_stop).code, "not_firing");
  EXPECT_TRUE(bench.commands.empty());
}

TEST(RaiseCapture, AWrongNameIsFoundBeforeAnythingStarts) {
  EXPECT_THAT(load("receivers: {a: {raise_capture: {collections: [gradient]}}}").errors,
              HasSubstr("did you mean gradients?"));
  EXPECT_THAT(load("receivers: {a: {raise_capture: {statistics: [quantile]}}}").errors,
              HasSubstr("quantiles"));
  EXPECT_THAT(load("receivers: {a: {raise_capture: {max_bytes: 5}}}").errors,
              HasSubstr("1KiB … 1TiB"));
}

}  // namespace
}  // namespace tocsin::actions
