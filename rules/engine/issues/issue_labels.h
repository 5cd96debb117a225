// The labels of what the engine says, made to fit (core/limits.h): of what the run and the configuration add the last
// go first, and none that the engine itself sets.
#pragma once

#include "core/labels.h"

namespace tocsin::rules {

void bound_issue_labels(core::Labels& labels);

}  // namespace tocsin::rules
