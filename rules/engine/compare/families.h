// Families of runs: what those that completed were like, for rules that judge a run by its elders. A
// family is kept as a run of the partition that nobody is: its evaluators hold what they learned.
// What a run leaves behind goes to the families of other partitions by the topic `comparisons`.
#pragma once

#include <cstdint>
#include <optional>

#include "rules/engine/partition/context.h"

namespace tocsin::rules {

/// Whether this is such a one.
bool is_family(const RuleTable& rules, const Run& run);

/// Of RuleTable::evaluated[number], in the family of the run; nullptr: it has none, or the rule looks at no
/// family.
const Evaluator* evaluator_of_family(const Context& ctx, const Run& run, std::uint32_t number);

/// A rule of a family begins to follow a run: from now on what others say of its family is of use here.
void meet_family(Context& ctx, const Run& run, std::uint32_t number);

/// The run has ended: if it completed, its families know it from now on, here and elsewhere.
void join_families(Context& ctx, Run& run);

}  // namespace tocsin::rules
