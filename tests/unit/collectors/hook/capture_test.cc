#include "collectors/hook/capture/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::hook {
namespace {

using core::Mode;
using core::Role;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr core::Duration kStart{0};

CapturePlan plan(std::string_view text) {
  auto config = parse_capture(text);
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  auto compiled = CapturePlan::compile(*config);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  return std::move(compiled).value();
}

std::vector<std::int64_t> saved(CapturePlan& of, std::string_view collection, std::int64_t until,
                                std::int64_t stretch = 1, Mode mode = Mode::train) {
  const CollectionMask bit = of.bit(collection);
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 0; step < until; ++step) {
    if ((of.due(mode, step, stretch, kStart) & bit) != 0) steps.push_back(step);
  }
  return steps;
}

/// The collections that ask for this statistic.
CollectionMask asking_for(std::string_view word, const CapturePlan& of) {
  CollectionMask mask = 0;
  for (CollectionMask bit = 1; bit != 0; bit <<= 1U) {
    const auto asked = of.requests().texts(of.statistics_of(bit));
    if (std::find(asked.begin(), asked.end(), word) != asked.end()) mask |= bit;
  }
  return mask;
}

TEST(Capture, DefaultsSaveGradientsWeightsAndBiasesEveryTenSteps) {
  CapturePlan defaults = plan("{}");
  EXPECT_THAT(saved(defaults, "gradients", 25), ElementsAre(0, 10, 20));
  EXPECT_EQ(defaults.names(defaults.collections_of("gradient/conv1.weight", Role::gradient)),
            std::vector<std::string>{"gradients"});
  EXPECT_EQ(defaults.names(defaults.collections_of("conv1.weight", Role::weight)),
            std::vector<std::string>{"weights"});
  EXPECT_EQ(defaults.names(defaults.collections_of("conv1.bias", Role::bias)),
            std::vector<std::string>{"biases"});
  EXPECT_EQ(asking_for("delta", defaults), defaults.bit("weights"));
}

TEST(Capture, DeltaOfWeightsCanBeSwitchedOff) {
  CapturePlan without = plan("{collections: {weights: {statistics: []}}}");
  EXPECT_EQ(asking_for("delta", without), 0U);
  CapturePlan with = plan("{collections: {mine: {include: [a], statistics: [delta]}}}");
  EXPECT_EQ(asking_for("delta", with), with.bit("mine"));
}

TEST(Capture, GradientsAreNeverSavedOutsideTraining) {
  CapturePlan defaults = plan("{}");
  EXPECT_TRUE(saved(defaults, "gradients", 25, 1, Mode::eval).empty());
  EXPECT_FALSE(saved(defaults, "weights", 25, 1, Mode::eval).empty());
}

// The examples of docs/hook.md.
TEST(Capture, EndIsExclusiveAndTheGridStandsOnStepZero) {
  CapturePlan to200 = plan("{collections: {a: {every: 100 steps, end_step: 200}}}");
  EXPECT_THAT(saved(to200, "a", 400), ElementsAre(0, 100));
  CapturePlan to201 = plan("{collections: {a: {every: 100, end_step: 201}}}");
  EXPECT_THAT(saved(to201, "a", 400), ElementsAre(0, 100, 200));
  CapturePlan from150 = plan("{collections: {a: {every: 100 steps, start_step: 150}}}");
  EXPECT_THAT(saved(from150, "a", 400), ElementsAre(200, 300));
}

TEST(Capture, ListedStepsComeOnTopOfTheGrid) {
  CapturePlan some = plan("{collections: {a: {every: 500 steps, steps: [3, 7]}}}");
  EXPECT_THAT(saved(some, "a", 501), ElementsAre(0, 3, 7, 500));
  CapturePlan only = plan("{collections: {a: {end_step: 0, steps: [0]}}}");
  EXPECT_THAT(saved(only, "a", 501), ElementsAre(0));
}

