// The pure parts of replays: bounds of a span, values of a sweep, differences of golden files.
#include <gtest/gtest.h>

#include "app/cli/golden.h"
#include "app/recordings/recording.h"
#include "app/replay/sweep.h"

namespace tocsin::app {
namespace {

const core::WallTime kNow = *core::parse_rfc3339("2026-11-22T15:00:00Z");

std::string bound(const std::string& text) {
  const auto parsed = parse_bound("--from", text, kNow);
  if (!parsed) return parsed.error().message;
  if (parsed->offset) return "@" + std::to_string(*parsed->offset);
  return parsed->time ? core::to_rfc3339(*parsed->time) : "none";
}

TEST(Bound, IsATimeHowLongAgoNowOrAnOffset) {
  EXPECT_EQ(bound("2026-11-22T14:00:00Z"), core::to_rfc3339(kNow - std::chrono::hours(1)));
  EXPECT_EQ(bound("2026-11-22T15:00:00+01:00"), bound("2026-11-22T14:00:00Z"));
  EXPECT_EQ(bound("2026-11-22"), bound("2026-11-22T00:00:00Z"));
  EXPECT_EQ(bound("2h"), bound("2026-11-22T13:00:00Z"));
  EXPECT_EQ(bound("now"), core::to_rfc3339(kNow));
  EXPECT_EQ(bound("@1200"), "@1200");
  EXPECT_EQ(bound("@0"), "@0");
  EXPECT_EQ(bound(""), "none");
}

TEST(Bound, SaysWhatItExpects) {
  for (const std::string text : {"yesterday", "@", "@-1", "@1x", "0s", "2026-13-01", "14:00"}) {
    const std::string said = bound(text);
    EXPECT_NE(said.find("--from " + text + ": expected a time such as"), std::string::npos) << said;
  }
}

Span span(const std::string& from, const std::string& to) {
  return {*parse_bound("--from", from, kNow), *parse_bound("--to", to, kNow), std::nullopt};
}

TEST(Span, EndsAfterItBegins) {
  EXPECT_TRUE(check_span(span("2h", "1h"), true));
  EXPECT_FALSE(check_span(span("1h", "1h"), true));
  EXPECT_FALSE(check_span(span("@4", "@4"), false));
  EXPECT_TRUE(check_span(span("@4", "@5"), false));
}

TEST(Span, OffsetsNeedAPartitionWhereThereAreSeveral) {
  Span offsets = span("@4", "");
  EXPECT_FALSE(check_span(offsets, true));
  offsets.partition = 3;
  EXPECT_TRUE(check_span(offsets, true));
}

/// The values of a sweep, or its error.
std::string swept(const std::string& text, std::initializer_list<const char*> names) {
  rules::RulesConfig rules;
  for (const char* name : names) rules.rules.push_back(*rules::make_rule(name));
  const auto sweep = make_sweep(text, rules);
  if (!sweep) return sweep.error().message;
  std::string out = sweep->rule + "." + sweep->parameter + ":";
  EXPECT_EQ(sweep->values.size(), rules.rules.size());
  for (std::size_t i = 0; i < sweep->values.size(); ++i) {
    EXPECT_EQ(rules.rules[i].name, sweep->values[i].rule);
    out += " " + sweep->values[i].text;
  }
  return out;
}

TEST(Sweep, IsCutInRatiosOverDecadesAndInEqualPartsElse) {
  const auto threshold = [](const char* values) {
    return swept(std::string("threshold=") + values, {"vanishing_gradient"});
  };
  EXPECT_EQ(threshold("1e-9..1e-5"), "vanishing_gradient.threshold: 1e-09 1e-08 1e-07 1e-06 1e-05");
  EXPECT_EQ(threshold("1e-6..1e-4:3"), "vanishing_gradient.threshold: 1e-06 1e-05 1e-04");
  EXPECT_EQ(threshold("2..4:5"), "vanishing_gradient.threshold: 2 2.5 3 3.5 4");
  EXPECT_EQ(threshold("0.5,0.25"), "vanishing_gradient.threshold: 0.5 0.25");
  EXPECT_EQ(swept("min_hits=1..3", {"overfit"}), "overfit.min_hits: 1 2 3");
  EXPECT_EQ(swept("min_hits=1..3:5", {"overfit"}), "overfit.min_hits: 1 2 3");  // whole numbers
  EXPECT_EQ(swept("cooldown=10s..30s:3", {"overfit"}), "overfit.cooldown: 10s 20s 30s");
  EXPECT_EQ(swept("only_nan=true,false", {"exploding_tensor"}),
            "exploding_tensor.only_nan: true false");
  EXPECT_EQ(swept("only_nan=yes", {"exploding_tensor"}),
            "--sweep: \"yes\" is neither true nor false");
  EXPECT_EQ(swept("cpu_aggregate=any_core,mean", {"cpu_bottleneck"}),
            "cpu_bottleneck.cpu_aggregate: any_core mean");
  EXPECT_NE(swept("cpu_aggregate=median", {"cpu_bottleneck"}).find("cpu_bottleneck@median"),
            std::string::npos);
}

TEST(Sweep, NamesOneRuleAndOneOfItsParameters) {
  EXPECT_EQ(swept("overfit.min_hits=1,2", {"exploding_tensor", "overfit"}),
            "overfit.min_hits: 1 2");
  const auto says = [](const std::string& text, const char* words) {
    const std::string said = swept(text, {"exploding_tensor", "overfit"});
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  says("min_hits=1,2", "several rules have a parameter \"min_hits\": exploding_tensor, overfit");
  says("overfitt.min_hits=1,2", "did you mean \"overfit\"?");
  says("overfit.min_hit=1,2", "did you mean \"min_hits\"?");
  says("overfit.min_hits", "expected [RULE.]PARAMETER=");
  says("overfit.min_hits=2..1", "the smaller one first");
  says("overfit.min_hits=1..3:0", "STEPS must be a whole number from 2 to 200");
  says("overfit.min_hits=-1,1", "overfit@-1");
  says("overfit.severity=1,2", "overfit@1");
  says("overfit.tensor_regex=a,b", "only numbers, durations, switches and words are swept");
}

GoldenIssue issue(const std::string& unit, std::int64_t step) {
  GoldenIssue one;
  one.rule = "overfit";
  one.run = "4e3046d4";
  one.unit = unit;
  one.step = step;
  one.severity = "warning";
  return one;
}

TEST(GoldenDiff, IsEmptyWhenAllIsMetInAnyOrder) {
  EXPECT_TRUE(golden_diff({}, {}).empty());
  EXPECT_TRUE(golden_diff({issue("a", 1), issue("b", 2)}, {issue("b", 2), issue("a", 1)}).empty());
  GoldenIssue loose = issue("a", 1);
  loose.run = loose.severity = "";
  EXPECT_TRUE(golden_diff({loose}, {issue("a", 1)}).empty());
}

TEST(GoldenDiff, ShowsWhatIsMissingTooMuchAndElsewhere) {
  const auto diff =
      golden_diff({issue("gone", 1), issue("moved", 2)}, {issue("moved", 3), issue("new", 4)});
  ASSERT_EQ(diff.size(), 4U);
  EXPECT_EQ(diff[0].substr(0, 3), "- {");
  EXPECT_NE(diff[0].find("gone"), std::string::npos);
  EXPECT_NE(diff[1].find("\"moved\", step: 2"), std::string::npos);
  EXPECT_NE(diff[2].find("\"moved\", step: 3"), std::string::npos);
  EXPECT_EQ(diff[2].substr(0, 3), "+ {");
  EXPECT_NE(diff[3].find("new"), std::string::npos);
}

TEST(GoldenDiff, CountsEachOnce) {
  EXPECT_EQ(golden_diff({issue("a", 1)}, {issue("a", 1), issue("a", 1)}).size(), 1U);
  EXPECT_EQ(golden_diff({issue("a", 1), issue("a", 1)}, {issue("a", 1)}).size(), 1U);
}

}  // namespace
}  // namespace tocsin::app
