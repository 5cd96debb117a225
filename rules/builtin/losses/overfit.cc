// Fires when the evaluation loss moves away while training goes on.
//
// Reads   scalars with role loss in train and eval; where a script sets no mode (XGBoost) also
//         metrics of a data set (`validation-rmse`). Names are read as words (metric_name.h).
// Window  since the start of the attempt, O(1) state per loss. A point of comparison is the end of
//         an evaluation pass, or a train or global step with a value of an evaluation set.
// Fires   preset tocsin: the evaluation lies ratio_threshold (2 %) and noise_factor deviations of a
//         single evaluation above its own best, patience (3) points in a row. One less is enough
//         where it still rises, lies steep_threshold (5 %) above and at twice the training loss; and
//         where it has given back back_share (0.15) of what was gained since the first value, while
//         training goes on to gain (a tenth since the best), and it still rises or lies at twice the training
//         loss: noise of a single evaluation is small against that, and its estimate is not, where the
//         curve turns.
//         Where every step is evaluated, as boosting rounds are, three are no time: there it must
//         have lost more than round_share (half) of what it had gained since the first. Or it gains
//         less than gain_share (0.1) of what training gains, one point less in a row: what is
//         learned is of no use for other data. boosting_course.h has more of rounds: no gain where training
//         has made little, also of growing metrics, and a seventh of the gain given back while
//         training goes on to gain.
//         preset original: (V − T) / max(|T|, 1e-12) > ratio_threshold for patience points in a
//         row, T = mean train loss since the point before.
//         Both from start_step on.
// Quiet   without evaluation values; tocsin: of rounds while a growing metric of the same data still
//         gains (gaining_metric.h); where the best is negative and training shares a fifth of
//         the rise; non-finite values are left out of the means. tocsin: `error`
//         and `merror`, which count whole samples. original: metrics that should grow; tocsin
//         judges their fall.
// Source  Amazon SageMaker Debugger, Overfit; docs/rules/overfit.md. The gap to training exceeds
//         the original's limit in most healthy runs, so here it is evidence only.

#include <cmath>

