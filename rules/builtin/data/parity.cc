// Fires when evaluation does not see the world that training sees.
//
// Reads   of boosters scalars ledger/data/<set>/…, of other jobs ledger/world/… and the loss calls (docs/ledger.md). Of all workers.
// Window  boosters: the step that tells of the sets. Else one evaluation, against the newer half of training (inputs,
//         targets) or the newest 32 steps (losses).
// Fires   for boosters:
//         targets            the labels of an evaluation set are distributed unlike those of training, by more than
//                            `margin` of them and more than twice what order in time makes within training, at 0.0005
//         inputs             the same of a column, at 0.0005 for all columns together
//         stops_on_training  early stopping goes by the training set (certain)
//         Distances of distributions have bounds that hold for any distribution: P(distance > t) <= C exp(-2 t² nm/(n+m)),
//         C = e per column (Dvoretzky, Kiefer and Wolfowitz, of two samples), 2^K for the total variation of K classes.
//         for other jobs, each by `errors` (8) errors at least, which come from blocks of batches:
//         inputs    mean or deviation of an input (of a channel) differs by `moved` (0.1) of a deviation; by 3 times that
//                   unless training has seen inputs again unchanged: augmentation. Then info, if it is less than a
//                   deviation, as where the targets differ
//         targets   the same of quantities, or so large a share of labels would have to change (info)
//         loss      the first evaluation, in the first epoch, is worse by `loss` (0.25) of the trivial loss than training
//                   around it, worse than the trivial loss and than training ever was; inputs alike
//         reversed  it is better by that, and less than half, or a sixth, of training before and behind it (info)
//         Both are silent where training calls the loss more often for a batch than evaluation does: mixup.
// Quiet   for the training set under another name; for rankings, which send none of it. With `shifted` all but
//         stops_on_training.
// Source  our own; docs/rules/parity.md.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "rules/builtin/data/ledger_sets.h"
#include "rules/builtin/data/world_course.h"
#include "rules/builtin/data/world_rows.h"
#include "rules/builtin/data/world_telling.h"
#include "rules/builtin/shared/ledger_rows.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kParityKinds[] = {"targets", "inputs", "stops_on_training", "loss",
                                             "reversed"};

struct Parity {
  static constexpr std::span<const std::string_view> kKinds = kParityKinds;
  static constexpr bool kPerWorker = false;
  static constexpr TensorUse kTensorUse = TensorUse::none;
  static constexpr std::span<const Sent> kSent{};
  static constexpr bool kJoinsModes = true;
  enum Kind : unsigned { kTargets, kInputs, kStopsOnTraining, kLoss, kReversed };
  static constexpr std::size_t kMostUnits = 64;  // of a run
  static constexpr std::size_t kMostCalls = 64;
  static constexpr double kUnchanged = 0.9;  // of the samples of training are seen again
  static constexpr double kFirstTold = 64;   // updates; from then on whenever they have doubled
  static constexpr double kLogAlpha = -7.6009024595420822;  // ln 0.0005
  static constexpr double kDrifts = 2;  // what comes next may be as far again as training went
  static constexpr double kLateShare =
      0.16;  // 4/5 · 1/5: how well a drift of n rows is known, as a share of n
  static constexpr double kLogTwenty =
      2.9957322735539909;  // a drift counts as far as one in twenty exceeds by chance