TEST(Capture, StretchWidensTheGridAndKeepsListedSteps) {
  CapturePlan some = plan("{every: 10 steps, collections: {a: {steps: [7]}}}");
  EXPECT_THAT(saved(some, "a", 50, 2), ElementsAre(0, 7, 20, 40));
}

TEST(Capture, EvaluationMayHaveAGridOfItsOwn) {
  CapturePlan both = plan("{every: {train: 10 steps, eval: 1 step}, collections: [weights]}");
  EXPECT_THAT(saved(both, "weights", 12), ElementsAre(0, 10));
  EXPECT_EQ(saved(both, "weights", 12, 1, Mode::eval).size(), 12U);
}

TEST(Capture, GridInTimeIsDueWhenTheTimeIsOver) {
  CapturePlan timed = plan("{collections: {a: {every: 30s}}}");
  const CollectionMask bit = timed.bit("a");
  using std::chrono::seconds;
  EXPECT_NE(timed.due(Mode::train, 0, 1, seconds(100)) & bit, 0U);
  EXPECT_EQ(timed.due(Mode::train, 1, 1, seconds(129)) & bit, 0U);
  EXPECT_NE(timed.due(Mode::train, 2, 1, seconds(130)) & bit, 0U);
}

TEST(Capture, EachModeMayHaveAScheduleOfItsOwn) {
  CapturePlan some = plan(
      "{collections: {weights: {every: 10 steps, start_step: 5, steps: [1],"
      " eval: {every: 1 step, start_step: 0, end_step: 3, steps: []}, predict: {every: 4 "
      "steps}}}}");
  EXPECT_THAT(saved(some, "weights", 21), ElementsAre(1, 10, 20));
  EXPECT_THAT(saved(some, "weights", 21, 1, Mode::eval), ElementsAre(0, 1, 2));
  EXPECT_THAT(saved(some, "weights", 13, 1, Mode::predict), ElementsAre(1, 8, 12));
  EXPECT_THAT(core::to_json(some.describe()), HasSubstr(R"("eval":{"every":"1 step"})"));
}

TEST(Capture, SectionsGridOfAModeLiesBelowTheCollections) {
  CapturePlan some = plan(
      "{every: {train: 10 steps, eval: 2 steps, global: 5 steps},"
      " collections: {a: {}, b: {every: 3 steps}}}");
  EXPECT_THAT(saved(some, "a", 11), ElementsAre(0, 10));
  EXPECT_THAT(saved(some, "a", 5, 1, Mode::predict), ElementsAre(0, 2, 4));
  EXPECT_THAT(saved(some, "a", 6, 1, Mode::global), ElementsAre(0, 5));
  EXPECT_THAT(saved(some, "b", 5, 1, Mode::eval), ElementsAre(0, 3));
}

TEST(Capture, EndOfAModeMayBeTakenAway) {
  CapturePlan some = plan("{collections: {a: {every: 2, end_step: 3, eval: {end_step: null}}}}");
  EXPECT_THAT(saved(some, "a", 7), ElementsAre(0, 2));
  EXPECT_THAT(saved(some, "a", 7, 1, Mode::eval), ElementsAre(0, 2, 4, 6));
}

TEST(Capture, LogarithmicGridIsDenseFirstAndThinnedByTheGovernor) {
  CapturePlan some = plan("{collections: {a: {every: 3 per decade}}}");
  EXPECT_THAT(saved(some, "a", 500), ElementsAre(0, 1, 2, 5, 10, 22, 46, 100, 215, 464));
  EXPECT_THAT(saved(some, "a", 500, 2), ElementsAre(0, 1, 5, 22, 100, 464));
  CapturePlan inside =
      plan("{collections: {a: {every: 3 per decade, start_step: 10, end_step: 100}}}");
  EXPECT_THAT(saved(inside, "a", 500), ElementsAre(10, 22, 46));
}

TEST(Capture, ScalarsMayBeLogarithmicToo) {
  EXPECT_EQ(to_text(parse_capture("{scalars: 2 per decade}")->scalars), "2 per decade");
}

