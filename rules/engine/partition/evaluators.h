// The evaluator of a rule in a run, for whoever has something to tell it.
#pragma once

#include <cstdint>

#include "rules/engine/partition/partition.h"

namespace tocsin::rules {

/// Of RuleTable::evaluated[number]; made when it is its first input. It is about to change: what is
/// due of it goes to the snapshot.
inline Evaluator& evaluator_of(PartitionState& part, Run& run, std::uint32_t number) {
  const auto& evaluated = part.rules->evaluated;
  if (run.evaluators.size() < evaluated.size()) run.evaluators.resize(evaluated.size());
  EvaluatorPart& found = run.evaluators[number];
  if (!found.evaluator) {
    part.cut.touch_head(run);
    found.evaluator = evaluated[number].program->evaluator();
    found.identity = evaluated[number].identity;
  }
  part.cut.touch_evaluator(run, number);
  return *found.evaluator;
}

}  // namespace tocsin::rules
