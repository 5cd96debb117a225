#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/steering_bench.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;

TEST(Adjust, SetsOneNumberOnAllRanksAfterTheSameStep) {
  SteeringBench bench;
  const auto action = bench.make("adjust", "{name: lr, value: 0.001, bounds: [0, 0.1]}");
  EXPECT_EQ(deliver(*action, steering_episode(1)).code, "asked");
  ASSERT_EQ(bench.commands.size(), 1U);
  const core::Command& command = bench.commands[0];
  EXPECT_EQ(command.action, "adjust/lr");
  EXPECT_EQ(command.launch, bench.current.launch);
  EXPECT_EQ(command.expires_at, kStart + 1min);
  // 400, four steps since it was told, and three seconds; at least ten steps.
  EXPECT_EQ(core::to_json(command.args), R"({"name":"lr","value":0.001,"bounds":[0,0.1],)"
                                         R"("not_before_step":414,"asked":1})");
}

TEST(Adjust, OneRankObeysAtOnce) {
  SteeringBench bench;
  bench.current.world_size = 1;
  bench.current.step_seconds.reset();
  deliver(*bench.make("adjust", "{name: lr, value: 1}"), steering_episode(1));
  EXPECT_EQ(core::to_json(bench.commands.at(0).args), R"({"name":"lr","value":1,"asked":1})");
}

TEST(Adjust, WithoutAPaceTheCommonStepIsNotGuessed) {
  SteeringBench bench;
  bench.current.step_seconds.reset();
  const auto out = deliver(*bench.make("adjust", "{name: lr, value: 1}"), steering_episode(1));
  EXPECT_EQ(out.code, "pace_unknown");
  EXPECT_EQ(out.outcome, core::OutcomeClass::transient);
  EXPECT_TRUE(bench.commands.empty());
}

TEST(Adjust, EachRequestOfAnAttemptSetsTheNextValueAndThenNone) {
  SteeringBench bench;
  const auto action = bench.make("adjust", "{name: lr, value: [0.01, 0.001], every: 0s}");
  for (std::uint64_t episode = 1; episode <= 3; ++episode) {
    deliver(*action, steering_episode(episode));
  }
  ASSERT_EQ(bench.commands.size(), 2U);
  EXPECT_EQ(*core::as<double>(core::find(bench.commands[0].args, "value")), 0.01);
  EXPECT_EQ(*core::as<double>(core::find(bench.commands[1].args, "value")), 0.001);
  EXPECT_EQ(deliver(*action, steering_episode(4)).code, "too_many");
  bench.restart();
  EXPECT_EQ(
      deliver(*bench.make("adjust", "{name: lr, value: [0.01, 0.001]}"), steering_episode(5)).code,
      "too_many");
}

TEST(Adjust, PeopleHearWhatWasSet) {
  SteeringBench bench;
  const auto action = bench.make("adjust", "{name: lr, value: 0.001}");
  deliver(*action, steering_episode(1));
  bench.answer(0, "applied", "", 414);
  bench.answer(1, "applied", "", 414);
  const auto out = deliver(*action, steering_episode(1));
  EXPECT_EQ(out.code, "applied");
  EXPECT_FALSE(out.declined);
  EXPECT_THAT(out.detail, HasSubstr("lr = 0.001: digits, run 4e3046d4"));
  ASSERT_EQ(out.issues.size(), 1U);
  const core::Issue& told = out.issues[0];
  EXPECT_EQ(told.rule, "adjusted");
  EXPECT_EQ(told.severity, core::Severity::info);
  EXPECT_EQ(told.summary,
            "digits: lr = 0.001 was set because of exploding_tensor: 2 of 2 ranks applied it from "
            "step 414.");
  EXPECT_EQ(told.labels.get("adjustment"), "lr");
  EXPECT_FALSE(told.labels.has("tensor"));
  EXPECT_EQ(deliver(*action, steering_episode(1)).issues.at(0).event_id, told.event_id)
      << "a repeated attempt tells the same event";
}

