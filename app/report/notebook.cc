#include "app/report/notebook.h"

#include <string_view>
#include <utility>

#include "app/report/sections.h"
#include "core/value.h"

namespace tocsin::app::report {
namespace {

/// A text as Python writes it. Nothing of a run leaves the quotes: JSON's escapes are Python's.
std::string python_text(const std::string& text) { return core::to_json(core::Value(text)); }

core::ValueList lines_of_text(std::string_view text) {
  core::ValueList out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t length = end == std::string_view::npos ? text.size() : end + 1;
    out.emplace_back(std::string(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return out;
}

class Cells {
 public:
  void words(std::string_view text) {
    cells_.emplace_back(core::ValueMap{{"cell_type", "markdown"},
                                       {"id", next_id()},
                                       {"metadata", core::ValueMap{}},
                                       {"source", lines_of_text(text)}});
  }
  void code(std::string_view text) {
    cells_.emplace_back(core::ValueMap{{"cell_type", "code"},
                                       {"execution_count", core::Value()},
                                       {"id", next_id()},
                                       {"metadata", core::ValueMap{}},
                                       {"outputs", core::ValueList{}},
                                       {"source", lines_of_text(text)}});
  }
  /// `there`: the run has what the code reads; else `how` it is captured.
  void section(const char* title, bool there, std::string_view code_of_it, const char* how) {
    words(std::string("## ") + title + (there ? "" : std::string("\n\n") + how));
    if (there) code(code_of_it);
  }
  std::string text() && {
    const core::ValueMap kernel{
        {"display_name", "Python 3"}, {"language", "python"}, {"name", "python3"}};
    return core::to_json(core::ValueMap{
               {"cells", std::move(cells_)},
               {"metadata", core::ValueMap{{"kernelspec", kernel},
                                           {"language_info", core::ValueMap{{"name", "python"}}}}},
               {"nbformat", 4},
               {"nbformat_minor", 5}}) +
           "\n";
  }

 private:
  std::string next_id() const { return "cell-" + std::to_string(cells_.size() + 1); }
  core::ValueList cells_;
};

constexpr const char* kTable = R"py(
try:
    from pandas import DataFrame as table
except ImportError:
    table = list  # rows as dictionaries
)py";

constexpr const char* kServedNames =
    R"py(names = {row["name"] for row in trial.series('metric(".*")', points=1)}
)py";
constexpr const char* kNames = R"py(names = set(trial.series('metric(".*")')["name"])
)py";
constexpr const char* kCurves =
    R"py(for name in sorted(name for name in names if not name.startswith(("ledger/", "feature_importance/", "hyperparameters/")))[:40]:
    display(trial.plot(name))
)py";

constexpr const char* kNoSamples =
    "The run has no samples of its nodes. `tocsin collect` on each node takes them.";
constexpr const char* kNoSteps = "The run has no times of steps. `hook.step()` sends them.";

std::string opening(const RunReport& report, const NotebookSource& source, const char* names) {
  const std::string where =
      source.place.empty()
          ? "\"\"  # the directory of the run, or a server: \"http://127.0.0.1:9760\""
          : python_text(source.place);
  return std::string("# %pip install \"tocsin[analysis]\"\nimport json\nimport pathlib\n") +
         kTable + "\nfrom tocsin.analysis import " + names + "\n\nsource = " + where +
         "\nrun = " + python_text(core::to_text(report.run.uid)) +
         "\ntrial = create_trial(source, run=run)\n";
}

bool has_steps(const RunReport& report) {
  const auto* told = summary_of(report, "profiler_report");
  return told != nullptr && !map_at(*told, "step_seconds").empty();
}

bool has_samples(const RunReport& report) {
  const auto* told = summary_of(report, "profiler_report");
  const auto* alone = summary_of(report, "overall_system_usage");
  return (told != nullptr && !map_at(map_at(*told, "overall_system_usage"), "nodes").empty()) ||
         (alone != nullptr && !map_at(*alone, "nodes").empty());
}

void add_profile(const RunReport& report, Cells& out) {
  const bool steps = has_steps(report);
  const bool samples = has_samples(report);
  out.section("Time of the run", steps || samples,
              "analysis = PandasFrameAnalysis.of(source, run=run)\nanalysis.get_job_statistics()\n",
              kNoSteps);
  out.section("System usage", samples,
              "display(table(analysis.get_utilization_stats()))\n"
              "display(table(analysis.get_device_usage_stats()))\n"
              "display(MetricsHistogram(trial).plot())\n"
              "display(TimelineCharts(trial).plot(select_dimensions=[\"Utilization\"]))\n"
              "Heatmap(trial).plot()\n",
              kNoSamples);
  out.section("What the time went into", steps,
              "table(analysis.get_step_statistics(by=\"framework_metric\"))\n", kNoSteps);
  out.section("Step durations", steps,
              "display(table(analysis.get_step_statistics()))\n"
              "display(StepHistogram(trial).plot())\n"
              "StepTimelineChart(trial).plot()\n",
              kNoSteps);
  out.section("One time line for Perfetto", steps,
              "MergedTimeline(source, output_directory=\".\", run=run).merge_timeline()\n",
              kNoSteps);
}

