// What loss_not_decreasing says of what it has found.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "rules/builtin/losses/loss_curve.h"
#include "rules/builtin/losses/loss_interval.h"
#include "rules/builtin/losses/loss_jump.h"
#include "rules/contract/finding.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

// The window of a row of evaluations is longer than that of the latest one.
inline Finding tell_row(const LossLimits& cfg, const LossInterval& state, const std::string& loss) {
  const std::uint32_t k = cfg.flat_evaluations;
  const double least = *std::min_element(state.loss.begin(), state.loss.begin() + k);
  const double reference = state.row_start.loss;
  const double fall = 100 * (reference - least) / std::fabs(reference);
  return Finding::that("largest_fall_percent", fall)
      .is("<", "diff_percent", cfg.diff_percent)
      .titled(loss, Verb::does_not, "fall")
      .says(sentence("{} has not fallen below its {} of step {}: the lowest of the {} evaluations "
                     "since is {} (limit {} %).",
                     loss, reference, state.row_start.step, k, least, cfg.diff_percent))
      .since(state.row_start.step, std::uint64_t{k} + 1)
      .with("reference", reference)
      .with("reference_step", state.row_start.step)
      .with("least", least)
      .with("evaluations", std::uint64_t{k});
}

/// Of the values that preset original compares. `loss` is what the sentence calls it.
inline Finding tell_interval(const LossLimits& cfg, const LossInterval& state,
                             const std::string& loss, unsigned kind) {
  Finding finding;
  if (kind == kStuck) return tell_row(cfg, state, loss);
  if (kind == kIncrease) {
    finding = Finding::that("rise_percent", -state.change);
    finding.is(">", "increase_threshold_percent", cfg.increase_threshold_percent)
        .titled(loss, Verb::has, "risen")
        .says(sentence("{} has risen from {} at step {} to {} at step {}.", loss, state.before.loss,
                       state.before.step, state.newest.loss, state.newest.step));
  } else {
    finding = Finding::that("fall_percent", state.change);
    finding.is("<", "diff_percent", cfg.diff_percent)
        .titled(loss, Verb::has, "stopped falling")
        .says(sentence(
            "{} has stopped falling: {} at step {}, {} at step {} (expected: a fall of {} %).",
            loss, state.before.loss, state.before.step, state.newest.loss, state.newest.step,
            cfg.diff_percent));
  }
  return finding.since(state.before.step, 2)
      .with("loss", state.newest.loss)
      .with("reference", state.before.loss)
      .with("reference_step", state.before.step)
      .with("change_percent", -state.change);
}

/// Of the points of preset tocsin; `newest`: the step of the newest value.
inline Finding tell_curve(const LossCurve& state, const LossJump& jump, std::int64_t newest,
                          const std::string& loss, unsigned kind) {
  Finding finding = Finding::that("loss", state.now.loss);
  switch (kind) {
    case kStuck:
      finding.observed = {"gain", (state.first - state.best) / std::fabs(state.first)};
      finding.is("<", "least_gain", 0.1)
          .since(state.first_step, state.seen)
          .titled(loss, Verb::does_not, "fall")
          .says(sentence("{} does not fall: it began at {} and its best is {} up to step {}. It "
                         "has not improved by 1 % over the last {} points.",
                         loss, state.first, state.best, state.now.step,
                         std::min(std::uint32_t{LossCurve::kStuckPoints}, state.seen - 1)));
      break;
    case kEarly:
      finding.is(">", "twice_first", 2 * std::fabs(state.first_point))
          .since(state.first_step, state.seen)
          .titled(loss, Verb::is, "more than twice its first value")
          .says(sentence("{} is {} at step {}, more than twice its first value of {}.", loss,
                         state.now.loss, state.now.step, state.first_point));
      break;
    case kRise:
      finding
          .is(">", "limit",
              state.best + 0.5 * std::max(std::fabs(state.best), 0.5 * std::fabs(state.first)))
          .titled(loss, Verb::has, "risen far above its best")
          .says(sentence("{} has risen far above its best: {} at step {}, best {} at step {}.",
                         loss, state.now.loss, state.now.step, state.best, state.best_step));
      break;
    case kJump:
      finding.observed = {"least_of_the_newest", jump.least};
      finding.is(">", "largest_before", jump.most)
          .titled(loss, Verb::has, "jumped")
          .says(sentence("{} has jumped: its newest {} values are at least {} up to step {}; none "
                         "of the {} before was above {}.",
                         loss, LossJump::kNew, jump.least, newest, LossJump::kOld, jump.most));
      break;
    default:
      finding.is(">", "limit", state.best + 0.5 * (state.first - state.best))
          .titled(loss, Verb::has, "lost most of its gain")
          .says(sentence("{} has lost more than half of its gain: first {}, best {} at step {}, "
                         "now {} at step {}.",
                         loss, state.first, state.best, state.best_step, state.now.loss,
                         state.now.step));
  }
  return finding.with("first", state.first)
      .with("best", state.best)
      .with("best_step", state.best_step);
}

/// For the run card: where the curve began, where it is now with an interval of 95 %, and its best.
inline core::ValueMap curve_numbers(const LossCurve& curve, std::string_view kind) {
  constexpr double kDeviations = 1.96;
  core::ValueMap out;
  if (!kind.empty()) out.emplace_back("kind", std::string(kind));
  if (curve.seen < LossCurve::kMedian) {
    out.emplace_back("points", static_cast<double>(curve.seen));
    out.emplace_back("needs_points", static_cast<double>(LossCurve::kMedian - curve.seen));
    return out;
  }
  const LossBlock now = curve.newest();
  const double width = kDeviations * std::sqrt(now.variance() / now.n);
  out.emplace_back("first", curve.first);
  out.emplace_back("now", now.mean);
  out.emplace_back("now_low", now.mean - width);
  out.emplace_back("now_high", now.mean + width);
  out.emplace_back("best", curve.best);
  out.emplace_back("values", static_cast<double>(curve.brought));
  return out;
}

}  // namespace tocsin::rules