// A rule that needs a grid has it beside one in other terms.
TEST(Capture, PhasesAreThoseThatAreNamedAndAllWithoutAWord) {
  EXPECT_EQ(parse_capture("{}")->phases, all_phases());
  EXPECT_EQ(parse_capture("{phases: true}")->phases, all_phases());
  EXPECT_TRUE(parse_capture("{phases: false}")->phases.empty());
  EXPECT_TRUE(parse_capture("{phases: []}")->phases.empty());
  EXPECT_EQ(parse_capture("{phases: [forward, data_wait]}")->phases,
            (std::vector<std::string>{"forward", "data_wait"}));
  const auto wrong = parse_capture("{phases: [backwards]}");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("did you mean \"backward\"?"), std::string::npos)
      << wrong.error().message;
  EXPECT_FALSE(parse_capture("{phases: forward}"));
}

TEST(Capture, CommandsGridComesBesideOneInTimeOrInDecades) {
  CapturePlan some = plan("{collections: {gradients: {every: 1 per decade}, biases: {every: 1h}}}");
  for (const char* name : {"gradients", "biases"}) {
    bool changed = false;
    CollectionConfig dense;
    dense.name = name;
    dense.save.every = Every{4, kStart, 0};
    EXPECT_TRUE(some.extend(dense, changed).empty());
    EXPECT_TRUE(changed);
  }
  EXPECT_THAT(saved(some, "gradients", 13), ElementsAre(0, 1, 4, 8, 10, 12));
  EXPECT_THAT(saved(some, "biases", 13), ElementsAre(0, 4, 8, 12));
  EXPECT_EQ(some.smallest_every(), 4);
}

TEST(Capture, ScriptMayAddAndReplaceCollectionsAllOrNone) {
  CapturePlan some = plan("{collections: [gradients]}");
  const auto parsed = parse_capture(
      "{collections: {gradients: {every: 3 steps}, relu: {include: [relu], statistics: "
      "[median]}}}");
  ASSERT_TRUE(some.define(parsed->collections));
  EXPECT_THAT(saved(some, "gradients", 5), ElementsAre(0, 3));
  EXPECT_EQ(some.collections_of("relu1", Role::other), some.bit("relu"));
  EXPECT_EQ(some.all().size(), 2U);
  const auto bad =
      parse_capture("{collections: {gradients: {every: 9}, broken: {include: ['(']}}}");
  EXPECT_FALSE(some.define(bad->collections));
  EXPECT_THAT(saved(some, "gradients", 5), ElementsAre(0, 3));
  EXPECT_EQ(some.all().size(), 2U);
}

TEST(Capture, CollectionIsWrittenAsItIsRead) {
  constexpr std::string_view kText =
      R"({"a":{"every":"8 per decade","start_step":3,"end_step":null,"steps":[1,2],"eval":{"every":"30s"},"include":["x"],"exclude":["y"],"modes":["train","eval"],"statistics":["median"]}})";
  const auto parsed = parse_capture("{collections: " + std::string(kText) + "}");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ("{\"a\":" + core::to_json(to_value(parsed->collections[0])) + "}", kText);
}

TEST(Capture, WhatIsReadAndNotDoneIsSaid) {
  const auto doubtful = [](std::string_view text) {
    const auto config = parse_capture(text);
    EXPECT_TRUE(config);
    std::string all;
    const auto compiled = CapturePlan::compile(*config);
    for (const std::string& one : compiled->config().warnings) all += one + "\n";
    return all;
  };
  EXPECT_THAT(doubtful("{collections: {a: {include: [x], statistics: [depht]}}}"),
              HasSubstr("depht"));
  EXPECT_THAT(doubtful("{collections: {tree: {}}}"), HasSubstr("did you mean trees?"));
  EXPECT_EQ(doubtful("{collections: {mine: {}, tree: {include: [x]}, trees: {}}}"), "");
}

