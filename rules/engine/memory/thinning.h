// What the overhead governor of a run's hooks has taken from which collection, as they say it.
#pragma once

#include <string>

#include "core/lifecycle.h"
#include "rules/engine/memory/job.h"
#include "rules/rules.h"

namespace tocsin::rules {

/// `applied` of a governor: its factors by collection. Anything else changes nothing.
void note_thinning(Job& job, const core::Lifecycle& applied);
/// What a rule with these needs goes without; empty: nothing.
std::string thinned_words(const Job& job, const Program& program);

}  // namespace tocsin::rules
