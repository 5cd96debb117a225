// Collects what a report on an XGBoost training is made of, and sums it up, every minute and at the end of the run.
//
// Reads   scalars: evaluation metrics of each data set, feature_importance/<type>/<feature>,
//         trees/depth, roc/, residual/, hyperparameters; of labels and predictions the columns, quantiles and the
//         statistic classes (class_counts, class_correct, confusion).
// Window  the whole run, round by round; judged when nobody can add to a round any more. Of several
//         workers: metrics their mean, counts and matrices their sum.
// Fires   never.
// Tells   in the summary of a status per minute of event time and of the last one: task, curves of the metrics with what they say of over-
//         and underfitting, importance of the features, depth of the trees, distribution of labels
//         and predictions, confusion matrix with precision, recall and F1, accuracy per class over the
//         rounds; of two classes the receiver operating characteristic, of quantities the residuals,
//         as the hook computes them (roc/, residual/), and the absolute error
//         per tenth of the labels' range; and what could not be told, with the reason.
// Quiet   always. Without any of its inputs it has no data.
// Source  Amazon SageMaker Debugger, CreateXgboostReport; docs/rules/create_xgboost_report.md.

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "rules/builtin/reports/xgboost_telling.h"
#include "rules/builtin/shared/classes.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/builtin/shared/xgboost_state.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/sample.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kImportancePrefix = "feature_importance/";
constexpr std::string_view kRocPrefix = "roc/";
constexpr std::string_view kResidualPrefix = "residual/";
constexpr std::string_view kErrorPrefix =
    "residual/abs/";  // and the number of the label's interval
constexpr std::string_view kObjectivePrefix = "hyperparameters/objective/";
constexpr std::int64_t kEvery = 5;                           // rounds
constexpr core::Duration kPeriod = std::chrono::minutes(1);  // of event time, between two summaries
constexpr std::uint32_t kMostIntervals = 10;
constexpr std::size_t kMostCurves = 64;
constexpr std::size_t kMostFeatures = 10'000;   // of a type of importance
constexpr std::uint32_t kMostClassCurves = 64;  // classes whose accuracy is followed

struct CreateXgboostReport {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr bool kPerWorker = false;
  static constexpr Sent kSent[] = {core::VectorStat::class_counts, core::VectorStat::class_correct,
                                   core::VectorStat::confusion,    core::SparseStat::p05,
                                   core::SparseStat::p25,          core::SparseStat::median,
                                   core::SparseStat::p75,          core::SparseStat::p95};
  struct Config {};
  using State = XgboostState;
  using States = std::map<std::pair<std::uint32_t, std::uint8_t>, State>;  // by mode

  static Defaults defaults(Preset) {
    return {
        .roles = {core::Role::loss, core::Role::metric, core::Role::label, core::Role::prediction,
                  core::Role::importance, core::Role::tree, core::Role::hyperparameter},
        .patterns = {"feature_importance/", "trees/depth", "^roc/", "^residual/"}};
  }
  static void read(config::Reader&, Config&, Preset) {}
  static std::vector<Need> needs(const Config&) {
    return {{"feature_importance"},
            {"labels", {"classes", "quantiles", "median"}, kEvery},
            {"losses"},
            {"metrics"},
            {"predictions", {"classes", "quantiles", "median"}, kEvery}};
  }

  static void judge(const Config&, State& state, const StepSet& set, SetReport& report) {
    refresh(state, set.time, report.scope());
    std::map<std::string, std::pair<double, double>> scalars;    // metric: sum, workers
    std::map<std::uint32_t, std::pair<double, double>> classes;  // right, all
    bool any = false;
    for (const StepRow& row : set.rows) {
      any = (row.scalar ? take_scalar(state, set, row, report.scope(), scalars)
                        : take_tensor(state, set, row, classes)) ||
            any;
    }
    for (const auto& [name, sum] : scalars) take_metric(state, set, name, sum, report.scope());
    for (const auto& [one, counts] : classes) {
      if (one >= kMostClassCurves || counts.second <= 0) continue;
      state.accuracy.try_emplace(one, true).first->second.take(set.step,
                                                               counts.first / counts.second);
    }
    if (any) state.rounds = std::max(state.rounds, set.step + 1);
    report.without_unit(any ? EvaluationOutcome::ok : EvaluationOutcome::insufficient_data);
  }