  struct Config {
    double margin = 0.05;
    WorldBounds bounds;
    bool shifted = false;
  };
  struct State {
    std::map<std::string, WorldCourse> units;
    std::map<std::string, WorldLoss> losses;  // by call
    AnswersSoFar answers;
    double updates = 0;
    double passes = 0;  // over the training data that have begun
    double second = 0;  // updates when the second one began; 0: it has not
    double averages = 0;
    double repeats = 0;  // inputs of training come again unchanged
    double pass_at = -1;
    double pass_open = 0;  // an evaluation that was not judged
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.units, s.losses, s.answers, s.updates, s.passes, s.second, s.averages, s.repeats,
             s.pass_at, s.pass_open);
    }
    /// `updates`: when these were sent.
    void take_passes(double sent, double its_updates) {
      passes = std::max(passes, sent);
      if (passes > 1 && second == 0) second = its_updates;
    }
    /// Nothing had been trained on twice at the newest evaluation. It is judged behind the training step that follows it.
    [[nodiscard]] bool in_first_epoch() const {
      return passes > 0 && (second == 0 || second > pass_at);
    }
    [[nodiscard]] double times() const { return repeats > 0 ? 1 : WorldBounds::kAugmented; }
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

  static Defaults defaults(Preset) {
    return {.modes = static_cast<std::uint8_t>(kTrainModes | mode_bit(core::Mode::eval)),
            .roles = {core::Role::ledger},
            .patterns = {"^ledger/data/"}};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("margin", cfg.margin, config::between(0.0, 1.0),
                "largest share of labels or elements of a booster's set that may be distributed "
                "differently");
    in.optional("errors", cfg.bounds.errors, config::at_least(1.0),
                "differences below this many standard errors do not count");
    in.optional("moved", cfg.bounds.moved, config::between(0.0, 10.0),
                "how far mean or deviation may differ, in deviations of training; for classes a "
                "share of the labels");
    in.optional("loss", cfg.bounds.loss, config::at_least(0.0),
                "how much worse than training the first evaluation may be, as a share of the best "
                "constant's loss");
    in.optional("shifted", cfg.shifted,
                "evaluation is meant to differ: judge only stops_on_training");
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
    judge_sets(cfg, state, set, report);
    if (cfg.shifted) return;
    const LedgerStep calls(set, report.scope());
    const WorldStep step(set, report.scope());
    if (set.mode == core::Mode::train) {
      train(cfg, state, calls, step, set, report);
    } else if (set.mode == core::Mode::eval) {
      evaluate(cfg, state, calls, step, set, report);
    }
  }

  // ------------------------------------------------------------------------------ boosters

  static void judge_sets(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    LedgerSets sets;
    if (set.mode == core::Mode::eval) return;
    for (const StepRow& row : set.rows) {
      const Name* name = report.scope().find(row.name());
      if (name != nullptr && row.scalar) take_set(sets, name->text, row.row.sum);
    }
    for (const auto& [name, data] : sets) {
      const double compared = data.field("train_compared");
      if (compared > 0 && data.field("train_repeats") >= kUnchanged * compared) state.repeats = 1;
      judge_set(cfg, state, name, data, report);
    }
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
    const bool compared = !training && !cfg.shifted;
    if (compared && data.has("target_distance") && targets.told(cfg.margin))
      kinds |= 1U << kTargets;
    if (compared && !column.empty() && inputs.told(cfg.margin)) kinds |= 1U << kInputs;
    Verdict verdict = kOk;
    if (kinds != 0) {
      verdict = {EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
    } else if (training) {
      verdict = data.has("stops") ? kOk : kNotApplicable;
    } else if (!any) {
      verdict = kInsufficient;
    }
    if (data.has("rows") || any)
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
        .titled("early stopping", Verb::does_not, "watch a held-out set")
        .says(sentence(
            "Early stopping watches {}, which is the training set: it cannot notice overfitting.",
            name))
        .advises("Put a held-out set last in evals, or name it in EarlyStopping.");
  }

  static Finding other_targets(const Config& cfg, const std::string& name, const LedgerSet& data,
                               const Gap& gap) {
    const bool classes = data.field("target_classes") > 0;
    return Finding::that("distance", gap.distance)
        .is(">", "limit", gap.allowed(cfg.margin))
        .titled(name, Verb::has, "other labels than training")
        .says(
            sentence("The labels of {} are distributed differently than in training: {} % {} (two "
                     "parts of training: {} %; {} and {} labels).",
                     name, 100 * gap.distance,
                     classes ? "would have to change class" : "lie on the other side of one value",
                     100 * data.field("target_drift"), gap.n, gap.m))
        .advises(
            "Check how the sets were split (sorted data, one class or period in one set). Check "
            "that both use the same unit and class map.")
        .with("drift", data.field("target_drift"))
        .with("log_probability", gap.log_chance(cfg.margin));
  }

  static Finding other_inputs(const Config& cfg, const std::string& name, const std::string& column,
                              const Gap& gap) {
    return Finding::that("distance", gap.distance)
        .is(">", "limit", gap.allowed(cfg.margin))
        .titled(column, Verb::is, "distributed differently in " + name)
        .says(sentence("Column {} of {} is distributed differently than in training: {} % of its "
                       "elements lie on the other side of one value ({} and {} elements).",
                       column, name, 100 * gap.distance, gap.n, gap.m))
        .advises(
            "Check that both sets get the same preparation (scaling, encoding, order of columns), "
            "and how they were split.")
        .with("column", column)
        .with("log_probability", gap.log_chance(cfg.margin));
  }

  // ---------------------------------------------------------------------------- other jobs

  /// The entry of a name; nullptr: there are too many.
  template <typename T>
  static T* of(std::map<std::string, T>& map, std::string_view name, std::size_t most) {
    const auto [at, fresh] = map.try_emplace(std::string(name));
    if (!fresh || map.size() <= most) return &at->second;
    map.erase(at);
    return nullptr;
  }

  static void train(const Config& cfg, State& state, const LedgerStep& calls, const WorldStep& step,
                    const StepSet& set, SetReport& report) {
    if (state.pass_open > 0) {
      judge_pass(cfg, state, report);
    }
    state.updates = static_cast<double>(set.step) + 1;
    state.take_passes(step.passes, state.updates);
    if (step.averages) state.averages = 1;
    for (const auto& [unit, sums] : step.units) {
      if (WorldCourse* course = of(state.units, unit, kMostUnits)) {
        course->add_train(sums, state.updates);
      }
    }
    for (const LedgerCall& call : calls.calls) {
      if (!call.comparable()) continue;
      WorldLoss* loss = of(state.losses, call.name, kMostCalls);
      if (loss == nullptr) continue;
      loss->add_train(entry(call));
      loss->add_train_calls(call[LedgerCall::calls], step.inputs());
      if (loss->follow(cfg.bounds, state.times()) && loss->first_epoch > 0) {
        tell_loss(cfg, state, std::string(call.name), *loss, report);
      }
    }
  }

  static void evaluate(const Config& cfg, State& state, const LedgerStep& calls,
                       const WorldStep& step, const StepSet& set, SetReport& report) {
    const auto at = static_cast<double>(std::max<std::int64_t>(set.after_train, -1) + 1);
    if (at != state.pass_at) {
      if (state.pass_open > 0) judge_pass(cfg, state, report);
      for (auto& [unit, course] : state.units) course.pass = {};
      for (auto& [call, loss] : state.losses) loss.begin_pass();
      state.pass_at = at;
    }
    for (const auto& [unit, sums] : step.units) {
      if (const auto known = state.units.find(unit); known != state.units.end()) {
        known->second.pass.add(sums);
        state.pass_open = 1;
      }
    }
    for (const LedgerCall& call : calls.calls) {
      const auto known = state.losses.find(std::string(call.name));
      if (known == state.losses.end() || !call.comparable()) continue;
      known->second.pass.add(entry(call));
      known->second.add_pass_calls(call[LedgerCall::calls], step.inputs());
      state.pass_open = 1;
    }
    if (state.pass_open > 0 && !step.in_parts) judge_pass(cfg, state, report);
    state.take_passes(step.passes, at + 1);  // the next one may have begun
  }

  static WorldLoss::Entry entry(const LedgerCall& call) {
    return {call[LedgerCall::samples], call[LedgerCall::loss], call[LedgerCall::trivial]};
  }

  /// Of each group of units.
  static std::map<std::string, WorldVerdict> verdicts(const WorldBounds& bounds,
                                                      const State& state) {
    std::map<std::string, WorldVerdict> out;
    for (const auto& [unit, course] : state.units) {
      const WorldGap& gap = course.gap;
      WorldVerdict& group = out[std::string(world_group(unit))];
      const bool label = unit.starts_with("class/");
      if (label && gap.known > 0) group.distance += std::fabs(gap.mean) / 2;
      const auto far = [&](const WorldGap& one) {
        return label ? one.mean_errors
                     : std::max(one.moved(bounds, 1) ? std::fabs(one.mean) : 0,
                                one.scaled(bounds, 1) ? std::fabs(std::log(one.deviation)) : 0);
      };
      group.evaluated = group.evaluated || gap.eval > 0;
      if (group.worst.empty() || gap.known > group.gap.known ||
          (gap.known > 0 && far(gap) > far(group.gap))) {
        group.worst = unit;
        group.gap = gap;
      }
    }
    return out;
  }

  static void judge_pass(const Config& cfg, State& state, SetReport& report) {
    state.pass_open = 0;
    for (auto& [unit, course] : state.units) course.compare(!unit.starts_with("class/"));
    auto groups = verdicts(cfg.bounds, state);
    bool targets_differ = false;
    for (auto& [name, group] : groups) {
      group.hit = group_hits(cfg, state, name, group);
      if (!name.starts_with("input/")) targets_differ = targets_differ || group.hit;
    }
    bool alike = true;
    for (auto& [name, group] : groups) {
      if (!group.evaluated) continue;
      group.info = targets_differ || (state.times() > 1 && !group.gap.plain());
      if (name.starts_with("input/")) alike = alike && group.gap.known > 0 && !group.hit;
      tell_group(cfg, state, name, group, report);
    }
    for (auto& [call, loss] : state.losses) {
      if (!(loss.pass.samples > 0)) continue;
      loss.judge(cfg.bounds, alike && state.in_first_epoch() && !loss.is_a_part());
      tell_loss(cfg, state, call, loss, report);
    }
  }
  static bool group_hits(const Config& cfg, const State& state, const std::string& name,
                         const WorldVerdict& group) {
    if (name.starts_with("class/")) {
      return group.distance > cfg.bounds.moved && group.gap.mean_errors > cfg.bounds.errors;
    }
    return group.gap.hit(cfg.bounds, name.starts_with("target/") ? 1 : state.times());
  }
  static void tell_group(const Config& cfg, State& state, const std::string& name,
                         const WorldVerdict& group, SetReport& report) {
    const bool input = name.starts_with("input/");
    const Verdict verdict = !(group.gap.known > 0) ? kInsufficient
                            : !group.hit           ? kOk
                                                   : hit(input ? kInputs : kTargets);
    state.answers.note(world_name(name), verdict,
                       {{"moved", group.gap.mean},
                        {"deviation", group.gap.deviation},
                        {"distance", group.distance},
                        {"errors", std::max(group.gap.mean_errors, group.gap.deviation_errors)},
                        {"training_batches", group.gap.train},
                        {"evaluation_batches", group.gap.eval}},
                       kParityKinds);
    const std::string unit = std::string(kLedgerWorld) + name;
    report.evaluated({{"metric", unit}}, unit, verdict, [&](const Subject&, unsigned) {
      if (input) return world_input(cfg.bounds, state.times(), group);
      return world_targets(cfg.bounds, name.substr(name.find('/') + 1), group);
    });
  }

  static bool is_worse(const State& state, const WorldLoss& loss) {
    return loss.worse >= (state.averages > 0 ? 2 : 1);
  }
  static void tell_loss(const Config& cfg, State& state, const std::string& call,
                        const WorldLoss& loss, SetReport& report) {
    const bool worse = is_worse(state, loss);
    const Verdict verdict = worse               ? hit(kLoss)
                            : loss.reversed > 0 ? hit(kReversed)
                            : !loss.decided()   ? kInsufficient
                                                : kOk;
    state.answers.note(call, verdict,
                       {{"evaluation", loss.first},
                        {"training", loss.before},
                        {"trivial", loss.trivial},
                        {"errors", loss.errors}},
                       kParityKinds);
    report.evaluated({{"metric", call}}, call, verdict, [&](const Subject&, unsigned kind) {
      return world_loss(cfg.bounds, call, loss, kind == kReversed);
    });
  }
};

}  // namespace

RuleDescriptor parity() {
  return {.name = "parity",
          .original_name = "Parity",
          .title = "Evaluation gets other inputs, targets or losses than training.",
          .unit = "metric",
          .needs = "the ledger",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "3",
          .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
          .read = &read_step_set_rule<Parity>};
}

}  // namespace tocsin::rules
