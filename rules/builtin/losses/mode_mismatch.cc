// Fires when a model is in the wrong one of its two states: evaluation (no dropout, frozen
// statistics of normalisation layers) while it trains, or training while it is evaluated.
//
// Reads   the scalar `model_training`, which the hook sends, or `training`: 1 while the model is in its
//         training state, 0 while it is not; averaged over workers. Several models:
//         `<name>/training`.
// Window  train: the latest `steps` (3) steps that state it; eval: one evaluation pass.
// Fires   `eval_state_in_training`: the mean is below 1 for so many train steps in a row;
//         `train_state_in_evaluation`: it is 1 for a whole pass.
// Quiet   without the scalar, and for values that are no finite numbers.
// Source  our own; docs/rules/mode_mismatch.md.

#include <cmath>

#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kMismatchKinds[] = {"eval_state_in_training",
                                               "train_state_in_evaluation"};
struct ModeMismatch {
  enum Kind : unsigned { kEvalState, kTrainState };

  static constexpr std::span<const std::string_view> kKinds = kMismatchKinds;

  struct Config {
    std::uint32_t steps = 3;
  };
  struct State {
    std::uint32_t row = 0;  // steps in a row
    Gap<4> gap{};
    std::int64_t since = 0;
    double training = 0;  // share of workers, of the latest step or pass
  };

  static Defaults defaults(Preset) {
    return {.modes = mode_bit(core::Mode::train) | mode_bit(core::Mode::eval),
            .patterns = {"(^|[/.])(model_)?training$"}};
  }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("steps", cfg.steps, config::at_least(std::uint32_t{1}),
                "training steps in a row with the model in evaluation mode");
  }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    for (const SeriesValue& value : point.values) {
      judge(memory, value, point, report, [&](State& state) {
        if (value.value >= 1) {
          state.row = 0;
          return kOk;
        }
        if (state.row++ == 0) state.since = point.step;
        return state.row >= cfg.steps ? hit(kEvalState) : kOk;
      });
    }
  }

  static void on_pass(const Config&, SeriesMemory& memory, const StepPoint& pass,
                      SeriesReport& report) {
    for (const SeriesValue& value : pass.values) {
      judge(memory, value, pass, report,
            [&](State&) { return value.value >= 1 ? hit(kTrainState) : kOk; });
    }
  }

  template <typename Judge>
  static void judge(SeriesMemory& memory, const SeriesValue& value, const StepPoint& point,
                    SeriesReport& report, Judge&& verdict_of) {
    const SeriesKey key{value.name, static_cast<std::uint8_t>(point.mode)};
    State* state = memory.of<State>(key);
    if (state == nullptr) return;
    state->training = value.value;
    const Verdict verdict = std::isfinite(value.value) ? verdict_of(*state) : kInsufficient;
    const auto why = [&](const Subject& subject, unsigned kind) {
      return explain(*state, subject, kind);
    };
    report.evaluated(key, value.text, verdict, point, why);
  }

  static Finding explain(const State& state, const Subject& subject, unsigned kind) {
    if (kind == kTrainState) {
      return Finding::that("training", state.training)
          .is(">=", "limit", 1)
          .titled("model", Verb::is, "in training mode during evaluation")
          .says(sentence("The model was in training mode for the whole evaluation pass that ended "
                         "at eval step {} ({}).",
                         subject.step, subject.name))
          .advises(
              "Call model.eval() before each evaluation. Without it, dropout makes results worse, "
              "and normalisation layers learn from evaluation data.");
    }
    return Finding::that("training", state.training)
        .is("<", "limit", 1)
        .titled("model", Verb::is, "trained in evaluation mode")
        .says(sentence(
            "The model has been trained in evaluation mode for {} steps, up to train step {} ({}).",
            state.row, subject.step, subject.name))
        .advises(
            "Call model.train() after each evaluation. Without it, dropout is off and "
            "normalisation layers do not follow the data. If you freeze normalisation on purpose, "
            "set the mode of those layers, not of the model.")
        .since(state.since, state.row);
  }
};

}  // namespace

RuleDescriptor mode_mismatch() {
  return {.name = "mode_mismatch",
          .original_name = "ModeMismatch",
          .title = "The model is trained in evaluation mode, or evaluated in training mode.",
          .unit = "series",
          .needs = "scalar model_training or training: 1 or 0 per step",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "3",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_series_rule<ModeMismatch>};
}

}  // namespace tocsin::rules
