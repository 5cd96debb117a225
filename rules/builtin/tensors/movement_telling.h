// What the rule movement tells: sentences of its findings.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "rules/builtin/tensors/movement_state.h"
#include "rules/contract/finding.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

inline Finding never_finding(const MovementState& state, const std::vector<std::string>& names,
                             const Subject& subject) {
  const MovementParameters& p = state.parameters;
  std::string listed;
  for (const std::string& name : names) listed += (listed.empty() ? ": " : ", ") + name;
  const auto more = p.zero - static_cast<double>(names.size());
  if (!listed.empty() && more > 0) listed += sentence(" and {} more", more);
  return Finding::that("zero", p.zero)
      .is(">", "limit", 0)
      .titled("parameters", Verb::have, "gradients of zero since the start")
      .says(sentence("Of {} trainable parameters, {} ({} % of the elements) had a zero gradient at "
                     "each of the last 200 updates or more, up to {}{}.",
                     p.trainable, p.zero, 100 * p.still / std::max(p.elements, 1.0),
                     subject.place(), listed))
      .advises(
          "Most probable first: dead or saturated units after them; a loss or branch multiplied by "
          "zero; a product whose two sides start at zero. Freeze what is meant to stay "
          "(requires_grad_(False)).")
      .with("elements", p.elements)
      .with("still", p.still);
}

inline Finding negative_rate_finding(const MovementState& state, const Subject& subject) {
  return Finding::that("learning_rate", state.rate)
      .is("<", "limit", 0)
      .titled("the learning rate", Verb::is, "below zero")
      .says(sentence("The learning rate is {} at {}: updates raise the loss.", state.rate,
                     subject.place()))
      .advises(
          "A schedule ran past its end. Give it the number of updates of the whole training, or "
          "keep the rate at zero or above.");
}

inline Finding uphill_finding(const MovementState& state, const Subject& subject) {
  const MovementCourse& course = state.course;
  return Finding::that("cosine", course.cosine())
      .is(">", "uphill", state.bounds.uphill)
      .titled("updates", Verb::are, "raising the loss")
      .says(sentence("Updates raise the loss: over {} updates up to {}, update and gradient have a "
                     "mean cosine of {} (expected: below 0).",
                     course.looks, subject.place(), course.cosine()))
      .advises(
          "Check the sign of the update in a custom optimizer, and that the gradients belong to "
          "these parameters and this loss. To maximise a loss, give the optimizer maximize=True.")
      .since(state.since, static_cast<std::uint64_t>(course.looks))
      .with("log_evidence", course.up.evidence());
}

inline Finding oscillates_finding(const MovementState& state, const Subject& subject) {
  const MovementCourse& course = state.course;
  return Finding::that("cosine", course.turn())
      .is("<", "limit", -state.bounds.against)
      .titled("the gradient", Verb::is, "reversing at each update")
      .says(sentence("Each gradient points against the one before: their mean cosine is {} in {} "
                     "updates up to {}. The loss is no better than one constant answer.",
                     course.turn(), course.turns, subject.place()))
      .advises(
          "Each update overshoots. Divide the learning rate by 3 to 10. With very few batches per "
          "epoch, the labels may not follow from the inputs.")
      .since(state.since, static_cast<std::uint64_t>(course.turns))
      .with("log_evidence", course.opposed.evidence());
}

inline Finding crawls_finding(const MovementState& state, const Subject& subject) {
  const MovementCourse& course = state.course;
  return Finding::that("cosine", course.turn())
      .is(">", "along", state.bounds.along)
      .titled("the gradient", Verb::is, "hardly changing")
      .says(sentence("The gradient hardly changes: the mean cosine of two in a row is {} in {} "
                     "updates up to {}. The loss is no better than one constant answer, and at "
                     "this pace will not be by the end.",
                     course.turn(), course.turns, subject.place()))
      .advises(
          "Updates are too small. Multiply the learning rate by 10, and check that its warm-up is "
          "over.")
      .since(state.since, static_cast<std::uint64_t>(course.turns))
      .with("log_evidence", course.alike.evidence());
}

inline Finding still_finding(const MovementState& state, const std::string& name,
                             const SlowTensor& slow, const Subject& subject) {
  return Finding::that("share", slow.share)
      .is("<", "still", state.bounds.still)
      .titled(name, Verb::does_not, "move like others of its role")
      .says(sentence(
          "Relative to its size, {} moves {} times as far as the median tensor of its role, in {} "
          "reports in a row up to {}. It has a gradient and did not start at zero.",
          name, slow.share, slow.words, subject.place()))
      .advises(
          "Most probable first: a saturated or badly scaled layer between it and the loss; a "
          "branch multiplied by a small number; weights that are far too large.")
      .with("compared", state.compared);
}

inline Finding no_pay_finding(const MovementState& state, const Subject& subject) {
  const PayCourse& pay = state.pay;
  return Finding::that("fallen", pay.fallen)
      .is("<", "limit", PayCourse::kShare * pay.promised)
      .titled("updates", Verb::do_not, "pay")
      .says(sentence("In the last {} updates up to {}, the gradients promise that the loss falls "
                     "by {}. It fell by {} (error {}), and is no better than one constant answer.",
                     pay.updates, subject.place(), pay.promised, pay.fallen, pay.error))
      .advises(
          "Check that backward() is called on this loss, and that no larger term outweighs it. "
          "Otherwise each update may be too large: divide the learning rate by 3.")
      .with("promised", pay.promised)
      .with("error", pay.error);
}

}  // namespace tocsin::rules
