// How loss_not_decreasing's preset tocsin reads a step: losses of training by their curves
// (loss_curve.h, loss_jump.h, whole_start.h), and what else the step says of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rules/builtin/losses/falling_evaluation.h"
#include "rules/builtin/losses/loss_curve.h"
#include "rules/builtin/losses/loss_jump.h"
#include "rules/builtin/losses/success_course.h"
#include "rules/builtin/losses/whole_start.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/builtin/shared/reward_names.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {

/// `Rule` owns parameters and states, and tells verdicts.
template <typename Rule>
struct LossByCurve {
  using Config = typename Rule::Config;
  using Shared = typename Rule::Shared;
  using State = typename Rule::State;
  static constexpr std::string_view kRate = "learning_rate";
  static constexpr std::int64_t kSinceRise = 2;  // times num_steps
  static constexpr std::int64_t kLongest =
      16;  // times num_steps: a warm-up that has gained nothing by then never will

  // Losses of training, and what the user chose; where no mode is set, metrics of a data set too. What should grow is no
  // loss, and an evaluation is overfit's.
  static bool concerns(const Config& cfg, const ReadSeries& one, core::Mode mode,
                       bool for_training) {
    if (one.grows || one.value->text == kRate) return false;
    const bool metric = one.value->role == core::Role::metric;
    const bool stands_alone = mode == core::Mode::global && one.name.set != 0;
    if (metric && !stands_alone && !cfg.chosen) return false;
    return (one.trains || for_training) && !one.name.counts_samples;
  }

  // Many give a booster nothing but the set that it is evaluated on (`eval_set=[(x, y)]`): as long as no
  // value of a training set was seen, `validation_0-mlogloss` is all that tells whether anything is learned.
  static bool stands_for_training(const Shared& shared, const ReadSeries& one, core::Mode mode) {
    return !shared.trained && mode != core::Mode::eval && one.name.set != 0 &&
           one.value->text.find('-') != std::string_view::npos;
  }

  static void remember_training(Shared& shared, const std::vector<ReadSeries>& all) {
    shared.trained =
        shared.trained || std::any_of(all.begin(), all.end(), [](const ReadSeries& one) {
          return one.trains && (one.value->role == core::Role::loss || one.name.set != 0);
        });
  }

  // A metric of the training set that should grow, and by its name to 1 at most. Beside a value of
  // another set, or where no mode is set, it is of the whole set; else of a batch.
  static bool lacks(const Config& cfg, const ReadSeries& one, bool whole, bool for_training) {
    if (!one.grows || !one.name.grows || !(one.trains || for_training)) return false;
    return one.value->role != core::Role::metric || (whole && one.name.set != 0) || cfg.chosen;
  }

  // A plateau of less than 2 · num_steps since the learning rate reached its largest value is none:
  // without a warm-up so many steps are one.
  static bool warming(const Config& cfg, Shared& shared, const StepPoint& point,
                      const std::vector<ReadSeries>& all) {
    for (const ReadSeries& one : all) {
      if (one.value->text != kRate || !std::isfinite(one.value->value)) continue;
      if (shared.rated && one.value->value <= shared.largest_rate) continue;
      shared.rated = true;
      shared.largest_rate = one.value->value;
      shared.rose_at = point.step;
    }
    if (shared.rose_at > kLongest * cfg.num_steps) return false;
    return shared.rated && distance(point.step, shared.rose_at) < kSinceRise * cfg.num_steps;
  }

  // Takes in what is said beside the losses; whether these are judged at such a point.
  static bool listens(const Config& cfg, Shared& shared, const StepPoint& point,
                      const std::vector<ReadSeries>& all, LossAround& around) {
    shared.evaluation.remember(all);
    if (cfg.hears_evaluations && point.mode == core::Mode::eval) return false;
    around.warming = warming(cfg, shared, point, all);
    shared.success.remember(point, all);
    remember_training(shared, all);
    shared.rewarded =
        shared.rewarded || std::any_of(all.begin(), all.end(), [](const ReadSeries& one) {
          const RewardSignal signal = reward_signal(one.value->text);
          return signal == RewardSignal::returns || signal == RewardSignal::reward;
        });
    return !shared.rewarded || cfg.chosen;
  }

  // What a step has of losses.
  struct StepLosses {
    LossAround around;
    std::size_t losses = 0;
    bool falls = false;  // it has a loss, or a metric that should fall
  };

  static void judge(const Config& cfg, SeriesMemory& memory, const std::vector<ReadSeries>& all,
                    const StepPoint& point, SeriesReport& report) {
    const bool rounds = point.mode == core::Mode::global;
    StepLosses step;
    step.around.rounds = rounds;
    Shared& shared = memory.shared<Shared>();
    if (!listens(cfg, shared, point, all, step.around)) return;
    for (const ReadSeries& one : all) {
      // Beside those of another set, values are of whole sets.
      step.around.whole = step.around.whole || (!one.trains && one.name.set != 0);
      if (!concerns(cfg, one, point.mode, stands_for_training(shared, one, point.mode))) continue;
      step.losses += one.value->role == core::Role::metric ? 0 : 1;
      step.falls = true;
    }
    for (const ReadSeries& one : all) {
      const bool held = stands_for_training(shared, one, point.mode);
      const bool lack = !step.falls && lacks(cfg, one, step.around.whole || rounds, held);
      if (!lack && !concerns(cfg, one, point.mode, held)) continue;
      const SeriesKey key{one.value->name, static_cast<std::uint8_t>(point.mode)};
      const double loss = lack ? 1 - one.value->value : one.value->value;
      State* state = Rule::remember(memory, key, point.step, loss);
      if (state == nullptr) continue;
      const auto verdict = judge_curve(cfg, shared, *state, step, {point.step, loss}, lack, held);
      if (verdict) Rule::tell(cfg, memory, *state, key, *one.value, lack, *verdict, point, report);
    }
  }

  // `lack`: the loss is what a growing metric lacks to 1. `held`: it is an evaluation's, which stands for training.
  static std::optional<Verdict> judge_curve(const Config& cfg, Shared& shared, State& state,
                                            const StepLosses& step, const LossPoint& now, bool lack,
                                            bool held) {
    if (lack && now.loss < 0) return kNotApplicable;  // it is no share: percents, for example
    // Several metrics of a set are no adversaries.
    if (step.losses > 1 && !step.around.whole) return kNotApplicable;
    auto verdict = state.judge(now.step, now.loss, cfg.num_steps, cfg.noise_factor, step.around);
    // An evaluation that has been at its best goes up again, by less than its range: no jump.
    const double margin = held ? 0 : cfg.jump_margin;
    if (state.jump.take(now.loss, margin)) verdict = with(kJump, verdict);
    const bool whole = step.around.whole && !lack && cfg.noise_factor > 0;
    if (state.start_of_sets.runs_away(now.loss, whole)) verdict = with(kEarly, verdict);
    if (!verdict) return verdict;
    const Verdict kept = shared.success.unless_better(
        *verdict,
        {state.first_step, state.best_step, state.tail[Rule::kTail - 1 - LossJump::kNew].step});
    return held ? kept : shared.evaluation.unless_falls(kept, kStuck);
  }

  static Verdict with(unsigned kind, const std::optional<Verdict>& verdict) {
    const bool hits = verdict && verdict->outcome == EvaluationOutcome::hit;
    const unsigned others = hits ? verdict->kinds : 0U;
    return {EvaluationOutcome::hit, static_cast<std::uint8_t>(others | 1U << kind)};
  }
};

}  // namespace tocsin::rules
