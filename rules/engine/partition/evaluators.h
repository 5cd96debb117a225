// The evaluator of a rule in a run or a family, for whoever has something to tell it.
#pragma once

#include <cstdint>

#include "rules/engine/partition/partition.h"

namespace tocsin::rules {

/// Of RuleTable::evaluated[number]; made when it is its first input. It is about to change: what is
/// due of it goes to the snapshot.
template <typename RunOrFamily>
Evaluator& evaluator_of(PartitionState& part, RunOrFamily& owner, std::uint32_t number) {
  const auto& evaluated = part.rules->evaluated;
  if (owner.evaluators.size() < evaluated.size()) owner.evaluators.resize(evaluated.size());
  EvaluatorPart& found = owner.evaluators[number];
  if (!found.evaluator) {
    part.cut.touch_head(owner);
    found.evaluator = evaluated[number].program->evaluator();
    found.identity = evaluated[number].identity;
  }
  part.cut.touch_evaluator(owner, number);
  return *found.evaluator;
}

}  // namespace tocsin::rules
