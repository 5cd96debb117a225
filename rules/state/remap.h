// Restoring state that other rules wrote, and going on with other rules: those that are the same
// (name, type and parameters) keep their memory, new ones start now, and what removed or changed ones
// had fired is resolved.
#pragma once

#include <string>

#include "rules/run/context.h"
#include "rules/run/issue_book.h"

namespace tocsin::rules {

/// `before`: RuleTable::layout() of the rules that the run's state belongs to.
void remap(Context& ctx, IssueBook& book, PartitionState& partition, Run& run,
           const std::string& before);

}  // namespace tocsin::rules