TEST(Capture, PatternsSearchAndExclusionWins) {
  CapturePlan relu =
      plan("{collections: {relu: {include: ['relu.*_output'], exclude: ['relu2']}}}");
  EXPECT_NE(relu.collections_of("layer1.relu_output_0", Role::other), 0U);
  EXPECT_EQ(relu.collections_of("layer1.relu2_output_0", Role::other), 0U);
}

CollectionConfig wanted(const std::string& name) {
  CollectionConfig out;
  out.name = name;
  return out;
}

TEST(Capture, CommandMakesAGridDenserAndNeverWider) {
  CapturePlan some = plan("{every: 10 steps, collections: [gradients]}");
  bool changed = false;
  CollectionConfig wider = wanted("gradients");
  wider.save.every = Every{20, kStart, 0};
  EXPECT_TRUE(some.extend(wider, changed).empty());
  EXPECT_FALSE(changed);
  CollectionConfig denser = wanted("gradients");
  denser.save.every = Every{5, kStart, 0};
  EXPECT_TRUE(some.extend(denser, changed).empty());
  EXPECT_TRUE(changed);
  EXPECT_THAT(saved(some, "gradients", 11), ElementsAre(0, 5, 10));
  EXPECT_EQ(some.smallest_every(), 5);
  some.restore();
  EXPECT_THAT(saved(some, "gradients", 11), ElementsAre(0, 10));
}

TEST(Capture, ADenserGridMayEndAndOthersGoOn) {
  CapturePlan some = plan("{every: 10 steps, collections: [gradients]}");
  const auto ask = [&](std::int64_t steps, std::optional<std::int64_t> end) {
    bool changed = false;
    CollectionConfig denser = wanted("gradients");
    denser.save.every = Every{steps, kStart, 0};
    denser.save.end_step = end;
    EXPECT_TRUE(some.extend(denser, changed).empty());
    EXPECT_TRUE(changed);
  };
  ask(1, 4);
  EXPECT_THAT(saved(some, "gradients", 21), ElementsAre(0, 1, 2, 3, 10, 20));
  EXPECT_EQ(some.smallest_every(), 10) << "the governor measures what goes on";
  ask(5, std::nullopt);
  EXPECT_THAT(saved(some, "gradients", 21), ElementsAre(0, 1, 2, 3, 5, 10, 15, 20));
  EXPECT_EQ(some.smallest_every(), 5);
  some.restore();
  EXPECT_THAT(saved(some, "gradients", 21), ElementsAre(0, 10, 20));
}

TEST(Capture, CommandAddsABuiltInCollectionAndDeltaUntilItIsWithdrawn) {
  CapturePlan some = plan("{collections: [gradients]}");
  bool changed = false;
  CollectionConfig weights = wanted("weights");
  weights.statistics = std::vector<std::string>{"delta", "depth"};
  EXPECT_THAT(some.extend(weights, changed), ElementsAre("weights/depth"));
  EXPECT_TRUE(changed);
  EXPECT_EQ(some.collections_of("a.weight", Role::weight), some.bit("weights"));
  EXPECT_EQ(asking_for("delta", some), some.bit("weights"));
  EXPECT_THAT(saved(some, "weights", 11), ElementsAre(0, 10));
  some.restore();
  EXPECT_EQ(some.collections_of("a.weight", Role::weight), 0U);
  EXPECT_TRUE(saved(some, "weights", 11).empty());
  changed = false;
  some.extend(weights, changed);
  EXPECT_TRUE(changed);
  EXPECT_EQ(some.names(some.collections_of("a.weight", Role::weight)),
            std::vector<std::string>{"weights"});
}

