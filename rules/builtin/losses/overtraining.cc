// Fires when training goes on although the losses have stopped falling.
//
// Reads   scalars with role loss in train and eval; where a script sets no mode (XGBoost) also
//         metrics of a data set. Names are read as words (metric_name.h).
// Window  since the start of the attempt, O(1) state per series.
// Fires   preset original: no training loss below its best − delta for patience_train values, and
//         no evaluation below its best − delta for patience_validation points (require: any = one
//         of them). Evaluated at every new value. Names pair up; where none does, the means over
//         the losses of each step are a pair.
//         preset tocsin: the evaluation lies ratio_threshold (5 %) and noise_factor deviations of a
//         single evaluation above its own best for patience_validation (2) points in a row, and the
//         best lies at least `behind` (10 %) of the run back.
// Quiet   while one side has brought nothing (original, both), and while the latest three values or
//         more of a series are no finite numbers.
// Source  Amazon SageMaker Debugger, Overtraining; docs/rules/overtraining.md. A noisy training
//         loss stalls for five points in nearly every run: hence the other condition of our own.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "rules/builtin/losses/gaining_metric.h"
#include "rules/builtin/losses/pass_values.h"
#include "rules/builtin/shared/evaluation_curve.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct Overtraining {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::uint8_t kTraining = 0xFE;  // marks the memory of a metric's training side
  static constexpr std::uint8_t kJoined = 0xFF;
  static constexpr std::size_t kSets = 8;    // evaluation sets that a metric may have
  static constexpr std::uint64_t kMean = 0;  // name of the mean over all losses of a step
  enum class Shown { each, mean };           // what evaluations are judged as

  struct Config {
    bool original = false;
    std::uint32_t patience_train = 5;
    std::uint32_t patience_validation = 10;
    double delta = 0.01;
    std::string require = "both";
    double ratio_threshold = 0.05;
    double behind = 0.1;
    double noise_factor = 4;
    std::string train_set;
    bool chosen = false;  // the user says which series
  };

  /// One series: its best, and how long ago that was.
  struct Side {
    std::uint32_t seen = 0;
    std::uint32_t without = 0;  // values since the best
    std::uint32_t broken = 0;   // values in a row that are no finite numbers
    std::uint32_t finite = 0;
    double first = 0;
    double best = HUGE_VAL;
    double current = 0;
    std::int64_t best_step = 0;

    void take(std::int64_t step, double loss, double delta) {
      ++seen;
      current = loss;
      broken = std::isfinite(loss) ? 0 : broken + 1;
      if (std::isfinite(loss)) {
        if (finite++ == 0) first = loss;
        if (loss < best - delta) {
          best = loss;
          best_step = step;
          without = 0;
          return;
        }
      }
      ++without;
    }
  };
  struct Training {
    Side side;
    std::array<std::uint64_t, kSets> sets{};  // names of the evaluations that go with it
    std::uint32_t known = 0;
    Gap<4> gap{};
  };
  struct FiniteMean {
    double sum = 0;
    std::uint32_t finite = 0;
    std::uint32_t terms = 0;

    void add(double term) {
      ++terms;
      if (!std::isfinite(term)) return;
      sum += term;
      ++finite;
    }
    [[nodiscard]] double value() const { return finite == 0 ? std::nan("") : sum / finite; }
  };
  /// One evaluation; its name is kept for the steps that bring a training value only.
  struct State {
    Side side;
    EvaluationCurve curve;
    double sign = 1;           // −1: the metric should grow
    std::uint64_t metric = 0;  // whose training side it goes with
    double behind = 0;
    std::uint32_t length = 0;
    std::array<char, 92> text{};

    [[nodiscard]] std::string_view name() const { return {text.data(), length}; }
    void set_name(std::string_view from) {
      length = static_cast<std::uint32_t>(std::min(from.size(), text.size()));
      std::memcpy(text.data(), from.data(), length);
    }
  };

  static Defaults defaults(Preset) {
    return {.modes = kTrainModes | mode_bit(core::Mode::eval),
            .roles = {core::Role::loss, core::Role::metric}};
  }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.original = preset == Preset::original;
    if (!cfg.original) cfg.patience_validation = 2;
    in.optional("patience_train", cfg.patience_train, config::at_least(std::uint32_t{1}),
                "original: training values without an improvement");
    in.optional("patience_validation", cfg.patience_validation, config::at_least(std::uint32_t{1}),
                "original: evaluations without an improvement; tocsin: evaluations in a row above "
                "the limit");
    in.optional("delta", cfg.delta, config::at_least(0.0),
                "original: smallest improvement, in units of the loss");
    in.optional("require", cfg.require, config::one_of({"both", "any"}),
                "original: whether training and evaluation must both have stalled, or one of them");
    in.optional("ratio_threshold", cfg.ratio_threshold, config::at_least(0.0),
                "tocsin: largest rise over the best evaluation");
    in.optional("behind", cfg.behind, config::between(0.0, 1.0),
                "tocsin: least share of the run since the best evaluation");
    in.optional("noise_factor", cfg.noise_factor, config::at_least(0.0),
                "tocsin: smallest rise, in standard deviations of a single evaluation");
    read_train_set(in, cfg.train_set);
  }

  static std::vector<Need> needs(const Config&) { return {{"losses"}}; }

  template <typename Own>
  static void adjust(const Config&, Own& program) {
    program.config.chosen =
        !program.common.collection_names.empty() || !program.common.tensor_regex.empty();
  }

  static bool concerns(const Config& cfg, const ReadSeries& one, core::Mode mode) {
    if (cfg.original ? one.grows : one.name.counts_samples) return false;
    return one.value->role != core::Role::metric || cfg.chosen || mode == core::Mode::global;
  }
  static bool evaluates(const Config& cfg, const ReadSeries& one, core::Mode mode) {
    if (one.trains || one.name.train_word || !concerns(cfg, one, mode)) return false;
    return one.name.set != 0 || mode == core::Mode::eval;
  }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    const std::vector<ReadSeries> all = read_series(point, cfg.train_set);
    if (!cfg.original) return compare(cfg, memory, all, point, report);
    FiniteMean mean;
    for (const ReadSeries& one : all) {
      if (!one.trains || !concerns(cfg, one, point.mode)) continue;
      train(cfg, memory, one.name.metric, point, one.value->finite);
      mean.add(one.value->finite);
    }
    if (mean.terms > 0) train(cfg, memory, kMean, point, mean.value());
    const Shown shown = validate(cfg, memory, all, point);
    // Each pair of which a side has a new value, once.
    for (const ReadSeries& one : all) {
      if (one.trains && concerns(cfg, one, point.mode)) {
        judge_training(cfg, memory, one, point, report);
      } else if (shown == Shown::each && evaluates(cfg, one, point.mode)) {
        const State* state = memory.of<State>({one.value->name, kJoined});
        const bool trained = state != nullptr && trained_here(state->metric, all);
        if (state != nullptr && !trained)
          judge(cfg, memory, *state, one.value->name, point, report);
      }
    }
    if (mean.terms > 0 || shown == Shown::mean) judge_mean(cfg, memory, point, report);
  }

  static void on_pass(const Config& cfg, SeriesMemory& memory, const StepPoint& pass,
                      SeriesReport& report) {
    const std::vector<ReadSeries> all = read_series(pass, cfg.train_set);
    if (!cfg.original) return compare(cfg, memory, all, pass, report);
    const Shown shown = validate(cfg, memory, all, pass);
    if (shown == Shown::mean) return judge_mean(cfg, memory, pass, report);
    for (const ReadSeries& one : all) {
      const State* state =
          evaluates(cfg, one, pass.mode) ? memory.of<State>({one.value->name, kJoined}) : nullptr;
      if (state != nullptr) judge(cfg, memory, *state, one.value->name, pass, report);
    }
  }

  // ------------------------------------------------------------------------------- original

  // True when the metric was trained on in the step itself: its pairs are then judged with it.
  static bool trained_here(std::uint64_t metric, const std::vector<ReadSeries>& all) {
    return std::any_of(all.begin(), all.end(), [&](const ReadSeries& one) {
      return one.trains && one.name.metric == metric;
    });
  }

  static void train(const Config& cfg, SeriesMemory& memory, std::uint64_t metric,
                    const StepPoint& point, double loss) {
    auto* training = memory.of<Training>({metric, kTraining});
    if (training != nullptr) training->side.take(point.step, loss, cfg.delta);
  }

  // What the evaluations of a point come to: each belongs to the training of its name, and those whose
  // training has another name are left out beside it; where no name is trained, the mean over losses
  // belongs to the mean of training. Where nobody trains, each stands for itself.
  static Shown validate(const Config& cfg, SeriesMemory& memory, const std::vector<ReadSeries>& all,
                        const StepPoint& point) {
    bool paired = point.mode == core::Mode::global;
    for (const ReadSeries& one : all) {
      paired = paired || (evaluates(cfg, one, point.mode) && is_trained(memory, one.name.metric));
    }
    const bool trains = point.mode != core::Mode::global && is_trained(memory, kMean);
    bool any = false;
    for (const ReadSeries& one : all) {
      if (!evaluates(cfg, one, point.mode)) continue;
      any = true;
      if (!trains || is_trained(memory, one.name.metric)) validate(cfg, memory, one, point);
    }
    if (!any || paired || !trains) return Shown::each;
    if (State* state = memory.of<State>({kMean, kJoined})) {
      state->side.take(point.step, mean_of(cfg, all, point), cfg.delta);
      state->set_name("losses");
      state->metric = kMean;
    }
    return Shown::mean;
  }

  // Of a pass, over the losses of each step first.
  static double mean_of(const Config& cfg, const std::vector<ReadSeries>& all,
                        const StepPoint& point) {
    if (!point.pass.empty()) {
      return mean_of_steps(point.pass, [&](const PassValue& value) {
        return std::any_of(all.begin(), all.end(), [&](const ReadSeries& one) {
          return one.value->name == value.name && evaluates(cfg, one, point.mode);
        });
      });
    }
    FiniteMean mean;
    for (const ReadSeries& one : all) {
      if (evaluates(cfg, one, point.mode)) mean.add(one.value->finite);
    }
    return mean.value();
  }

  static bool is_trained(SeriesMemory& memory, std::uint64_t metric) {
    const auto* training = memory.of<Training>({metric, kTraining});
    return training != nullptr && training->side.seen > 0;
  }

  static void judge_mean(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                         SeriesReport& report) {
    const State* state = memory.of<State>({kMean, kJoined});
    if (state != nullptr && state->side.seen > 0) judge(cfg, memory, *state, kMean, point, report);
  }

  static void validate(const Config& cfg, SeriesMemory& memory, const ReadSeries& one,
                       const StepPoint& point) {
    State* state = memory.of<State>({one.value->name, kJoined});
    auto* training = memory.of<Training>({one.name.metric, kTraining});
    if (state == nullptr || training == nullptr) return;
    state->side.take(point.step, one.value->finite, cfg.delta);
    if (state->length != 0) return;
    state->set_name(one.value->text);
    state->metric = one.name.metric;
    if (training->known < kSets) training->sets[training->known++] = one.value->name;
  }

  static void judge_training(const Config& cfg, SeriesMemory& memory, const ReadSeries& one,
                             const StepPoint& point, SeriesReport& report) {
    const auto* training = memory.of<Training>({one.name.metric, kTraining});
    if (training == nullptr) return;
    for (std::uint32_t i = 0; i < training->known; ++i) {
      if (const State* state = memory.of<State>({training->sets[i], kJoined})) {
        judge(cfg, memory, *state, training->sets[i], point, report);
      }
    }
    const State* mean = memory.of<State>({kMean, kJoined});
    if (training->known > 0 || (mean != nullptr && mean->side.seen > 0)) return;
    const Side nothing;
    const Verdict verdict = stalled(cfg, training->side, nothing);
    const auto why = [&](const Subject& subject, unsigned) {
      return explain_original(cfg, training->side, nothing, subject);
    };
    report.evaluated({one.value->name, kJoined}, one.value->text, verdict, point, why);
  }

  static void judge(const Config& cfg, SeriesMemory& memory, const State& state, std::uint64_t name,
                    const StepPoint& point, SeriesReport& report) {
    const auto* training = memory.of<Training>({state.metric, kTraining});
    if (training == nullptr || state.side.seen == 0) return;  // it was left out so far
    const Verdict verdict = stalled(cfg, training->side, state.side);
    const auto why = [&](const Subject& subject, unsigned) {
      return explain_original(cfg, training->side, state.side, subject);
    };
    report.evaluated({name, kJoined}, state.name(), verdict, point, why);
  }

  static Verdict stalled(const Config& cfg, const Side& training, const Side& evaluation) {
    if (training.broken >= 3 || evaluation.broken >= 3) return kInsufficient;
    const bool trained = training.without >= cfg.patience_train;
    const bool evaluated = evaluation.without >= cfg.patience_validation;
    if (cfg.require == "any") return trained || evaluated ? hit() : kOk;
    if (training.seen == 0 || evaluation.seen == 0) return kInsufficient;
    return trained && evaluated ? hit() : kOk;
  }

  static Finding explain_original(const Config& cfg, const Side& training, const Side& evaluation,
                                  const Subject& subject) {
    const bool by_evaluation = evaluation.without >= cfg.patience_validation;
    Finding finding = Finding::that(by_evaluation ? "evaluations_without" : "values_without",
                                    by_evaluation ? evaluation.without : training.without);
    finding
        .is(">=", by_evaluation ? "patience_validation" : "patience_train",
            by_evaluation ? cfg.patience_validation : cfg.patience_train)
        .titled(subject.name, Verb::does_not, "fall any more")
        .says(sentence("{} no longer falls: {} training values and {} evaluations without an "
                       "improvement of {}.",
                       subject.name, training.without, evaluation.without, cfg.delta))
        .advises(
            "Stop and keep the best checkpoint, or lower the learning rate. delta is absolute, in "
            "units of the loss.");
    if (training.seen > 0) {
      finding.with("training", training.current)
          .with("training_best", training.best)
          .with("training_best_step", training.best_step)
          .with("training_without", std::uint64_t{training.without});
      if (std::fabs(training.first) < 10 * cfg.delta) {
        finding.adds(
            sentence("The loss began at {}, which is small compared with delta ({}): hardly "
                     "anything counts as an improvement.",
                     training.first, cfg.delta));
      }
    }
    if (evaluation.seen > 0) {
      finding.with("evaluation", evaluation.current)
          .with("evaluation_best", evaluation.best)
          .with("evaluation_best_step", evaluation.best_step)
          .with("evaluation_without", std::uint64_t{evaluation.without})
          .with("above_best", evaluation.current > evaluation.best);
    }
    return finding;
  }

  // --------------------------------------------------------------------------------- tocsin

  // The training step; without modes every step trains, and where nobody trains evaluations count.
  static double trained(const StepPoint& point) {
    const bool trains = point.mode != core::Mode::global && point.train_step >= 0;
    return static_cast<double>(trains ? point.train_step : point.step);
  }

  static void compare(const Config& cfg, SeriesMemory& memory, const std::vector<ReadSeries>& all,
                      const StepPoint& point, SeriesReport& report) {
    remember_gains(memory, all, point);
    for (const ReadSeries& one : all) {
      if (!evaluates(cfg, one, point.mode)) continue;
      const SeriesKey key{one.value->name, kJoined};
      State* state = memory.of<State>(key);
      if (state == nullptr) continue;
      Verdict verdict = kInsufficient;
      if (std::isfinite(one.value->finite)) {
        const double now = trained(point);
        state->sign = one.grows ? -1 : 1;
        state->curve.take(point.step, now, state->sign * one.value->finite, cfg.ratio_threshold,
                          cfg.noise_factor);
        const double since = now - state->curve.best_at;
        const bool long_ago = since >= cfg.behind * now;
        state->behind = now > 0 ? since / now : 0;
        const bool turned = state->curve.strikes >= cfg.patience_validation && long_ago;
        verdict = turned && !another_gains(memory, all, one, point) ? hit() : kOk;
      }
      const auto why = [&](const Subject& subject, unsigned) {
        return explain_tocsin(cfg, *state, subject);
      };
      report.evaluated(key, one.value->text, verdict, point, why);
    }
  }

  static Finding explain_tocsin(const Config& cfg, const State& state, const Subject& subject) {
    const EvaluationCurve& curve = state.curve;
    const double value = state.sign * curve.value;
    const double best = state.sign * curve.best;
    return Finding::that("rise_over_best", curve.excess)
        .is(">", "ratio_threshold", cfg.ratio_threshold)
        .titled(sentence("evaluation {}", subject.name), Verb::is, "past its best")
        .says(sentence("Training continues past its best: the evaluation {} is {}, {} % {} its "
                       "best of {} at step {}. {} % of the run came after that.",
                       subject.name, value, 100 * curve.excess, state.sign > 0 ? "above" : "below",
                       best, curve.best_step, 100 * state.behind))
        .advises("Stop and keep the best checkpoint. Add early stopping for the next run.")
        .since(curve.best_step, std::uint64_t{curve.strikes} + 1)
        .with("evaluation", value)
        .with("best", best)
        .with("best_step", curve.best_step)
        .with("behind", state.behind)
        .with("spread", curve.spread)
        .with("strikes", std::uint64_t{curve.strikes});
  }
};

}  // namespace

RuleDescriptor overtraining() {
  return {.name = "overtraining",
          .original_name = "Overtraining",
          .title = "Training continues although the losses have stopped falling.",
          .unit = "series",
          .needs = "collection losses in train and eval",
          .presets =
              "tocsin asks for an evaluation 5 % above its own best, twice in a row, and a tenth "
              "of the run since that best. original counts values without an improvement by an "
              "absolute delta, which small losses never make.",
          .severity = core::Severity::info,
          .version = "6",
          .groups = group::kPyTorch | group::kXGBoost,
          .read = &read_series_rule<Overtraining>};
}

}  // namespace tocsin::rules
