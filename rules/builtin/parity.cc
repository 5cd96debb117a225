// Fires when evaluation does not see the world that training sees.
//
// Reads   scalars ledger/data/<set>/… (docs/ledger.md), which the callbacks of boosters send. Of all workers.
// Window  one step: the one that tells of the sets.
// Fires   targets            the labels of an evaluation set are distributed unlike those of training, by more than
//                            `margin` of them and more than twice what order in time makes within training, at 0.0005
//         inputs             the same of a column, at 0.0005 for all columns together
//         stops_on_training  early stopping goes by the training set (certain)
//         Distances of distributions have bounds that hold for any distribution: P(distance > t) <= C exp(-2 t² nm/(n+m)),
//         C = e per column (Dvoretzky, Kiefer and Wolfowitz, of two samples), 2^K for the total variation of K classes.
// Quiet   for the training set under another name; for rankings, which send none of it.
// Source  our own; docs/rules/parity.md.

#include <algorithm>
#include <cmath>
#include <string>

#include "rules/builtin/ledger_sets.h"
#include "rules/evaluate/step_set.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kParityKinds[] = {"targets", "inputs", "stops_on_training"};

struct Parity {
  static constexpr std::span<const std::string_view> kKinds = kParityKinds;
  static constexpr bool kPerWorker = false;
  static constexpr TensorUse kTensorUse = TensorUse::none;
  static constexpr std::span<const Sent> kSent{};
  enum Kind : unsigned { kTargets, kInputs, kStopsOnTraining };
  static constexpr double kLogAlpha = -7.6009024595420822;  // ln 0.0005
  static constexpr double kDrifts = 2;  // what comes next may be as far again as training went
  static constexpr double kLateShare =
      0.16;  // 4/5 · 1/5: how well a drift of n rows is known, as a share of n
  static constexpr double kLogTwenty =
      2.9957322735539909;  // a drift counts as far as one in twenty exceeds by chance

