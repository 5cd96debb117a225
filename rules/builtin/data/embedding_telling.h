// What collapse tells of embeddings.
#pragma once

#include <string>
#include <string_view>

#include "rules/builtin/data/embedding_course.h"
#include "rules/contract/finding.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

/// Σ over the calls of a step of the mean loss; 0: none is known.
inline double loss_of(const LedgerStep& step) {
  double out = 0;
  for (const LedgerCall& call : step.calls) {
    if (call.has(LedgerCall::loss) && call[LedgerCall::samples] > 0) {
      out += call[LedgerCall::loss] / call[LedgerCall::samples];
    }
  }
  return out;
}

/// Whether a loss of classes has each sample as a class of its own, as contrastive ones do: then nothing is learned from
/// embeddings in a few clusters.
inline bool is_instances(const LedgerStep& step) {
  return std::any_of(step.calls.begin(), step.calls.end(), [](const LedgerCall& call) {
    const double calls = call[LedgerCall::calls];
    return call.has(LedgerCall::labels) && calls > 0 && call[LedgerCall::labels] <= calls &&
           call[LedgerCall::samples] >= EmbeddingCourse::kInstances * calls;
  });
}

inline std::string_view embedding_answer(const EmbeddingCourse& course) {
  if (course.standing != 0) return "hit";
  return course.looks > 0 ? "ok" : "undecided";
}

inline core::ValueMap embedding_numbers(const EmbeddingCourse& course, const PairingRun& run) {
  core::ValueMap out;
  if (course.standing != 0) out.emplace_back("kind", std::string("embedding"));
  out.emplace_back("updates", run.updates);
  out.emplace_back("cosine", course.alike);
  out.emplace_back("first_cosine", course.first_alike);
  out.emplace_back("directions", course.directions);
  out.emplace_back("first_directions", course.first_directions);
  if (course.looks == 0) {
    out.emplace_back("needs_updates", std::max(0.0, course.look_at - run.updates));
  }
  return out;
}

/// ", while the loss fell from 2.1 to 0.3"
inline std::string embedding_loss_course(const EmbeddingCourse& course) {
  if (course.first_loss == 0 || course.loss >= course.first_loss) return {};
  return sentence(", while the loss fell from {} to {}", course.first_loss, course.loss);
}

inline Finding embedding_finding(const Subject& subject, const EmbeddingCourse& course,
                                 const PairingRun& run) {
  const bool one = course.standing == 1;
  Finding out =
      Finding::that(one ? "cosine" : "directions", one ? course.alike : course.directions);
  out.is(one ? ">" : "<", "limit", one ? EmbeddingCourse::kAlike : EmbeddingCourse::kLine)
      .titled("embeddings", Verb::have, "collapsed")
      .says(one ? sentence("After {} updates the rows of {} point in one direction: the mean "
                           "cosine of two rows is {} (at first {}){}.",
                           course.told_at, subject.name, course.alike, course.first_alike,
                           embedding_loss_course(course))
                : sentence("After {} updates the rows of {} lie on a line: their participation "
                           "ratio is {} (at first {}){}.",
                           course.told_at, subject.name, course.directions, course.first_directions,
                           embedding_loss_course(course)))
      .advises(
          "Most probable first: a loss that one point for all samples satisfies (no negatives, no "
          "stop-gradient, no predictor, no variance term); a temperature or margin out of range; a "
          "learning rate that is too high.")
      .with("cosine", course.alike)
      .with("first_cosine", course.first_alike)
      .with("directions", course.directions)
      .with("first_directions", course.first_directions)
      .with("updates", course.told_at);
  if (course.first_loss != 0) out.with("loss", course.loss).with("first_loss", course.first_loss);
  if (run.planned > 0) out.with("planned_updates", run.planned);
  if (run.planned > 0 && 2 * run.updates > run.planned) out.severity = core::Severity::error;
  return out;
}

}  // namespace tocsin::rules
