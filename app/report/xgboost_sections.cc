// What create_xgboost_report sums up.
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "app/report/sections.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kMostFeatures = 25;
constexpr std::size_t kMostLines = 16;  // of a chart

/// {"rounds": […], "values": […]}
LineChart::Series line_of(const std::string& name, const core::ValueMap& curve) {
  LineChart::Series out{name, {}};
  const auto& points = map_at(curve, "points");
  const auto* rounds = core::as<core::ValueList>(core::find(points, "rounds"));
  const auto* values = core::as<core::ValueList>(core::find(points, "values"));
  if (rounds == nullptr || values == nullptr) return out;
  for (std::size_t i = 0; i < std::min(rounds->size(), values->size()); ++i) {
    const auto round = number_of(&(*rounds)[i]);
    const auto value = number_of(&(*values)[i]);
    if (round && value) out.points.emplace_back(*round, *value);
  }
  return out;
}

LineChart lines_of(const core::ValueMap& curves, const std::string& y, const std::string& x) {
  LineChart out{x, y, {}};
  for (const auto& [name, curve] : curves) {
    const auto* map = core::as<core::ValueMap>(curve);
    if (map != nullptr && out.series.size() < kMostLines) out.series.push_back(line_of(name, *map));
  }
  return out;
}

/// "validation_0-logloss" → "logloss": the sets of one metric share a chart.
std::string metric_of(const std::string& series) {
  const std::size_t at = series.find_last_of("-:");
  return at == std::string::npos || at + 1 == series.size() ? series : series.substr(at + 1);
}

bool has_one_of(const core::ValueMap& summary, std::span<const std::string_view> names) {
  return std::any_of(summary.begin(), summary.end(), [&](const auto& entry) {
    return std::find(names.begin(), names.end(), entry.first) != names.end();
  });
}

/// What the axes and texts count: rounds of boosting, else steps.
std::string clock_of(const core::ValueMap& summary) {
  return is_boosting(summary) ? "round" : "step";
}

/// Losses and metrics alone come from any training.
bool has_more_than_metrics(const core::ValueMap& summary) {
  static constexpr std::string_view kMore[] = {"feature_importance", "trees", "hyperparameters",
                                               "confusion",          "roc",   "residuals"};
  return has_one_of(summary, kMore);
}

Section loss_section(const core::ValueMap& summary) {
  const std::string clock = clock_of(summary);
  Section out{"Metrics over " + clock + "s", {}};
  if (const auto* hints = core::as<core::ValueList>(core::find(summary, "hints"))) {
    for (const core::Value& hint : *hints) out.add(Paragraph{cell_text(hint), true});
  }
  std::map<std::string, core::ValueMap> charts;
  Table table{{"series", "best is", "best", "at", "last", "points"}, {}};
  for (const auto& [name, curve] : map_at(summary, "metrics")) {
    charts[metric_of(name)].emplace_back(name, curve);
    const auto* map = core::as<core::ValueMap>(curve);
    if (map == nullptr) continue;
    const auto cell = [&](const char* key) {
      const auto* value = core::find(*map, key);
      return value == nullptr ? std::string("–") : cell_text(*value);
    };
    table.rows.push_back(
        {name, cell("direction"), cell("best"), cell("best_round"), cell("last"), cell("count")});
  }
  for (const auto& [metric, curves] : charts) out.add(lines_of(curves, metric, clock));
  if (!table.rows.empty()) out.add(std::move(table));
  return out;
}