// As a router that starts anew reads it: 2 is a whole number then.
TEST(Adjust, TheValueIsSaidAfterARestartToo) {
  SteeringBench bench;
  deliver(*bench.make("adjust", "{name: lr, value: 2}"), steering_episode(1));
  bench.answer(0, "applied");
  bench.answer(1, "applied");
  bench.commands.back().args = *core::parse_json(core::to_json(bench.commands.back().args), 4096);
  bench.restart();
  const auto out = deliver(*bench.make("adjust", "{name: lr, value: 2}"), steering_episode(1));
  EXPECT_THAT(out.detail, HasSubstr("lr = 2: "));
}

TEST(Adjust, PeopleHearOfANameThatNoScriptRegistered) {
  SteeringBench bench;
  const auto action = bench.make("adjust", "{name: lr, value: 0.001}");
  deliver(*action, steering_episode(1));
  bench.answer(0, "refused", "not_registered");
  bench.answer(1, "refused", "not_registered");
  const auto out = deliver(*action, steering_episode(1));
  EXPECT_EQ(out.code, "refused");
  ASSERT_EQ(out.issues.size(), 1U);
  EXPECT_EQ(out.issues[0].rule, "adjust_failed");
  EXPECT_EQ(out.issues[0].severity, core::Severity::warning);
  EXPECT_THAT(out.issues[0].summary, HasSubstr("2 refused: not_registered"));
  EXPECT_TRUE(
      deliver(*bench.make("adjust", "{name: lr, value: 0.001, tell: false}"), steering_episode(1))
          .issues.empty());
}

// Ranks that passed the step must not stay behind: a later one is named.
TEST(Adjust, ALaterStepForRanksThatHadPassedTheFirstOne) {
  SteeringBench bench;
  const auto action = bench.make("adjust", "{name: lr, value: 0.001}");
  deliver(*action, steering_episode(1));
  bench.answer(0, "received");
  bench.answer(1, "refused", "too_late", 420);
  const auto again = bench.due();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].revision, bench.commands[0].revision + 1);
  EXPECT_EQ(*core::as<std::int64_t>(core::find(again[0].args, "not_before_step")), 438)
      << "420 and nine seconds";
  bench.commands.push_back(again[0]);
  bench.answer(0, "applied", "", 438);
  bench.answer(1, "applied", "", 438);
  EXPECT_EQ(deliver(*action, steering_episode(1)).code, "applied");
}

TEST(Adjust, WhatItWouldDoIsSaidByCheck) {
  const auto loaded = load("receivers: {calm: {adjust: {name: lr, value: [0.01, 0.001]}}}");
  EXPECT_EQ(loaded.errors, "");
  EXPECT_EQ(loaded.receivers.integrations.at(0).config->intents().at(0),
            "sets lr to 0.01, then 0.001 in runs whose script takes hook.on_command(\"lr\")");
}

TEST(Adjust, ValuesAndBoundsAreChecked) {
  const auto errors = [](const std::string& keys) {
    return load("receivers: {calm: {adjust: {" + keys + "}}}").errors;
  };
  EXPECT_THAT(errors("name: lr"), HasSubstr("value"));
  EXPECT_THAT(errors("value: 1"), HasSubstr("name"));
  EXPECT_THAT(errors("name: lr, value: high"), HasSubstr("expected a number"));
  EXPECT_THAT(errors("name: lr, value: []"), HasSubstr("expected a number"));
  EXPECT_THAT(errors("name: lr, value: .nan"), HasSubstr("expected a number"));
  EXPECT_THAT(errors("name: lr, value: 2, bounds: [0, 1]"), HasSubstr("outside of bounds [0, 1]"));
  EXPECT_THAT(errors("name: lr, value: 2, bounds: [3, 1]"), HasSubstr("expected [low, high]"));
  EXPECT_THAT(errors("name: a/b, value: 2"), HasSubstr("letters, digits"));
}

}  // namespace
}  // namespace tocsin::actions
