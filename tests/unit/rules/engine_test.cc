// The engine itself: guards, issue life, jobs, attempts, bounds.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

const double kNaN = std::nan("");

OwnedFrame bad(FakeWorker& worker, std::int64_t step, int tensors = 1) {
  std::vector<TensorValues> values;
  for (int i = 0; i < tensors; ++i) values.push_back({"t" + std::to_string(i), {kNaN}});
  return worker.tensors(Mode::train, step, values);
}

std::vector<core::JobEvent> jobs(RuleHarness& rule) {
  std::vector<core::JobEvent> out;
  for (const Event& event : rule.events()) {
    if (const auto* job = std::get_if<core::JobEvent>(&event)) out.push_back(*job);
  }
  return out;
}

TEST(Engine, DropsFramesWhoseSequenceOrOffsetIsNotNew) {
  RuleHarness rule = RuleHarness::of("exploding_tensor", "{cooldown: 0s}");
  FakeWorker worker;
  const OwnedFrame first = bad(worker, 0);
  const OwnedFrame second = bad(worker, 1);
  rule.feed(first).feed(second).feed(first).feed(second);
  EXPECT_EQ(rule.firing().size(), 2U);
  EXPECT_EQ(rule.engine().stats().duplicate_frames, 2U);
  rule.feed_at(bad(worker, 2), 0);
  EXPECT_EQ(rule.firing().size(), 2U) << "an offset that was handled already";
}

TEST(Engine, ReportsAGapWhenItsStepHasEnded) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.step_end(Mode::train, 0));
  worker.header.sequence += 3;
  rule.feed(worker.tensors(Mode::train, 1, {{"t", {1}}}));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.step_end(Mode::train, 1));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].rule, "telemetry_gap");
  EXPECT_EQ(rule.firing()[0].evidence.observed.value, 3);
  for (int step = 2; step < 5; ++step) rule.feed(worker.step_end(Mode::train, step));
  EXPECT_EQ(rule.resolved().size(), 1U);
}

TEST(Engine, RepeatsAFiringIssueOnlyAfterTheCooldown) {
  RuleHarness rule = RuleHarness::of("exploding_tensor", "{cooldown: 10s}");
  FakeWorker worker;
  for (int step = 0; step < 120; ++step) {  // 0.1 s each
    rule.feed(bad(worker, step)).feed(worker.step_end(Mode::train, step));
  }
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[1].step, 100);
  EXPECT_EQ(issues[1].evidence.occurrences, 101U);
  EXPECT_EQ(issues[1].starts_at, issues[0].starts_at);
  EXPECT_EQ(issues[1].labels, issues[0].labels);
  EXPECT_NE(issues[1].event_id, issues[0].event_id);
}

TEST(Engine, WaitsForMinHitsInARow) {
  RuleHarness rule = RuleHarness::of("exploding_tensor", "{min_hits: 3}");
  FakeWorker worker;
  rule.feed(bad(worker, 0)).feed(bad(worker, 1));
  rule.feed(worker.tensors(Mode::train, 2, {{"t0", {1}}}));
  rule.feed(bad(worker, 3)).feed(bad(worker, 4));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(bad(worker, 5));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(Engine, OpensAtMostTwentyUnitsPerWorkerAndCountsTheRest) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(bad(worker, 0, 50));
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 20U);
  EXPECT_EQ(issues[0].evidence.affected.hit, 50U);
  EXPECT_EQ(issues[0].evidence.affected.worst.size(), 10U);
}

