// Which run an issue is about, and whether it ends with it.
#pragma once

#include <string>

#include "core/issue.h"

namespace tocsin::routing {

/// Its uid as text, from the run or the label; empty: none.
std::string run_of(const core::Issue& issue);

/// Issues about how a run ended (job_failed, job_lost, stop_failed) are not over when it is: a next
/// attempt, their producer or time ends them.
bool outlives_its_run(const core::Issue& issue);

}  // namespace tocsin::routing
