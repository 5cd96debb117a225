// What collapse tells: a finding's sentence, and the numbers of a loss call that a run's summary holds.
#pragma once

#include <string>
#include <string_view>

#include "rules/builtin/data/answer_course.h"
#include "rules/builtin/data/output_course.h"
#include "rules/contract/finding.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

/// One loss call in one mode.
struct CollapseCourse {
  OutputCourse outputs;
  AnswerCourse answers;
};

/// "ok": outputs differ, and answers where there are any; "hit", or "undecided".
inline std::string_view collapse_answer(const CollapseCourse& course, const PairingBounds& bounds) {
  if (course.outputs.standing != 0 || course.answers.standing != 0) return "hit";
  if (course.outputs.differed == 0) return "undecided";
  if (course.answers.steps == 0 || course.answers.knows != 0) return "ok";
  const AnswerCounts recent = course.answers.recent();
  const bool vary =
      !recent.alike() && AnswerCounts::kRate * recent.other_labels >= -std::log(bounds.alpha);
  return vary ? "ok" : "undecided";
}

inline core::ValueMap collapse_numbers(const CollapseCourse& course, const PairingRun& run,
                                       const PairingBounds& bounds) {
  const OutputCourse& outputs = course.outputs;
  const AnswerCourse& answers = course.answers;
  const std::string_view answer = collapse_answer(course, bounds);
  core::ValueMap out;
  if (answer == "hit") {
    out.emplace_back("kind", std::string(outputs.standing != 0 ? "constant" : "one_answer"));
  }
  out.emplace_back("updates", outputs.pass_at >= 0 ? outputs.pass_at : run.updates);
  if (outputs.compared > 0) out.emplace_back("spread", outputs.ratio);
  if (answers.steps > 0) {
    const AnswerCounts recent = answers.recent();
    out.emplace_back("same_answer", recent.answer_share());
    out.emplace_back("same_label", recent.label_share());
    out.emplace_back("right", recent.right_share());
    if (answers.recent_pairs().pairs > 0) out.emplace_back("w", answers.recent_pairs().share());
  }
  if (answer != "undecided") return out;
  if (outputs.differed == 0 && outputs.pass_at < 0) {
    out.emplace_back("needs_steps", std::max(0.0, OutputCourse::kFirstTold - outputs.flat));
  } else if (answers.steps > 0) {
    // Of scores without an order, in steps of one pair each.
    const double needed = observations_needed(0.5, bounds.share, bounds.alpha / 4);
    out.emplace_back("needs_pairs", std::max(0.0, needed - answers.recent_pairs().pairs));
  }
  return out;
}

inline Finding constant_finding(const Subject& subject, const OutputCourse& course,
                                const PairingRun& run, double spread) {
  Finding out = Finding::that("spread", course.ratio);
  out.is("<", "limit", std::sqrt(spread))
      .titled("model", Verb::has, "the same output for all inputs")
      .says(sentence("The outputs of {1} {2} (up to {0}): their deviation over the samples is {3} "
                     "times that of the targets (limit {4}).",
                     subject.place(), subject.name,
                     course.differed > 0 ? "have become equal for all samples"
                                         : "have been equal for all samples in every step",
                     course.ratio, std::sqrt(spread)))
      .advises(
          "Most probable first: dead or saturated units before the output; an input that does not "
          "reach the output; weights erased by a learning rate or decay that is too high; targets "
          "on a far larger scale than the outputs.");
  if (course.widest > course.ratio) out.with("widest", course.widest);
  out.with("steps", course.flat).with("updates", course.told_at);
  if (run.planned > 0) out.with("planned_updates", run.planned);
  if (run.planned > 0 && 2 * run.updates > run.planned) out.severity = core::Severity::error;
  return out;
}

inline Finding one_answer_finding(const Subject& subject, const AnswerCourse& course,
                                  const PairingRun& run, const PairingBounds& bounds) {
  const double answers = course.told.answer_share();
  const double labels = course.told.label_share();
  Finding out = Finding::that("answer_share", answers);
  out.is(">", "label_share", labels)
      .titled("model", Verb::has, "one answer to all inputs")
      .says(sentence(
          "After {} updates the model gives one answer to {} % of the samples of {}, but only {} % "
          "have one label. Its scores put {} % of {} pairs in the right order (chance: 50 %).{}",
          course.told_at, 100 * answers, subject.name, 100 * labels,
          100 * course.told_pairs.share(), course.told_pairs.pairs,
          course.told_lost != 0 ? " Before that they did better." : ""))
      .advises(
          "Most probable first: a learning rate that is too high; dead units before the output; "
          "classes too rare for this loss (weight the classes, or change the loss); labels that do "
          "not belong to their inputs.")
      .with("right", course.told.right_share())
      .with("w", course.told_pairs.share())
      .with("w_limit", bounds.share)
      .with("pairs", course.told_pairs.pairs)
      .with("updates", course.told_at);
  if (run.planned > 0) out.with("planned_updates", run.planned);
  if (run.planned > 0 && 2 * run.updates > run.planned) out.severity = core::Severity::error;
  return out;
}

}  // namespace tocsin::rules
