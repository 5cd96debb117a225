// Rules that compare every run with one other run: where that one's data is, and who it is.
#pragma once

#include <cstdint>
#include <string>

#include "rules/engine/partition/partition.h"

namespace tocsin::rules {

/// Whether some rule compares other runs with this one: then it is not forgotten.
bool is_compared_with(const RuleTable& rules, const Run& run);

/// The rule's evaluator of the run that it compares others with; nullptr: this partition has none.
/// Runs of a partition are judged by what stands in its own log alone: what other partitions hold is
/// not looked at, even where the same engine has them.
const Evaluator* evaluator_of_other(const PartitionState& part, std::uint32_t rule);

/// What the keys of records about that run begin with: its uid, the rule by its identity.
std::string comparison_key(const core::RunUid& run, std::uint64_t identity);

}  // namespace tocsin::rules
