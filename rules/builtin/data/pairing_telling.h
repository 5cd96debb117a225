// What chance_level tells: a finding's sentence, and the numbers of a loss call that a run's summary holds.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "rules/builtin/shared/pairing_course.h"
#include "rules/contract/finding.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/answers_so_far.h"

namespace tocsin::rules {

/// "ok": it knows its targets, "hit", or "undecided".
inline std::string_view pairing_answer(const PairingCourse& course) {
  if (course.standing != PairingCourse::kOpen || course.bare_now()) return "hit";
  return course.knows != 0 ? "ok" : "undecided";
}

/// Skill and share of wins with intervals of 95 %, how much they rest on, and what is missing.
inline core::ValueMap pairing_numbers(const PairingCourse& course, const PairingRun& run,
                                      const PairingBounds& bounds) {
  constexpr double kDeviations = 1.96;
  constexpr std::string_view kStandings[] = {"", "nothing", "forgot", "worse", "memorised"};
  core::ValueMap out;
  if (course.standing != PairingCourse::kOpen) {
    out.emplace_back("kind", std::string(kStandings[course.standing]));
  } else if (course.bare_now()) {
    out.emplace_back("kind", "no_targets");
  }
  const bool eval = course.passes > 0;
  const DoubledLooks::Block sums = eval ? course.pass_sums : course.skill.window();
  const double skill = PairingCourse::skill_of(sums);
  out.emplace_back("updates", eval ? course.pass_at : run.updates);
  out.emplace_back("samples", course.samples);
  if (sums.weight > 0 && std::isfinite(skill)) {
    out.emplace_back("loss", (sums.unit - sums.difference) / sums.weight);
    out.emplace_back("trivial", sums.unit / sums.weight);
    out.emplace_back("skill", skill);
    if (const BlockMean mean = course.skill.mean(0); !eval && mean.known()) {
      const double width =
          student_quantile(0.025, mean.blocks - 1) * mean.error * sums.weight / sums.unit;
      out.emplace_back("skill_low", skill - width);
      out.emplace_back("skill_high", skill + width);
    }
  }
  const ShareCounts recent = course.recent();
  if (course.unpaired != 0) {
    if (pairing_answer(course) == "undecided") {
      out.emplace_back("needs_steps", course.skill.missing());
    }
    return out;
  }
  out.emplace_back("pairs", recent.pairs);
  if (recent.pairs > 0) {
    const double w = recent.share();
    const double z = kDeviations * kDeviations / recent.pairs;
    const double middle = (w + z / 2) / (1 + z);
    const double width = std::sqrt(w * (1 - w) * z + z * z / 4) / (1 + z);
    out.emplace_back("w", w);
    out.emplace_back("w_low", middle - width);
    out.emplace_back("w_high", middle + width);
  }
  if (pairing_answer(course) != "undecided") return out;
  // Of outputs that know nothing; the weight is that of the first look or pass.
  const double weight = ShareCounts::kWeights[0] * (eval ? 0.5 : 0.75);
  const double needed = observations_needed(0.5, bounds.share, bounds.alpha * weight);
  out.emplace_back("needs_pairs", std::max(0.0, needed - (eval ? recent.pairs : course.all.pairs)));
  if (!eval) {
    out.emplace_back("steps", course.steps);
    out.emplace_back("needs_steps", course.skill.missing());
  }
  tell_starving(out, run.updates, run.planned);
  return out;
}

/// Of a booster's metric, which has no pairs.
inline Finding round_finding(std::string_view kind, const Subject& subject,
                             const PairingCourse& course, const PairingRun& run,
                             const PairingBounds& bounds) {
  const DoubledLooks::Block& sums = course.told;
  const double skill = PairingCourse::skill_of(sums);
  const double loss = (sums.unit - sums.difference) / sums.weight;
  const double trivial = sums.unit / sums.weight;
  const bool memorised = kind == "memorised";
  Finding out = Finding::that("skill", skill);
  out.is("<", "limit", bounds.skill)
      .titled("model", memorised ? Verb::has : Verb::is,
              memorised ? "memorised its training data" : "no better than chance")
      .says(sentence("Over rounds {} to {} the loss of {} is {}; the best constant answer has {}{}",
                     course.told_from, course.told_at, subject.name, loss, trivial,
                     memorised ? ", and training at most half of that." : "."))
      .advises(memorised ? "Most probable first: label noise in training or in this set; rows from "
                           "another distribution; far too little data."
                         : "Most probable first: labels shuffled or misaligned with their rows; "
                           "columns without information; trees that cannot split.")
      .with("loss", loss)
      .with("trivial", trivial)
      .with("rounds", course.told_at);
  if (run.planned > 0) out.with("planned_rounds", run.planned);
  if (run.planned > 0 && 2 * run.updates > run.planned) out.severity = core::Severity::error;
  return out;
}

/// Of a hit of `kind`.
inline Finding pairing_finding(std::string_view kind, const Subject& subject,
                               const LedgerCall& call, const PairingCourse& course,
                               const PairingRun& run, const PairingBounds& bounds) {
  const DoubledLooks::Block& sums = course.told;
  const double skill = PairingCourse::skill_of(sums);
  const double loss = (sums.unit - sums.difference) / sums.weight;
  const double trivial = sums.unit / sums.weight;
  const std::string_view guess = call.has(LedgerCall::labels) ? "guessing by class frequency has"
                                                              : "the best constant answer has";
  const double w = course.told_pairs.share();
  const double pairs = course.told_pairs.pairs;
  const bool unpaired = course.unpaired != 0;
  Finding out;
  if (unpaired && kind != "no_targets" && kind != "worse") {
    return round_finding(kind, subject, course, run, bounds);
  }
  if (kind == "no_targets") {
    out = Finding::that("steps", course.bare_in_a_row >= PairingCourse::kBareInARow
                                     ? course.bare_in_a_row
                                     : course.bare);
    out.titled(subject.name, Verb::has, "only ignored targets")
        .says(sentence("All targets of {1} are ignored in {2} of {3} steps ({4} in a row, up to "
                       "{0}), so its loss says nothing there.",
                       subject.place(), subject.name, course.bare, course.steps,
                       course.bare_in_a_row))
        .advises(
            "Check ignore_index, the mask, and whether texts are cut off before their answer.");
  } else if (kind == "worse") {
    out = Finding::that("skill", skill);
    out.is("<", "limit", -bounds.worse)
        .titled("model", Verb::is, "worse than one constant answer")
        .says(sentence("Over updates {} to {} the loss of {} is {}; {} {}.", course.told_from,
                       course.told_at, subject.name, loss, guess, trivial))
        .advises(
            "Most probable first: targets on another scale than the outputs; a wrong sign or "
            "reduction of the loss; a learning rate that is too high.");
  } else if (kind == "memorised") {
    out = Finding::that("w", w);
    out.is("<", "limit", bounds.carried)
        .titled("model", Verb::has, "memorised its training data")
        .says(sentence("After {} updates training beats one constant answer by {} % of its loss or "
                       "more. In evaluation, the outputs fit their own targets better than another "
                       "sample's in only {} % of {} pairs (chance: 50 %).",
                       course.told_at, 100 * bounds.learned, 100 * w, pairs))
        .advises(
            "Most probable first: label noise in training or evaluation; evaluation inputs and "
            "targets out of order; far too little data.");
  } else {
    const bool forgot = kind == "forgot";
    out = Finding::that("w", w);
    out.is("<", "limit", bounds.share)
        .titled("model", forgot ? Verb::has : Verb::is,
                forgot ? "lost what it had learned" : "no better than chance");
    std::string fits = pairs > 0 ? sentence(
                                       "The outputs fit their own targets better than another "
                                       "sample's in {} % of {} pairs (chance: 50 %)",
                                       100 * w, pairs)
                                 : "The outputs are the same for all samples";
    out.says(forgot ? sentence("Since update {} the loss of {} is {}; {} {}. {}. Before that the "
                               "model was better.",
                               course.told_from, subject.name, loss, guess, trivial, fits)
                    : sentence("After {} updates the loss of {} is {}; {} {}. {}.", course.told_at,
                               subject.name, loss, guess, trivial, fits));
    out.advises(
        forgot ? "Most probable first: a learning rate that is too high; weight decay that erases "
                 "what was learned; data that changed."
               : "Most probable first: labels shuffled or misaligned with their inputs; frozen "
                 "layers; a learning rate that is too high; inputs without information.");
  }
  if (run.planned > 0 && 2 * run.updates > run.planned) out.severity = core::Severity::error;
  if (kind == "no_targets") return out;
  if (sums.weight > 0) {
    out.with("loss", loss).with("trivial", trivial).with("skill", skill);
  }
  out.with("w", w).with("pairs", pairs).with("updates", course.told_at);
  if (run.planned > 0) out.with("planned_updates", run.planned);
  return out;
}

}  // namespace tocsin::rules
