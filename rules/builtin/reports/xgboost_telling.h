// What the report on an XGBoost training says of what was kept of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/statistics.h"
#include "rules/builtin/shared/class_scores.h"
#include "rules/builtin/shared/round_curve.h"
#include "rules/builtin/shared/xgboost_state.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

inline constexpr double kPoorArea = 0.6;  // under a receiver operating characteristic
inline constexpr std::size_t kFeaturesTold = 50;
inline constexpr std::uint32_t kMostMatrix = 20;  // classes of a matrix that is told as a whole
inline constexpr double kWorse = 0.05;            // behind the best round: that is overfitting
inline constexpr double kReal = 1e-12;

inline core::ValueMap told_curve(const RoundCurve& curve) {
  core::ValueMap out{{"direction", curve.grows() ? "max" : "min"},
                     {"count", curve.count()},
                     {"last_round", curve.last_round()},
                     {"last", curve.last()}};
  if (curve.best_round() >= 0) {
    out.emplace_back("best_round", curve.best_round());
    out.emplace_back("best", curve.best());
  }
  out.emplace_back("points", curve.points());
  return out;
}

/// What a metric of a data set beside the training's says; empty: nothing.
inline std::string hint_of(const std::string& name, const RoundCurve& curve) {
  if (curve.best_round() < 0 || curve.count() < 3) return {};
  if (curve.best_round() == curve.last_round()) {
    return name + " was best in the last round: more rounds may help";
  }
  const double worse =
      std::fabs(curve.last() - curve.best()) / std::max(std::fabs(curve.best()), kReal);
  if (!(worse > kWorse)) return {};
  return sentence("{} was best in round {} and is {} % worse in the last: the model overfits", name,
                  curve.best_round(), 100 * worse);
}

inline core::ValueMap told_values(const Values& values) {
  core::ValueMap out{{"round", values.round}, {"count", values.count},
                     {"mean", values.mean},   {"std", std::sqrt(values.m2 / values.count)},
                     {"min", values.min},     {"max", values.max}};
  static constexpr std::pair<core::SparseStat, const char*> kNames[] = {
      {core::SparseStat::p05, "p05"},
      {core::SparseStat::p25, "p25"},
      {core::SparseStat::median, "p50"},
      {core::SparseStat::p75, "p75"},
      {core::SparseStat::p95, "p95"}};
  for (const auto& [stat, name] : kNames) {
    for (const auto& [id, value] : values.quantiles) {
      if (id == static_cast<std::uint16_t>(stat)) out.emplace_back(name, value);
    }
  }
  return out;
}

inline core::ValueMap told_importance(const Importance& type) {
  double sum = 0;
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [feature, value] : type.features) {
    sum += value;
    order.emplace_back(-value, feature);
  }
  std::sort(order.begin(), order.end());
  core::ValueMap shares;
  for (std::size_t i = 0; i < order.size() && i < kFeaturesTold; ++i) {
    shares.emplace_back(order[i].second, sum > 0 ? -order[i].first / sum : 0.0);
  }
  return {{"round", type.round},
          {"features", type.features.size() + type.left_out},
          {"shares", std::move(shares)}};
}

inline core::ValueMap told_confusion(const XgboostState& state, const ClassScores& scores) {
  core::ValueMap out{{"round", state.confusion_round}};
  const std::uint32_t classes = scores.classes.empty() ? 0 : *scores.classes.rbegin() + 1;
  if (classes <= kMostMatrix) {
    core::ValueList rows;
    for (std::uint32_t label = 0; label < classes; ++label) {
      core::ValueList row;
      for (std::uint32_t prediction = 0; prediction < classes; ++prediction) {
        const auto cell = state.confusion.find({label, prediction});
        row.emplace_back(cell == state.confusion.end() ? 0.0 : cell->second);
      }
      rows.emplace_back(std::move(row));
    }
    out.emplace_back("matrix", std::move(rows));
    return out;
  }
  std::vector<std::pair<double, std::pair<std::uint32_t, std::uint32_t>>> wrong;
  for (const auto& [cell, count] : state.confusion) {
    if (cell.first != cell.second) wrong.emplace_back(-count, cell);
  }
  std::sort(wrong.begin(), wrong.end());
  core::ValueList worst;
  for (std::size_t i = 0; i < wrong.size() && i < std::size_t{kMostMatrix}; ++i) {
    worst.emplace_back(core::ValueMap{{"label", std::uint64_t{wrong[i].second.first}},
                                      {"prediction", std::uint64_t{wrong[i].second.second}},
                                      {"count", -wrong[i].first}});
  }
  out.emplace_back("most_mistaken", std::move(worst));
  return out;
}