#include "rules/builtin/losses/gaining_metric.h"
#include "rules/builtin/losses/pass_values.h"
#include "rules/builtin/shared/boosting_course.h"
#include "rules/builtin/shared/evaluation_course.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct Overfit {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {
      "noise_factor", "steep_threshold", "round_share", "gain_share", "back_share", "train_set"};
  static constexpr bool kEveryPass = true;   // behind each the training mean begins anew
  static constexpr std::uint64_t kMean = 0;  // name of the mean over all losses of a step
  static constexpr std::uint8_t kJoined = 0xFF;
  static constexpr std::uint8_t kTraining = 0xFE;  // marks the memory of a metric's training values

  struct Config : CourseLimits {
    bool original = false;
    std::int64_t start_step = 0;
    std::string train_set;
    bool chosen = false;  // the user says which series
  };
  struct Shared {
    std::uint64_t points = 0;  // of comparison so far: behind each the training mean begins anew
  };
  /// The training values of one metric since the last point of comparison that they precede.
  struct Training {
    double sum = 0;
    std::uint32_t finite = 0;
    std::uint32_t values = 0;  // 0: the metric was never trained on
    std::uint64_t points = 0;
    std::int64_t step = 0;  // of the newest value
    double newest = 0;

    [[nodiscard]] double mean() const { return finite == 0 ? std::nan("") : sum / finite; }
  };
  struct State : EvaluationCourse {
    std::uint64_t averaged = 0;   // values behind `training`
    std::uint64_t evaluated = 0;  // and behind the newest evaluation
    BoostingCourse rounds;
    std::uint64_t beside = 0;  // 1: a growing metric beside a loss, see grows_beside()
  };

  static Defaults defaults(Preset) {
    return {.modes = kTrainModes | mode_bit(core::Mode::eval),
            .roles = {core::Role::loss, core::Role::metric},
            .has_start_step = false};
  }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.original = preset == Preset::original;
    if (!cfg.original) {
      cfg.patience = 3;
      cfg.ratio_threshold = 0.02;
      cfg.noise_factor = 4;
      cfg.steep_threshold = 0.05;
      cfg.round_share = 0.5;
      cfg.gain_share = 0.1;
      cfg.back_share = 0.15;
    }
    in.optional("start_step", cfg.start_step, config::at_least(std::int64_t{0}),
                "first training step at which it may raise an issue");
    in.optional("patience", cfg.patience, config::at_least(std::uint32_t{1}),
                "evaluations in a row above the limit");
    in.optional("ratio_threshold", cfg.ratio_threshold, config::at_least(0.0),
                "tocsin: largest rise over the best evaluation; original: largest excess over the "
                "training loss");
    in.optional("noise_factor", cfg.noise_factor, config::at_least(0.0),
                "tocsin: smallest rise, in standard deviations of a single evaluation");
    in.optional("steep_threshold", cfg.steep_threshold, config::at_least(0.0),
                "tocsin: a rise over the best evaluation of this much needs one evaluation less, "
                "if it continues and the evaluation is twice the training loss; 0 = off");
    in.optional("round_share", cfg.round_share, config::at_least(0.0),
                "tocsin: if every step is evaluated, share of the gain that must be lost");
    in.optional("gain_share", cfg.gain_share, config::between(0.0, 1.0),
                "tocsin: if every step is evaluated, share of training's gain that the evaluation "
                "must gain too; 0 = off");
    in.optional("back_share", cfg.back_share, config::at_least(0.0),
                "tocsin: if training still gains, a loss of this share of the gain needs one "
                "evaluation less; 0 = off");
    read_train_set(in, cfg.train_set);
  }

  static std::vector<Need> needs(const Config&) { return {{"losses"}}; }

  template <typename Own>
  static void adjust(const Config&, Own& program) {
    program.config.chosen =
        !program.common.collection_names.empty() || !program.common.tensor_regex.empty();
  }

  // Losses in any mode, and what the user chose; where no mode is set, metrics too. Preset tocsin:
  // metrics of a set that grow by their name, where a step has nothing else of one (boosting that
  // sets modes, with auc alone).
  static bool concerns(const Config& cfg, const ReadSeries& one, const StepPoint& point) {
    return one.value->role != core::Role::metric || cfg.chosen ||
           point.mode == core::Mode::global || (!cfg.original && stands_alone(one, point));
  }
  static bool stands_alone(const ReadSeries& one, const StepPoint& point) {
    if (one.name.set == 0 || !one.grows || !one.name.grows || point.mode == core::Mode::eval) {
      return false;
    }
    return std::none_of(point.values.begin(), point.values.end(),
                        [](const SeriesValue& value) { return value.role == core::Role::loss; });
  }
  // Growing metrics of data sets beside the losses of a step: of those only is judged whether they gain anything.
  static bool grows_beside(const Config& cfg, const ReadSeries& one, const StepPoint& point) {
    return !cfg.original && !concerns(cfg, one, point) && one.name.set != 0 && one.grows &&
           one.name.grows && point.mode == core::Mode::train;
  }
  // An evaluation set's; the metrics of one say so in their names.
  static bool evaluates(const Config& cfg, const ReadSeries& one, const StepPoint& point) {
    if (one.trains || one.name.train_word || !concerns(cfg, one, point)) return false;
    return one.name.set != 0 || point.mode == core::Mode::eval;
  }
  static void train(SeriesMemory& memory, std::uint64_t metric, std::int64_t step, double value) {
    auto* training = memory.of<Training>({metric, kTraining});
    if (training == nullptr) return;
    const std::uint64_t points = memory.shared<Shared>().points;
    if (training->points != points || training->values == 0) {
      *training = {};
      training->points = points;
    }
    ++training->values;
    training->step = step;
    training->newest = value;
    if (!std::isfinite(value)) return;
    training->sum += value;
    ++training->finite;
  }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    const std::vector<ReadSeries> all = read_series(point, cfg.train_set);
    double sum = 0;
    std::uint32_t finite = 0;
    bool losses = false;
    for (const ReadSeries& one : all) {
      if (!one.trains || !concerns(cfg, one, point)) continue;
      train(memory, one.name.metric, point.step, one.value->finite);
      if (one.value->role == core::Role::metric) continue;
      losses = true;
      if (!std::isfinite(one.value->finite)) continue;
      sum += one.value->finite;
      ++finite;
    }
    remember_gains(memory, all, point);
    judge_beside(cfg, memory, all, point, report);
    if (losses) train(memory, kMean, point.step, finite == 0 ? std::nan("") : sum / finite);
    if (compare(cfg, memory, all, point, report)) ++memory.shared<Shared>().points;
  }

  static void on_pass(const Config& cfg, SeriesMemory& memory, const StepPoint& pass,
                      SeriesReport& report) {
    compare(cfg, memory, read_series(pass, cfg.train_set), pass, report);
    ++memory.shared<Shared>().points;
  }

  static void judge_beside(const Config& cfg, SeriesMemory& memory,
                           const std::vector<ReadSeries>& all, const StepPoint& point,
                           SeriesReport& report) {
    for (const ReadSeries& one : all) {
      if (one.trains && grows_beside(cfg, one, point)) {
        train(memory, one.name.metric, point.step, one.value->finite);
      }
    }
    for (const ReadSeries& one : all) {
      if (one.trains || one.name.train_word || !grows_beside(cfg, one, point)) continue;
      const Training* training = trained_on(memory, one.name.metric);
      if (training == nullptr || training->step != point.step) continue;
      judge(cfg, memory, {one.value->name, kJoined}, one.value->text, training, one.value->finite,
            one, point, report);
    }
  }

  // What the values of evaluation sets come to; false: there are none.
  static bool compare(const Config& cfg, SeriesMemory& memory, const std::vector<ReadSeries>& all,
                      const StepPoint& point, SeriesReport& report) {
    return cfg.original ? compare_with_training(cfg, memory, all, point, report)
                        : follow_courses(cfg, memory, all, point, report);
  }

  // Preset tocsin: each by its own course.
  static bool follow_courses(const Config& cfg, SeriesMemory& memory,
                             const std::vector<ReadSeries>& all, const StepPoint& point,
                             SeriesReport& report) {
    bool any = false;
    for (const ReadSeries& one : all) {
      if (!evaluates(cfg, one, point)) continue;
      any = true;
      if (one.name.counts_samples) continue;
      const Training* training = partner(memory, one, point);
      const bool gains = another_gains(memory, all, one, point);
      judge(cfg, memory, {one.value->name, kJoined}, one.value->text, training, one.value->finite,
            one, point, report, gains);
    }
    return any;
  }

  // Preset original: each with the training values of its metric; where none has any, their mean with the mean of
  // the losses.
  static bool compare_with_training(const Config& cfg, SeriesMemory& memory,
                                    const std::vector<ReadSeries>& all, const StepPoint& point,
                                    SeriesReport& report) {
    double sum = 0;
    std::uint32_t finite = 0;
    bool any = false;
    bool paired = point.mode == core::Mode::global;
    for (const ReadSeries& one : all) {
      if (!evaluates(cfg, one, point)) continue;
      any = true;
      paired = paired || partner(memory, one, point) != nullptr;
      if (!std::isfinite(one.value->finite)) continue;
      sum += one.value->finite;
      ++finite;
    }
    for (const ReadSeries& one : all) {
      if (!evaluates(cfg, one, point) || one.grows) continue;
      const Training* training = partner(memory, one, point);
      if (training == nullptr) continue;
      judge(cfg, memory, {one.value->name, kJoined}, one.value->text, training, one.value->finite,
            one, point, report);
    }
    if (any && !paired) {
      const Training* training = trained_on(memory, kMean);
      const double plain = finite == 0 ? std::nan("") : sum / finite;
      const double mean = point.pass.empty() ? plain : mean_of_losses(cfg, all, point);
      judge(cfg, memory, {kMean, kJoined}, "losses", training, mean, {}, point, report);
    }
    return any;
  }

  // Of a pass, over the losses of each step first.
  static double mean_of_losses(const Config& cfg, const std::vector<ReadSeries>& all,
                               const StepPoint& point) {
    return mean_of_steps(point.pass, [&](const PassValue& value) {
      return std::any_of(all.begin(), all.end(), [&](const ReadSeries& one) {
        return one.value->name == value.name && evaluates(cfg, one, point);
      });
    });
  }

  static const Training* trained_on(SeriesMemory& memory, std::uint64_t metric) {
    const auto* training = memory.of<Training>({metric, kTraining});
    return training == nullptr || training->values == 0 ? nullptr : training;
  }

  // The training values that a series is compared with; nullptr: there are none. Without modes both
  // stand in one step.
  static const Training* partner(SeriesMemory& memory, const ReadSeries& one,
                                 const StepPoint& point) {
    const Training* training = trained_on(memory, one.name.metric);
    const bool here =
        training != nullptr && (point.mode != core::Mode::global || training->step == point.step);
    return here ? training : nullptr;
  }

  static void judge(const Config& cfg, SeriesMemory& memory, const SeriesKey& key,
                    std::string_view name, const Training* training, double value,
                    const ReadSeries& series, const StepPoint& point, SeriesReport& report,
                    bool another_gains = false) {
    State* state = memory.of<State>(key);
    if (state == nullptr) return;
    state->beside = series.value != nullptr && grows_beside(cfg, series, point) ? 1 : 0;
    const bool one = point.mode == core::Mode::global;
    const bool newest = one || state->beside != 0;
    state->training = training == nullptr ? std::nan("")
                      : newest            ? training->newest
                                          : training->mean();
    state->averaged = training == nullptr ? 0 : newest ? 1 : training->finite;
    state->evaluated = values_behind(point, series);
    state->sign = series.grows ? -1 : 1;
    state->bounded = series.grows && series.name.grows ? 1 : 0;
    state->alone =
        series.value != nullptr && series.value->role == core::Role::metric && !cfg.chosen && !one
            ? 1
            : 0;
    Verdict verdict =
        cfg.original ? original(cfg, *state, value, point) : tocsin(cfg, *state, value, point);
    if (another_gains && verdict.outcome == EvaluationOutcome::hit) verdict = kOk;
    const auto why = [&](const Subject& subject, unsigned) {
      return explain(cfg, *state, subject, point);
    };
    report.evaluated(key, name, verdict, point, why);
  }

  // Finite values of the pass; of the mean over losses those of all.
  static std::uint64_t values_behind(const StepPoint& point, const ReadSeries& series) {
    if (point.pass.empty()) return 1;
    const auto counts = [&](const PassValue& value) {
      const bool own =
          series.value != nullptr
              ? series.value->name == value.name
              : std::any_of(point.values.begin(), point.values.end(), [&](const auto& one) {
                  return one.name == value.name && one.role == core::Role::loss;
                });
      return own && std::isfinite(value.value);
    };
    return static_cast<std::uint64_t>(std::count_if(point.pass.begin(), point.pass.end(), counts));
  }

  // Without modes every step trains.
  static std::int64_t trained(const StepPoint& point) {
    return point.mode == core::Mode::global ? point.step : point.train_step;
  }

  static Verdict told(const Config& cfg, bool turns, const StepPoint& point) {
    return turns && (cfg.start_step == 0 || trained(point) >= cfg.start_step) ? hit() : kOk;
  }

  static Verdict original(const Config& cfg, State& state, double value, const StepPoint& point) {
    EvaluationCurve& curve = state.curve;
    curve.value = value;
    curve.excess = (value - state.training) / std::max(std::fabs(state.training), 1e-12);
    if (!std::isfinite(value) || !std::isfinite(state.training)) return kInsufficient;
    curve.strikes = curve.excess > cfg.ratio_threshold ? curve.strikes + 1 : 0;
    return told(cfg, curve.strikes >= cfg.patience, point);
  }

  static Verdict tocsin(const Config& cfg, State& state, double value, const StepPoint& point) {
    if (!std::isfinite(value)) return kInsufficient;
    const bool each_step = point.mode != core::Mode::eval;
    const bool turns = state.turns(cfg, point.step, static_cast<double>(trained(point)),
                                   state.sign * value, each_step);
    const bool rounds = state.rounds.turns(cfg, state, point.step, each_step, state.beside != 0);
    return told(cfg, (turns && state.beside == 0) || rounds, point);
  }

  static Finding explain(const Config& cfg, const State& state, const Subject& subject,
                         const StepPoint& point) {
    const EvaluationCurve& curve = state.curve;
    const double value = state.sign * curve.value;
    const double best = state.sign * curve.best;
    const std::uint64_t strikes =
        std::max<std::uint64_t>({curve.strikes, state.back, state.rounds.returned});
    const std::string rows = sentence("{} {} in a row", strikes, strikes == 1 ? "pass" : "passes");
    const std::string beside = std::isfinite(state.training)
                                   ? sentence(", while the training loss is {}", state.training)
                                   : std::string();
    if (!cfg.original && (state.apart >= cfg.patience || state.rounds.useless >= cfg.patience))
      return explain_apart(cfg, state, subject, point);
    Finding finding =
        Finding::that(cfg.original ? "excess_over_training" : "rise_over_best", curve.excess);
    finding.is(">", "ratio_threshold", cfg.ratio_threshold)
        .titled(sentence("evaluation {}", subject.name), Verb::is,
                cfg.original ? "far above training" : "past its best")
        .says(cfg.original
                  ? sentence("The evaluation {} is {}, against {} in training: {} % above it "
                             "(limit {} %), {}.",
                             subject.name, value, state.training, 100 * curve.excess,
                             100 * cfg.ratio_threshold, rows)
                  : sentence(
                        "The evaluation {} has turned: {} now, {} % {} its best of {}, for {}{}.",
                        subject.name, value, 100 * curve.excess, state.sign > 0 ? "above" : "below",
                        best, rows, beside))
        .advises(
            "Stop and keep the best checkpoint, or regularise: more data or augmentation, dropout, "
            "weight decay, a smaller model.")
        .with("validation", value)
        .with("training", state.training)
        .with("training_values", state.averaged)
        .with("validation_values", state.evaluated)
        .with("strikes", strikes)
        .with("training_step", trained(point));
    if (!cfg.original) {
      finding.with("best", best).with("best_step", curve.best_step).with("spread", curve.spread);
    }
    finding.points = strikes;
    return finding;
  }

  static Finding explain_apart(const Config& cfg, const State& state, const Subject& subject,
                               const StepPoint& point) {
    const double trained_gain = state.sign * (state.first_training - state.training);
    const double gain = state.first - state.curve.value;
    Finding finding = Finding::that("share_of_gain", gain / trained_gain);
    finding.is("<", "gain_share", cfg.gain_share)
        .titled(sentence("evaluation {}", subject.name), Verb::does_not, "gain from training")
        .says(sentence("The evaluation {} gains nothing from training: {} at first and {} now, "
                       "while {} went from {} to {}.",
                       subject.name, state.sign * state.first, state.sign * state.curve.value,
                       state.sign > 0 ? "the training loss" : "that of training",
                       state.first_training, state.training))
        .advises(
            "Check that inputs and labels belong together, and that both sets have the same "
            "columns in the same order and scale. Regularise: fewer or shallower trees, a smaller "
            "learning rate.")
        .with("validation", state.sign * state.curve.value)
        .with("training", state.training)
        .with("training_step", trained(point))
        .with("best", state.sign * state.curve.best)
        .with("spread", state.curve.spread);
    finding.points = std::max(state.apart, state.rounds.useless);
    return finding;
  }
};

}  // namespace

RuleDescriptor overfit() {
  return {.name = "overfit",
          .original_name = "Overfit",
          .title = "The evaluation loss rises while training continues.",
          .unit = "series",
          .needs = "collection losses in train and eval",
          .presets =
              "tocsin compares the evaluation with its own best: a rise of 2 % and four deviations "
              "of a single evaluation, in 3 passes. Two passes are enough if it rises steeply, or "
              "loses a seventh of its gain while training still gains. If every step is evaluated, "
              "it asks for half of the gain lost, or for no gain at all. original compares it with "
              "the training loss (10 %, 1 pass), which fires on 65 % of healthy runs.",
          .severity = core::Severity::warning,
          .version = "13",
          .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
          .read = &read_series_rule<Overfit>};
}

}  // namespace tocsin::rules