Section label_section(const core::ValueMap& summary) {
  Section out{"Labels and predictions", {}};
  const auto& classes = map_at(summary, "label_classes");
  if (const auto* counts = core::as<core::ValueList>(core::find(classes, "counts"))) {
    BarChart chart;
    double all = 0;
    double least = 0;
    for (std::size_t i = 0; i < counts->size() && i < 100; ++i) {
      const double count = number_of(&(*counts)[i]).value_or(0);
      least = i == 0 ? count : std::min(least, count);
      all += count;
      chart.bars.emplace_back("class " + std::to_string(i), count);
    }
    const double even = all / static_cast<double>(std::max<std::size_t>(chart.bars.size(), 1));
    if (chart.bars.size() > 1 && least < even / 3) {
      out.add(Paragraph{
          "The classes are uneven: look at the scores of each, and think of weights or of "
          "resampling."});
    }
    out.add(Paragraph{"Samples per class, one captured round"});
    out.add(std::move(chart));
  }
  core::ValueMap both;
  for (const char* name : {"labels", "predictions"}) {
    if (const auto& of = map_at(summary, name); !of.empty()) both.emplace_back(name, of);
  }
  if (!both.empty()) tell(both, out);
  return out;
}

Section importance_section(const core::ValueMap& summary) {
  Section out{"Feature importance", {}};
  for (const auto& [type, value] : map_at(summary, "feature_importance")) {
    const auto* of = core::as<core::ValueMap>(value);
    if (of == nullptr) continue;
    BarChart chart{" %", {}};
    for (const auto& [feature, share] : map_at(*of, "shares")) {
      if (chart.bars.size() == kMostFeatures) break;
      chart.bars.emplace_back(feature, 100 * number_of(&share).value_or(0));
    }
    const auto all = number_of(core::find(*of, "features")).value_or(0);
    out.add(Paragraph{type + ": shares of " +
                      (all > static_cast<double>(chart.bars.size())
                           ? "the largest " + std::to_string(chart.bars.size()) + " of "
                           : "all ") +
                      number_text(all) + " features in round " +
                      number_text(number_of(core::find(*of, "round")).value_or(0))});
    out.add(std::move(chart));
  }
  return out;
}

std::optional<Matrix> matrix_of(const core::ValueMap& confusion) {
  const auto* rows = core::as<core::ValueList>(core::find(confusion, "matrix"));
  if (rows == nullptr) return std::nullopt;
  Matrix out{"label", "prediction", {}, {}};
  for (const core::Value& row : *rows) {
    out.names.push_back(std::to_string(out.names.size()));
    std::vector<double> cells;
    if (const auto* list = core::as<core::ValueList>(row)) {
      for (const core::Value& cell : *list) cells.push_back(number_of(&cell).value_or(0));
    }
    out.cells.push_back(std::move(cells));
  }
  return out;
}

Section confusion_section(const core::ValueMap& summary) {
  Section out{"Confusion", {}};
  const auto& confusion = map_at(summary, "confusion");
  const auto& scores = map_at(summary, "scores");
  if (!scores.empty()) {
    const auto percent = [&](const core::ValueMap& of, const char* name) {
      return number_text(100 * number_of(core::find(of, name)).value_or(0)) + " %";
    };
    out.add(Paragraph{"Accuracy " + percent(scores, "accuracy") + " of " +
                      number_text(number_of(core::find(scores, "samples")).value_or(0)) +
                      " samples"});
    Table table{{"", "micro", "macro", "weighted"}, {}};
    for (const char* score : {"precision", "recall", "f1"}) {
      const auto& of = map_at(scores, score);
      table.rows.push_back(
          {score, percent(of, "micro"), percent(of, "macro"), percent(of, "weighted")});
    }
    out.add(std::move(table));
  }
  if (auto matrix = matrix_of(confusion)) {
    out.add(Paragraph{"Matrix of " + clock_of(summary) + " " +
                      number_text(number_of(core::find(confusion, "round")).value_or(0)) +
                      "; the diagonal shows what is right"});
    out.add(std::move(*matrix));
  } else if (!confusion.empty()) {
    tell(confusion, out);
  }
  if (const auto& accuracy = map_at(summary, "class_accuracy"); !accuracy.empty()) {
    core::ValueMap named;
    for (const auto& [one, curve] : accuracy) named.emplace_back("class " + one, curve);
    out.add(Paragraph{"Share of each class that is predicted right"});
    out.add(lines_of(named, "share predicted right", clock_of(summary)));
    if (accuracy.size() > kMostLines) {
      out.add(Paragraph{"the first " + std::to_string(kMostLines) + " of " +
                        std::to_string(accuracy.size()) + " classes"});
    }
  }
  return out;
}