void add_served(Cells& out) {
  out.section("Issues", true, "table(issues(trial))\n", "");
  out.section("Step durations", true,
              "display(trial.plot(\"step()\"))\n"
              "seconds = sorted(row[\"seconds\"] for row in trial.series(\"step()\") if "
              "row[\"seconds\"] == row[\"seconds\"])\n"
              "{\"steps\": len(seconds), \"p50\": seconds[len(seconds) // 2], \"longest\": "
              "seconds[-1]} if seconds else {}\n",
              "");
  out.section("Rules", true,
              "report = trial.source.server.get(f\"/api/v1/runs/{trial.run}/report.json\")\n"
              "table([{name: rule[name] for name in (\"rule\", \"status\", \"reason\", "
              "\"evaluations\")} for rule in report[\"rules\"]])\n",
              "");
}

constexpr const char* kRuleFiles =
    R"py(rules = {file.stem: json.loads(file.read_text()) for file in sorted(pathlib.Path("profiler-reports").glob("*.json"))}
display(table([{"rule": name, **{key: rule[key] for key in ("RuleTriggered", "Violations", "Datapoints", "RuleParameters")}} for name, rule in rules.items()]))
{name: rule["Details"] for name, rule in rules.items() if rule["Violations"]}
)py";

}  // namespace

std::string profiler_notebook(const RunReport& report, const NotebookSource& source) {
  Cells out;
  out.words(
      "# Report of a run\n\nEach section computes its numbers from what the run has saved. Run the "
      "cells, change them, run them again.\n\nRecommendations are for information: whether they "
      "fit "
      "is for the people of the job to say.");
  if (source.server) {
    out.code(opening(report, source, "create_trial, issues"));
    out.words("## How the training went");
    out.code(std::string(kServedNames) + kCurves);
    add_served(out);
    return std::move(out).text();
  }
  out.code(
      opening(report, source,
              "(Heatmap, MergedTimeline, MetricsHistogram, PandasFrameAnalysis, StepHistogram,\n"
              "                             StepTimelineChart, TimelineCharts, create_trial)"));
  out.words("## How the training went");
  out.code(std::string(kNames) + kCurves);
  add_profile(report, out);
  out.words("## Rules\n\nWhat each rule found, from the files in `profiler-reports`.");
  out.code(kRuleFiles);
  return std::move(out).text();
}

std::string xgboost_notebook(const RunReport& report, const NotebookSource& source) {
  const auto* told = summary_of(report, "create_xgboost_report");
  static const core::ValueMap kNone;
  const core::ValueMap& summary = told == nullptr ? kNone : *told;
  const auto has = [&](const char* name) { return core::find(summary, name) != nullptr; };
  Cells out;
  out.words(
      "# XGBoost training\n\nThe first cells read the run itself; those from \"Labels\" on read "
      "what the rule `create_xgboost_report` summed up.");
  out.code(opening(report, source, "create_trial") +
           "report = json.loads(pathlib.Path(\"xgboost_report.json\").read_text())\n");
  out.section("Loss and metrics over rounds", has("metrics"),
              "for name in report[\"metrics\"]:\n    display(trial.plot(name))\n",
              "The run has no metrics: give `evals` to `xgboost.train`.");
  out.section("Feature importance", has("feature_importance"),
              R"py(for kind in report["feature_importance"]:
    rows = list(trial.series(f'metric("feature_importance/{kind}/.*")'))
    newest = max(row["step"] for row in rows)
    display(table(sorted(({"feature": row["name"].split("/", 2)[2], kind: row["value"]} for row in rows if row["step"] == newest),
                         key=lambda row: -row[kind])[:25]))
)py",
              "The run has no importance: it was switched off (`importance=()`).");
  out.section("Trees", has("trees"), "display(trial.plot(\"trees/depth\"))\nreport[\"trees\"]\n",
              "The run has no trees: the booster is linear, or `trees=False`.");
  constexpr const char* kNoLabels =
      "The run has no labels and predictions: `TocsinCallback(validation=held)` sends them.";
  out.section("Labels and predictions", has("labels") || has("predictions"),
              "{name: report[name] for name in (\"labels\", \"label_classes\", \"predictions\") if "
              "name in report}\n",
              kNoLabels);
  out.section("Confusion", has("confusion"),
              "display(report[\"confusion\"])\nreport.get(\"scores\")\n",
              "Only classes have a confusion matrix.");
  out.section("Share of each class that is predicted right", has("class_accuracy"),
              "report[\"class_accuracy\"]\n", "Only classes have it.");
  out.section("Receiver operating characteristic", has("roc"), "report[\"roc\"]\n",
              "Only two classes have it.");
  out.section("Residuals", has("residuals"),
              "display(report[\"residuals\"])\nreport.get(\"error_by_label\")\n", kNoLabels);
  return std::move(out).text();
}

}  // namespace tocsin::app::report
