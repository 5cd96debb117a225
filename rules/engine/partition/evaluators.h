// The evaluator of a rule in a run, for whoever has something to tell it.
#pragma once

#include <cstdint>

#include "rules/engine/partition/context.h"

namespace tocsin::rules {

/// Of RuleTable::evaluated[number]; made when it is its first input. It is about to change: what is
/// due of it goes to the snapshot.
Evaluator& evaluator_of(Context& ctx, Run& run, std::uint32_t number);

}  // namespace tocsin::rules
