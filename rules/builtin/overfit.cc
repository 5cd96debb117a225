// Fires when the evaluation loss moves away while training goes on.
//
// Reads   scalars with role loss in train and eval; pairs `loss` with `val_loss` in one mode and
//         `train-m` with `<other set>-m`.
// Window  since the start of the attempt, O(1) state per loss; one point of comparison per pass.
// Fires   preset tocsin: the pass mean lies ratio_threshold (2 %) above its own best, patience (3)
//         passes in a row.
//         preset original: (V − T) / max(|T|, 1e-12) > ratio_threshold for patience points in a
//         row, T = mean train loss since the pass before.
//         Both from start_step on.
// Quiet   without evaluation values; non-finite values are left out of the means.
// Source  Amazon SageMaker Debugger, Overfit; docs/rules/overfit.md. The gap to training exceeds
//         the original's limit in most healthy runs, so here it is evidence only.

#include <cmath>
#include <set>

#include "rules/rule.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

struct Overfit {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::uint64_t kMean = 0;  // key of the mean over all losses of a step

  struct Config {
    bool original = false;
    std::int64_t start_step = 0;
    std::uint32_t patience = 1;
    double ratio_threshold = 0.1;
  };
  struct State {
    double train_sum = 0;
    std::uint32_t train_values = 0;
    double train = std::nan("");  // last mean of training
    bool trained = false;
    double validation = 0;
    double best = HUGE_VAL;
    std::int64_t best_step = 0;
    double excess = 0;
    std::uint32_t strikes = 0;
    std::uint32_t averaged = 0;  // train values behind `train`
  };

  /// What a name says: "val_loss" is the evaluation of "loss"; "valid-rmse" that of "rmse".
  struct Meaning {
    std::string base;
    bool evaluation = false;
  };

