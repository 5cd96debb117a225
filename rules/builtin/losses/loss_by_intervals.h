// How loss_not_decreasing's preset original reads a step: each loss by intervals of its own
// (loss_interval.h), and one mode alone may hit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rules/builtin/losses/loss_interval.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {

/// `Rule` owns parameters and states, and tells verdicts.
template <typename Rule>
struct LossByIntervals {
  using Config = typename Rule::Config;
  using Shared = typename Rule::Shared;
  using State = typename Rule::State;

  // Losses in any mode, and what the user chose; where no mode is set, metrics of a data set too. What should grow is no
  // loss.
  static bool is_compared(const Config& cfg, const ReadSeries& one, core::Mode mode) {
    if (one.grows) return false;
    return one.value->role != core::Role::metric || mode == core::Mode::global || cfg.chosen;
  }

  static bool may_hit(const Config& cfg, const Shared& shared, core::Mode mode) {
    if (cfg.mode) return true;
    for (const core::Mode first : {core::Mode::eval, core::Mode::train, core::Mode::global}) {
      if ((shared.evaluated & mode_bit(first)) != 0) return first == mode;
    }
    return false;
  }

  static void judge(const Config& cfg, SeriesMemory& memory, const std::vector<ReadSeries>& all,
                    const StepPoint& point, SeriesReport& report) {
    for (const ReadSeries& one : all) {
      auto& shared = memory.shared<Shared>();
      if (!is_compared(cfg, one, point.mode)) continue;
      const SeriesKey key{one.value->name, static_cast<std::uint8_t>(point.mode)};
      const double loss = one.value->value;
      State* state = Rule::remember(memory, key, point.step, loss);
      if (state == nullptr) continue;
      std::optional<Verdict> verdict = state->judge_interval(cfg, memory, key, point.step, loss);
      if (!verdict) continue;
      const bool hits = verdict->outcome == EvaluationOutcome::hit;
      if (hits || verdict->outcome == EvaluationOutcome::ok) {
        shared.evaluated = static_cast<std::uint8_t>(shared.evaluated | mode_bit(point.mode));
        if (hits && !may_hit(cfg, shared, point.mode)) verdict = kNotApplicable;
      }
      Rule::tell(cfg, memory, *state, key, *one.value, false, *verdict, point, report);
    }
  }
};

}  // namespace tocsin::rules