TEST(Engine, TellsOfTheJobFromStartToEnd) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start(R"(,"labels":{"team":"nlp"},"platform":{"kind":"slurm","ref":{"id":7}})"));
  rule.feed(worker.heartbeat()).feed(bad(worker, 0));
  rule.feed(worker.end("stopped_by_rule"));
  const auto events = jobs(rule);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].phase, core::JobPhase::started);
  EXPECT_EQ(events[0].run.job, "digits");
  EXPECT_EQ(events[0].run.platform, "slurm");
  EXPECT_EQ(core::to_json(events[0].run.ref), R"({"host":"here","id":7,"pid":4711})");
  EXPECT_EQ(events[1].phase, core::JobPhase::heartbeat);
  EXPECT_EQ(events[2].phase, core::JobPhase::ended);
  EXPECT_EQ(events[2].outcome, "stopped_by_rule");
  EXPECT_EQ(events[2].exit_code, 0);
  ASSERT_EQ(rule.resolved().size(), 1U);
  EXPECT_EQ(rule.resolved()[0].resolution, core::Resolution::job_ended);
  EXPECT_EQ(rule.resolved()[0].labels.get("team"), "nlp");
}

TEST(Engine, ARankThatJoinsIsToldAtOnceSoThatNoStopLeavesItAlone) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker("digits", "exploding", 0, 2);
  FakeWorker other("digits", "exploding", 1, 2);
  rule.feed(worker.start(R"(,"node":"n1","boot_id":"0123456789ab","opened":500)"));
  rule.feed(worker.step_end(Mode::train, 0)).feed(worker.step_end(Mode::train, 1));  // a heartbeat
  rule.feed(other.start(R"(,"node":"n1","boot_id":"0123456789ab","opened":700)"));
  rule.feed(worker.step_end(Mode::train, 2)).feed(worker.step_end(Mode::train, 3));
  EXPECT_EQ(jobs(rule).back().launch, (std::map<std::string, std::string>{{"n1", "01234567/700"}}))
      << "within a second";
}

TEST(Engine, EndsAJobWhenAllItsWorkersHaveEnded) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker one("digits", "exploding", 0, 2);
  FakeWorker two("digits", "exploding", 1, 2);
  rule.feed(one.start()).feed(one.end("completed"));
  EXPECT_EQ(jobs(rule).size(), 1U) << "the other worker has not been heard of yet";
  rule.feed(two.start()).feed(two.end("failed"));
  ASSERT_EQ(jobs(rule).size(), 2U);
  EXPECT_EQ(jobs(rule)[1].outcome, "failed");
}

TEST(Engine, StatusesFollowTheLifeOfARule) {
  RuleHarness rule(
      "  - exploding_tensor\n  - vanishing_gradient\n  - {use: all_zero, with: "
      "{collection_names: [biases]}}");
  FakeWorker worker;
  rule.feed(worker.tensors(Mode::train, 0, {{"g", {1, 2}}}));
  EXPECT_EQ(rule.rule_state("exploding_tensor"), "InProgress");
  rule.feed(worker.step_end(Mode::train, 0)).feed(bad(worker, 1)).feed(worker.end());
  EXPECT_EQ(rule.rule_state("exploding_tensor"), "IssuesFound");
  EXPECT_EQ(rule.rule_state("vanishing_gradient"), "NoIssuesFound");
  EXPECT_EQ(rule.rule_state("all_zero"), "NoData");
  std::vector<std::string> missing;
  for (const Event& event : rule.events()) {
    const auto* status = std::get_if<core::RuleStatusEvent>(&event);
    if (status != nullptr && status->rule == "all_zero") missing = status->missing;
  }
  EXPECT_EQ(missing, (std::vector<std::string>{"collection biases"}));
}

TEST(Engine, ARuleWithoutDataSaysWhetherNothingCameOrNothingThatDid) {
  RuleHarness rule(
      "  - {use: all_zero, with: {collection_names: [biases]}}\n"
      "  - {use: exploding_tensor, with: {tensor_regex: [numbers]}}\n"
      "  - {use: unchanged_tensor, with: {tensor_regex: [numbers]}}");
  FakeWorker worker;
  core::SummaryRow row = summarize({"numbers", {1, 2}, Role::weight});
  row.meta = core::meta::make(core::Dtype::i64, Role::weight);
  rule.feed(worker.dictionary({{core::DictionaryType::tensor, "numbers", Role::weight}}))
      .feed(worker.summary(Mode::train, 0, {row}))
      .feed(worker.step_end(Mode::train, 0))
      .feed(worker.end());
  std::map<std::string, std::string> reasons;
  for (const Event& event : rule.events()) {
    if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
      reasons[status->rule] = status->reason;
    }
  }
  EXPECT_EQ(reasons["all_zero"], "no data arrived that this rule can judge");
  EXPECT_EQ(reasons["exploding_tensor"], "this rule does not apply to the data that arrived");
  EXPECT_EQ(reasons["unchanged_tensor"], "too little data arrived to judge");
}