inline void tell_classes(const XgboostState& state, core::ValueMap& out, core::ValueMap& missing) {
  if (!state.class_counts.empty()) {
    core::ValueList counts;
    for (const double count : state.class_counts) counts.emplace_back(count);
    out.emplace_back("label_classes",
                     core::ValueMap{{"round", state.classes_round}, {"counts", std::move(counts)}});
  }
  if (state.labels.count > 0) out.emplace_back("labels", told_values(state.labels));
  if (state.predictions.count > 0) out.emplace_back("predictions", told_values(state.predictions));
  if (state.confusion.empty()) {
    const char* why = state.labels.count > 0
                          ? "labels are continuous, or predictions were not captured"
                          : "no labels were captured: give the hook validation data";
    missing.emplace_back("confusion", why);
  } else {
    const ClassScores scores(state.confusion);
    out.emplace_back("confusion", told_confusion(state, scores));
    out.emplace_back("scores", scores.told());
  }
  core::ValueMap accuracy;
  for (const auto& [one, curve] : state.accuracy) {
    accuracy.emplace_back(std::to_string(one), told_curve(curve));
  }
  if (!accuracy.empty()) out.emplace_back("class_accuracy", std::move(accuracy));
}

/// What the objective says; empty: it says nothing, or is not known.
inline std::string_view task_of_objective(std::string_view objective) {
  static constexpr std::pair<std::string_view, std::string_view> kTasks[] = {
      {"binary:", "binary"},    {"multi:", "multi-class"},   {"reg:", "regression"},
      {"count:", "regression"}, {"survival:", "regression"}, {"rank:", "ranking"}};
  for (const auto& [prefix, task] : kTasks) {
    if (objective.starts_with(prefix)) return task;
  }
  return {};
}

inline std::string task_of(const XgboostState& state) {
  if (const std::string_view task = task_of_objective(state.objective); !task.empty()) {
    return std::string(task);
  }
  const ClassScores scores(state.confusion);
  const std::size_t classes = std::max<std::size_t>(
      scores.classes.empty() ? 0 : *scores.classes.rbegin() + 1, state.class_counts.size());
  if (classes > 0) return classes <= 2 ? "binary" : "multi-class";
  return state.labels.count > 0 ? "regression" : "unknown";
}

/// Mean absolute errors over rounds, by the bounds of the label's interval: ten equal ones from the
/// smallest label to the largest.
inline core::ValueMap told_errors(const XgboostState& state) {
  const auto at = [&](const char* name) {
    const auto found = state.residuals.values.find(name);
    return found == state.residuals.values.end() ? NAN : found->second;
  };
  const double low = at("label_min");
  const double width = (at("label_max") - low) / 10;
  core::ValueMap out;
  for (const auto& [number, curve] : state.errors) {
    const std::string name = std::isfinite(width) ? sentence("{} to {}", low + number * width,
                                                             low + (number + 1) * width)
                                                  : "interval " + std::to_string(number + 1);
    out.emplace_back(name, told_curve(curve));
  }
  return out;
}

/// What only labels and predictions side by side say: the hook computes it where it has both.
inline void tell_pairs(const XgboostState& state, const std::string& task, core::ValueMap& out,
                       core::ValueList& hints, core::ValueMap& missing) {
  const char* const apart =
      "no hook had labels and predictions of the same worker and round together";
  if (task == "binary") {
    if (state.roc.values.empty()) {
      missing.emplace_back("roc", apart);
      return;
    }
    core::ValueMap curve{{"round", state.roc.round}};
    core::ValueMap rates;
    for (const auto& [name, value] : state.roc.values) {
      if (name == "area") {
        curve.emplace_back("area", value);
        if (value < kPoorArea) {
          hints.emplace_back(sentence(
              "the area under the ROC curve is {}: the model hardly distinguishes the classes",
              value));
        }
      } else if (name.starts_with("tpr/")) {
        rates.emplace_back(name.substr(4), value);
      }
    }
    curve.emplace_back("true_positive_rate_at", std::move(rates));
    out.emplace_back("roc", std::move(curve));
  } else if (task == "regression") {
    if (state.residuals.values.empty()) {
      missing.emplace_back("residuals", apart);
      return;
    }
    core::ValueMap residuals{{"round", state.residuals.round}};
    for (const auto& [name, value] : state.residuals.values) residuals.emplace_back(name, value);
    out.emplace_back("residuals", std::move(residuals));
    if (core::ValueMap errors = told_errors(state); !errors.empty()) {
      out.emplace_back("error_by_label", std::move(errors));
    } else {
      missing.emplace_back("error_by_label", "the hook sent no residual/abs/<interval>");
    }
  }
}

}  // namespace tocsin::rules
