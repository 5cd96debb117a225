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
      .says(sentence("Of {} trainable parameters {} ({} % of the elements) had a gradient of "
                     "zero at each of 200 updates and more up to {}{}.",
                     p.trainable, p.zero, 100 * p.still / std::max(p.elements, 1.0),
                     subject.place(), listed))
      .advises(
          "Look for units behind them that are dead or saturated, for a loss or branch that is "
          "multiplied by zero, and for a start at zero on both sides of a product. What is meant "
          "to stay can be frozen (requires_grad_(False)).")
      .with("elements", p.elements)
      .with("still", p.still);
}

inline Finding negative_rate_finding(const MovementState& state, const Subject& subject) {
  return Finding::that("learning_rate", state.rate)
      .is("<", "limit", 0)
      .titled("the learning rate", Verb::is, "below zero")
      .says(sentence("The learning rate is {} at {}: updates go up the loss.", state.rate,
                     subject.place()))
      .advises(
          "A schedule went past its end: give it the number of updates of the whole training, or "
          "keep the rate at zero or above.");
}

inline Finding uphill_finding(const MovementState& state, const Subject& subject) {
  const MovementCourse& course = state.course;
  return Finding::that("cosine", course.cosine())
      .is(">", "uphill", state.bounds.uphill)
      .titled("updates", Verb::are, "going up the loss")
      .says(sentence("Updates go up the loss: of {} that were looked at up to {}, the way of the "
                     "weights and their gradient have a mean cosine of {}. It is below 0 where "
                     "updates go down.",
                     course.looks, subject.place(), course.cosine()))
      .advises(
          "Check the sign of the update in an optimizer of your own, and that the gradients are "
          "of these parameters and of this loss. If the loss is to become large, say "
          "maximize=True to the optimizer.")
      .since(state.since, static_cast<std::uint64_t>(course.looks))
      .with("log_evidence", course.up.evidence());
}

inline Finding oscillates_finding(const MovementState& state, const Subject& subject) {
  const MovementCourse& course = state.course;
  return Finding::that("cosine", course.turn())
      .is("<", "limit", -state.bounds.against)
      .titled("the gradient", Verb::is, "turning round at each update")
      .says(sentence("Successive gradients point against each other: their mean cosine is {} in "
                     "{} updates up to {}, and the loss is no better than one constant answer.",
                     course.turn(), course.turns, subject.place()))
      .advises(
          "Each update jumps over what it aims at: divide the learning rate by 3 to 10. With "
          "very "
          "few batches per epoch the labels may not follow from the inputs instead.")
      .since(state.since, static_cast<std::uint64_t>(course.turns))
      .with("log_evidence", course.opposed.evidence());
}

inline Finding crawls_finding(const MovementState& state, const Subject& subject) {
  const MovementCourse& course = state.course;
  return Finding::that("cosine", course.turn())
      .is(">", "along", state.bounds.along)
      .titled("the gradient", Verb::is, "hardly changing")
      .says(sentence("The gradient hardly changes from update to update: the mean cosine of two "
                     "in a row is {} in {} updates up to {}, and the loss is no better than one "
                     "constant answer and will not be by the end.",
                     course.turn(), course.turns, subject.place()))
      .advises(
          "Updates are small beside the way that is left: multiply the learning rate by 10, and "
          "check that it is no longer in its warm-up.")
      .since(state.since, static_cast<std::uint64_t>(course.turns))
      .with("log_evidence", course.alike.evidence());
}

inline Finding still_finding(const MovementState& state, const std::string& name,
                             const SlowTensor& slow, const Subject& subject) {
  return Finding::that("share", slow.share)
      .is("<", "still", state.bounds.still)
      .titled(name, Verb::does_not, "move beside others of its role")
      .says(sentence("{} goes {} times as far as the median of the tensors of its role, as a share "
                     "of its size, at {} words in a row up to {}. It has a gradient, and did not "
                     "begin at zero.",
                     name, slow.share, slow.words, subject.place()))
      .advises(
          "Look for what comes between it and the loss: a saturated or badly scaled layer, a "
          "branch "
          "that is multiplied by a small number, or weights that are far too large.")
      .with("compared", state.compared);
}

inline Finding no_pay_finding(const MovementState& state, const Subject& subject) {
  const PayCourse& pay = state.pay;
  return Finding::that("fallen", pay.fallen)
      .is("<", "limit", PayCourse::kShare * pay.promised)
      .titled("updates", Verb::do_not, "pay")
      .says(
          sentence("In the last {} updates up to {} each gradient says that the update before went "
                   "down: by {} in all. The loss fell by {} (error {}), and it is no better than "
                   "one constant answer.",
                   pay.updates, subject.place(), pay.promised, pay.fallen, pay.error))
      .advises(
          "Check that this loss is the one that backward() is called of, and no part of it that a "
          "larger one outweighs. If it is, each step may be too long: divide the learning rate by "
          "3.")
      .with("promised", pay.promised)
      .with("error", pay.error);
}

}  // namespace tocsin::rules