TEST(Engine, ALaterAttemptSupersedesTheEarlierOne) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(bad(worker, 100));
  FakeWorker again;
  again.header.attempt = 2;
  again.header.incarnation += 1;
  rule.feed(bad(again, 3));
  ASSERT_EQ(rule.resolved().size(), 1U);
  EXPECT_EQ(rule.resolved()[0].resolution, core::Resolution::superseded);
  EXPECT_EQ(rule.resolved()[0].run.attempt, 1U);
  ASSERT_EQ(rule.firing().size(), 2U);
  EXPECT_EQ(rule.firing()[1].run.attempt, 2U);
  rule.feed(bad(worker, 101));
  EXPECT_EQ(rule.firing().size(), 2U) << "the old attempt is over";
  EXPECT_EQ(rule.engine().stats().stale_frames, 1U);
}

TEST(Engine, ANewIncarnationMayGoBackInSteps) {
  RuleHarness rule = RuleHarness::of("exploding_tensor", "{cooldown: 0s}");
  FakeWorker worker;
  rule.feed(bad(worker, 100)).feed(bad(worker, 50));
  EXPECT_EQ(rule.firing().size(), 1U) << "a unit drops a step not later than its last";
  worker.header.incarnation += 1;
  worker.header.sequence = 0;
  rule.feed(bad(worker, 50));
  EXPECT_EQ(rule.firing().size(), 2U);
}

TEST(Engine, TheFirstStepWaitsForAllWorkersButNotForever) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{num_steps: 1}", "original");
  FakeWorker one("digits", "exploding", 0, 2);
  for (int step = 0; step < 2; ++step) {
    rule.feed(one.scalars(Mode::train, {{"loss", step, 1.0}}))
        .feed(one.step_end(Mode::train, step));
  }
  rule.tick(one.header.time);
  EXPECT_TRUE(rule.firing().empty());
  rule.tick(one.header.time + 10 * kSecond);
  EXPECT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.log().size(), 1U) << "the wait was ended by a clock: replays must know";
}

TEST(Engine, ASilentWorkerStopsHoldingTheOthersBack) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{num_steps: 1}", "original");
  FakeWorker one("digits", "exploding", 0, 2);
  FakeWorker two("digits", "exploding", 1, 2);
  const auto both = [&](FakeWorker& worker, int step) {
    rule.feed(worker.scalars(Mode::train, {{"loss", step, 1.0}}));
    rule.feed(worker.step_end(Mode::train, step));
  };
  both(one, 0);
  both(two, 0);
  both(one, 1);
  EXPECT_TRUE(rule.firing().empty());
  rule.tick(one.header.time + 31 * kSecond);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_TRUE(rule.firing()[0].evidence.window.partial);
  EXPECT_EQ(rule.firing()[0].evidence.window.missing_ranks, (std::vector<std::uint32_t>{1}));
}

TEST(Engine, ARuleForSomeWorkersAveragesOverThoseOnly) {
  RuleHarness rule = RuleHarness::of(
      "loss_not_decreasing", "{num_steps: 1, workers: [worker_1], cooldown: 0s}", "original");
  FakeWorker one("digits", "exploding", 0, 2);
  FakeWorker two("digits", "exploding", 1, 2);
  for (int step = 0; step < 2; ++step) {
    rule.feed(one.scalars(Mode::train, {{"loss", step, 100.0 - 90 * step}}));
    rule.feed(one.step_end(Mode::train, step));
    rule.feed(two.scalars(Mode::train, {{"loss", step, 1.0}}));
    rule.feed(two.step_end(Mode::train, step));
  }
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].kind, "plateau");
}

