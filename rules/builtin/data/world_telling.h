// What parity tells of training and evaluation: findings, and the numbers that a run's summary holds.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "rules/builtin/data/world_course.h"
#include "rules/contract/finding.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

/// What a group of units came to at the newest evaluation.
struct WorldVerdict {
  std::string worst;    // its unit that differs most; empty: nothing was compared
  WorldGap gap;         // of that unit
  double distance = 0;  // classes: share of labels that would have to change
  bool evaluated = false;
  bool hit = false;
  bool info = false;
};

inline std::string world_name(std::string_view unit) {
  std::string out(unit);
  for (char& c : out) c = c == '/' ? ' ' : c;
  const std::size_t part = out.find(' ', out.find(' ') + 1);
  if (part != std::string::npos && unit.starts_with("input/")) out.insert(part, " channel");
  return out;
}

inline Finding world_input(const WorldBounds& bounds, double times, const WorldVerdict& verdict) {
  const WorldGap& gap = verdict.gap;
  const std::string name = world_name(verdict.worst);
  const bool moved = gap.moved(bounds, times);
  Finding out = moved ? Finding::that("moved", std::fabs(gap.mean))
                      : Finding::that("deviation", gap.deviation);
  if (moved) out.is(">", "limit", times * bounds.moved);
  if (!moved) {
    const double limit = gap.deviation > 1 ? 1 + times * bounds.moved : 1 - times * bounds.moved;
    out.is(gap.deviation > 1 ? ">" : "<", "limit", limit);
  }
  out.titled(name, Verb::is, "different in evaluation than in training")
      .says(sentence("In evaluation {} has a mean that is {} deviations away from that of "
                     "training, and {} times its deviation ({} and {} batches).",
                     name, gap.mean, gap.deviation, gap.eval, gap.train))
      .advises(
          "Most probable first: normalisation in only one of the two, or applied twice; other "
          "preparation in evaluation; another data set.")
      .with("moved", gap.mean)
      .with("moved_errors", gap.mean_errors)
      .with("deviation", gap.deviation)
      .with("deviation_errors", gap.deviation_errors);
  if (verdict.info) {
    out.severity = core::Severity::info;
    out.adds("Augmentation in training, or a sampler that balances classes, can be the reason.");
  }
  return out;
}

inline Finding world_targets(const WorldBounds& bounds, std::string_view call,
                             const WorldVerdict& verdict) {
  const WorldGap& gap = verdict.gap;
  Finding out;
  if (verdict.distance > 0) {
    out = Finding::that("distance", verdict.distance);
    out.is(">", "limit", bounds.moved)
        .says(sentence("{} % of the evaluation labels of {} would have to change class to match "
                       "training ({} and {} batches).",
                       100 * verdict.distance, call, gap.eval, gap.train));
  } else {
    out = Finding::that("moved", std::fabs(gap.mean));
    out.is(">", "limit", bounds.moved)
        .says(sentence("In evaluation the targets of {} have a mean that is {} deviations away "
                       "from that of training, and {} times its deviation ({} and {} batches).",
                       call, gap.mean, gap.deviation, gap.eval, gap.train));
  }
  out.titled("evaluation", Verb::has, "other targets than training")
      .advises(
          "A sampler that balances classes and a split by time do this on purpose. Otherwise check "
          "the split, the unit of the targets and the class map.")
      .with("moved_errors", gap.mean_errors);
  out.severity = core::Severity::info;
  return out;
}

inline Finding world_loss(const WorldBounds& bounds, std::string_view call, const WorldLoss& loss,
                          bool reversed) {
  Finding out = Finding::that("loss", loss.first);
  if (reversed) {
    out.is("<", "training", loss.before)
        .titled("evaluation", Verb::is, "far better than training")
        .says(sentence(
            "The first evaluation of {} has a loss of {}; training has {} around that time.", call,
            loss.first, loss.before))
        .advises(
            "Most probable first: evaluation samples that are also trained on; easier samples in "
            "evaluation; heavy augmentation or dropout in training.");
    out.severity = core::Severity::info;
    return out;
  }
  return out.is(">", "limit", loss.before + bounds.loss * loss.trivial)
      .titled("evaluation", Verb::is, "worse than a constant while training is not")
      .says(sentence("In the first epoch, too early for overfitting, the evaluation of {} has a "
                     "loss of {}. Training has {} just before it, and the best constant answer {}.",
                     call, loss.first, loss.before, loss.trivial))
      .advises(
          "Most probable first: another class map or unit of targets in evaluation; other "
          "preparation; a model in the wrong mode; a set that does not belong to this training.")
      .with("training", loss.before)
      .with("trivial", loss.trivial)
      .with("errors", loss.errors);
}

}  // namespace tocsin::rules