  static core::ValueMap summary(const States& states, const Scope&);

 private:
  static core::ValueMap told(const State& state);

  // What begins another period comes to it, not to the one that is told.
  static void refresh(State& state, std::int64_t time, Scope& scope) {
    const std::int64_t end = interval_end(time, kPeriod);
    if (end <= state.period) return;
    const std::int64_t over = std::exchange(state.period, end);
    if (over != INT64_MIN && state.rounds > 0) scope.interim(over, told(state));
  }

  static bool take_scalar(State& state, const StepSet& set, const StepRow& row, const Scope& scope,
                          std::map<std::string, std::pair<double, double>>& metrics) {
    const std::string name = scope.text(row.name());
    const double value = row.row.sum;
    if (const std::size_t at = name.find(kImportancePrefix); at != std::string::npos) {
      return take_importance(state, set, name.substr(at + kImportancePrefix.size()), value);
    }
    if (name.starts_with(kErrorPrefix)) {
      return take_error(state, set, name.substr(kErrorPrefix.size()), value);
    }
    for (auto [prefix, kept] :
         {std::pair{kRocPrefix, &state.roc}, std::pair{kResidualPrefix, &state.residuals}}) {
      if (!name.starts_with(prefix)) continue;
      kept->take(set.step, name.substr(prefix.size()), value);
      return true;
    }
    if (name.starts_with(kObjectivePrefix)) {  // a text: it stands in the name
      state.objective = name.substr(kObjectivePrefix.size());
      return true;
    }
    if (row.role() == core::Role::hyperparameter) {
      if (state.hyperparameters.size() < kMostCurves) state.hyperparameters[name] = value;
      return true;
    }
    auto& [sum, workers] = metrics[name];
    sum += value;
    ++workers;
    return true;
  }

  // Of several workers the first by rank, as of the other residuals.
  static bool take_error(State& state, const StepSet& set, const std::string& interval,
                         double value) {
    if (interval.size() != 1 || interval[0] < '0' || interval[0] > '9') return false;
    const auto number = static_cast<std::uint32_t>(interval[0] - '0');
    if (number >= kMostIntervals) return false;
    RoundCurve& curve = state.errors.try_emplace(number, false).first->second;
    if (curve.count() == 0 || curve.last_round() != set.step) curve.take(set.step, value);
    return true;
  }

  static bool take_importance(State& state, const StepSet& set, const std::string& rest,
                              double value) {
    const std::size_t slash = rest.find('/');
    if (slash == std::string::npos || slash == 0) return false;
    Importance& type = state.importance[rest.substr(0, slash)];
    if (type.round != set.step) type = {set.step, {}, 0};
    if (type.features.size() >= kMostFeatures) {
      ++type.left_out;
    } else {
      type.features[rest.substr(slash + 1)] = value;
    }
    return true;
  }

  static void take_metric(State& state, const StepSet& set, const std::string& name,
                          const std::pair<double, double>& sum, const Scope& scope) {
    const double value = sum.first / sum.second;
    if (name.ends_with("trees/depth")) return state.depth.take(set.step, value);
    auto known = state.metrics.find(name);
    if (known == state.metrics.end()) {
      if (state.metrics.size() >= kMostCurves) {
        ++state.curves_left_out;
        return;
      }
      const Name* said = scope.find(core::name_hash(name));
      const bool grows = said != nullptr && said->direction
                             ? *said->direction == core::Direction::max
                             : metric_name(name).grows;
      known = state.metrics.emplace(name, RoundCurve(grows)).first;
    }
    known->second.take(set.step, value);
  }

  static bool take_tensor(State& state, const StepSet& set, const StepRow& row,
                          std::map<std::uint32_t, std::pair<double, double>>& classes) {
    const bool labels = row.role() == core::Role::label;
    if (!labels && row.role() != core::Role::prediction) return false;
    Values& values = labels ? state.labels : state.predictions;
    const bool first = values.round != set.step;
    if (first) values = {set.step, 0, 0, 0, 0, 0, {}};
    values.add(row.row);
    values.quantiles.clear();
    for (const core::SparseStat stat :
         {core::SparseStat::p05, core::SparseStat::p25, core::SparseStat::median,
          core::SparseStat::p75, core::SparseStat::p95}) {
      const auto one = row.statistic(stat);
      if (first && one) values.quantiles.emplace_back(static_cast<std::uint16_t>(stat), *one);
    }
    take_classes(state, set, row, classes);
    return true;
  }