TEST(Capture, RequestsAreKeptWithTheirParametersAndSaidSo) {
  CapturePlan some = plan("{collections: {layers: {statistics: ['units(1.0)']}}}");
  EXPECT_THAT(core::to_json(some.describe()), HasSubstr("\"statistics\":[\"units(1)\"]"));
  bool changed = false;
  CollectionConfig layers = wanted("layers");
  layers.statistics = std::vector<std::string>{"units(1)"};
  EXPECT_TRUE(some.extend(layers, changed).empty());
  EXPECT_FALSE(changed) << "captured already";
  layers.statistics = std::vector<std::string>{"units(5)", "saturation(-9.5, 9.5, 1)", "units(500)",
                                               "saturation(1, 2)", "unit"};
  EXPECT_THAT(some.extend(layers, changed),
              ElementsAre("layers/units(500)", "layers/saturation(1, 2)", "layers/unit"));
  EXPECT_TRUE(changed);
  EXPECT_THAT(some.requests().texts(some.statistics_of(some.bit("layers"))),
              ElementsAre("units(1)", "units(5)", "saturation(-9.5, 9.5, 1)"));
  some.restore();
  EXPECT_THAT(some.requests().texts(some.statistics_of(some.bit("layers"))),
              ElementsAre("units(1)"));
}

TEST(Capture, ThereIsAnEndToRequests) {
  CapturePlan some = plan("{collections: {layers: {statistics: []}}}");
  bool changed = false;
  CollectionConfig layers = wanted("layers");
  std::vector<std::string> all;
  for (int i = 0; i < 70; ++i) all.push_back("at_least(" + std::to_string(i) + ")");
  layers.statistics = all;
  EXPECT_EQ(some.extend(layers, changed).size(), 6U);
}

TEST(Capture, CollectionThatOnlyTheUserCouldDefineIsRefused) {
  CapturePlan some = plan("{}");
  bool changed = false;
  EXPECT_THAT(some.extend(wanted("relu_output"), changed), ElementsAre("relu_output"));
  EXPECT_FALSE(changed);
}

TEST(Capture, OverheadIsWrittenAsAPercentageOrARatio) {
  EXPECT_DOUBLE_EQ(parse_capture("{overhead: 2%}")->overhead, 0.02);
  EXPECT_DOUBLE_EQ(parse_capture("{overhead: 0.5}")->overhead, 0.5);
  EXPECT_FALSE(parse_capture("{overhead: 200%}"));
}

TEST(Capture, WrongSettingsAreNamed) {
  const auto text = [](std::string_view capture) { return parse_capture(capture).error().message; };
  EXPECT_THAT(text("{evry: 10 steps}"), HasSubstr("every"));
  EXPECT_THAT(text("{every: 10 s}"), HasSubstr("; write 10s"));
  EXPECT_THAT(text("{every: {train: 1 minute}}"), HasSubstr("; write 1m"));
  EXPECT_THAT(text("{every: sometimes}"), HasSubstr("10 steps"));
  EXPECT_THAT(text("{every: 0 steps}"), HasSubstr("10 steps"));
  EXPECT_THAT(text("{collections: {a: {evry: 1}}}"), HasSubstr("did you mean every"));
  EXPECT_THAT(text("{collections: {a: {steps: [-1]}}}"), HasSubstr("a.steps"));
  EXPECT_THAT(text("{collections: {a: {eval: {evry: 1}}}}"), HasSubstr("did you mean every"));
  EXPECT_THAT(text("{collections: {a: {eval: {start_step: -1}}}}"), HasSubstr("a.eval.start_step"));
  EXPECT_THAT(text("{collections: {a: {eval: 3}}}"), HasSubstr("a.eval"));
  EXPECT_THAT(text("{every: 0 per decade}"), HasSubstr("8 per decade"));
  EXPECT_THAT(text("{every: {trian: 1}}"), HasSubstr("trian: expected train"));
  EXPECT_THAT(text("{collections: 3}"), HasSubstr("list of names"));
  CaptureConfig bad;
  bad.collections.emplace_back().include = {"("};
  EXPECT_FALSE(CapturePlan::compile(bad));
  bad.collections[0].include = {};
  bad.collections[0].roles = {"wight"};
  EXPECT_FALSE(CapturePlan::compile(bad));
}

}  // namespace
}  // namespace tocsin::hook