  struct Config {
    double margin = 0.05;
  };
  struct State {
    AnswersSoFar answers;
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.answers);
    }
  };
  /// Two distributions that are compared.
  struct Gap {
    double distance = 0;
    double drift = 0;  // beyond what chance makes
    double n = 0;
    double m = 0;
    double log_cases = 0;  // ln C
    [[nodiscard]] double allowed(double margin) const { return margin + kDrifts * drift; }
    /// ln of the bound of the probability, where the true distance is as large as allowed.
    [[nodiscard]] double log_chance(double margin) const {
      const double beyond = std::max(0.0, distance - allowed(margin));
      return log_cases - 2 * beyond * beyond * n * m / (n + m);
    }
    [[nodiscard]] bool told(double margin) const {
      return n > 0 && m > 0 && log_chance(margin) <= kLogAlpha;
    }
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .patterns = {"^ledger/data/"}}; }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("margin", cfg.margin, config::between(0.0, 1.0),
                "share of labels or elements that may lie elsewhere");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }

  static Gap gap(double distance, double drift, double n, double m, double log_cases) {
    Gap out{distance, 0, n, m, log_cases};
    if (n > 0) {
      out.drift = std::max(0.0, drift - std::sqrt((log_cases + kLogTwenty) / (2 * kLateShare * n)));
    }
    return out;
  }
  static Gap of_targets(const LedgerSet& data) {
    const double classes = data.field("target_classes");
    return gap(data.field("target_distance"), data.field("target_drift"),
               data.field("target_train"), data.field("target_read"),
               classes > 0 ? classes * std::log(2) : 1);
  }
  /// The column; empty: none was sent.
  static std::string worst_column(const LedgerSet& data) {
    const auto found = data.columns.find("column_distance");
    if (found == data.columns.end() || found->second.empty()) return {};
    const auto worst =
        std::max_element(found->second.begin(), found->second.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return worst->first;
  }
  static Gap of_column(const LedgerSet& data, const std::string& column) {
    const double drift = data.of_column("column_drift", column);
    Gap out = gap(data.of_column("column_distance", column), drift, data.field("column_train"),
                  data.field("column_read"), 1);
    out.log_cases += std::log(std::max(data.field("columns"), 1.0));
    return out;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    LedgerSets sets;
    for (const StepRow& row : set.rows) {
      const Name* name = report.scope().find(row.name());
      if (name != nullptr && row.scalar) take_set(sets, name->text, row.row.sum);
    }
    for (const auto& [name, data] : sets) judge_set(cfg, state, name, data, report);
  }

  static void judge_set(const Config& cfg, State& state, const std::string& name,
                        const LedgerSet& data, SetReport& report) {
    const bool training = name == "train" || data.field("same") > 0;
    const std::string column = worst_column(data);
    const Gap targets = of_targets(data);
    const Gap inputs = of_column(data, column);
    const bool any = data.has("target_distance") || !column.empty();
    unsigned kinds = 0;
    if (training && data.field("stops") > 0) kinds |= 1U << kStopsOnTraining;
    if (!training && data.has("target_distance") && targets.told(cfg.margin))
      kinds |= 1U << kTargets;
    if (!training && !column.empty() && inputs.told(cfg.margin)) kinds |= 1U << kInputs;
    Verdict verdict = kOk;
    if (kinds != 0) {
      verdict = {EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
    } else if (training) {
      verdict = data.has("stops") ? kOk : kNotApplicable;
    } else if (!any) {
      verdict = kInsufficient;
    }
    state.answers.note(name, verdict,
                       {{"targets_apart", targets.distance},
                        {"column_apart", inputs.distance},
                        {"allowed", targets.allowed(cfg.margin)},
                        {"rows", data.field("rows")}},
                       kParityKinds);
    const std::string unit = std::string(kLedgerData) + name;
    report.evaluated({{"metric", unit}}, name, verdict, [&](const Subject&, unsigned kind) {
      if (kind == kStopsOnTraining) return stops(name);
      return kind == kTargets ? other_targets(cfg, name, data, targets)
                              : other_inputs(cfg, name, column, inputs);
    });
  }

  static Finding stops(const std::string& name) {
    return Finding::that("stops_on_training", 1)
        .is("==", "limit", 1)
        .titled("early stopping", Verb::does_not, "see unseen rows")
        .says(
            sentence("Early stopping goes by {}, which is the training set: it cannot see when the "
                     "model begins to learn by heart.",
                     name))
        .advises("Put a set that is not trained on last in evals, or name it in EarlyStopping.");
  }

  static Finding other_targets(const Config& cfg, const std::string& name, const LedgerSet& data,
                               const Gap& gap) {
    const bool classes = data.field("target_classes") > 0;
    return Finding::that("distance", gap.distance)
        .is(">", "limit", gap.allowed(cfg.margin))
        .titled(name, Verb::has, "other labels than training")
        .says(sentence(
            "The labels of {} are not distributed like those of training: {} % of them "
            "{} (training differs from itself by {} %; {} and {} labels).",
            name, 100 * gap.distance,
            classes ? "would have to change their class" : "lie on the other side of one value",
            100 * data.field("target_drift"), gap.n, gap.m))
        .advises(
            "Check how the sets were split (sorted data, one class or period in one set) and that "
            "both have the same unit and the same map of classes.")
        .with("drift", data.field("target_drift"))
        .with("log_probability", gap.log_chance(cfg.margin));
  }

  static Finding other_inputs(const Config& cfg, const std::string& name, const std::string& column,
                              const Gap& gap) {
    return Finding::that("distance", gap.distance)
        .is(">", "limit", gap.allowed(cfg.margin))
        .titled(column, Verb::is, "distributed otherwise in " + name)
        .says(sentence(
            "Column {} of {} is not distributed like that of training: {} % of its elements "
            "lie on the other side of one value ({} and {} elements).",
            column, name, 100 * gap.distance, gap.n, gap.m))
        .advises(
            "Check that both sets went through the same preparation (scaling, encoding, order of "
            "columns) and how they were split.")
        .with("column", column)
        .with("log_probability", gap.log_chance(cfg.margin));
  }
};

}  // namespace

RuleDescriptor parity() {
  return {.name = "parity",
          .original_name = "Parity",
          .title = "Evaluation does not see the world that training sees.",
          .unit = "metric",
          .needs = "scalars ledger/data/… of a booster's callback",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kDefault | group::kXGBoost,
          .read = &read_step_set_rule<Parity>};
}

}  // namespace tocsin::rules