  // They come with the labels or with the predictions, once for each worker.
  static void take_classes(State& state, const StepSet& set, const StepRow& row,
                           std::map<std::uint32_t, std::pair<double, double>>& classes) {
    const auto* counts = row.vector(core::VectorStat::class_counts);
    const auto* right = row.vector(core::VectorStat::class_correct);
    const auto* matrix = row.vector(core::VectorStat::confusion);
    if (counts != nullptr && are_counts(*counts) && counts->size() <= kMostClasses) {
      if (state.classes_round != set.step) state.class_counts.clear();
      state.classes_round = set.step;
      state.class_counts.resize(std::max(state.class_counts.size(), counts->size()));
      for (std::size_t i = 0; i < counts->size(); ++i) state.class_counts[i] += (*counts)[i];
      for (std::size_t i = 0; right != nullptr && i < std::min(right->size(), counts->size());
           ++i) {
        auto& [hits, all] = classes[static_cast<std::uint32_t>(i)];
        hits += (*right)[i];
        all += (*counts)[i];
      }
    }
    if (matrix == nullptr || matrix->size() % 3 != 0 || !are_counts(*matrix)) return;
    if (state.confusion_round != set.step) state.confusion.clear();
    state.confusion_round = set.step;
    for (std::size_t i = 0; i + 2 < matrix->size(); i += 3) {
      const double label = (*matrix)[i];
      const double prediction = (*matrix)[i + 1];
      if (label >= kMostClasses || prediction >= kMostClasses || (*matrix)[i + 2] == 0) continue;
      state
          .confusion[{static_cast<std::uint32_t>(label), static_cast<std::uint32_t>(prediction)}] +=
          (*matrix)[i + 2];
    }
  }
};

// Of the mode in which most rounds came.
core::ValueMap CreateXgboostReport::summary(const States& states, const Scope&) {
  const State* state = nullptr;
  for (const auto& [key, one] : states) {
    if (one.rounds > (state == nullptr ? 0 : state->rounds)) state = &one;
  }
  return state == nullptr ? core::ValueMap() : told(*state);
}

core::ValueMap CreateXgboostReport::told(const State& state) {
  core::ValueMap out{{"task", task_of(state)}, {"rounds", state.rounds}};
  if (!state.objective.empty()) out.emplace_back("objective", state.objective);
  core::ValueMap missing;
  if (!state.hyperparameters.empty()) {
    core::ValueMap all;
    for (const auto& [name, value] : state.hyperparameters) all.emplace_back(name, value);
    out.emplace_back("hyperparameters", std::move(all));
  }
  core::ValueMap metrics;
  core::ValueList hints;
  for (const auto& [name, curve] : state.metrics) {
    metrics.emplace_back(name, told_curve(curve));
    const MetricName words = metric_name(name);
    if (words.set == 0 || words.train_word) continue;
    if (std::string hint = hint_of(name, curve); !hint.empty()) hints.emplace_back(std::move(hint));
  }
  if (!metrics.empty()) out.emplace_back("metrics", std::move(metrics));
  tell_pairs(state, task_of(state), out, hints, missing);
  if (!hints.empty()) out.emplace_back("hints", std::move(hints));
  if (state.curves_left_out > 0) out.emplace_back("values_left_out", state.curves_left_out);
  core::ValueMap importance;
  for (const auto& [type, one] : state.importance)
    importance.emplace_back(type, told_importance(one));
  if (!importance.empty()) out.emplace_back("feature_importance", std::move(importance));
  if (state.depth.count() > 0)
    out.emplace_back("trees", core::ValueMap{{"depth", told_curve(state.depth)}});
  tell_classes(state, out, missing);
  if (!missing.empty()) out.emplace_back("missing", std::move(missing));
  return out;
}

}  // namespace

RuleDescriptor create_xgboost_report() {
  return {
      .name = "create_xgboost_report",
      .original_name = "CreateXgboostReport",
      .title = "Reports on an XGBoost training: curves, importance, confusion. Raises no issue.",
      .unit = "run",
      .needs = "metrics; feature_importance, labels and predictions of validation data",
      .presets = "",
      .severity = core::Severity::info,
      .groups = group::kXGBoost,
      .read = &read_step_set_rule<CreateXgboostReport>};
}

}  // namespace tocsin::rules