  static Defaults defaults(Preset) {
    return {.modes = kTrainModes | mode_bit(core::Mode::eval),
            .roles = {core::Role::loss},
            .has_start_step = false};
  }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.original = preset == Preset::original;
    if (!cfg.original) {
      cfg.patience = 3;
      cfg.ratio_threshold = 0.02;
    }
    in.optional("start_step", cfg.start_step, config::at_least(std::int64_t{0}),
                "first training step at which an issue may be raised");
    in.optional("patience", cfg.patience, config::at_least(std::uint32_t{1}),
                "comparison points in a row above the limit");
    in.optional("ratio_threshold", cfg.ratio_threshold, config::at_least(0.0),
                "tocsin: rise over the best evaluation; original: excess over the train loss");
  }

  static std::vector<Need> needs(const Config&) { return {{"losses"}}; }

  static Meaning meaning(std::string_view name, core::Mode mode) {
    for (const std::string_view prefix : {"val_", "val/", "eval_", "eval/", "valid_", "valid/"}) {
      if (name.starts_with(prefix)) return {std::string(name.substr(prefix.size())), true};
    }
    for (const std::string_view prefix : {"validation-", "valid-", "eval-", "test-"}) {
      if (name.starts_with(prefix)) return {std::string(name.substr(prefix.size())), true};
    }
    for (const std::string_view prefix : {"train-", "train_", "train/"}) {
      if (name.starts_with(prefix)) return {std::string(name.substr(prefix.size())), false};
    }
    return {std::string(name), mode == core::Mode::eval};
  }

  static SeriesKey key_of(const std::string& base) { return {core::name_hash(base), 0xFF}; }

  static void train(SeriesMemory& memory, const SeriesKey& key, double value) {
    State* state = memory.of<State>(key);
    if (state == nullptr) return;
    state->trained = true;
    if (!std::isfinite(value)) return;
    state->train_sum += value;
    ++state->train_values;
  }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    double sum = 0;
    std::uint32_t count = 0;
    for (const SeriesValue& value : point.values) {
      const Meaning what = meaning(value.text, point.mode);
      if (what.evaluation) continue;
      train(memory, key_of(what.base), value.value);
      if (!std::isfinite(value.value)) continue;
      sum += value.value;
      ++count;
    }
    if (count > 0) train(memory, {kMean, 0xFF}, sum / count);
    on_pass(cfg, memory, point, report);  // pairs within one step
  }

  static void on_pass(const Config& cfg, SeriesMemory& memory, const StepPoint& pass,
                      SeriesReport& report) {
    double sum = 0;
    std::uint32_t count = 0;
    std::uint32_t losses = 0;
    bool paired = false;
    for (const SeriesValue& value : pass.values) {
      const Meaning what = meaning(value.text, pass.mode);
      if (!what.evaluation) continue;
      ++losses;
      const State* state = memory.of<State>(key_of(what.base));
      paired = paired || !cfg.original || (state != nullptr && state->trained);
      if (!std::isfinite(value.value)) continue;
      sum += value.value;
      ++count;
    }
    if (losses == 0) return;
    const bool trains = memory.of<State>({kMean, 0xFF})->trained;
    for (const SeriesValue& value : pass.values) {
      const Meaning what = meaning(value.text, pass.mode);
      if (!what.evaluation || !paired) continue;
      const SeriesKey key = key_of(what.base);
      State* state = memory.of<State>(key);
      if (state == nullptr || (cfg.original && !state->trained)) continue;
      judge(cfg, *state, key, what.base, value.value, pass, report);
    }
    if (!paired && trains) {
      const double mean = count == 0 ? std::nan("") : sum / count;
      judge(cfg, *memory.of<State>({kMean, 0xFF}), {kMean, 0xFF}, "losses", mean, pass, report);
    } else if (State* state = memory.of<State>({kMean, 0xFF})) {
      state->train_sum = 0;  // this pass is over for the mean, too
      state->train_values = 0;
    }
  }

  static void judge(const Config& cfg, State& state, const SeriesKey& key, std::string_view name,
                    double value, const StepPoint& pass, SeriesReport& report) {
    if (state.train_values > 0) {
      state.train = state.train_sum / state.train_values;
      state.averaged = state.train_values;
    }
    state.train_sum = 0;
    state.train_values = 0;
    state.validation = value;
    const Verdict verdict = cfg.original ? original(cfg, state, pass) : tocsin(cfg, state, pass);
    const auto why = [&](const Subject& subject, unsigned) {
      return explain(cfg, state, subject, pass);
    };
    report.evaluated(key, name, verdict, pass, why);
  }

  static Verdict strike(const Config& cfg, State& state, bool above, const StepPoint& pass) {
    state.strikes = above ? state.strikes + 1 : 0;
    return state.strikes >= cfg.patience && pass.train_step >= cfg.start_step ? hit() : kOk;
  }

  static Verdict original(const Config& cfg, State& state, const StepPoint& pass) {
    state.excess = (state.validation - state.train) / std::max(std::fabs(state.train), 1e-12);
    if (!std::isfinite(state.validation) || !std::isfinite(state.train)) return kInsufficient;
    return strike(cfg, state, state.excess > cfg.ratio_threshold, pass);
  }

  static Verdict tocsin(const Config& cfg, State& state, const StepPoint& pass) {
    if (!std::isfinite(state.validation)) return kInsufficient;
    if (state.validation < state.best) {
      state.best = state.validation;
      state.best_step = pass.step;
    }
    state.excess = (state.validation - state.best) / std::max(std::fabs(state.best), 1e-12);
    return strike(cfg, state, state.excess > cfg.ratio_threshold, pass);
  }

  static Finding explain(const Config& cfg, const State& state, const Subject& subject,
                         const StepPoint& pass) {
    const std::string rows =
        sentence("{} {} in a row", state.strikes, state.strikes == 1 ? "pass" : "passes");
    const std::string beside = std::isfinite(state.train)
                                   ? sentence(", while the training loss is {}", state.train)
                                   : std::string();
    Finding finding =
        Finding::that(cfg.original ? "excess_over_training" : "rise_over_best", state.excess);
    finding.is(">", "ratio_threshold", cfg.ratio_threshold)
        .says(cfg.original
                  ? sentence("The evaluation {} is {} against {} in training, {} % above it (limit "
                             "{} %), {}.",
                             subject.name, state.validation, state.train, 100 * state.excess,
                             100 * cfg.ratio_threshold, rows)
                  : sentence("The evaluation {} has turned: {} now, {} % above its best of {}, for "
                             "{}{}.",
                             subject.name, state.validation, 100 * state.excess, state.best, rows,
                             beside))
        .advises(
            "Stop here and keep the best checkpoint, or regularise: more data or augmentation, "
            "dropout, weight decay, a smaller model.")
        .with("validation", state.validation)
        .with("training", state.train)
        .with("training_values", std::uint64_t{state.averaged})
        .with("strikes", std::uint64_t{state.strikes})
        .with("training_step", pass.train_step);
    if (!cfg.original) finding.with("best", state.best).with("best_step", state.best_step);
    finding.points = state.strikes;
    return finding;
  }
};

}  // namespace

RuleDescriptor overfit() {
  return {.name = "overfit",
          .original_name = "Overfit",
          .title = "The evaluation loss moves away while training goes on.",
          .unit = "series",
          .needs = "collection losses in train and eval",
          .presets =
              "tocsin compares the evaluation with its own best (2 %, 3 passes in a row); "
              "original compares it with the training loss (10 %, 1 pass), which fires on "
              "65 % of healthy runs.",
          .severity = core::Severity::warning,
          .read = &read_series_rule<Overfit>};
}

}  // namespace tocsin::rules
