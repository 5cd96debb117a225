// What is kept of an XGBoost training for its report: plain data, bounded.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/frame.h"
#include "rules/builtin/shared/class_scores.h"
#include "rules/builtin/shared/round_curve.h"

namespace tocsin::rules {

/// What the columns say of all values of a round, over workers.
struct Values {
  std::int64_t round = -1;
  double count = 0;
  double mean = 0;
  double m2 = 0;
  double min = 0;
  double max = 0;
  std::vector<std::pair<std::uint16_t, double>>
      quantiles;  // of a single worker: they do not add up

  void add(const core::SummaryRow& row) {
    if (row.count == 0) return;
    const auto n = static_cast<double>(row.count);
    const double delta = row.mean() - mean;
    min = count == 0 ? row.min : std::fmin(min, row.min);
    max = count == 0 ? row.max : std::fmax(max, row.max);
    m2 += row.m2 + delta * delta * count * n / (count + n);
    mean += delta * n / (count + n);
    count += n;
  }
  template <typename A>
  friend void io(A& a, Values& v) {
    io_all(a, v.round, v.count, v.mean, v.m2, v.min, v.max, v.quantiles);
  }
};

struct Importance {
  std::int64_t round = -1;
  std::map<std::string, double> features;
  std::uint64_t left_out = 0;

  template <typename A>
  friend void io(A& a, Importance& i) {
    io_all(a, i.round, i.features, i.left_out);
  }
};

/// Values of the last round that had some, by name.
struct LatestValues {
  std::int64_t round = -1;
  std::map<std::string, double> values;

  void take(std::int64_t at, const std::string& name, double value) {
    if (round != at) values.clear();
    round = at;
    if (values.size() < kMost) values.try_emplace(name, value);  // workers come by rank
  }
  template <typename A>
  friend void io(A& a, LatestValues& v) {
    io_all(a, v.round, v.values);
  }

 private:
  static constexpr std::size_t kMost = 64;
};

struct XgboostState {
  std::int64_t period = INT64_MIN;  // end of the open evaluation period
  std::int64_t rounds = 0;
  std::map<std::string, double> hyperparameters;
  std::map<std::string, RoundCurve> metrics;
  std::uint64_t curves_left_out = 0;
  RoundCurve depth{true};
  std::map<std::string, Importance> importance;  // by type
  Values labels;
  Values predictions;
  std::int64_t classes_round = -1;
  std::vector<double> class_counts;
  std::int64_t confusion_round = -1;
  ConfusionCells confusion;
  std::map<std::uint32_t, RoundCurve> accuracy;  // share of a class that is predicted right
  LatestValues roc;  // of labels and predictions together, as the hook computes it
  LatestValues residuals;
  std::map<std::uint32_t, RoundCurve> errors;  // mean absolute error, by interval of the label
  std::string objective;

  template <typename A>
  friend void io(A& a, XgboostState& s) {
    io_all(a, s.period, s.rounds, s.hyperparameters, s.metrics, s.curves_left_out, s.depth,
           s.importance, s.labels, s.predictions, s.classes_round, s.class_counts,
           s.confusion_round, s.confusion, s.accuracy, s.roc, s.residuals, s.errors, s.objective);
  }
};

}  // namespace tocsin::rules