TEST(Engine, AsksForWhatTheRulesNeedAndTheCaptureLacks) {
  RuleHarness rule("  - weight_update_ratio\n  - vanishing_gradient");
  FakeWorker worker;
  rule.feed(worker.start(R"(,"capture":{"collections":{"gradients":{},"weights":{}}})"));
  std::vector<core::Command> commands;
  for (const Event& event : rule.events()) {
    if (const auto* command = std::get_if<core::Command>(&event)) commands.push_back(*command);
  }
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].action, "capture");
  const std::string args = core::to_json(commands[0].args);
  EXPECT_NE(args.find(R"("collections":{"weights":{"statistics":["delta"]}})"), std::string::npos)
      << args;
}

std::string captures_asked_for(const std::string& rules, const std::string& captured) {
  RuleHarness rule(rules);
  FakeWorker worker;
  rule.feed(worker.start(R"(,"capture":{"collections":)" + captured + "}"));
  std::string out;
  for (const Event& event : rule.events()) {
    if (const auto* command = std::get_if<core::Command>(&event)) {
      out += core::to_json(*core::find(command->args, "plans"));
    }
  }
  return out;
}

TEST(Engine, ARuleWithoutInputsEndsInNoDataAndNamesWhatItNeeds) {
  RuleHarness rule(
      "  - cpu_bottleneck\n  - dead_relu\n  - step_outlier\n"
      "  - {use: all_zero, with: {tensor_regex: [nothing]}}");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.feed(worker.end());
  std::map<std::string, core::RuleStatusEvent> last;
  for (const Event& event : rule.events()) {
    if (const auto* one = std::get_if<core::RuleStatusEvent>(&event)) last[one->rule] = *one;
  }
  const auto missing = [&](const char* name) {
    EXPECT_EQ(last[name].status, core::RuleState::no_data) << name;
    EXPECT_NE(last[name].reason, "") << name;
    return last[name].missing;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(missing("cpu_bottleneck"), Texts{"system samples of GPUs and CPU cores"});
  EXPECT_EQ(missing("dead_relu"), Texts{"collection layers, statistic units(1)"});
  EXPECT_EQ(missing("step_outlier"), Texts{"step ends"});
  EXPECT_EQ(missing("all_zero"), Texts{"the tensors named by collection_names or tensor_regex"});
}

TEST(Engine, AsksForEachOfTheStepsThatARuleLooksAt) {
  const std::string rules = "  - poor_weight_initialization\n  - weight_update_ratio";
  EXPECT_EQ(captures_asked_for(rules, R"({"weights":{"every":"10 steps","statistics":["delta"]}})"),
            R"([{"collections":{"layers":{"every":"1 steps","end_step":10},)"
            R"("weights":{"every":"1 steps","end_step":10}}}])");
  EXPECT_EQ(captures_asked_for(rules, R"(["weights"])"),
            R"([{"collections":{"layers":{"every":"1 steps","end_step":10},)"
            R"("weights":{"statistics":["delta"],"every":"1 steps","end_step":10}}}])");
  EXPECT_EQ(captures_asked_for(rules, R"({"layers":{"every":"1 step"},"weights":{"every":"1 step",)"
                                      R"("statistics":["delta"]}})"),
            "")
      << "it is captured so already";
}

TEST(Engine, AsksForTheCollectionThatATensorOfARuleOfOnesOwnIsIn) {
  const auto asked = [](const std::string& select, const std::string& when = "l2 > 1") {
    return captures_asked_for(
        "  - {name: r, select: 'tensor(" + select + "', when: '" + when + "'}", R"({"losses":{}})");
  };
  EXPECT_EQ(asked(R"("gradient/conv.*"))"), R"([{"collections":{"gradients":{}}}])");
  EXPECT_EQ(asked(R"("conv1.weight"))", "median > 1"),
            R"([{"collections":{"weights":{"statistics":["median"]}}}])");
  EXPECT_EQ(asked(R"("fc.bias"))"), R"([{"collections":{"biases":{}}}])");
  EXPECT_EQ(asked(R"(".*"){role="activation_out"})"), R"([{"collections":{"layers":{}}}])");
  EXPECT_EQ(asked(R"(".*"))"), "") << "what is captured, and no more";
  EXPECT_EQ(asked(R"("conv.*"))"), "") << "may be anything";
  EXPECT_EQ(asked(R"(".*"){role!="weight"})"), "");
}

TEST(Engine, SaysWhatARuleOfOnesOwnSelectsWhereNothingOfItCame) {
  RuleHarness rule(
      "  - {name: one, select: 'tensor(\"conv.*\")', when: 'l2 > 1'}\n"
      "  - {name: two, let: {a: 'metric(\"a\")', b: 'tensor(\"b\")'}, when: 'a.value > b.l2'}");
  FakeWorker worker;
  rule.feed(worker.start()).feed(worker.end());
  std::map<std::string, std::vector<std::string>> missing;
  for (const Event& event : rule.events()) {
    const auto* status = std::get_if<core::RuleStatusEvent>(&event);
    if (status != nullptr && status->status == core::RuleState::no_data) {
      missing[status->rule] = status->missing;
    }
  }
  using Texts = std::vector<std::string>;
  EXPECT_EQ(missing["one"], Texts{"anything that fits tensor(\"conv.*\")"});
  EXPECT_EQ(missing["two"],
            (Texts{"anything that fits metric(\"a\")", "anything that fits tensor(\"b\")"}));
}

TEST(Engine, OfSeveralRulesTheSmallestGridAndTheLastStepCount) {
  const auto starts = [](const char* name, int steps) {
    return std::string("  - {name: ") + name +
           ", use: poor_weight_initialization, preset: original, with: {steps: " +
           std::to_string(steps) + "}}\n";
  };
  EXPECT_EQ(captures_asked_for(starts("one", 10) + starts("other", 25), R"({"losses":{}})"),
            R"([{"collections":{"gradients":{"statistics":["quantiles"],"every":"1 steps",)"
            R"("end_step":25},"layers":{"every":"1 steps","end_step":25}}}])");
  EXPECT_EQ(
      captures_asked_for("  - create_xgboost_report",
                         R"({"losses":{},"metrics":{},"feature_importance":{},"labels":)"
                         R"({"every":"5 steps","statistics":["classes","quantiles","median"]},)"
                         R"("predictions":{"every":"10 steps","statistics":["classes",)"
                         R"("quantiles","median"]}})"),
      R"([{"collections":{"predictions":{"every":"5 steps"}}}])");
}

TEST(Engine, SurvivesStrangeNumbersEverywhere) {
  RuleHarness rule(
      "  - exploding_tensor\n  - vanishing_gradient\n  - loss_not_decreasing\n"
      "  - weight_update_ratio\n  - overfit\n  - {use: all_zero, with: {collection_names: [all]}}\n"
      "  - stalled_training_rule\n  - cpu_bottleneck");
  FakeWorker worker;
  const std::vector<double> odd{kNaN, HUGE_VAL, -HUGE_VAL, -0.0, 1e308, -1e308, 5e-324};
  const std::vector<std::int64_t> steps{INT64_MIN, -5, 0, 1, INT64_MAX};
  for (const std::int64_t step : steps) {
    for (const double x : odd) {
      core::SummaryRow row = row_of("w", Role::weight, 3, x, x);
      row.min = row.max = x;
      rule.feed(worker.summary(Mode::train, step, {row},
                               {{core::SparseStat::delta_l2, 0, x},
                                {core::SparseStat::prev_l2, 0, x},
                                {core::SparseStat::delta_from_step, 0, x}}));
      rule.feed(worker.scalars(Mode::train, {{"loss", step, x}, {"loss_scale", step, x}}));
      rule.feed(worker.step_end(Mode::train, step));
      rule.feed(worker.scalars(Mode::eval, {{"loss", step, x}}));
      rule.feed(worker.step_end(Mode::eval, step));
    }
  }
  rule.feed(worker.dictionary({{core::DictionaryType::series, "hw.gpu.utilization"}}));
  rule.feed(worker.system({{"hw.gpu.utilization", INT64_MIN, kNaN},
                           {"hw.gpu.utilization", INT64_MAX, HUGE_VAL},
                           {"hw.gpu.utilization", INT64_MIN, -1}}));
  OwnedFrame nonsense = worker.start();
  nonsense.body = "{]";
  nonsense.header.body_length = 2;
  rule.feed(nonsense);
  rule.tick(INT64_MAX);
  rule.feed(worker.end());
  EXPECT_FALSE(rule.firing().empty());
}

TEST(Engine, RefusesUnitsBeyondTheBoundAndCountsThem) {
  EngineOptions options;
  options.config.max_units_per_run = 100;
  RuleHarness rule("  - exploding_tensor", options);
  FakeWorker worker;
  std::vector<TensorValues> tensors;
  for (int i = 0; i < 150; ++i) tensors.push_back({"t" + std::to_string(i), {1}});
  rule.feed(worker.tensors(Mode::train, 0, tensors));
  EXPECT_EQ(rule.engine().stats().units, 100U);
  EXPECT_EQ(rule.engine().stats().refused_units, 50U);
}

TEST(Engine, FollowsTensorsThatChangeTheirOrder) {
  RuleHarness rule = RuleHarness::of("exploding_tensor", "{cooldown: 0s}");
  FakeWorker worker;
  rule.feed(worker.tensors(Mode::train, 0, {{"a", {1}}, {"b", {1}}, {"c", {1}}}));
  rule.feed(worker.tensors(Mode::train, 1, {{"c", {kNaN}}, {"a", {1}}}));
  rule.feed(worker.tensors(Mode::train, 1, {{"b", {1}}, {"d", {1}}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.engine().stats().units, 4U);
}

TEST(Engine, TakesSeveralFramesOfOneRecord) {
  RuleHarness rule = RuleHarness::of("exploding_tensor", "{cooldown: 0s}");
  FakeWorker worker;
  worker.header.flags = core::frame_flag::kUnsequenced;  // a JSON array of metrics
  rule.feed_at(worker.scalars(Mode::train, {{"loss", 0, kNaN}}), 7);
  rule.feed_at(worker.scalars(Mode::train, {{"accuracy", 0, kNaN}}), 7);
  EXPECT_EQ(rule.firing().size(), 2U);
  rule.feed_at(worker.scalars(Mode::train, {{"loss", 1, kNaN}}), 6);
  EXPECT_EQ(rule.firing().size(), 2U);
}

TEST(Engine, JsonProducersNameTheirJobWithTheirWorker) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  rule.expect_label("team");
  FakeWorker worker;
  worker.header.flags = core::frame_flag::kUnsequenced;
  rule.feed(worker.dictionary({{core::DictionaryType::worker,
                                "worker_0",
                                Role::other,
                                core::Dtype::unknown,
                                {},
                                R"({"job":"digits","labels":{"team":"nlp"}})"}}));
  rule.feed(worker.scalars(Mode::train, {{"loss", 0, kNaN}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("job"), "digits");
  EXPECT_EQ(rule.firing()[0].labels.get("team"), "nlp");
}

TEST(Engine, JsonWorkersEndAStepWithTheirNextOne) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{num_steps: 1}", "original");
  FakeWorker worker;
  worker.header.flags = core::frame_flag::kUnsequenced;
  worker.header.world_size = 0;
  for (int step = 0; step < 2; ++step) {
    rule.feed(worker.scalars(Mode::train, {{"loss", step, 1.0}}));
  }
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.scalars(Mode::train, {{"loss", 2, 1.0}}));
  EXPECT_EQ(rule.firing().size(), 1U);
}

}  // namespace
}  // namespace tocsin::rules
