// What course says of what it has found.
#pragma once

#include <cmath>
#include <string>

#include "rules/builtin/losses/evaluation_turn.h"
#include "rules/builtin/losses/loss_levels.h"
#include "rules/builtin/losses/loss_looks.h"
#include "rules/contract/finding.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

/// What is told of one training loss.
struct CourseTold {
  const LossLevels& levels;
  const LossLooks& looks;
  double trivial = 0;  // loss of the best constant per sample; 0: not known
  double skill = 0;
};

inline std::string beside_constant(const CourseTold& told) {
  if (!(told.trivial > 0)) return {};
  return sentence(" One constant answer has {}.", told.trivial);
}

inline Finding tell_stuck(const CourseTold& told, const std::string& loss) {
  const LossLooks& looks = told.looks;
  Finding out = Finding::that("fall", looks.fall);
  out.is("<", "fall_that_noise_allows", looks.fall_high)
      .titled(loss, Verb::does_not, "fall")
      .since(static_cast<std::int64_t>(looks.from),
             static_cast<std::uint64_t>(32 * looks.values.length))
      .says(sentence("{} does not fall: {} on average since step {}, {} in the first 8 values. "
                     "Over the last three doublings of its {} values it has not improved.{}",
                     loss, looks.level, static_cast<std::int64_t>(looks.from), told.levels.first,
                     static_cast<std::int64_t>(64 * looks.values.length), beside_constant(told)))
      .advises(
          "Most probable first: targets that do not belong to their inputs; parameters that the "
          "optimizer does not "
          "hold, or whose gradients are zero; a learning rate far too high or too low.");
  if (told.trivial > 0) out.with("trivial", told.trivial).with("skill", told.skill);
  return out.with("first", told.levels.first).with("now", looks.level);
}

inline Finding tell_above(const CourseTold& told, const std::string& loss, bool lost) {
  const LossLevels& levels = told.levels;
  const RiseEvidence& evidence = lost ? levels.lost : levels.rise;
  const auto since = static_cast<std::int64_t>(lost ? levels.lost_since : levels.rise_since);
  Finding out = Finding::that("loss", levels.newest);
  out.is(">", "limit", lost ? levels.limit_lost : levels.limit_rise)
      .since(since, static_cast<std::uint64_t>(evidence.number * LossLevels::kChunk))
      .with("first", levels.first)
      .with("best", levels.best)
      .with("best_step", levels.best_step)
      .with("noise", levels.noise)
      .with("log_evidence", evidence.evidence());
  if (lost) {
    return out.titled(loss, Verb::has, "lost most of its gain")
        .says(sentence("{} has lost most of its gain since step {}: first {}, best {} at step {}, "
                       "now {} (means of 8 values).{}",
                       loss, since, levels.first, levels.best,
                       static_cast<std::int64_t>(levels.best_step), levels.newest,
                       beside_constant(told)))
        .advises(
            "Most probable first: the learning rate is too high for this stage; data or labels "
            "changed at that step; a "
            "checkpoint was resumed without its optimizer.");
  }
  return out.titled(loss, Verb::has, "risen above its start")
      .says(sentence(
          "{} has risen above its start since step {}: {} now, {} in the first 8 values.{}", loss,
          since, levels.newest, levels.first, beside_constant(told)))
      .advises(
          "Most probable first: the learning rate is far too high; the loss has the wrong sign; "
          "gradients are not "
          "clipped or not cleared.");
}

inline Finding tell_spike(const CourseTold& told, const std::string& loss) {
  const LossLevels& levels = told.levels;
  return Finding::that("jump", (levels.newest - levels.usual) / levels.noise)
      .is(">", "errors", LossLevels::kJump)
      .since(static_cast<std::int64_t>(levels.row_since),
             static_cast<std::uint64_t>(levels.row * LossLevels::kChunk))
      .titled(loss, Verb::has, "jumped")
      .says(sentence("{} jumped at step {} and has not come back: {} now, {} before (means of 8 "
                     "values that scatter by {}).",
                     loss, static_cast<std::int64_t>(levels.row_since), levels.newest, levels.usual,
                     levels.noise))
      .advises(
          "Most probable first: batches or labels changed at that step; the learning rate is too "
          "high without gradient clipping; a checkpoint was resumed without its optimizer.")
      .with("best", levels.best)
      .with("first", levels.first);
}

inline Finding tell_spread(const CourseTold& told, const std::string& loss) {
  const LossLevels& levels = told.levels;
  const double now = std::sqrt(levels.variances.back());
  const double all = std::sqrt(levels.scatters / std::max(levels.chunks, 1.0));
  Finding out = Finding::that("scatter", now);
  out.titled(loss, Verb::has, "begun to scatter")
      .says(sentence("Single values of {} scatter by {}, ten times as much as before ({} over the "
                     "whole run). Their mean has not moved.",
                     loss, now, all))
      .advises(
          "Look at the newest batches: their size, and rare samples with large losses. The loss "
          "may rise next.")
      .severity = core::Severity::info;
  return out;
}

/// `what`: the metric; less is better, or its sign is changed.
inline Finding tell_turned(const EvaluationTurn& turn, double share, const std::string& what) {
  const double value = turn.sign * turn.curve.value;
  const double best = turn.sign * turn.curve.best;
  Finding out = Finding::that("rise", turn.rise());
  out.is(">", "limit", std::max(share * turn.scale, EvaluationTurn::kErrors * turn.curve.spread))
      .titled(sentence("evaluation {}", what), Verb::has, "turned")
      .since(turn.curve.best_step, static_cast<std::uint64_t>(turn.passes - turn.best_at + 1))
      .says(sentence("The evaluation {} has turned: {} now, best {} at step {}. {} % of its gain "
                     "is lost, in each of the last 3 evaluations.",
                     what, value, best, turn.curve.best_step,
                     turn.scale > 0 ? 100 * turn.rise() / turn.scale : 100.0))
      .advises(
          "Most probable first: the model overfits (keep the best checkpoint, train shorter, add "
          "data or augmentation, use fewer parameters); evaluation data are prepared differently "
          "than training data.")
      .with("evaluation", value)
      .with("best", best)
      .with("best_step", turn.curve.best_step)
      .with("first", turn.sign * turn.first)
      .with("spread", turn.curve.spread);
  if (std::isfinite(turn.trained_then)) {
    out.with("training_then", turn.sign * turn.trained_then)
        .with("training_now", turn.sign * turn.trained_now);
  }
  return out;
}

}  // namespace tocsin::rules
