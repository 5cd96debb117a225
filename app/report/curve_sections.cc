#include "app/report/curve_sections.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "app/report/heat_strip.h"

namespace tocsin::app::report {
namespace {

constexpr std::int64_t kReportPoints = 400;
constexpr std::size_t kMostReportCharts = 40;

bool is_rate(const std::string& name) {
  return name == "lr" || name.ends_with("/lr") || name.find("learning_rate") != std::string::npos;
}

/// A regular expression of this name and no other.
std::string exactly(const std::string& name) {
  std::string out;
  for (const char one : name) {
    const auto byte = static_cast<unsigned char>(one);
    if (byte < 0x80U && std::isalnum(byte) == 0) out += '\\';
    out += one;
  }
  return out;
}

// The order of the run's page; what the ledger writes down for rules is not for people.
int grade_of(const insights::NameLine& name) {
  if (name.role == core::Role::loss) return 0;
  if (name.text.starts_with("ledger/")) return 5;
  if (is_rate(name.text)) return 2;
  if (name.kind == insights::FamilyKind::clock) return 4;
  return name.role == core::Role::metric ? 1 : 3;
}

bool of_training(core::Mode mode) {
  return mode == core::Mode::train || mode == core::Mode::global;
}

CurveChart::Series series_of(const insights::SeriesLine& line) {
  CurveChart::Series out;
  out.name =
      line.workers > 1 ? "mean of " + std::to_string(line.workers) + " workers" : line.of.worker;
  for (const auto& point : line.points) {
    const insights::Bucket& value = point.value;
    CurveChart::Point to;
    to.x = static_cast<double>(point.x);
    to.finite = value.n > 0;
    if (to.finite) {
      to.low = value.min;
      to.high = value.max;
      to.mean = value.mean();
      to.weight = static_cast<double>(value.n);
    }
    if (value.bad() > 0) to.bad_at = static_cast<double>(value.bad_x);
    out.points.push_back(to);
  }
  return out;
}

struct Wanted {
  int grade = 0;
  std::int64_t order = 0;
  std::string name;
};

core::Result<std::vector<Wanted>> wanted_names(insights::SeriesReader& reader,
                                               const insights::SeriesAsk& ask) {
  const auto named = insights::ask_names(reader, ask);
  if (!named) return named.error();
  std::vector<Wanted> out;
  for (const auto& one : *named) {
    const int grade = grade_of(one.name);
    if (grade < 5) out.push_back({grade, one.name.order, one.name.text});
  }
  std::sort(out.begin(), out.end(), [](const Wanted& a, const Wanted& b) {
    return std::tie(a.grade, a.order) < std::tie(b.grade, b.order);
  });
  return out;
}

/// A chart for each mode that has the name.
core::Status add_charts(insights::SeriesReader& reader, insights::SeriesAsk ask,
                        const std::string& name, const std::vector<CurveChart::Mark>& marks,
                        std::vector<CurveChart>& out) {
  ask.name = exactly(name);
  const auto answer = insights::ask_series(reader, ask);
  if (!answer) return answer.error();
  std::map<core::Mode, CurveChart> charts;
  for (const auto& line : answer->lines) {
    if (line.superseded) continue;
    CurveChart& chart = charts[line.of.mode];
    const std::string mode(core::to_string(line.of.mode));
    chart.title = name + (line.name.unit.empty() ? "" : " (" + line.name.unit + ")") +
                  (of_training(line.of.mode) ? "" : ", " + mode);
    chart.x = of_training(line.of.mode) ? "step" : mode + " step";
    chart.width = static_cast<double>(std::int64_t{1} << answer->level);
    if (of_training(line.of.mode)) chart.marks = marks;
    chart.series.push_back(series_of(line));
  }
  for (auto& [mode, chart] : charts) out.push_back(std::move(chart));
  return core::ok();
}

}  // namespace

std::vector<CurveChart::Mark> marks_of(const RunReport& report) {
  std::vector<CurveChart::Mark> out;
  std::set<std::int64_t> signed_steps;
  std::vector<const core::Issue*> issues;
  for (const IssueTold& told : report.issues) {
    const core::Issue& issue = told.first;
    if (issue.step && !issue.shadow && (!issue.mode || of_training(*issue.mode))) {
      issues.push_back(&issue);
    }
  }
  std::stable_sort(issues.begin(), issues.end(), [](const auto* a, const auto* b) {
    return std::pair(*a->step, !a->caused_by.empty()) < std::pair(*b->step, !b->caused_by.empty());
  });
  for (const core::Issue* issue : issues) {
    if (!signed_steps.insert(*issue->step).second) continue;
    const bool alarm = issue->severity >= core::Severity::error;
    out.push_back({static_cast<double>(*issue->step), alarm ? "alarm" : "sign",
                   "step " + std::to_string(*issue->step) + ": " + issue->summary});
  }
  if (report.stop && report.stop->step) {
    out.push_back({static_cast<double>(*report.stop->step), "stop",
                   "step " + std::to_string(*report.stop->step) + ": run " + report.stop->state});
  }
  if (report.checkpoint) {
    out.push_back({static_cast<double>(report.checkpoint->step), "checkpoint",
                   "step " + std::to_string(report.checkpoint->step) + ": checkpoint " +
                       report.checkpoint->checkpoint_path});
  }
  return out;
}

core::Result<Section> curve_section(insights::SeriesReader& reader, const RunReport& report) {
  insights::SeriesAsk ask;
  ask.run = core::to_text(report.run.uid);
  ask.points = kReportPoints;
  ask.together = insights::Together::mean;  // with the least and the greatest of all
  const auto names = wanted_names(reader, ask);
  if (!names) return names.error();
  const std::vector<CurveChart::Mark> marks = marks_of(report);
  std::vector<CurveChart> charts;
  std::size_t shown = 0;
  for (const Wanted& one : *names) {
    if (charts.size() >= kMostReportCharts) break;
    if (const auto done = add_charts(reader, ask, one.name, marks, charts); !done) {
      return done.error();
    }
    ++shown;
  }
  auto strips = heat_strips(reader, report);
  if (!strips) return strips.error();
  if (const auto status = reader.failure(); !status) return status.error();
  Section out{"How the training went", {}};
  for (CurveChart& chart : charts) out.add(std::move(chart));
  for (HeatStrip& strip : *strips) out.add(std::move(strip));
  if (shown < names->size()) {
    out.add(Paragraph{std::to_string(names->size() - shown) + " more names are not drawn."});
  }
  return out;
}

}  // namespace tocsin::app::report