Section roc_section(const core::ValueMap& summary) {
  Section out{"Receiver operating characteristic", {}};
  const auto& roc = map_at(summary, "roc");
  if (roc.empty()) return out;
  LineChart chart{"false positive rate", "true positive rate", {}};
  const auto area = number_of(core::find(roc, "area"));
  LineChart::Series curve{area ? "area " + number_text(*area) : "curve", {{0, 0}}};
  std::map<double, double> points;
  for (const auto& [at, rate] : map_at(roc, "true_positive_rate_at")) {
    const auto value = number_of(&rate);
    char* end = nullptr;
    const double place = std::strtod(at.c_str(), &end);
    if (value && end != at.c_str() && *end == '\0') points[place] = *value;
  }
  curve.points.insert(curve.points.end(), points.begin(), points.end());
  curve.points.emplace_back(1, 1);
  chart.series.push_back(std::move(curve));
  chart.series.push_back({"by chance", {{0, 0}, {1, 1}}});
  out.add(std::move(chart));
  return out;
}

Section residual_section(const core::ValueMap& summary) {
  Section out{"Residuals", {}};
  if (const auto& residuals = map_at(summary, "residuals"); !residuals.empty()) {
    out.add(Paragraph{"Prediction less label; a sound regression is centred on 0"});
    const auto at = [&](const char* name) {
      return number_of(core::find(residuals, name)).value_or(0);
    };
    if (core::find(residuals, "p05") != nullptr) {
      out.add(BoxChart{"prediction less label",
                       {{"residuals", at("min"), at("p05"), at("p50"), at("p95"), at("max")}}});
    }
    tell(residuals, out);
  }
  if (const auto& errors = map_at(summary, "error_by_label"); !errors.empty()) {
    out.add(
        Paragraph{"Mean absolute error over " + clock_of(summary) + "s, by interval of the label"});
    out.add(lines_of(errors, "mean absolute error", clock_of(summary)));
  }
  return out;
}

Section model_section(const core::ValueMap& summary) {
  const std::string clock = clock_of(summary);
  Section out{clock == "round" ? "XGBoost training" : "Labels and predictions", {}};
  Table table;
  for (const char* name : {"task", "objective", "rounds"}) {
    if (const auto* value = core::find(summary, name)) {
      table.rows.push_back(
          {name == std::string_view("rounds") ? clock + "s" : name, cell_text(*value)});
    }
  }
  out.add(std::move(table));
  if (clock == "round" && number_of(core::find(summary, "rounds")).value_or(0) < 5) {
    out.add(Paragraph{"Fewer than 5 rounds: little can be said."});
  }
  if (const auto& hyper = map_at(summary, "hyperparameters"); !hyper.empty()) {
    Section inner;
    tell(hyper, inner);
    out.add(Group{"hyperparameters", std::move(inner.blocks)});
  }
  if (const auto& depth = map_at(map_at(summary, "trees"), "depth"); !depth.empty()) {
    out.add(lines_of({{"depth of the trees", depth}}, "depth", "round"));
  }
  if (const auto& missing = map_at(summary, "missing"); !missing.empty()) {
    Section inner;
    tell(missing, inner);
    out.add(Group{"what is missing", std::move(inner.blocks)});
  }
  return out;
}

}  // namespace

bool is_boosting(const core::ValueMap& summary) {
  static constexpr std::string_view kOfBoosting[] = {"feature_importance", "trees",
                                                     "hyperparameters"};
  return has_one_of(summary, kOfBoosting);
}

std::vector<Section> xgboost_sections(const core::ValueMap& summary) {
  if (!has_more_than_metrics(summary)) return {loss_section(summary)};
  return {model_section(summary),      loss_section(summary),      label_section(summary),
          importance_section(summary), confusion_section(summary), roc_section(summary),
          residual_section(summary)};
}

}  // namespace tocsin::app::report
