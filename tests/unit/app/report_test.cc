// The report of a run: where charts draw, and that a summary of any shape makes a page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "app/report/axis.h"
#include "app/report/chart_svg.h"
#include "app/report/gather.h"
#include "app/report/page.h"
#include "app/report/run_report.h"

namespace tocsin::app::report {
namespace {

using core::ValueList;
using core::ValueMap;
using ::testing::HasSubstr;
using ::testing::Not;

Page page_with(Block block) {
  Page page{"t", {}, {}, ""};
  page.sections.push_back({"s", {std::move(block)}});
  return page;
}

RunReport digits() {
  RunReport out;
  out.run.uid = core::run_uid_v5("report");
  out.run.job = "digits";
  out.outcome = "completed";
  return out;
}

RunReport with_summary(const std::string& type, ValueMap summary) {
  RunReport out = digits();
  core::RuleStatusEvent rule;
  rule.rule = rule.rule_type = type;
  rule.status = core::RuleState::no_issues_found;
  rule.summary = std::move(summary);
  out.rules.push_back(std::move(rule));
  return out;
}

std::string html_of_report(const RunReport& report) {
  return page_html(compose(report, {}, "tocsin test", core::WallTime{}));
}

TEST(ReportAxis, PlacesAndTicks) {
  const Axis axis(0, 10, 100, 200);
  EXPECT_DOUBLE_EQ(axis.at(0), 100);
  EXPECT_DOUBLE_EQ(axis.at(5), 150);
  EXPECT_DOUBLE_EQ(axis.at(11), 200) << "not beyond the chart";
  EXPECT_EQ(axis.ticks(5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(Axis(0.001, 1000, 0, 6, true).ticks(9),
            (std::vector<double>{0.001, 0.01, 0.1, 1, 10, 100, 1000}));
  EXPECT_DOUBLE_EQ(Axis(0.001, 1000, 0, 6, true).at(1), 3);
}

TEST(ReportAxis, AnyBoundsMakeFewFiniteTicks) {
  const double most = std::numeric_limits<double>::max();
  for (const auto& [low, high] : {std::pair{1.0, 1.0},
                                  {0.0, 0.0},
                                  {-most, most},
                                  {1e300, 1e300},
                                  {0.0, 5e-324},
                                  {1.0, std::nextafter(1.0, 2)},
                                  {-3.0, 1e-300},
                                  {1e15, 1e15 + 1}}) {
    const Axis axis(low, high, 0, 100);
    const auto ticks = axis.ticks(5);
    EXPECT_LE(ticks.size(), 64U) << low << " " << high;
    EXPECT_TRUE(std::isfinite(axis.at(low))) << low << " " << high;
    EXPECT_GE(axis.at(low), 0);
    EXPECT_LE(axis.at(high), 100);
  }
}

TEST(ReportPage, ALineHasGapsWhereItIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string html = page_html(
      page_with({LineChart{"step", "loss", {{"a", {{0, 1}, {1, 2}, {2, nan}, {3, 1}}}}}}));
  EXPECT_THAT(html, HasSubstr("<polyline"));
  EXPECT_THAT(html, HasSubstr("<circle")) << "the point behind the gap";
  EXPECT_THAT(html, HasSubstr("NaN")) << "said in the table";
  const std::string none = page_html(page_with({LineChart{"step", "loss", {{"a", {{0, nan}}}}}}));
  EXPECT_THAT(none, Not(HasSubstr("<polyline")));
}

TEST(ReportPage, ATextOfAnyBlock) {
  const std::string text = page_text(
      page_with({Group{"g",
                       {{Shares{{{"train", 70}, {"others", 30}}}},
                        {Matrix{"label", "prediction", {"0", "1"}, {{3, 1}, {0, 4}}}},
                        {BoxChart{"%", {{"gpu 0", 0, 1, 2, 3, 4}}}},
                        {Timeline{"step", 0, 9, {{"overfit", {{3, 5, "warning", "it overfits"}}}}}},
                        {Group{"aside", {{Paragraph{"not told"}}}, true}}}}}));
  EXPECT_THAT(text, HasSubstr("train   70 %"));
  EXPECT_THAT(text, HasSubstr("label \\ prediction  0  1"));
  EXPECT_THAT(text, HasSubstr("gpu 0  0    1    2    3    4"));
  EXPECT_THAT(text, HasSubstr("it overfits"));
  EXPECT_THAT(text, Not(HasSubstr("not told")));
}

TEST(Report, SaysWhatItLacks) {
  EXPECT_THAT(html_of_report(digits()),
              HasSubstr("the rule profiler_report did not judge this run"));
  RunReport running = with_summary("profiler_report", {});
  running.outcome.clear();
  EXPECT_THAT(html_of_report(running),
              HasSubstr("profiler_report tells it when the run has ended"));
}

TEST(Report, TheLanesCountTheStepsOfOneModeAndSayWhatStandsApart) {
  RunReport report;
  const auto found = [&](std::string rule, core::Mode mode, std::int64_t step) {
    IssueTold told;
    told.first.rule = std::move(rule);
    told.first.mode = mode;
    told.first.step = step;
    told.first.summary = "at " + std::to_string(step);
    told.last = told.first;
    report.issues.push_back(told);
  };
  found("exploding_tensor", core::Mode::train, 190);
  found("exploding_tensor", core::Mode::train, 191);
  found("overfit", core::Mode::eval, 8);
  const std::string text = page_text(compose(report, {}, "", core::WallTime{}));
  EXPECT_THAT(text, HasSubstr("1 of other modes count other steps"));
  const std::string html = page_html(compose(report, {}, "", core::WallTime{}));
  EXPECT_THAT(html, HasSubstr("train step"));
}

TEST(Report, TheOperatingCharacteristicIsACurveFromCornerToCorner) {
  const std::string html = html_of_report(with_summary(
      "create_xgboost_report",
      {{"task", "binary"},
       {"rounds", 10},
       {"roc", ValueMap{{"round", 9},
                        {"area", 0.93},
                        {"true_positive_rate_at", ValueMap{{"0.50", 0.9}, {"0.05", 0.6}}}}}}));
  EXPECT_THAT(html, HasSubstr("area 0.93"));
  const std::string table = html.substr(html.find("false positive rate</th>"));
  EXPECT_LT(table.find("0.05"), table.find("0.5<")) << "by rate, not by name";
}

TEST(Report, ATrainingThatIsNoBoostingCountsSteps) {
  const auto page = [](const char* own) {
    const ValueMap curve{{"rounds", ValueList{1, 2}}, {"values", ValueList{0.9, 0.5}}};
    return html_of_report(
        with_summary("create_xgboost_report",
                     {{"metrics", ValueMap{{"train-loss", ValueMap{{"points", curve}}}}},
                      {own, ValueMap{{"round", 2}}}}));
  };
  EXPECT_THAT(page("confusion"), HasSubstr("Metrics over steps"));
  EXPECT_THAT(page("confusion"), HasSubstr("Labels and predictions"));
  EXPECT_THAT(page("feature_importance"), HasSubstr("Metrics over rounds"));
  EXPECT_THAT(page("feature_importance"), HasSubstr("XGBoost training"));
}

TEST(Report, WhatAloneSumsUpHasItsSection) {
  const std::string html = html_of_report(with_summary(
      "overall_system_usage",
      {{"nodes", ValueMap{{"node-7", ValueMap{{"gpu", ValueMap{{"p50", 41.5}, {"unit", "%"}}},
                                              {"means", "too little work"}}}}}}));
  EXPECT_THAT(html, HasSubstr("node-7: too little work"));
  EXPECT_THAT(html, HasSubstr(">41.5<"));
  EXPECT_THAT(html_of_report(with_summary("my_rule", {{"answer", 42}})),
              HasSubstr("What my_rule sums up"));
}

core::Value anything(std::mt19937& chance, int depth) {
  const auto kind = chance() % (depth > 0 ? 8U : 6U);
  static const char* const kNames[] = {"rounds",  "values", "points", "matrix", "percent",
                                       "details", "unit",   "means",  "<x>"};
  if (kind == 0) return {};
  if (kind == 1) return chance() % 2 == 0;
  if (kind == 2) return static_cast<std::int64_t>(chance()) - 2'000'000'000;
  if (kind == 3)
    return std::ldexp(static_cast<double>(chance()), static_cast<int>(chance() % 2000) - 1000);
  if (kind == 4) return kNames[chance() % std::size(kNames)];
  if (kind == 5) return chance() % 2 == 0 ? "NaN" : "-Infinity";
  ValueList list;
  ValueMap map;
  for (auto i = chance() % 12; i > 0; --i) {
    list.push_back(anything(chance, depth - 1));
    map.emplace_back(kNames[chance() % std::size(kNames)], anything(chance, depth - 1));
  }
  if (kind == 6) return list;
  return map;
}

TEST(Report, ASummaryOfAnyShapeMakesAPage) {
  std::mt19937 chance(20261123);
  for (int i = 0; i < 400; ++i) {
    for (const char* type : {"profiler_report", "create_xgboost_report", "my_rule"}) {
      ValueMap summary;
      for (const char* name : {"run",
                               "step_seconds",
                               "gpus",
                               "overall_system_usage",
                               "overall_framework_metrics",
                               "rules",
                               "metrics",
                               "hints",
                               "label_classes",
                               "labels",
                               "feature_importance",
                               "confusion",
                               "scores",
                               "class_accuracy",
                               "roc",
                               "residuals",
                               "error_by_label",
                               "trees",
                               "hyperparameters",
                               "missing",
                               "rounds",
                               "task"}) {
        summary.emplace_back(name, anything(chance, 4));
      }
      const RunReport report = with_summary(type, std::move(summary));
      const std::string html = html_of_report(report);
      EXPECT_THAT(html, HasSubstr("</html>"));
      EXPECT_EQ(html.find("<x>"), std::string::npos);
      EXPECT_FALSE(page_text(compose(report, {}, "", core::WallTime{})).empty());
    }
  }
}

TEST(ReportGathering, KeepsFirstAndLastOfAnIssueAndTheNewestSummary) {
  Gathering all;
  core::Issue issue;
  issue.run = digits().run;
  issue.rule = "overfit";
  issue.labels.set("rule", "overfit");
  issue.step = 5;
  all.take(issue);
  issue.step = 9;
  issue.status = core::IssueStatus::resolved;
  all.take(issue);
  core::RuleStatusEvent rule;
  rule.run = issue.run;
  rule.rule = "overall_system_usage";
  rule.summary = {{"nodes", 1}};
  all.take(rule);
  rule.summary.clear();
  rule.status = core::RuleState::no_issues_found;
  all.take(rule);
  ASSERT_EQ(all.attempts().size(), 1U);
  const RunReport* run = &all.attempts().begin()->second;
  ASSERT_EQ(run->issues.size(), 1U);
  EXPECT_EQ(run->issues[0].first.step, 5);
  EXPECT_EQ(run->issues[0].last.step, 9);
  EXPECT_EQ(run->issues[0].reports, 2U);
  ASSERT_EQ(run->rules.size(), 1U);
  EXPECT_EQ(run->rules[0].status, core::RuleState::no_issues_found);
  EXPECT_EQ(core::to_json(run->rules[0].summary), R"({"nodes":1})");
}

TEST(ReportGathering, AttemptsAreApart) {
  Gathering all;
  core::JobEvent event;
  event.run = digits().run;
  for (const std::uint32_t attempt : {1U, 2U}) {
    event.run.attempt = attempt;
    event.step = attempt * 10;
    event.phase = attempt == 1 ? core::JobPhase::ended : core::JobPhase::heartbeat;
    event.outcome = "failed";
    all.take(event);
  }
  EXPECT_EQ(all.attempts().size(), 2U);
  EXPECT_EQ(all.attempts().rbegin()->second.step, 20);
  EXPECT_EQ(all.attempts().rbegin()->second.outcome, "");
  EXPECT_EQ(all.attempts().begin()->second.outcome, "failed");
}

TEST(Report, NamesTheCheckpointOfAStopWithItsHost) {
  core::Ack ack;
  ack.action = "stop";
  ack.run = core::run_uid_v5("report");
  ack.attempt = 1;
  ack.node = "node-3";
  ack.checkpoint_path = "/c/357.pt";
  ack.step = 357;
  core::JobEvent end;
  end.run.uid = ack.run;
  end.run.attempt = 1;
  end.phase = core::JobPhase::ended;
  end.outcome = "stopped_by_person";
  for (const bool answer_first : {true, false}) {
    Gathering gathering;
    if (answer_first) gathering.take(ack);
    EXPECT_TRUE(gathering.attempts().empty()) << "an answer alone is no run";
    gathering.take(end);
    if (!answer_first) gathering.take(ack);
    const RunReport& report = gathering.attempts().at({ack.run, 1});
    EXPECT_THAT(page_text(compose(report, {}, "tocsin", {})),
                HasSubstr("node-3:/c/357.pt, at step 357"));
    EXPECT_THAT(report_json(report),
                HasSubstr(R"("checkpoint":{"path":"/c/357.pt","host":"node-3","step":357})"));
  }
}

CurveChart falling() {
  CurveChart out;
  out.title = "loss";
  out.x = "step";
  for (int i = 0; i < 5; ++i) {
    CurveChart::Point point{double(i), 4.0 - i, 4.5 - i, 5.0 - i, true, {}};
    if (i == 3) {
      point.finite = false;
      point.bad_at = 3;
    }
    if (out.series.empty()) out.series.push_back({"worker_0", {}});
    out.series[0].points.push_back(point);
  }
  return out;
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++out;
  return out;
}

TEST(ReportCurve, ShowsItsBandItsGapAndWhatIsNoNumber) {
  const std::string html = page_html(page_with({falling()}));
  EXPECT_EQ(times(html, "class=\"band c0\""), 1u);  // behind the gap there is one point
  EXPECT_EQ(times(html, "class=\"line c0\""), 1u);
  EXPECT_EQ(times(html, "class=\"dot c0\""), 1u);
  EXPECT_EQ(times(html, "class=\"notfinite\""), 1u);
  EXPECT_THAT(html,
              HasSubstr("worker_0, steps 0 to 4: from 4.5 to 0.5, least 0 at 4, greatest 5 at 0; "
                        "not finite for the first time at 3."));
}

TEST(ReportCurve, SignsAtOneStepStandBesideEachOtherAndAreListed) {
  CurveChart chart = falling();
  chart.marks = {{2, "alarm", "step 2: loss became <b>NaN"}, {2, "stop", "step 2: run stopped"}};
  const std::string html = page_html(page_with({std::move(chart)}));
  EXPECT_EQ(times(html, "step 2: loss became &lt;b&gt;NaN"), 2u);  // title and list
  const auto sign = [&](const std::string& text) {
    const std::size_t end = html.find(">" + text + "</text>");
    const std::size_t begin = html.rfind("<text x=\"", end);
    return html.substr(begin, html.find("\" y", begin) - begin);
  };
  EXPECT_NE(sign("■"), sign("▼"));
}

TEST(ReportCurve, WithoutAnyFiniteNumberIsDrawnToo) {
  CurveChart chart = falling();
  for (auto& point : chart.series[0].points) {
    point.finite = false;
    point.bad_at = point.x;
  }
  const std::string html = page_html(page_with({std::move(chart)}));
  EXPECT_EQ(times(html, "class=\"notfinite\""), 5u);
  EXPECT_THAT(html, HasSubstr("no finite number; not finite for the first time at 0."));
  EXPECT_TRUE(svg(CurveChart{}).empty());
}

TEST(ReportCurve, OfGreatSpreadHasALogarithmicScaleThatLeavesOutWhatIsNotAboveZero) {
  CurveChart chart = falling();
  for (auto& point : chart.series[0].points) point = {point.x, 1, 1e6, 1e9, true, {}};
  EXPECT_THAT(page_html(page_with({chart})), HasSubstr("logarithmic scale"));
  chart.series[0].points[0].low = -1;
  EXPECT_THAT(page_html(page_with({chart})), Not(HasSubstr("logarithmic scale")));
}

TEST(ReportMarkdown, NothingOfATrainingIsMarkup) {
  Page page{"<script>`a`", {{"run", "[x](http://evil)"}}, {}, ""};
  page.sections.push_back({"Issues", {Block{Table{{"what"}, {{"a|b @here"}}}}, Block{falling()}}});
  page.sections.push_back({"Second", {Block{Paragraph{"hidden"}}}});
  const std::string text = page_markdown(page, 1);
  EXPECT_THAT(text, HasSubstr("# \\<script\\>\\`a\\`"));
  EXPECT_THAT(text, HasSubstr("\\[x\\]\\(http://evil\\)"));
  EXPECT_THAT(text, HasSubstr("| a\\|b \\@here |"));
  EXPECT_THAT(text, HasSubstr("* **loss** worker\\_0, steps 0 to 4: from 4.5 to 0.5"));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
}

TEST(ReportPage, CarriesDataThatEndsNoElement) {
  Page page{"t", {}, {}, ""};
  page.json = R"({"job":"</script><b>"})";
  const std::string html = page_html(page);
  EXPECT_THAT(html, HasSubstr(R"({"job":"\u003c/script>\u003cb>"}</script>)"));
  EXPECT_EQ(times(html, "</script>"), 1u);
}

}  // namespace
}  // namespace tocsin::app::report
